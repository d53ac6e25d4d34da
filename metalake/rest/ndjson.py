"""Responses streamed as NDJSON, so that neither side buffers everything in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import orjson
from django.http import StreamingHttpResponse

from metalake.bodies import NDJSON
from metalake.errors import Invalid
from metalake.rest.exceptions import error_line
from metalake.wire import quote

LONGEST = 18  # digits of a number


def lines_of(head: dict[str, Any], batches: Iterable[Iterable[dict[str, Any]]]) -> StreamingHttpResponse:
    """The head and all lines; the last line is {"end": true}, or the error that ended the stream."""
    return StreamingHttpResponse(_lines(head, batches), content_type=NDJSON)


def _lines(head: dict[str, Any], batches: Iterable[Iterable[dict[str, Any]]]) -> Iterator[bytes]:
    yield _line(head)
    try:
        for lines in batches:
            yield b"".join(map(_line, lines))
    except Exception as failure:
        yield error_line(failure)
        return
    yield _line({"end": True})


def _line(value: dict[str, Any]) -> bytes:
    return orjson.dumps(value) + b"\n"


def whole_number(name: str, text: str) -> int:
    """A whole number from a query parameter. Raises Invalid."""
    if not (text.isascii() and text.isdigit() and len(text) <= LONGEST):
        raise Invalid(f"{name} must be a whole number, not {quote(text)}.")
    return int(text)


def number_or_none(name: str, text: str | None) -> int | None:
    """The same for an optional parameter. Raises Invalid."""
    return None if text is None else whole_number(name, text)
