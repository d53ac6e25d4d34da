"""Reads the record of use: of an object, for whoever may read others' access to it; of oneself, for everybody; and all
of a metalake's, for whoever may read everybody's access.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.db import connection
from django.db.models import BigIntegerField, F, Max, Min, QuerySet, Sum
from django.db.models.functions import Cast
from django.utils import timezone

from access.explain.permissions import Place, open_on
from access.usage.writer import EVERY, QUIET
from authz import operations, policy
from authz.actor import Actor
from authz.models import Use, UseCaller, UseObject, UseQuestion, User, UseWriter
from authz.objects import by_ids
from authz.operations import read_access
from authz.services.authority import require
from authz.services.change import enter
from authz.usage_counter import HIDDEN, HOUR
from metalake.errors import Invalid
from metalake.lineage import Located

GONE = timedelta(minutes=3)  # without a heartbeat from a process, which sends one every QUIET seconds

_BEGAN = Cast("hour", BigIntegerField()) * HOUR  # 32 bits end in 2038
_SUMS = {"times": Sum("times"), "first": Min(_BEGAN + F("first")), "last": Max(_BEGAN + F("last"))}


class Asked(NamedTuple):
    """One question about one object: who asked (None for a name without an account), what, how it ended, by which
    wire and engine, how often, and when first and last."""

    user: str | None
    operation: str
    outcome: str
    wire: str
    engine: str
    times: int
    first: datetime
    last: datetime
    on: Located | None = None

    @property
    def asks(self) -> str:
        """The question as text."""
        return self.operation.replace("_", " ")


class Gap(NamedTuple):
    """A period in which a killed process may have lost counts."""

    begins: datetime
    ends: datetime


class Record(NamedTuple):
    """What was asked since a moment; it is complete until another one, but for the gaps."""

    lines: Sequence[Asked]
    since: datetime
    complete_until: datetime
    gaps: Sequence[Gap]


def use_of(actor: Actor, metalake: str, on: Place, since: datetime | None) -> Record:
    """What was asked about one object, by user and question. Raises NotFound, NotInUse, Forbidden, Invalid."""
    return use_on(actor, open_on(actor, metalake, on)[1], since)


def use_on(actor: Actor, target: Located, since: datetime | None) -> Record:
    """The same of a located object. Raises NotFound, Forbidden, Invalid."""
    require(actor, read_access(target.kind), target)
    began = hour_of(since)
    about = UseObject.objects.filter(object_id=target.id).values_list("id", flat=True).first() or 0
    # Lists all hours explicitly, so that each is one index lookup.
    rows = Use.objects.filter(about=about, hour__in=range(began, hour_of(timezone.now()) + 1))
    return _record(lines_of(rows, {}), began)


def own_use(actor: Actor, metalake: str, since: datetime | None) -> Record:
    """What the caller asked in a metalake, by object and question, without what was hidden from them.

    Objects that they do not see any more are left out. Raises NotFound, NotInUse, Invalid.
    """
    top = enter(actor, metalake)
    began = hour_of(since)
    callers = list(UseCaller.objects.filter(user_id=actor.id).values_list("id", flat=True))
    shown = UseQuestion.objects.exclude(outcome=HIDDEN)
    rows = Use.objects.filter(caller__in=callers, hour__gte=began, question__in=shown.values("id"))
    ids = dict(UseObject.objects.filter(pk__in=rows.values("about"), metalake_id=top.id).values_list("id", "object_id"))
    seen = {id: on for id, on in by_ids(ids.values()).items() if policy.sees(actor, on)}
    on = {about: seen[id] for about, id in ids.items() if id in seen}
    return _record([line for line in lines_of(rows, on) if line.on is not None], began)


def lines_of(rows: QuerySet[Use], on: dict[int, Located]) -> list[Asked]:
    """The sums of these rows by user, object and question; the object is None if it is not in `on`."""
    sums = list(_sums_of(rows))
    users = dict(UseCaller.objects.filter(pk__in={row[0] for row in sums}).values_list("id", "user_id"))
    names = dict(User.objects.filter(pk__in=set(users.values())).values_list("id", "username"))
    questions = UseQuestion.objects.in_bulk({row[2] for row in sums})
    lines: dict[tuple[object, ...], Asked] = {}
    for caller, about, question, times, first, last in sums:
        asked, user = questions[question], names.get(users[caller])
        line = Asked(
            user, asked.operation, asked.outcome, asked.wire, asked.engine, times, _at(first), _at(last), on.get(about)
        )
        key = (user, about, question)  # a user asks with different roles and claimed groups
        lines[key] = _joined(lines[key], line) if key in lines else line
    return sorted(lines.values(), key=_place)


def _sums_of(rows: QuerySet[Use]) -> Iterator[tuple[int, ...]]:
    """Caller, object, question, how often, and when first and last in seconds since 1970."""
    sums = {f"sum_{name}": each for name, each in _SUMS.items()}
    yield from rows.order_by().values_list("caller", "about", "question").annotate(**sums)


def _joined(one: Asked, other: Asked) -> Asked:
    return one._replace(
        times=one.times + other.times, first=min(one.first, other.first), last=max(one.last, other.last)
    )


def _place(line: Asked) -> tuple[str, ...]:
    return (line.user or "", line.on.lineage if line.on else "", *line[1:5])


def place_of(line: Asked) -> str:
    """A line's sort key within its record, as text."""
    return "\0".join(_place(line))


