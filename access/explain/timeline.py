"""The moments when access to an object changed: by whom, and in a sentence how."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from django.utils import timezone

from access.explain.permissions import Place, Redactor, open_on, require_reader
from access.explain.replay import NO_USE, Change, Replay, Use
from authz.actor import Actor
from metalake.errors import Invalid
from metalake.lineage import Located

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
SHOWN_SENTENCES = 3
FACTS_A_MOMENT = 5  # are read of each sort at most


class Moment(NamedTuple):
    """A moment when access changed, or the grants, owners and holders behind it.

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
    replay = Replay(Redactor(actor, state, target), begin, end, limit * FACTS_A_MOMENT)
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


MOST_READ = 5000  # facts of a sort


class Difference(NamedTuple):
    """A user who can use other privileges than before; `by` is the last change that made it so."""

    user: str
    gained: Use
    lost: Use
    by: Moment


class Compared(NamedTuple):
    """The object, and who gained or lost by name."""

    target: Located
    moved: list[Difference]


def compared(
    actor: Actor, metalake: str, on: Place | Located, before: datetime, after: datetime | None = None
) -> Compared:
    """Who gained and who lost which privileges on an object between two moments (None: now), by user.

    A name resolves to the object that had it at the later moment. Raises NotFound and Forbidden unless the caller may
    read who has access there; Invalid if the moments are not in order, or if too much changed between them.
    """
    end = after or timezone.now()
    if before > end:
        raise Invalid("The moment to compare with is earlier: the first has to come before the second.")
    state, target = open_on(actor, metalake, on, after)
    require_reader(actor, state, target)
    replay = Replay(Redactor(actor, state, target), before, end, MOST_READ)
    if replay.is_cut:
        raise Invalid(f"More than {MOST_READ} changes of rights lie between these moments; choose closer ones.")
    then = dict(replay.uses)
    last: dict[int, Moment] = {}
    for change in replay.changes():
        last |= dict.fromkeys(change.moved, moment_of(change))
    moved = []
    for user, by in last.items():
        old, new = then.get(user, NO_USE), replay.uses.get(user, NO_USE)
        if old != new:
            gained, lost = _without(new, old), _without(old, new)
            moved.append(Difference(replay.names.users.get(user, ""), gained, lost, by))
    return Compared(target, sorted(moved, key=lambda one: one.user))


def _without(some: Use, others: Use) -> Use:
    return tuple(privilege for privilege in some if privilege not in others)
