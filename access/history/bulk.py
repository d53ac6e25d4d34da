"""Everything about a metalake's rights at once, for whoever may read all of it: its state, and the record of use."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from access.history import streams
from access.history.streams import Line
from authz import operations, policy
from authz.actor import Actor
from authz.services.change import enter
from metalake.lineage import Located


def state_of(
    actor: Actor, metalake: str, moment: datetime | None, place: int | None, after: int
) -> tuple[Located, int, Iterator[list[Line]]]:
    """The metalake, the place in the history that its state is as of, and that state in batches.

    `place` and `after` go on with a state that was read in part: from the line of that place on. Raises NotFound,
    NotInUse, Forbidden unless the caller may read everybody's access, and Invalid for a place that is not there yet.
    """
    top = enter(actor, metalake)
    policy.require(actor, operations.READ_ACCESS_TO_METALAKE, top)
    place = streams.place_at(moment) if place is None else streams.require_place(place)
    return top, place, _batches(top, place, after)


def _batches(top: Located, place: int, after: int) -> Iterator[list[Line]]:
    if not after and (links := streams.links_of(top, place)):
        yield links
    yield from streams.things_of(top, place, after)
