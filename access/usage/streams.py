"""The record of use of a whole metalake, in batches, for whoever may read everybody's access."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection

from access.usage.queries import at_hour, completeness, hour_of
from authz import operations, policy
from authz.actor import Actor
from authz.models import UseCaller, UseQuestion, User
from authz.services.change import enter

BATCH = 5000  # rows that one statement returns

Place = tuple[int, int, int, int]


class Counted(NamedTuple):
    """One row of the record: an hour (since 1970, UTC), an object's id, who asked what, and how often."""

    place: Place
    object: int
    user: str | None
    claimed: list[int]
    active: list[int] | None
    operation: str
    outcome: str
    wire: str
    engine: str
    times: int
    first: int
    last: int


def use_of_all(
    actor: Actor, metalake: str, since: datetime | None, until: datetime | None, after: Place | None
) -> tuple[datetime, datetime, Iterator[list[Counted]]]:
    """Since and until when the record is complete, and its rows of whole hours from `since` to before `until`, by hour.

    `after` goes on behind the row of that place. Raises NotFound, NotInUse, Forbidden, and Invalid for `since` in the
    future.
    """
    top = enter(actor, metalake)
    policy.require(actor, operations.READ_ACCESS_TO_METALAKE, top)
    complete, _ = completeness()
    end = hour_of(min(until, complete)) if until else hour_of(complete)
    began = hour_of(since)
    return at_hour(began), complete, _batches(top.id, after or (began, -1, -1, -1), end)


_ROWS = (
    "SELECT u.hour, u.about, u.caller, u.question, u.times, u.first, u.last, o.object_id FROM authz_use u "
    "JOIN authz_useobject o ON o.id = u.about WHERE o.metalake_id = %s AND u.hour < %s "
    "AND (u.hour, u.about, u.caller, u.question) > (%s, %s, %s, %s) "
    "ORDER BY u.hour, u.about, u.caller, u.question LIMIT %s"
)


def _batches(metalake: int, after: Place, end: int) -> Iterator[list[Counted]]:
    callers: dict[int, tuple[int, Any, Any]] = {}
    names: dict[int, str] = {}
    questions: dict[int, UseQuestion] = {}
    while True:
        with connection.cursor() as cursor:
            cursor.execute(_ROWS, [metalake, end, *after, BATCH])
            rows = cursor.fetchall()
        new = {row[2] for row in rows} - callers.keys()
        made = UseCaller.objects.filter(pk__in=new).values_list("id", "user_id", "claimed", "active")
        callers |= {id: rest for id, *rest in made}  # type: ignore[misc]
        names |= dict(User.objects.filter(pk__in={callers[id][0] for id in new}).values_list("id", "username"))
        questions |= UseQuestion.objects.in_bulk({row[3] for row in rows} - questions.keys())
        if rows:
            yield [_counted(row, callers[row[2]], names, questions[row[3]]) for row in rows]
        if len(rows) < BATCH:
            return
        after = rows[-1][:4]


def _counted(row: tuple[int, ...], caller: tuple[int, Any, Any], names: dict[int, str], asked: UseQuestion) -> Counted:
    hour, about, whose, question, times, first, last, object_id = row
    user, claimed, active = caller
    who = names.get(user), claimed, active
    what = asked.operation, asked.outcome, asked.wire, asked.engine
    return Counted((hour, about, whose, question), object_id, *who, *what, times, first, last)
