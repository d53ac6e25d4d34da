"""Bodies of both wires: their limits, JSON as data, and data as a pydantic model.

A byte may become a hundred, so a limit on bytes alone bounds no memory: values are counted before they are made.
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
from metalake.targets import wire_of
from metalake.wire import AnyBody, read

JSON = "application/json"

_PLAN = re.compile(r"/api/metalakes/[^/]+/access/plan/?")


def limit_of(path: str) -> int:
    """How many bytes a body may take that is sent to this path."""
    wire = wire_of(path)
    if wire == "iceberg":
        return settings.METALAKE_MAX_COMMIT_BODY
    return settings.METALAKE_MAX_PLAN_BODY if wire == "api" and _PLAN.fullmatch(path) else settings.METALAKE_MAX_BODY


_ESCAPED_BACKSLASH = rb"\\"
_STRINGS_AND_MARKS = re.compile(rb'"[^"]*+"|[,\[{]')


def require_few_values(body: bytes, limit: int) -> None:
    """Raise TooLarge where a JSON body holds more than so many values: members of objects, items of arrays.

    Linear, and without a copy of what is small; what is no JSON passes or is refused, whichever comes first.
    """
    if sum(map(body.count, (b",", b"[", b"{"))) <= limit:
        return
    # A comma in a string divides nothing. Each value has a mark before it, and a string or two.
    marks = strings = 0
    for found in _STRINGS_AND_MARKS.finditer(body.replace(_ESCAPED_BACKSLASH, b"").replace(rb"\"", b"")):
        if found[0].startswith(b'"'):
            strings += 1
        else:
            marks += 1
        if marks > limit or strings > 2 * limit + 2:
            raise too_many_values(limit)


def too_many_values(limit: int) -> TooLarge:
    return TooLarge(f"The request body holds too many values; {limit} may be sent at once.")


def holds_nul(body: bytes) -> bool:
    """Whether a text in a body that is JSON holds a NUL, which JSON can only escape."""
    return rb"\u0000" in body and rb"\u0000" in body.replace(_ESCAPED_BACKSLASH, b"")


PIECE = 64 * 1024


@contextmanager
def before_reading(request: HttpRequest) -> Iterator[None]:
    """What is refused here is answered without its body, which is let pass by: a client that is still sending when the
    connection closes would not hear the answer.
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
    """The body as its model. Raises Invalid naming the field."""
    require_json_type(request.content_type)
    return read(body, read_json(request.body))


def require_json_type(content_type: str | None) -> None:
    """A page of another site can send a form with the browser's credentials, but not this type. Raises Invalid."""
    if not (content_type or "").endswith(("/json", "+json")):
        raise Invalid(f"Send the body with Content-Type: {JSON}.")


def read_json(body: bytes) -> Any:
    """The body as data. Raises TooLarge for too many values, Invalid for no JSON and NUL, which no database keeps."""
    require_few_values(body, settings.METALAKE_MAX_BODY_VALUES)
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError as wrong:
        raise Invalid(f"The request body is not JSON: {wrong}.") from None
    if holds_nul(body):
        raise Invalid("The request body holds a NUL character.")
    return data


def require_own_page(request: HttpRequest) -> None:
    """Raise Forbidden where a page of another site sends what has no body: browsers add the credentials they know, and
    say of every POST whose page it comes from (Fetch, "Origin header").
    """
    origin = request.META.get("HTTP_ORIGIN")
    if origin is not None and origin.partition("://")[2] != request.META.get("HTTP_HOST"):
        raise Forbidden("This request comes from a page of another site; send {} as its body, as JSON.")