def _record(lines: Iterable[Asked], began: int) -> Record:
    until, gaps = completeness(began)
    return Record(list(lines), _at(began * HOUR), until, gaps)


def completeness(began: int = 0) -> tuple[datetime, list[Gap]]:
    """Until when all processes have flushed their counts, and the gaps left by killed ones."""
    now = timezone.now()
    written = UseWriter.objects.values_list("written_until", flat=True)
    alive = [moment for moment in written if moment >= now - GONE]
    dead = sorted(moment for moment in written if _at(began * HOUR) <= moment < now - GONE)
    return min(alive, default=now), [Gap(moment, moment + timedelta(seconds=EVERY + QUIET)) for moment in dead]


def hour_of(moment: datetime | None) -> int:
    """The hour of a moment, or the first one retained. Raises Invalid for a moment in the future."""
    oldest = int(time.time() // HOUR) - settings.METALAKE_USE_DAYS * 24
    if moment is None:
        return oldest
    if moment > timezone.now() + timedelta(seconds=1):
        raise Invalid(f"since is a moment of the past, not {moment.isoformat()}.")
    return max(oldest, int(moment.timestamp() // HOUR))


def at_hour(hour: int) -> datetime:
    return _at(hour * HOUR)


def _at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


BATCH = 5000  # rows per query

LinePlace = tuple[int, int, int, int]


class Counted(NamedTuple):
    """One row of the record: an hour (since 1970, UTC), an object's id, who asked what, and how often."""

    place: LinePlace
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
    actor: Actor, metalake: str, since: datetime | None, until: datetime | None, after: LinePlace | None
) -> tuple[datetime, datetime, Iterator[list[Counted]]]:
    """Since and until when the record is complete, and its rows of whole hours from `since` to before `until`, by hour.

    `after` resumes after the row of that place. Raises NotFound, NotInUse, Forbidden, and Invalid for `since` in the
    future.
    """
    top = enter(actor, metalake)
    policy.require(actor, operations.READ_ACCESS_TO_METALAKE, top)
    complete, _ = completeness()
    end = hour_of(min(until, complete)) if until else hour_of(complete)
    began = hour_of(since)
    return _at(began * HOUR), complete, _batches(top.id, after or (began, -1, -1, -1), end)


_ROWS = (
    "SELECT u.hour, u.about, u.caller, u.question, u.times, u.first, u.last, o.object_id FROM authz_use u "
    "JOIN authz_useobject o ON o.id = u.about WHERE o.metalake_id = %s AND u.hour < %s "
    "AND (u.hour, u.about, u.caller, u.question) > (%s, %s, %s, %s) "
    "ORDER BY u.hour, u.about, u.caller, u.question LIMIT %s"
)


def _batches(metalake: int, after: LinePlace, end: int) -> Iterator[list[Counted]]:
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
