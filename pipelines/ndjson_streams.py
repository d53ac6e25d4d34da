"""Bulk NDJSON streams from the server, resumed where the connection broke."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from metalake_client.failures import Exit, Failure
from metalake_client.rest import Client

TRIES, PAUSE = 6, 1.0  # tries without progress, and seconds before the second one; each pause is twice as long

Json = dict[str, Any]


@dataclass
class _Reached:
    """How far a stream has come: its first line, and the place of its last one."""

    head: Json | None = None
    after: str | None = None


def state_of(client: Client, metalake: str, as_of: str | None = None) -> Iterator[Json]:
    """The state of a metalake as of one place in its history: the line that names it, and one for each thing.

    `as_of` is a moment in ISO 8601, None for now. Raises Failure.
    """
    reached = _Reached()

    def ask() -> Iterator[Json]:
        if reached.head is None:
            return client.lines(*_bulk(metalake, "state"), asOf=as_of)
        return client.lines(*_bulk(metalake, "state"), place=str(reached.head["place"]), after=reached.after)

    links: list[Json] = []  # they have no place and come first, again if the stream broke among them
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
    """The record of use of whole hours: the line that says until when it is complete, and one for each row.

    What is written while the stream is asked again belongs to the next time. Raises Failure.
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
    """What was changed or refused since a place of the audit: the line that names its last place, and one for each.

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
    """The views of a metalake that the caller may load, each as it is now. Raises Failure."""
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
    """The lines of a stream, which is resumed where it breaks off; waits for a server that restarts."""
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
