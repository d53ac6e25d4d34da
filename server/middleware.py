"""Middleware: every request gets its id, address, raw path and size limit; pages also get sessions and CSRF."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.cache import patch_vary_headers
from django.utils.module_loading import import_string

from metalake.bodies import limit_of
from metalake.client_address import client_of
from metalake.errors import Invalid, MetalakeError, TooLarge
from metalake.headers import ADMIN, BY_CALLER, HARMLESS, PAGES, caching
from metalake.request_context import Door, address, door, request_id
from metalake.request_target import WIRE_NAMES, read_target, require_host, require_one_wire, wire_of
from metalake.rest.exceptions import error_response_to_both
from metalake.user_agents import engine_of
from server.error_handlers import render_for
from server.response_log import BODILESS, count_answer, id_of_request

Next = Callable[[HttpRequest], HttpResponse]


class Wire:
    """The outermost middleware: sets the request's id, checks host and size, restores its raw path and counts it."""

    def __init__(self, get_response: Next) -> None:
        from iceberg_rest.urls import answer

        self.get_response = get_response
        # Called directly: middleware and URL resolving would double the latency of a load.
        self.iceberg: Next = convert_exception_to_response(answer)  # type: ignore[assignment]

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started = time.perf_counter()
        token = request_id.set(id_of_request(request.META.get("HTTP_X_REQUEST_ID", "")))
        came_from = address.set(client_of(request.META, settings.METALAKE_TRUSTED_PROXIES))
        came_by = door.set(Door("page", engine_of(request.META.get("HTTP_USER_AGENT", "")), set()))
        try:
            response = self._answer(request)
            response["X-Request-Id"] = request_id.get()
            for name, value in HARMLESS.items():
                response.setdefault(name, value)
            if request.wire != "page" and "Cache-Control" not in response:  # type: ignore[attr-defined]
                response["Cache-Control"] = caching(request.method, response.status_code)
                patch_vary_headers(response, BY_CALLER.split(", "))
            if not response.streaming:
                if response.status_code not in BODILESS:
                    response.setdefault("Content-Length", str(len(response.content)))
                if request.method == "HEAD":
                    response.content = b""
        finally:
            door.reset(came_by)
            address.reset(came_from)
            request_id.reset(token)
        count_answer(request.wire, request.method, response.status_code, started)  # type: ignore[attr-defined]
        return response

    def _answer(self, request: HttpRequest) -> HttpResponse:
        request.wire = "page"  # type: ignore[attr-defined]
        try:
            path = read_target(request.META)
            require_one_wire(path, request.path_info)
        except Invalid as unreadable:
            return error_response_to_both(unreadable)
        wire = request.wire = wire_of(path)  # type: ignore[attr-defined]
        if wire in ("api", "iceberg"):
            request.path_info = path
            door.set(door.get()._replace(wire=WIRE_NAMES[wire]))
        try:
            require_host(request.META, wire)
            _require_size(request)
        except MetalakeError as refusal:
            return render_for(request, refusal)
        # The native Python client ends with a request of this method and expects a 200.
        if request.method == "CLOSE":
            return JsonResponse({"code": 0})
        return (self.iceberg if wire == "iceberg" else self.get_response)(request)


def _require_size(request: HttpRequest) -> None:
    limit = limit_of(request.path_info)
    length = str(request.META.get("CONTENT_LENGTH") or "")
    if length.isdecimal() and int(length) > limit:
        raise TooLarge(f"The request body may take {limit} bytes.")


class PagesOnly:
    """Runs the page middleware for pages only: the wires need no session, CSRF or static files."""

    def __init__(self, get_response: Next) -> None:
        self.wires = get_response
        self.pages = get_response
        self.process_views: list[Callable] = []
        for path in reversed(settings.PAGE_MIDDLEWARE):
            middleware = import_string(path)(self.pages)
            self.pages = convert_exception_to_response(middleware)  # type: ignore[assignment]
            if hasattr(middleware, "process_view"):
                self.process_views.insert(0, middleware.process_view)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.wire != "page":  # type: ignore[attr-defined]
            return self.wires(request)
        response = self.pages(request)
        for cookie in response.cookies.values():
            cookie["path"] = settings.METALAKE_PATH_PREFIX or "/"
        return response

    def process_view(self, request: HttpRequest, *rest: Any) -> HttpResponse | None:
        """The first response that a middleware returns instead of the page; CSRF is checked here."""
        if request.wire != "page":  # type: ignore[attr-defined]
            return None
        return next((answer for process in self.process_views if (answer := process(request, *rest))), None)


class ContentSecurity:
    """Sets the Content-Security-Policy of pages: only our own scripts and styles. Can also wrap a single view."""

    def __init__(self, get_response: Next) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.setdefault("Content-Security-Policy", ADMIN if request.path_info.startswith("/admin/") else PAGES)
        return response
