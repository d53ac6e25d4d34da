"""What every request passes: its id, the raw path for the wires, size limits; sessions and CSRF for pages alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from django.conf import settings
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.common import CommonMiddleware
from django.middleware.csrf import CsrfViewMiddleware
from django.middleware.security import SecurityMiddleware
from django_htmx.middleware import HtmxMiddleware
from prometheus_client import Counter, Histogram
from whitenoise.middleware import WhiteNoiseMiddleware

from metalake.context import request_id

WIRES = ("/api/", "/iceberg/", "/configs", "/health", "/metrics")
REQUESTS = Counter("metalake_requests", "Requests answered", ["wire", "method", "status"])
SECONDS = Histogram("metalake_request_seconds", "Time to answer", ["wire"])

Next = Callable[[HttpRequest], HttpResponse]


def wire_of(path: str) -> str:
    """ "api", "iceberg" and the like; "page" for everything people look at."""
    return path.split("/", 2)[1] if path.startswith(WIRES) else "page"


class Wire:
    """Outermost: names the request, keeps its path as it was sent, and counts it."""

    def __init__(self, get_response: Next) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started = time.perf_counter()
        # The native Python client says goodbye with this method and wants a 200.
        if request.method == "CLOSE":
            return JsonResponse({"code": 0})
        wire = request.wire = wire_of(request.path_info)  # type: ignore[attr-defined]
        token = request_id.set(request.headers.get("X-Request-Id", "")[:64] or uuid4().hex)
        try:
            if wire in ("api", "iceberg"):
                request.path_info = raw_path(request.META)
            response = self._too_large(request, wire) or self.get_response(request)
            response["X-Request-Id"] = request_id.get()
        finally:
            request_id.reset(token)
        REQUESTS.labels(wire, request.method if request.method in _METHODS else "other", response.status_code).inc()
        SECONDS.labels(wire).observe(time.perf_counter() - started)
        return response

    @staticmethod
    def _too_large(request: HttpRequest, wire: str) -> HttpResponse | None:
        limit = settings.METALAKE_MAX_COMMIT_BODY if wire == "iceberg" else settings.METALAKE_MAX_BODY
        if int(request.META.get("CONTENT_LENGTH") or 0) <= limit:
            return None
        from metalake.errors import TooLarge
        from metalake.urls import render_for

        return render_for(request, TooLarge(f"The request body may take {limit} bytes."))


_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


def raw_path(meta: dict[str, Any]) -> str:
    """The path as it was sent, still encoded; servers that decode it away get it re-encoded, which loses %2F."""
    target = meta.get("RAW_URI") or meta.get("REQUEST_URI")
    if not target:
        return quote(meta["PATH_INFO"].encode("latin-1"), safe="/:@!$&'()*+,;=~")
    if not target.startswith("/"):
        _, _, target = target.partition("://")
        target = "/" + target.partition("/")[2]
    return target.partition("?")[0]


def pages_only(middleware: type) -> type:
    """The same middleware, passed by when the request is on a wire."""

    class OnPages(middleware):  # type: ignore[misc, valid-type]
        def __call__(self, request: HttpRequest) -> HttpResponse:
            if request.wire != "page":
                return self.get_response(request)
            return super().__call__(request)

    if hasattr(middleware, "process_view"):

        def process_view(self: Any, request: HttpRequest, *rest: Any) -> HttpResponse | None:
            if request.wire != "page":
                return None
            return middleware.process_view(self, request, *rest)

        OnPages.process_view = process_view  # type: ignore[attr-defined]
    OnPages.__name__ = middleware.__name__
    return OnPages


class ContentSecurityMiddleware:
    """Pages run our own scripts and styles only."""

    policy = (
        "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; "
        "frame-ancestors 'none'; form-action 'self'; base-uri 'none'; object-src 'none'"
    )

    def __init__(self, get_response: Next) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        # The admin's own scripts are written inline and evaluate expressions.
        loose = "; script-src 'self' 'unsafe-inline' 'unsafe-eval'" if request.path.startswith("/admin/") else ""
        response.setdefault("Content-Security-Policy", self.policy + loose)
        return response


Security = pages_only(SecurityMiddleware)
StaticFiles = pages_only(WhiteNoiseMiddleware)
Sessions = pages_only(SessionMiddleware)
Common = pages_only(CommonMiddleware)
Csrf = pages_only(CsrfViewMiddleware)
Authentication = pages_only(AuthenticationMiddleware)
Messages = pages_only(MessageMiddleware)
Framing = pages_only(XFrameOptionsMiddleware)
ContentSecurity = pages_only(ContentSecurityMiddleware)
Htmx = pages_only(HtmxMiddleware)
