"""Failures outside every endpoint, in the shape of the wire that the request came by."""

from __future__ import annotations

import sys

from django.http import HttpRequest, HttpResponse
from django.views.defaults import page_not_found, server_error

from iceberg_rest.errors import render_error as iceberg_error
from metalake.causes import unavailable
from metalake.errors import Invalid, MetalakeError, NotFound
from metalake.logs import note_failure
from metalake.rest.exceptions import render_error as native_error
from metalake.rest.exceptions import shape_of


def render_for(request: HttpRequest, error: MetalakeError) -> HttpResponse:
    """A failure outside every endpoint, in the shape of the wire it came by; on pages a sentence."""
    match request.wire:  # type: ignore[attr-defined]
        case "iceberg":
            return iceberg_error(error)
        case "page":
            status, _, _ = shape_of(error)
            return HttpResponse(error.message, status=status, content_type="text/plain; charset=utf-8")
    return native_error(error)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return render_for(request, Invalid("The request cannot be read."))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if request.wire == "page":  # type: ignore[attr-defined]
        return page_not_found(request, exception)
    return render_for(request, NotFound("There is nothing at this path."))


def server_failed(request: HttpRequest) -> HttpResponse:
    """Render a failure of the server; one of the database says when to try again."""
    if failed := unavailable(sys.exc_info()[1] or Exception()):
        note_failure(failed)
        response = render_for(request, failed)
        response["Retry-After"] = str(failed.retry_after)
        return response
    if request.wire == "page":  # type: ignore[attr-defined]
        return server_error(request)
    return render_for(request, MetalakeError("The server failed; the request's id is in its log."))
