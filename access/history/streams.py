"""The complete state of a metalake's objects and rights as of one place in the chain of facts, in batches.

Chained facts are immutable and later ones get later places, so the state as of a place can be read over any number of
requests, concurrently with writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

import orjson
from django.db import connection
from django.db.models import Max

from authz import facts, operations, policy
from authz.actor import Actor
from authz.facts import newest
from authz.models import Fact
from authz.services.change import enter
from metalake.errors import Invalid
from metalake.kinds import Kind
from metalake.lineage import Located

BATCH = 2000  # facts per query
LINKS = ("user_roles", "user_groups", "group_roles")


class Line(NamedTuple):
    """One thing as it was: the topic and the ids of the fact, and its state; `place` is where the fact stands.

    "object": about an object in `holder`, with kind, lineage, owner_user and owner_group. "group" and "members": about
    one of the metalake `holder`. "grants": those of the role `holder` on the object. LINKS: the ids that the user or
    group `holder` has.
    """

    topic: str
    holder: int
    about: int
    name: str
    state: Any
    place: int


def place_at(moment: datetime | None) -> int:
    """The last place of the chain now, or of the facts up to a moment."""
    facts.seal()
    if moment is None:
        return facts.head().position
    return Fact.objects.filter(position__isnull=False, at__lte=moment).aggregate(last=Max("position"))["last"] or 0


def require_place(place: int) -> int:
    """Raises Invalid unless the chain is as long as that."""
    if place > facts.head().position:
        raise Invalid(f"The history has no place {place} yet; leave `place` out to begin now.")
    return place


def links_of(top: Located, place: int) -> list[Line]:
    """Who has which roles and is in which groups of the metalake, as of a place; members only."""
    until = Fact.objects.filter(position__lte=place)
    own = until.filter(metalake_id=top.id)
    members = {fact.about for fact in newest(own.filter(topic="members", holder=top.id), "about") if fact.state}
    groups = {fact.about for fact in newest(own.filter(topic="group", holder=top.id), "about") if fact.state}
    roles = {fact.about for fact in newest(own.filter(topic="object", holder=top.id), "about") if _is_role(fact)}
    of_users = until.filter(topic__in=LINKS[:2], holder__in=members)
    rows = newest(of_users, "topic", "holder")
    rows += newest(until.filter(topic=LINKS[2], holder__in=groups), "holder")
    lines = []
    for fact in rows:
        among = groups if fact.topic == "user_groups" else roles  # users belong to other metalakes too
        if ids := [id for id in fact.state or () if id in among]:
            lines.append(Line(fact.topic, fact.holder, 0, "", ids, 0))
    return lines


def _is_role(fact: Fact) -> bool:
    state: Any = fact.state
    return bool(state) and state["kind"] == Kind.ROLE


def things_of(top: Located, place: int, after: int = 0) -> Iterator[list[Line]]:
    """The objects, groups, members and grants of a metalake as of a place, by the place of their newest fact.

    An object's line may precede its parent's; an object without a line is gone, with all below it, and so are the
    grants of such a role.
    """
    while True:
        rows = _things(top.id, place, after)
        if lines := [line for line in map(_line, rows) if line.topic != "members" or line.state]:
            yield lines  # without members who are removed or disabled
        if len(rows) < BATCH:
            return
        after = rows[-1][-1]


def _line(row: tuple[Any, ...]) -> Line:
    topic, holder, about, name, state, place = row
    return Line(topic, holder, about, name, orjson.loads(state), place)


_NEWEST = (
    "SELECT f.topic, f.holder, f.about, f.name, CAST(f.state AS TEXT), f.position FROM authz_fact f "
    "WHERE f.position > %s AND f.position <= %s AND f.metalake_id = %s AND f.state IS NOT NULL "
    "AND f.topic IN ('object', 'group', 'members', 'grants') AND NOT EXISTS ("
    "SELECT 1 FROM authz_fact g WHERE g.topic = f.topic AND g.about = f.about "
    "AND g.id > f.id AND g.position <= %s AND (g.holder = f.holder OR f.topic IN ('object', 'group'))) "
    "ORDER BY f.position LIMIT %s"
)


def _things(metalake: int, place: int, after: int) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST, [after, place, metalake, place, BATCH])
        return cursor.fetchall()


def state_of(
    actor: Actor, metalake: str, moment: datetime | None, place: int | None, after: int
) -> tuple[Located, int, Iterator[list[Line]]]:
    """The metalake, the place in the history that its state is as of, and that state in batches.

    `place` and `after` resume a partly read state, from the line of that place on. Raises NotFound,
    NotInUse, Forbidden unless the caller may read everybody's access, and Invalid for a place that is not there yet.
    """
    top = enter(actor, metalake)
    policy.require(actor, operations.READ_ACCESS_TO_METALAKE, top)
    place = place_at(moment) if place is None else require_place(place)
    return top, place, _batches(top, place, after)


def _batches(top: Located, place: int, after: int) -> Iterator[list[Line]]:
    if not after and (links := links_of(top, place)):
        yield links
    yield from things_of(top, place, after)
