"""Who can use more or less of an object at one moment than at another, and by which change."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from django.utils import timezone

from access.explain.permissions import Place, open_on, require_reader
from access.explain.redaction import Sight
from access.explain.replay import NO_USE, Replay, Use
from access.explain.timeline import Moment, moment_of
from authz.actor import Actor
from metalake.errors import Invalid
from metalake.lineage import Located

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
    """Who gained and who lost which privileges on an object from one moment to another (None: now), by user.

    A name means the object that had it at the later moment. Raises NotFound and Forbidden unless the caller may read
    who has access there; Invalid if the moments are not in order, or if too much changed between them.
    """
    end = after or timezone.now()
    if before > end:
        raise Invalid("The moment to compare with is earlier: the first has to come before the second.")
    state, target = open_on(actor, metalake, on, after)
    require_reader(actor, state, target)
    replay = Replay(Sight(actor, state, target), before, end, MOST_READ)
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
