from django.urls import path

from frontend.pages import (
    catalogs,
    components,
    containers,
    invitations,
    objects,
    outside,
    people,
    people_changes,
    search,
    sign_in,
    tokens,
)

app_name = "frontend"

# Names may contain any character, so pages address objects by id, which also survives a rename.
urlpatterns = [
    path("", objects.home, name="home"),
    path("tree", objects.list_metalakes, name="tree"),
    path("objects/<int:object_id>", objects.show_object, name="object"),
    path("objects/<int:object_id>/children", objects.list_children, name="children"),
    path("objects/<int:object_id>/schemas/new", containers.make_schema, name="make-schema"),
    path("metalakes/new", containers.make_metalake, name="make-metalake"),
    path("metalakes/<int:metalake_id>/people", people.show_people, name="people"),
    path("metalakes/<int:metalake_id>/people/change", people_changes.change, name="change-people"),
    path("metalakes/<int:metalake_id>/people/users", people.add_user, name="add-user"),
    path("metalakes/<int:metalake_id>/people/users/<int:user_id>", people.show_user, name="user"),
    path("metalakes/<int:metalake_id>/people/users/<int:user_id>/invitation", people.invite, name="invite"),
    path("metalakes/<int:metalake_id>/people/groups", people.add_group, name="add-group"),
    path("metalakes/<int:metalake_id>/people/groups/<int:group_id>", people.show_group, name="group"),
    path("metalakes/<int:metalake_id>/people/roles", people.add_role, name="add-role"),
    path("metalakes/<int:metalake_id>/people/roles/<int:role_id>", people.show_role, name="role"),
    path("metalakes/<int:metalake_id>/catalogs/new", catalogs.register, name="register"),
    path("catalogs/<int:catalog_id>/settings", catalogs.change, name="settings"),
    path("catalogs/<int:catalog_id>/nesting", catalogs.check_nesting, name="nesting"),
    path("catalogs/<int:catalog_id>/outside", outside.outside, name="outside"),
    path("catalogs/<int:catalog_id>/refreshes", outside.start, name="refresh"),
    path("catalogs/<int:catalog_id>/refreshes/<int:run_id>/stop", outside.stop, name="stop"),
    path("catalogs/<int:catalog_id>/writes/<int:intent_id>/retry", outside.retry, name="retry"),
    path("catalogs/<int:catalog_id>/writes/<int:intent_id>/give-up", outside.give_up, name="give-up"),
    path("search", search.search, name="search"),
    path("invitations/<str:secret>", invitations.invitation, name="invitation"),
    path("tokens", tokens.show_tokens, name="tokens"),
    path("tokens/<int:token_id>/revoke", tokens.revoke_token, name="revoke"),
    path("components", components.components, name="components"),
    path("login", sign_in.login, name="login"),
    path("logout", sign_in.logout, name="logout"),
]
