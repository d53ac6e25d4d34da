"""The doors of authz alone, so that its tests need no other app's."""

from django.urls import include, path

urlpatterns = [path("api/", include("authz.urls"))]
