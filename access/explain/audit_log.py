"""What was done, from the audit: to one object, for whoever may read access to it, or in a whole metalake, for whoever
may read everybody's (docs/authorization.md)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Max

from access.explain.permissions import Place, open_on
from authz import operations, policy
from authz.actor import Actor
from authz.models import AuditEntry
from authz.operations import read_access
from authz.services.authority import require
from authz.services.change import enter
from metalake.errors import Invalid, ProviderBusy
from metalake.lineage import Located

AT_ONCE = 200
BATCH = 5000  # rows per query
REFUSED = "access.refused"

_telling_of_others = set[str]()  # events of an object that reveal other objects


class AuditLine(NamedTuple):
    """One change: `says` is what was done, without the places and other objects that the audit also records."""

    id: int
    at: datetime
    event: str
    actor: str
    says: str


def leave_to_metalake(*events: str) -> None:
    """Register events that reveal other objects: only readers of the whole metalake's audit see them."""
    _telling_of_others.update(events)


def telling_of_others() -> set[str]:
    """The events that `leave_to_metalake` registered."""
    return _telling_of_others


def read_audit(actor: Actor, metalake: str, on: Place, before: int | None = None) -> Iterator[AuditLine]:
    """The changes of an object by name, as `audit_of` gives them. Raises NotFound, NotInUse, Forbidden."""
    return audit_of(actor, open_on(actor, metalake, on)[1], before)


def audit_of(actor: Actor, target: Located, before: int | None = None) -> Iterator[AuditLine]:
    """The changes of a located object before the change `before`, newest first.

    Raises NotFound and Forbidden unless the actor may read who has access to it.
    """
    require(actor, read_access(target.kind), target)
    rows = AuditEntry.objects.filter(object_id=target.id, kind=target.kind)
    if not policy.permits(actor, operations.READ_ACCESS_TO_METALAKE, target.top):
        rows = rows.exclude(event__in=_telling_of_others)
    if before is not None:
        rows = rows.filter(pk__lt=before)
    fields = rows.order_by("-pk").values_list("pk", "at", "event", "actor", "details")
    return (_line(*row) for row in fields.iterator(chunk_size=AT_ONCE))


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


def _line(id: int, at: datetime, event: str, actor: str, details: Mapping[str, Any]) -> AuditLine:
    return AuditLine(id, at, event, actor, _sentence(event, details))


def _sentence(event: str, details: Mapping[str, Any]) -> str:
    privileges = ", ".join(map(str, details.get("privileges") or ()))
    match event:
        case "privileges.granted":
            return f"granted {privileges} to role {details.get('role')}"
        case "privileges.revoked":
            return f"revoked {privileges} from role {details.get('role')}"
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
