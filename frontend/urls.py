from django.urls import path

from frontend import catalog_pages, outside_pages, pages, sign_in

app_name = "frontend"

# Names may contain any character, so pages address objects by id, which also survives a rename.
urlpatterns = [
    path("", pages.home, name="home"),
    path("tree", pages.list_metalakes, name="tree"),
    path("objects/<int:object_id>", pages.show_object, name="object"),
    path("objects/<int:object_id>/children", pages.list_children, name="children"),
    path("metalakes/<int:metalake_id>/catalogs/new", catalog_pages.register, name="register"),
    path("catalogs/<int:catalog_id>/settings", catalog_pages.change, name="settings"),
    path("catalogs/<int:catalog_id>/nesting", catalog_pages.check_nesting, name="nesting"),
    path("catalogs/<int:catalog_id>/outside", outside_pages.outside, name="outside"),
    path("catalogs/<int:catalog_id>/refreshes", outside_pages.start, name="refresh"),
    path("catalogs/<int:catalog_id>/refreshes/<int:run_id>/stop", outside_pages.stop, name="stop"),
    path("catalogs/<int:catalog_id>/writes/<int:intent_id>/retry", outside_pages.retry, name="retry"),
    path("catalogs/<int:catalog_id>/writes/<int:intent_id>/give-up", outside_pages.give_up, name="give-up"),
    path("tokens", pages.tokens, name="tokens"),
    path("tokens/<int:token_id>/revoke", pages.revoke_token, name="revoke"),
    path("login", sign_in.login, name="login"),
    path("logout", sign_in.logout, name="logout"),
]
