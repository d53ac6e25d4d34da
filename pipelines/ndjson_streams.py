"""Bulk NDJSON streams from the server, resumed after connection failures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from metalake_client.failures import Exit, Failure
from metalake_client.rest import Client

TRIES, PAUSE = 6, 1.0  # tries without progress, and seconds before the first retry; doubled each time

Json = dict[str, Any]


@dataclass
class _Reached:
    """The progress of a stream: its head line, and the position of its last line."""

    head: Json | None = None
    after: str | None = None


def state_of(client: Client, metalake: str, as_of: str | None = None) -> Iterator[Json]:
    """The state of a metalake as of one history position: a head line with the position, then one line per item.

    `as_of` is an ISO 8601 timestamp, None for now. Raises Failure.
    """
    reached = _Reached()

    def ask() -> Iterator[Json]:
        if reached.head is None:
            return client.lines(*_bulk(metalake, "state"), asOf=as_of)
        return client.lines(*_bulk(metalake, "state"), place=str(reached.head["place"]), after=reached.after)

    links: list[Json] = []  # they come first, without positions, and are sent again if the stream breaks among them
    for line in _going_on(ask, reached):
        if "topic" not in line:
            links.clear()
            if reached.head is None:
                reached.head = line
                yield line
        elif not line["place"]:
            links.append(line)
        else:
            yield from links
            links.clear()
            reached.after = str(line["place"])
            yield line
    yield from links


def use_of(client: Client, metalake: str, since: str | None = None, until: str | None = None) -> Iterator[Json]:
    """The usage records of complete hours: a head line with their end (`completeUntil`), then one line per row.

    A resumed stream keeps that end; later rows belong to the next run. Raises Failure.
    """
    reached = _Reached()

    def ask() -> Iterator[Json]:
        end = until or (reached.head["completeUntil"] if reached.head else None)
        return client.lines(*_bulk(metalake, "use"), since=since, until=end, after=reached.after)

    for line in _going_on(ask, reached):
        if "operation" in line:
            reached.after = line["place"]
            yield line
        elif reached.head is None:
            reached.head = line
            yield line


def audit_of(client: Client, metalake: str, after: int = 0) -> Iterator[Json]:
    """Changes and refusals after an audit position: a head line with the last position, then one line per row.

    Raises Failure.
    """
    reached = _Reached(after=str(after))

    def ask() -> Iterator[Json]:
        place = str(reached.head["place"]) if reached.head else None
        return client.lines(*_bulk(metalake, "audit"), place=place, after=reached.after)

    for line in _going_on(ask, reached):
        if "event" in line:
            reached.after = str(line["place"])
            yield line
        elif reached.head is None:
            reached.head = line
            yield line


def views_of(client: Client, metalake: str) -> Iterator[Json]:
    """The current views of a metalake that the caller may load. Raises Failure."""
    reached = _Reached()

    def ask() -> Iterator[Json]:
        return client.lines("bulk", "metalakes", metalake, "views", after=reached.after)

    for line in _going_on(ask, reached):
        if "view" in line:
            reached.after = str(line["place"])
            yield line


def _bulk(metalake: str, what: str) -> tuple[str, ...]:
    return "bulk", "metalakes", metalake, "access", what


def _going_on(ask: Callable[[], Iterator[Json]], reached: _Reached) -> Iterator[Json]:
    """The lines of a stream, resumed after failures with exponential backoff, as during a server restart."""
    tries = 0
    while True:
        began = reached.after
        try:
            yield from ask()
            return
        except Failure as failure:
            tries = 1 if reached.after != began else tries + 1
            if failure.exit_code is not Exit.UNREACHABLE or tries == TRIES:
                raise
        time.sleep(PAUSE * 2 ** (tries - 1))
