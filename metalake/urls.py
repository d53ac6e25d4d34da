"""All URLs of the server. API paths are matched as sent, with segments still encoded."""

from __future__ import annotations

from django.apps import apps
from django.contrib import admin
from django.urls import include, path, re_path
from drf_spectacular.views import SpectacularSwaggerSplitView

from frontend.pages import sign_in
from server import health
from server.middleware import ContentSecurity
from server.openapi_document import Description

described = SpectacularSwaggerSplitView.as_view(  # the view without inline scripts
    template_name="frontend/api.html", url_name="schema"
)

admin.site.index_template = "server/operators.html"

urlpatterns = [
    path("api/", include("catalogs.urls")),  # the hot reads first
    path("api/", include("authz.urls")),
    path("api/", include("access.urls")),
    path("api/", include("outside.urls")),
    *(path("api/", include(app.native_urls)) for app in apps.get_app_configs() if hasattr(app, "native_urls")),
    path("api/version", health.Version.as_view()),
    path("api/schema/", Description.as_view(), name="schema"),
    path("api/schema/ui/", ContentSecurity(described), name="schema-ui"),
    re_path(r"^(?:api/)?health(?:/live)?$", health.Live.as_view()),
    re_path(r"^(?:api/)?health/ready$", health.Ready.as_view()),
    path("configs", health.Configs.as_view()),
    path("metrics", health.metrics),
    path("iceberg/", include("iceberg_rest.urls")),  # server.middleware calls these directly
    path("admin/login/", sign_in.admin_login),
    path("admin/password_change/", sign_in.admin_password),
    path("admin/", admin.site.urls),
    path("", include("frontend.urls")),
]

handler400 = "server.error_handlers.bad_request"
handler403 = "server.error_handlers.forbidden"
handler404 = "server.error_handlers.not_found"
handler500 = "server.error_handlers.server_failed"
