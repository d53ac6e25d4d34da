from django.urls import path

from frontend.pages import catalogs, components, objects, outside, sign_in, tokens

app_name = "frontend"

# Names may contain any character, so pages address objects by id, which also survives a rename.
urlpatterns = [
    path("", objects.home, name="home"),
    path("tree", objects.list_metalakes, name="tree"),
    path("objects/<int:object_id>", objects.show_object, name="object"),
    path("objects/<int:object_id>/children", objects.list_children, name="children"),
    path("metalakes/<int:metalake_id>/catalogs/new", catalogs.register, name="register"),
    path("catalogs/<int:catalog_id>/settings", catalogs.change, name="settings"),
    path("catalogs/<int:catalog_id>/nesting", catalogs.check_nesting, name="nesting"),
    path("catalogs/<int:catalog_id>/outside", outside.outside, name="outside"),
    path("catalogs/<int:catalog_id>/refreshes", outside.start, name="refresh"),
    path("catalogs/<int:catalog_id>/refreshes/<int:run_id>/stop", outside.stop, name="stop"),
    path("catalogs/<int:catalog_id>/writes/<int:intent_id>/retry", outside.retry, name="retry"),
    path("catalogs/<int:catalog_id>/writes/<int:intent_id>/give-up", outside.give_up, name="give-up"),
    path("tokens", tokens.show_tokens, name="tokens"),
    path("tokens/<int:token_id>/revoke", tokens.revoke_token, name="revoke"),
    path("components", components.components, name="components"),
    path("login", sign_in.login, name="login"),
    path("logout", sign_in.logout, name="logout"),
]
