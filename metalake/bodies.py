"""Request bodies of both APIs: size limits, JSON parsing, validation by pydantic models.

One byte of JSON can take a hundred in memory, so a byte limit is not enough: values are counted before parsing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson
from django.conf import settings
from django.http import HttpRequest, UnreadablePostError

from metalake.errors import Forbidden, Invalid, MetalakeError, TooLarge
from metalake.request_target import wire_of
from metalake.wire import ESCAPED_BACKSLASH, AnyBody, holds_nul, read

JSON = "application/json"
NDJSON = "application/x-ndjson"  # a JSON value on each line

_PLAN = re.compile(r"/api/metalakes/[^/]+/access/plan/?")
_PLAN_PAGE = re.compile(r"/metalakes/\d+/plan")
_DELIVERY = re.compile(r"/api/metalakes/[^/]+/catalogs/[^/]+/refreshes/[^/]+/parts/?")


def limit_of(path: str) -> int:
    """The maximum body size, in bytes, of a request to this path."""
    wire = wire_of(path)
    if wire == "iceberg" or is_delivery(path):
        return settings.METALAKE_MAX_COMMIT_BODY
    if wire == "page" and _PLAN_PAGE.fullmatch(path):
        return settings.METALAKE_MAX_PLAN_FORM
    return settings.METALAKE_MAX_PLAN_BODY if wire == "api" and _PLAN.fullmatch(path) else settings.METALAKE_MAX_BODY


def is_delivery(path: str) -> bool:
    """Whether a request to this path delivers a chunk of a harvest."""
    return _DELIVERY.fullmatch(path) is not None


_STRINGS_AND_MARKS = re.compile(rb'"[^"]*+"|[,\[{]')


def require_few_values(body: bytes, limit: int, *, per_object: int = 1) -> None:
    """Raise TooLarge if a JSON body has more than `limit` values: members of objects, items of arrays.

    An object counts as `per_object` values. Linear time; copies only large bodies. For a non-JSON body the result is
    undefined.
    """
    most = limit * per_object
    if sum(map(body.count, (b",", b"["))) + body.count(b"{") * per_object <= most:
        return
    # Ignore commas in strings. Each value follows a mark and has one or two strings.
    marks = strings = 0
    for match in _STRINGS_AND_MARKS.finditer(body.replace(ESCAPED_BACKSLASH, b"").replace(rb"\"", b"")):
        if match[0].startswith(b'"'):
            strings += 1
        else:
            marks += per_object if match[0] == b"{" else 1
        if marks > most or strings > 2 * most + 2:
            raise too_many_values(limit)


def too_many_values(limit: int) -> TooLarge:
    return TooLarge(f"The request body holds too many values; {limit} may be sent at once.")


PIECE = 64 * 1024


@contextmanager
def before_reading(request: HttpRequest) -> Iterator[None]:
    """A context for checks before the body is read; if one fails, the body is drained.

    A client still sending when the connection closes would not read the response.
    """
    try:
        yield
    except MetalakeError:
        try:
            while request.read(PIECE):
                pass
        except UnreadablePostError:
            pass
        raise


def parse(request: HttpRequest, body: type[AnyBody]) -> AnyBody:
    """The validated body. Raises TooLarge, Invalid naming the field."""
    require_json_type(request.content_type)
    return read(body, read_json(request.body, per_object=getattr(body, "per_object", 1)))


def require_json_type(content_type: str | None) -> None:
    """Raise Invalid unless the type is JSON. Protects against CSRF: another site's form cannot send it."""
    if not (content_type or "").endswith(("/json", "+json")):
        raise Invalid(f"Send the body with Content-Type: {JSON}.")


def read_json(body: bytes, *, per_object: int = 1) -> Any:
    """The parsed body. Raises TooLarge for too many values, Invalid for non-JSON and NUL, which databases reject."""
    require_few_values(body, settings.METALAKE_MAX_BODY_VALUES, per_object=per_object)
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError as wrong:
        raise Invalid(f"The request body is not JSON: {wrong}.") from None
    if holds_nul(body):
        raise Invalid("The request body holds a NUL character.")
    return data


def require_own_page(request: HttpRequest) -> None:
    """Raise Forbidden if another site's page sends a request without a body (CSRF).

    Browsers add their credentials, and name the page's site in the Origin of every POST (Fetch, "Origin header").
    """
    origin = request.META.get("HTTP_ORIGIN")
    if origin is not None and origin.partition("://")[2] != request.META.get("HTTP_HOST"):
        raise Forbidden("This request comes from a page of another site; send {} as its body, as JSON.")
