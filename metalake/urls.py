"""Every door of the server. On the wires, paths are matched as they were sent: segments are still encoded."""

from __future__ import annotations

import sys

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import include, path, re_path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from frontend import sign_in
from iceberg_rest.errors import render_error as iceberg_error
from metalake import health
from metalake.causes import unavailable
from metalake.errors import Invalid, MetalakeError, NotFound
from metalake.logs import note_failure
from metalake.middleware import ContentSecurity
from metalake.rest.exceptions import render_error as native_error
from metalake.rest.exceptions import shape_of

described = SpectacularSwaggerSplitView.as_view(url_name="schema")  # its script apart, so that none is inline

urlpatterns = [
    path("iceberg/", include("iceberg_rest.urls")),  # the hot reads first
    path("api/", include("catalogs.urls")),
    path("api/", include("outside.urls")),
    path("api/", include("authz.urls")),
    path("api/version", health.Version.as_view()),
    path("api/schema/", SpectacularAPIView.as_view(), name="schema"),
    path("api/schema/ui/", ContentSecurity(described), name="schema-ui"),
    re_path(r"^(?:api/)?health(?:/live)?$", health.Live.as_view()),
    re_path(r"^(?:api/)?health/ready$", health.Ready.as_view()),
    path("configs", health.Configs.as_view()),
    path("metrics", health.metrics),
    path("admin/login/", sign_in.admin_login),
    path("admin/password_change/", sign_in.admin_password),
    path("admin/", admin.site.urls),
    path("", include("frontend.urls")),
]


def render_for(request: HttpRequest, error: MetalakeError) -> HttpResponse:
    """A failure outside every endpoint, in the shape of the wire it came by; on pages a sentence."""
    match request.wire:  # type: ignore[attr-defined]
        case "iceberg":
            return iceberg_error(error)
        case "page":
            status, _, _ = shape_of(error)
            return HttpResponse(error.message, status=status, content_type="text/plain; charset=utf-8")
    return native_error(error)


def handler400(request: HttpRequest, exception: Exception) -> HttpResponse:
    return render_for(request, Invalid("The request cannot be read."))


def handler404(request: HttpRequest, exception: Exception) -> HttpResponse:
    if request.wire == "page":  # type: ignore[attr-defined]
        from django.views.defaults import page_not_found

        return page_not_found(request, exception)
    return render_for(request, NotFound("There is nothing at this path."))


def handler500(request: HttpRequest) -> HttpResponse:
    """While the failure is handled: a page for which the database failed may be asked for again."""
    if failed := unavailable(sys.exc_info()[1] or Exception()):
        note_failure(failed)
        response = render_for(request, failed)
        response["Retry-After"] = str(failed.retry_after)
        return response
    if request.wire == "page":  # type: ignore[attr-defined]
        from django.views.defaults import server_error

        return server_error(request)
    return render_for(request, MetalakeError("The server failed; the request's id is in its log."))
