"""What was done, from the audit: to one object, for whoever may read access to it, or in a whole metalake, for whoever
may read everybody's (docs/authorization.md)."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Max, Q, QuerySet

from access.explain.permissions import Place, open_on
from authz import operations, policy
from authz.actor import Actor
from authz.models import AuditEntry, Fact
from authz.objects import by_ids
from authz.operations import read_access
from authz.services.authority import require
from authz.services.change import enter
from metalake.errors import Invalid, ProviderBusy
from metalake.full_names import dotted
from metalake.kinds import STORED_KINDS, Kind
from metalake.lineage import Located
from metalake.models import Securable
from metalake.models import below as below_it

AT_ONCE = 200
SPAN = 5000  # ids of rows looked through at first
BATCH = 5000  # rows per query
REFUSED = "access.refused"

_telling_of_others = set[str]()  # events of an object that reveal other objects


class AuditLine(NamedTuple):
    """One change: `says` is what was done, without the places and other objects that the audit also records.

    `on` is what it was done to, such as "table lake.A.t"; "" for the object that was asked about.
    """

    id: int
    at: datetime
    event: str
    actor: str
    says: str
    on: str = ""


def leave_to_metalake(*events: str) -> None:
    """Register events that reveal other objects: only readers of the whole metalake's audit see them."""
    _telling_of_others.update(events)


def telling_of_others() -> set[str]:
    """The events that `leave_to_metalake` registered."""
    return _telling_of_others


def read_audit(actor: Actor, metalake: str, on: Place, before: int | None = None) -> Iterator[AuditLine]:
    """The changes of an object by name, as `audit_of` gives them. Raises NotFound, NotInUse, Forbidden."""
    return audit_of(actor, open_on(actor, metalake, on)[1], before)


def audit_of(actor: Actor, target: Located, before: int | None = None, *, below: bool = False) -> Iterator[AuditLine]:
    """The changes of a located object before the change `before`, newest first, grants by plans among them.

    With `below`, also those of all objects below it to which the actor may read access, and for a metalake those of its
    users, groups and roles; of what is gone only a metalake has them. Raises NotFound and Forbidden unless the actor
    may read who has access to it.
    """
    require(actor, read_access(target.kind), target)
    if below and target.kind is Kind.METALAKE:
        everything = AuditEntry.objects.filter(metalake_id=target.id).exclude(event=REFUSED)
        return (_line_in(target, row) for row in _newest_first(everything, before))
    within = Q(pk=target.id) | below_it(target.lineage) if below else Q(pk=target.id)
    ids = Securable.objects.filter(within).values("pk")
    roles = Fact.objects.filter(topic="grants", about__in=ids).values("holder")
    about = Q(kind__in=_OBJECTS, object_id__in=ids) | Q(kind=Kind.ROLE, event__in=_GRANTING, object_id__in=roles)
    for event in _WITH_GRANTS:
        about |= Q(kind=Kind.ROLE, event=event, object_id__in=roles.filter(event=event))
    rows = AuditEntry.objects.filter(about)
    if not policy.permits(actor, operations.READ_ACCESS_TO_METALAKE, target.top):
        rows = rows.exclude(event__in=_telling_of_others)
    return _lines(actor, target, _newest_first(rows, before), below)


_OBJECTS = tuple(kind for kind in STORED_KINDS if kind is not Kind.ROLE)
_GRANTING = ("access.applied", "role.overridden")
_WITH_GRANTS = {
    "role.created": "made role {} with grants on it",
    "role.dropped": "dropped role {} with its grants on it",
}
"""Events of roles that come or go with their grants; the history has on what."""


class _Row(NamedTuple):
    """A row of the audit; `on` is the id of what it is about."""

    id: int
    at: datetime
    event: str
    actor: str
    kind: str
    on: int
    name: str
    details: Mapping[str, Any]


