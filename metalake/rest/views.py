"""The base class of native API endpoints: decoded path segments, validated bodies, the envelope."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from functools import cache, cached_property, wraps
from io import BytesIO
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, re_path
from pydantic import BaseModel
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.views import APIView

from metalake import listeners
from metalake.bodies import require_own_page
from metalake.errors import Invalid
from metalake.kinds import Kind
from metalake.lineage import Address, address_in
from metalake.request_target import decode
from metalake.rest.declarations import Declaration
from metalake.rest.negotiation import VersionedJSON, asks_for_gravitino
from metalake.rest.replies import with_age
from metalake.wire import kind_of, quote, read

Payload = dict[str, Any] | HttpResponseBase


def answers(
    operation: str,
    *,
    body: type[BaseModel] | None = None,
    reply: dict[str, Any] | None = None,
    query: tuple[str, ...] = (),
    id: str | None = None,
    body_is_optional: bool = False,
    refuse: Callable[[Any], None] | None = None,
    looks_up: Callable[[Any], Address] | None = None,
    streams: bool = False,
) -> Callable[[Callable[..., Payload]], Callable[..., HttpResponseBase]]:
    """Declare an endpoint method: it gets the actor, the decoded path names and the body, and returns the payload."""
    declaration = Declaration(
        operation=operation,
        body=body,
        reply=reply,
        query=query,
        id=id,
        body_is_optional=body_is_optional,
        refuse=refuse,
        looks_up=looks_up,
        streams=streams,
    )

    def declare(method: Callable[..., Payload]) -> Callable[..., HttpResponseBase]:
        @wraps(method)
        def endpoint(self: Endpoint, request: Request, **raw: str) -> HttpResponseBase:
            given: dict[str, Any] = dict(self.names)
            if body is not None:
                given["body"] = self.read_body(declaration)
            return self.respond(method(self, self.actor, **given))

        endpoint.declaration = declaration  # type: ignore[attr-defined]
        return endpoint

    return declare


class Endpoint(APIView):
    """Base class of native API endpoints."""

    http_method_names = ["get", "head", "post", "put", "patch", "delete"]
    content_negotiation_class = VersionedJSON
    actor: Any = None
    taken_at: datetime | None = None  # when the remote system responded
    files_kept: str | None = None  # why a dropped object's files were not deleted
    announcer: listeners.Announcer | None = None  # if there are listeners

    @classmethod
    def is_open(cls) -> bool:
        """Whether it allows anonymous callers."""
        return AllowAny in cls.permission_classes

    @property
    def allowed_methods(self) -> list[str]:
        return _methods_of(type(self))  # type: ignore[arg-type]

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        """Copies hot attributes to the request, since the framework's lookup takes 1 us each time."""
        made = super().initialize_request(request, *args, **kwargs)
        made.META, made.method = request.META, request.method
        return made

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        declaration = self.declaration if listeners.listeners else None
        if declaration is None:
            return super().dispatch(request, *args, **kwargs)
        with listeners.announcing("native", declaration.operation) as self.announcer:
            response: HttpResponseBase = super().dispatch(request, *args, **kwargs)
            self.announcer.answers(response.status_code)
            return response

    def perform_authentication(self, request: Request) -> None:
        self.actor = request.user
        if self.announcer and self.actor is not None:
            self.announcer.begins(self.actor.name, self.readable_names)

    def handle_exception(self, exc: Exception) -> HttpResponseBase:
        if self.announcer:
            self.announcer.error = exc
        return super().handle_exception(exc)

    @property
    def declaration(self) -> Declaration | None:
        """The declaration of the requested method; None if the endpoint does not serve it."""
        method = self.request.method.lower()
        handler = getattr(self, method, None) if method in self.http_method_names else None
        return getattr(handler, "declaration", None)

    @cached_property
    def names(self) -> dict[str, str]:
        """The names in the path, decoded. Raises Invalid."""
        return {name: decode(value) for name, value in self.kwargs.items()}

    @cached_property
    def address(self) -> Address:
        """The address of the object in the path. Raises Invalid."""
        return address_in(self.names)

    @property
    def readable_names(self) -> dict[str, str]:
        """The same; empty if one of them cannot be decoded."""
        try:
            return self.names
        except Invalid:
            return {}

    def read_body(self, declaration: Declaration) -> Any:
        """The body as the declared model; None if it is optional and not sent. Raises Invalid, TooLarge."""
        if declaration.body_is_optional and not self.request.body:
            require_own_page(self.request)
            return None
        assert declaration.body is not None
        return read(declaration.body, self.read_data())

    def read_data(self) -> Any:
        """The parsed body; Django REST framework itself would read an empty one as {}."""
        request = self.request
        if request.body:
            return request.data
        parser = request.negotiator.select_parser(request, request.parsers)
        return parser.parse(BytesIO(), request.content_type, request.parser_context)

    def respond(self, payload: Payload) -> HttpResponseBase:
        """The payload in the API's envelope, unless it is already a response."""
        response = payload if isinstance(payload, HttpResponseBase) else self.render({"code": 0, **payload})
        if self.files_kept:
            response["X-Metalake-Files-Kept"] = self.files_kept
        return with_age(response, self.taken_at)

    def render(self, data: dict[str, Any]) -> HttpResponse:
        """Render immediately, by the negotiated renderer (docs/decisions/rest-framework.md)."""
        renderer, media_type = self.request.accepted_renderer, self.request.accepted_media_type
        return HttpResponse(renderer.render(data, media_type, self.get_renderer_context()), content_type=media_type)

    @property
    def is_for_gravitino(self) -> bool:
        """Whether the caller is a Gravitino client, which only knows Gravitino's own values."""
        return asks_for_gravitino(self.request.META.get("HTTP_ACCEPT", ""))

    def flag(self, name: str) -> bool:
        """A boolean query parameter, case-insensitive; False if absent. Raises Invalid."""
        value = (self.text(name) or "false").lower()
        if value not in ("true", "false"):
            raise Invalid(f"Query parameter {name} is true or false, not {quote(value)}.")
        return value == "true"

    def text(self, name: str) -> str | None:
        """A query parameter; None if absent. Raises Invalid for a NUL character."""
        if not self.request.META.get("QUERY_STRING"):
            return None  # parsing an empty query costs as much as a statement
        value = self.request.GET.get(name)
        if value is not None and "\0" in value:
            raise Invalid(f"Query parameter {name} holds a NUL character.")
        return value

    def place(self) -> tuple[Kind, str] | None:
        """The object in the query parameters type and fullName; None without them. Raises Invalid for only one."""
        type_, full_name = self.text("type"), self.text("fullName")
        if type_ is None and full_name is None:
            return None
        if type_ is None or full_name is None:
            raise Invalid("Name an object by type and fullName, or leave out both for all.", kind="object")
        return kind_of(type_), full_name


@cache
def _methods_of(endpoint: Any) -> list[str]:
    return [method.upper() for method in endpoint.http_method_names if hasattr(endpoint, method)]


class HotRead(NamedTuple):
    """A GET that the server's fast path serves (catalogs/fast_path.py)."""

    path: re.Pattern[str]
    endpoint: type[Endpoint]
    declared: Declaration

    @property
    def operation(self) -> str:
        return self.declared.operation


HOT_READS: list[HotRead] = []
"""The hot reads of all routes; importing `metalake.urls` adds them."""


def route(path: str, endpoint: type[Endpoint]) -> URLPattern:
    """A native API path: each <name> is one segment, still encoded; a trailing slash is optional."""
    segments = re.sub(r"<(\w+)>", r"(?P<\1>[^/]+)", path)
    pattern = rf"^{segments}/?$"
    declared: Declaration | None = getattr(getattr(endpoint, "get", None), "declaration", None)
    if declared and declared.looks_up:
        HOT_READS.append(HotRead(re.compile(pattern), endpoint, declared))
    return re_path(pattern, endpoint.as_view())
