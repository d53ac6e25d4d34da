"""The moments when access to an object changed: by whom, and in a sentence how."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from django.utils import timezone

from access.explain.permissions import Place, open_on, require_reader
from access.explain.redaction import Sight
from access.explain.replay import Change, Replay
from authz.actor import Actor
from metalake.errors import Invalid
from metalake.lineage import Located

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
SHOWN_SENTENCES = 3
FACTS_A_MOMENT = 5  # are read of each sort at most


class Moment(NamedTuple):
    """A moment when access changed, or the grants, owners and holders that it rests on.

    `actor` is "" where a grant begins or ends by itself. `member_count` is how many members can use other privileges
    on the object than before.
    """

    at: datetime
    event: str
    actor: str
    says: str
    member_count: int


class Moments(NamedTuple):
    """The newest moments first; `since`: there are none but these after that moment."""

    target: Located
    moments: list[Moment]
    since: datetime


def moments(
    actor: Actor,
    metalake: str,
    on: Place | Located,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 200,
) -> Moments:
    """The newest moments between two, those of `since` left out, when access to an object changed.

    Raises NotFound and Forbidden unless the caller may read who has access there, Invalid if `until` is before `since`.
    """
    begin, end = since or EARLIEST, min(until or timezone.now(), timezone.now())
    if begin > end:
        raise Invalid("There is no time between these moments: the first has to come before the second.")
    state, target = open_on(actor, metalake, on)
    require_reader(actor, state, target)
    replay = Replay(Sight(actor, state, target), begin, end, limit * FACTS_A_MOMENT)
    newest = deque(replay.changes(), maxlen=limit + 1)
    complete_since = replay.since
    if len(newest) > limit:
        complete_since = newest.popleft().at
    return Moments(target, [moment_of(change) for change in reversed(newest)], complete_since)


def moment_of(change: Change) -> Moment:
    return Moment(change.at, change.event, change.actor, _says(change.says), len(change.moved))


def _says(sentences: Sequence[str]) -> str:
    """The first few sentences of a change, and how many more it has."""
    more = len(sentences) - SHOWN_SENTENCES
    text = " ".join(sentences[:SHOWN_SENTENCES])
    return f"{text} And {more} more." if more > 0 else text