def _newest_first(rows: QuerySet[AuditEntry], before: int | None) -> Iterator[_Row]:
    """The rows before an id, in ever wider spans of ids: those of many objects are never sorted all at once."""
    fields = "pk", "at", "event", "actor", "kind", "object_id", "full_name", "details"
    last = AuditEntry.objects.aggregate(last=Max("pk"))["last"] or 0
    end, span = last + 1 if before is None else min(before, last + 1), SPAN
    while end > 0:
        within = rows.filter(pk__gte=end - span, pk__lt=end).order_by("-pk")
        some = [_Row(*row) for row in within.values_list(*fields)[:AT_ONCE]]
        yield from some
        if len(some) < AT_ONCE:
            end, span = end - span, span * 8
        else:
            end = some[-1].id


def _line_in(top: Located, row: _Row) -> AuditLine:
    on = "" if (row.kind, row.on) == (top.kind, top.id) else f"{row.kind} {row.name}"
    return AuditLine(row.id, row.at, row.event, row.actor, _sentence(row.event, row.details), on)


def _lines(actor: Actor, target: Located, rows: Iterator[_Row], below: bool) -> Iterator[AuditLine]:
    while some := list(islice(rows, AT_ONCE)):
        granted = _granted_on({row.on for row in some if row.event in _WITH_GRANTS})
        touched = [_touched(row, granted) for row in some]
        located = by_ids({id for ids in touched for id in ids}) if below else {target.id: target}
        shown = {id: on for id, on in located.items() if _is_read(actor, target, on)}
        for row, ids in zip(some, touched, strict=True):
            if on := [shown[id] for id in ids if id in shown]:
                yield _line_of(target, row, on)


def _granted_on(roles: Collection[int]) -> dict[tuple[int, str], list[int]]:
    """The objects of the grants that came or went with these roles, by role and event."""
    granted: dict[tuple[int, str], list[int]] = {}
    if roles:
        facts = Fact.objects.filter(topic="grants", holder__in=roles, event__in=_WITH_GRANTS)
        for role, event, about in facts.values_list("holder", "event", "about"):
            granted.setdefault((role, event), []).append(about)
    return granted


def _touched(row: _Row, granted: Mapping[tuple[int, str], list[int]]) -> list[int]:
    """The ids of the objects that a row is about."""
    if row.event in _WITH_GRANTS:
        return granted.get((row.on, row.event), [])
    if row.event in _GRANTING:
        return [int(id) for id in {**row.details.get("revoked", {}), **row.details.get("granted", {})}]
    return [row.on]


def _is_read(actor: Actor, target: Located, on: Located) -> bool:
    return f"{on.lineage}/".startswith(f"{target.lineage}/") and policy.permits(actor, read_access(on.kind), on)


def _line_of(target: Located, row: _Row, on: list[Located]) -> AuditLine:
    if row.event in _WITH_GRANTS:
        says = _WITH_GRANTS[row.event].format(row.name)
    elif row.event in _GRANTING:
        says = _grants(row.details, {str(one.id) for one in on}, row.name)
    else:
        says = _sentence(row.event, row.details)
    more = f" and {len(on) - 1} more" if len(on) > 1 else ""
    first = min(on, key=lambda one: one.full_name)
    where = f"{first.kind} {dotted(first.full_name)}{more}" if more or first.id != target.id else ""
    return AuditLine(row.id, row.at, row.event, row.actor, says, where)


def _grants(details: Mapping[str, Any], on: Collection[str] | None = None, role: str = "") -> str:
    """ "granted allow select_table to role r", of the grants on these ids or, with None, on any."""
    parts = []
    for done, to in (("revoked", "from"), ("granted", "to")):
        by_id = details.get(done, {})
        privileges = dict.fromkeys(each for id, some in by_id.items() if on is None or id in on for each in some)
        if privileges:
            parts.append(f"{done} {', '.join(privileges)}" + (f" {to} role {role}" if role else ""))
    return "; ".join(parts)


class AuditRow(NamedTuple):
    """One change or refusal in a metalake; `place` is where it stands. `on` is an object's id, 0 for a refusal, of
    which `name` is what was asked and `says` why it was refused."""

    place: int
    at: datetime
    event: str
    actor: str
    kind: str
    on: int
    name: str
    says: str


