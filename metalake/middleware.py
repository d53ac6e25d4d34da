"""What every request passes: its id, the raw path for the wires, size limits; sessions and CSRF for pages alone."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import cache
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from django.conf import settings
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.module_loading import import_string
from prometheus_client import Counter, Histogram

from metalake.context import request_id

WIRES = frozenset({"api", "iceberg", "configs", "health", "metrics"})
REQUESTS = Counter("metalake_requests", "Requests answered", ["wire", "method", "status"])
SECONDS = Histogram("metalake_request_seconds", "Time to answer", ["wire"])

Next = Callable[[HttpRequest], HttpResponse]


def wire_of(path: str) -> str:
    """ "api", "iceberg" and the like; "page" for everything people look at."""
    first = path.removeprefix("/").partition("/")[0]
    return first if first in WIRES else "page"


class Wire:
    """Outermost: names the request, keeps its path as it was sent, and counts it."""

    def __init__(self, get_response: Next) -> None:
        from iceberg_rest.urls import answer

        self.get_response = get_response
        # Straight to its door: middleware and URL resolving would double what a load costs.
        self.iceberg: Next = convert_exception_to_response(answer)  # type: ignore[assignment]

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started = time.perf_counter()
        # The native Python client says goodbye with this method and wants a 200.
        if request.method == "CLOSE":
            return JsonResponse({"code": 0})
        wire = request.wire = wire_of(request.path_info)  # type: ignore[attr-defined]
        given = request.META.get("HTTP_X_REQUEST_ID", "")
        token = request_id.set(given if _REQUEST_ID.fullmatch(given) else uuid4().hex)
        try:
            if wire in ("api", "iceberg"):
                request.path_info = raw_path(request.META)
            door = self.iceberg if wire == "iceberg" else self.get_response
            response = self._too_large(request, wire) or door(request)
            response["X-Request-Id"] = request_id.get()
            if not response.streaming:
                response.setdefault("Content-Length", str(len(response.content)))
                if request.method == "HEAD":
                    response.content = b""
        finally:
            request_id.reset(token)
        answered, took = _meters(wire, request.method if request.method in _METHODS else "other", response.status_code)
        answered.inc()
        took.observe(time.perf_counter() - started)
        return response

    @staticmethod
    def _too_large(request: HttpRequest, wire: str) -> HttpResponse | None:
        limit = _limit(request, wire)
        length = str(request.META.get("CONTENT_LENGTH") or "")
        if not length.isdecimal() or int(length) <= limit:
            return None
        from metalake.errors import TooLarge
        from metalake.urls import render_for

        return render_for(request, TooLarge(f"The request body may take {limit} bytes."))


def _limit(request: HttpRequest, wire: str) -> int:
    if wire == "iceberg":
        return settings.METALAKE_MAX_COMMIT_BODY
    is_plan = wire == "api" and _PLAN.fullmatch(request.path_info)
    return settings.METALAKE_MAX_PLAN_BODY if is_plan else settings.METALAKE_MAX_BODY


_PLAN = re.compile(r"/api/metalakes/[^/]+/access/plan/?")


@cache
def _meters(wire: str, method: str | None, status: int) -> tuple[Counter, Histogram]:
    return REQUESTS.labels(wire, method, status), SECONDS.labels(wire)


_REQUEST_ID = re.compile(r"[A-Za-z0-9._:/=+;,@-]{1,64}")
_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


def raw_path(meta: dict[str, Any]) -> str:
    """The path as it was sent, still encoded; servers that decode it away get it re-encoded, which loses %2F."""
    target = meta.get("RAW_URI") or meta.get("REQUEST_URI")
    if not target:
        return quote(meta["PATH_INFO"], safe="/:@!$&'()*+,;=~")
    if not target.startswith("/"):
        _, _, target = target.partition("://")
        target = "/" + target.partition("/")[2]
    # What a client did not encode arrives byte by byte.
    return re.sub(r"[^\x00-\x7f]", lambda byte: quote(byte[0], encoding="latin-1"), target.partition("?")[0])


class PagesOnly:
    """The middleware of pages, in order, around them alone: the wires need no session, CSRF or static files."""

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
        return self.pages(request) if request.wire == "page" else self.wires(request)  # type: ignore[attr-defined]

    def process_view(self, request: HttpRequest, *rest: Any) -> HttpResponse | None:
        """The first answer that one of them gives instead of the page; CSRF is checked here."""
        if request.wire != "page":  # type: ignore[attr-defined]
            return None
        return next((answer for process in self.process_views if (answer := process(request, *rest))), None)


class ContentSecurity:
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
