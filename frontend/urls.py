from django.urls import path

from frontend import pages

app_name = "frontend"

# Names hold any character, so objects are addressed by their ids, which also outlive a rename.
urlpatterns = [
    path("", pages.home, name="home"),
    path("tree", pages.list_metalakes, name="tree"),
    path("objects/<int:object_id>", pages.show_object, name="object"),
    path("objects/<int:object_id>/children", pages.list_children, name="children"),
    path("tokens", pages.tokens, name="tokens"),
    path("tokens/<int:token_id>/revoke", pages.revoke_token, name="revoke"),
    path("login", pages.login, name="login"),
    path("logout", pages.logout, name="logout"),
]