def audit_of_all(actor: Actor, metalake: str, after: int, place: int | None) -> tuple[int, Iterator[list[AuditRow]]]:
    """The place up to which the audit is read (default: the last one) and its rows after `after`, in batches.

    Raises NotFound, NotInUse, Forbidden unless the actor may read everybody's access, Invalid for a place that is not
    there yet, and ProviderBusy.
    """
    top = enter(actor, metalake)
    policy.require(actor, operations.READ_ACCESS_TO_METALAKE, top)
    last = last_place()
    if place is not None and place > last:
        raise Invalid(f"The audit has no place {place} yet; leave `place` out to read up to now.")
    until = last if place is None else place
    return until, _batches(top.id, after, until)


def _batches(metalake: int, after: int, until: int) -> Iterator[list[AuditRow]]:
    fields = "pk", "at", "event", "actor", "kind", "object_id", "full_name", "details"
    while True:
        rows = AuditEntry.objects.filter(metalake_id=metalake, pk__gt=after, pk__lte=until).order_by("pk")
        some = [_row(*row) for row in rows.values_list(*fields)[:BATCH]]
        if some:
            yield some
        if len(some) < BATCH:
            return
        after = some[-1].place


def _row(
    place: int, at: datetime, event: str, actor: str, kind: str, on: int, name: str, details: Mapping[str, Any]
) -> AuditRow:
    return AuditRow(place, at, event, actor, kind, on, name, says(event, details))


def says(event: str, details: Mapping[str, Any]) -> str:
    """What was done, or why it was refused, without the places and other objects that the audit also records."""
    return str(details.get("why", "")) if event == REFUSED else _sentence(event, details)


def _sentence(event: str, details: Mapping[str, Any]) -> str:
    privileges = ", ".join(map(str, details.get("privileges") or ()))
    match event:
        case "privileges.granted":
            return f"granted {privileges} to role {details.get('role')}"
        case "privileges.revoked":
            return f"revoked {privileges} from role {details.get('role')}"
        case "access.applied" | "role.overridden":
            return _grants(details)
        case "owner.set":
            return f"made {details.get('type')} {details.get('owner')} the owner"
        case "role.assigned" | "role.unassigned":
            holder = " ".join(f"{sort} {details[sort]}" for sort in ("user", "group") if sort in details)
            return f"{'assigned to' if event == 'role.assigned' else 'taken from'} {holder}"
        case "group.users_changed":
            changes = (f"{how} {', '.join(map(str, details[how]))}" for how in ("added", "removed") if details.get(how))
            return "; ".join(changes)
        case "access.requested":
            return f"asked for {privileges}, for this: {details.get('purpose')}"
        case "access.request_declined":
            return f"declined what {details.get('user')} asked for, {privileges}: {details.get('reason')}"
    done = event.partition(".")[2].replace("_", " ")
    changed = ", ".join(map(str, details.get("changed") or ()))
    asked = f", as {details['requestedBy']} asked: {details.get('purpose')}" if details.get("requestedBy") else ""
    return f"{done}: {changed}" if changed else f"{done}{asked}"


PATIENCE, PAUSE = 10.0, 0.05  # seconds

# A writer holds this lock from before the row is numbered until its transaction ends.
_WRITERS = (
    "SELECT virtualtransaction FROM pg_locks WHERE locktype = 'relation' AND relation = %s::regclass "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
    "AND mode = 'RowExclusiveLock' AND pid IS DISTINCT FROM pg_backend_pid()"
)


def last_place() -> int:
    """The number of the last audit row before which there are no gaps.

    PostgreSQL numbers a row before its transaction commits, so open transactions are waited for; SQLite has a single
    writer. Raises ProviderBusy if they take longer than PATIENCE.
    """
    last = AuditEntry.objects.aggregate(last=Max("pk"))["last"] or 0
    if connection.vendor == "postgresql":
        _wait_for(_writers())
    return last


def _wait_for(writers: set[str]) -> None:
    until = time.monotonic() + PATIENCE
    while writers:
        if time.monotonic() > until:
            raise ProviderBusy("Changes that began before are still being made. Try again.")
        time.sleep(PAUSE)
        writers &= _writers()


def _writers() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(_WRITERS, [AuditEntry._meta.db_table])
        return {transaction for (transaction,) in cursor.fetchall()}
