"""The native wire's form of the record of use, our extension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from access.usage.queries import Asked, Record
from access.wire.access import object_reply
from authz.wire.rights import ObjectReply, present
from metalake.wire import Reply, written


class AskedReply(Reply):
    """One question: a row of the table of operations, by whom and about what, its outcome ("allowed", "refused" or
    "hidden", which was answered as missing), by which wire and engine, how often, and when first and last.
    """

    user: str | None = None
    on: ObjectReply | None = None
    operation: str
    outcome: str
    wire: str
    engine: str | None = None
    times: int
    first: str
    last: str


class GapReply(Reply):
    """A time for which a process that was killed may have left questions uncounted."""

    begins: str
    ends: str


RECORD = {
    "uses": list[AskedReply],
    "since": str,
    "completeUntil": str,
    "gaps": list[GapReply],
    "nextPageToken": str | None,
}


def record_reply(record: Record, some: Sequence[Asked], token: str | None) -> dict[str, Any]:
    gaps = [{"begins": written(gap.begins), "ends": written(gap.ends)} for gap in record.gaps]
    return present(
        uses=list(map(_asked_reply, some)),
        since=written(record.since),
        completeUntil=written(record.complete_until),
        gaps=gaps,
        nextPageToken=token,
    )


def _asked_reply(line: Asked) -> dict[str, Any]:
    return present(
        user=line.user,
        on=object_reply(line.on) if line.on else None,
        operation=line.operation,
        outcome=line.outcome,
        wire=line.wire,
        engine=line.engine or None,
        times=line.times,
        first=written(line.first),
        last=written(line.last),
    )
