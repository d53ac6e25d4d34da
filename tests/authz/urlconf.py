"""The doors of authz and access alone, so that their tests need no other app's."""

from django.urls import include, path

urlpatterns = [path("api/", include("authz.urls")), path("api/", include("access.urls"))]
