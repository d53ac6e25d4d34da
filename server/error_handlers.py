"""Django's error handlers: failures outside any endpoint, rendered for the wire of the request."""

from __future__ import annotations

import sys

from django.http import HttpRequest, HttpResponse

from frontend import error_pages
from iceberg_rest.errors import render_error as iceberg_error
from metalake.database_errors import unavailable
from metalake.errors import Invalid, MetalakeError, NotFound
from metalake.logs import note_failure
from metalake.rest.exceptions import render_error as native_error
from metalake.rest.exceptions import shape_of


def render_for(request: HttpRequest, error: MetalakeError) -> HttpResponse:
    """A failure outside any endpoint, rendered for the wire of the request."""
    match request.wire:  # type: ignore[attr-defined]
        case "iceberg":
            return iceberg_error(error).as_response()
        case "page":
            status, _, _ = shape_of(error)
            if isinstance(error, Invalid):  # the Host is not ours: no page is rendered for it
                return HttpResponse(error.message, status=status, content_type="text/plain; charset=utf-8")
            return error_pages.refuse_without_store(request, status, error.message)
    return native_error(error)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if request.wire == "page":  # type: ignore[attr-defined]
        return error_pages.refuse_without_store(request, 400)
    return render_for(request, Invalid("The request cannot be read."))


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Only pages and the admin raise Django's PermissionDenied."""
    return error_pages.refuse(request, 403)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if request.wire == "page":  # type: ignore[attr-defined]
        return error_pages.refuse(request, 404)
    return render_for(request, NotFound("There is nothing at this path."))


def server_failed(request: HttpRequest) -> HttpResponse:
    """Render a server failure; a database failure gets Retry-After."""
    if failed := unavailable(sys.exc_info()[1] or Exception()):
        note_failure(failed)
        response = render_for(request, failed)
        response["Retry-After"] = str(failed.retry_after)
        return response
    if request.wire == "page":  # type: ignore[attr-defined]
        return error_pages.refuse_without_store(request, 500)
    return render_for(request, MetalakeError("The server failed; the request's id is in its log."))
