"""The audit by person, object, event and time, newest first, in pages of bounded work however long the audit is.

Who may read everybody's access in the metalake reads all of it; everyone else their own rows, and those of objects of
which they may read the access. A page looks at no more than SCANNED rows of the audit and says if it was cut there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from access.explain import audit_log
from access.explain.audit_log import REFUSED
from access.explain.permissions import reads_access
from authz import operations, policy
from authz.actor import Actor
from authz.filters import carrying, owned
from authz.models import AuditEntry, Fact
from authz.objects import by_ids
from authz.operations import FAMILIES, read_access
from authz.services.authority import require
from authz.services.change import enter_with
from metalake.full_names import dotted
from metalake.kinds import CONTAINERS, Kind
from metalake.lineage import Located, Node
from metalake.models import Securable, below
from metalake.privileges import Effect, Privilege

SCANNED = 50_000  # rows of the audit that one page looks at
CHECKED = 2_000  # rows of one page whose objects are looked up, for readers of some objects
AT_ONCE = 200  # rows per query
MOST_ROOTS = 50  # objects below which a reader's rows are sought
MOST_EXPORTED = 20_000  # rows of a file
MOST_PAGES = 20  # of SCANNED rows each, of a file
LATE = timedelta(hours=1)  # rows are numbered by their commit; no event is older by more than this
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)  # no event is older
CHANGES, REFUSALS = "changes", "refusals"
_ACCESS_KINDS = frozenset(FAMILIES["read_access"])


class Wanted(NamedTuple):
    """Filters, all optional: what was done by `user` to `on` and below it, from `since` to before `until`.

    `event` is an event or the first part of several, such as "privileges"; `outcome` is CHANGES or REFUSALS. A refusal
    is not about an object in the audit, so none is left with `on`; access.usage.refusals has those of objects.
    """

    user: str = ""
    on: Located | None = None
    event: str = ""
    outcome: str = ""
    since: datetime | None = None
    until: datetime | None = None


class Entry(NamedTuple):
    """One change or refusal. `name` is its object's as the reader may know it, for a refusal the request.

    `on` is the object as it is today, None if it is gone, hidden, or not an object of the tree.
    """

    id: int
    at: datetime
    actor: str
    event: str
    kind: str
    name: str
    says: str
    on: Located | None

    @property
    def is_refusal(self) -> bool:
        return self.event == REFUSED


class AuditPage(NamedTuple):
    """Entries, newest first; `next` continues before it, None at the end.

    `searched_to` is the moment where the search was cut after as many rows as a page looks at; else None.
    """

    entries: Sequence[Entry]
    next: int | None = None
    searched_to: datetime | None = None


def reads_all(actor: Actor, top: Located) -> bool:
    """Whether the actor reads the whole audit of a metalake."""
    return policy.permits(actor, operations.READ_ACCESS_TO_METALAKE, top)


def begins(top: Located) -> datetime | None:
    """When the first entry of a metalake's audit was written."""
    return AuditEntry.objects.filter(metalake_id=top.id).order_by("pk").values_list("at", flat=True)[:1].first()


def search(actor: Actor, top: Located, wanted: Wanted, before: int | None = None, limit: int = 50) -> AuditPage:
    """One page of a metalake's audit, of the rows before `before`.

    Raises NotFound, NotInUse, and Forbidden for an object of which the actor may not read the access.
    """
    enter_with(actor, top)
    if wanted.on:
        require(actor, read_access(wanted.on.kind), wanted.on)
    window = _window(_among(top, wanted.on), wanted, before)
    rows = _filtered(window.rows, wanted)
    whole = reads_all(actor, top)
    if not whole:
        rows = rows.filter(Q(actor=actor.name) | _may_be_read(actor, top))
        rows = rows.exclude(event__in=audit_log.telling_of_others())
    entries: list[Entry] = []
    checked, size = 0, limit + 1 if whole else AT_ONCE
    while True:
        some = list(rows[:size])
        for entry in _entries(actor, some, whole=whole):
            if len(entries) == limit:
                return AuditPage(entries, entries[-1].id)
            entries.append(entry)
        checked += len(some)
        if len(some) < size:
            break
        rows = rows.filter(pk__lt=some[-1].pk)
        if not whole and checked >= CHECKED:
            return AuditPage(entries, some[-1].pk, some[-1].at)
    return AuditPage(entries, window.next, window.searched_to)


def every_entry(actor: Actor, top: Located, wanted: Wanted) -> Iterator[list[Entry] | datetime]:
    """The same without pages, in batches, up to MOST_EXPORTED; if it is cut, the last item is the moment until which.

    Raises as `search` does, at once.
    """
    first = search(actor, top, wanted, limit=AT_ONCE)
    return _following(actor, top, wanted, first)


def _following(actor: Actor, top: Located, wanted: Wanted, page: AuditPage) -> Iterator[list[Entry] | datetime]:
    count = cuts = 0
    while True:
        yield list(page.entries)
        count, cuts = count + len(page.entries), cuts + (page.searched_to is not None)
        if page.next is None:
            return
        if count >= MOST_EXPORTED or cuts >= MOST_PAGES:
            last = page.searched_to or page.entries[-1].at
            yield last
            return
        page = search(actor, top, wanted, page.next, AT_ONCE)


class _Window(NamedTuple):
    rows: QuerySet[AuditEntry]  # newest first
    next: int | None
    searched_to: datetime | None


def _among(top: Located, on: Located | None) -> QuerySet[AuditEntry]:
    """The rows to scan, by one index: of an object with nothing below it, else of the metalake."""
    if on is None or on.kind in CONTAINERS:
        return AuditEntry.objects.filter(metalake_id=top.id)
    return AuditEntry.objects.filter(object_id=on.id)


def _window(rows: QuerySet[AuditEntry], wanted: Wanted, before: int | None) -> _Window:
    """The newest SCANNED of these rows before a row and within a time; each bound is one look into an index."""
    if wanted.until and wanted.until < timezone.now() and (later := _place(wanted.until + LATE, forward=True)):
        before = min(before or later, later)
    if before is not None:
        rows = rows.filter(pk__lt=before)
    first = _place(wanted.since - LATE, forward=False) if wanted.since and wanted.since > EPOCH else None
    if first is not None:
        rows = rows.filter(pk__gt=first)
    rows = rows.order_by("-pk")
    last = rows.values_list("pk", flat=True)[SCANNED : SCANNED + 1].first()
    if last is None:
        return _Window(rows, None, None)
    at = AuditEntry.objects.values_list("at", flat=True).get(pk=last)
    return _Window(rows.filter(pk__gt=last), last + 1, at)


def _place(moment: datetime, *, forward: bool) -> int | None:
    """The number of the first row after a moment, or of the last before it."""
    rows = AuditEntry.objects.values_list("pk", flat=True)
    near = rows.filter(at__gt=moment).order_by("at") if forward else rows.filter(at__lt=moment).order_by("-at")
    return near[:1].first()


def _filtered(rows: QuerySet[AuditEntry], wanted: Wanted) -> QuerySet[AuditEntry]:
    if wanted.user:
        rows = rows.filter(actor=wanted.user)
    if wanted.event:
        rows = rows.filter(Q(event=wanted.event) | Q(event__startswith=f"{wanted.event}."))
    if wanted.outcome == REFUSALS:
        rows = rows.filter(event=REFUSED)
    elif wanted.outcome == CHANGES:
        rows = rows.exclude(event=REFUSED)
    if wanted.since:
        rows = rows.filter(at__gte=wanted.since)
    if wanted.until:
        rows = rows.filter(at__lt=wanted.until)
    if wanted.on and wanted.on.kind is not Kind.METALAKE and wanted.on.kind in CONTAINERS:
        rows = rows.filter(_at_or_below([wanted.on.lineage]))
    return rows


def _at_or_below(lineages: Iterable[str]) -> Q:
    """Rows of objects that are there today or were there once; each row is a look into an index or two."""
    inside = Q(pk__in=[])
    for lineage in lineages:
        inside |= Q(lineage=lineage) | below(lineage)
    there = Securable.objects.filter(inside)
    was_there = Fact.objects.filter(Exists(there.filter(pk=OuterRef("holder"))), topic="object")
    return Q(Exists(there.filter(pk=OuterRef("object_id")))) | Q(Exists(was_there.filter(about=OuterRef("object_id"))))


def _may_be_read(actor: Actor, top: Located) -> Q:
    """The rows that may be of objects of which the actor reads the access; `_entries` decides about each."""
    roots = Securable.objects.filter(Q(lineage=top.lineage) | below(top.lineage))
    granted = Q(pk__in=carrying(actor, Privilege.MANAGE_GRANTS, Effect.ALLOW))
    lineages = list(
        roots.filter(owned(actor) | granted).order_by("lineage").values_list("lineage", flat=True)[: MOST_ROOTS + 1]
    )
    if len(lineages) > MOST_ROOTS:
        return Q()
    return _at_or_below(lineages) if lineages else Q(pk__in=[])


def _entries(actor: Actor, rows: list[AuditEntry], *, whole: bool) -> Iterator[Entry]:
    """The rows that the actor may read, as they may read them; `whole` if that is all of them."""
    ids = {row.object_id for row in rows if row.object_id}
    today = by_ids(ids)
    dropped = {} if whole else _dropped(actor, [row for row in rows if row.object_id not in today])
    for row in rows:
        on = today.get(row.object_id)
        is_read = on is not None and reads_access(actor, on)
        is_shown = is_read or (on is not None and policy.sees(actor, on))
        name: str | None = None
        if whole:
            name = row.full_name
        elif is_read or (row.actor == actor.name and is_shown):
            assert on is not None
            name = dotted(on.full_name)  # what it was called before may name what the reader may not see
        elif row.actor == actor.name:
            name = row.full_name  # which they named themselves
        else:
            name = dropped.get(row.object_id)
        if name is not None:
            says = audit_log.says(row.event, row.details)
            yield Entry(row.pk, row.at, row.actor, row.event, row.kind, name, says, on if is_shown else None)


def _dropped(actor: Actor, rows: list[AuditEntry]) -> dict[int, str]:
    """The last names of dropped objects whose parent is one of which the actor may read the access today.

    An object that ever carried a DENY is left out, since the DENY may have been what hid it from them.
    """
    ids = {row.object_id for row in rows if row.kind in _ACCESS_KINDS and row.actor != actor.name}
    if not ids:
        return {}
    facts = Fact.objects.filter(topic="object", about__in=ids).exclude(name="").order_by("id")
    last = {fact.about: fact for fact in facts if fact.state}
    parents = by_ids(fact.holder for fact in last.values())
    denied = set()
    for about, state in Fact.objects.filter(topic="grants", about__in=ids).values_list("about", "state"):
        if any(entry.get("effect") == Effect.DENY.value for entry in state or ()):
            denied.add(about)
    names = {}
    for id, fact in last.items():
        parent, state = parents.get(fact.holder), fact.state or {}
        if parent is not None and id not in denied and reads_access(actor, parent):
            names[id] = dotted(parent.below(Node(id, state["kind"], fact.name, None, None)).full_name)
    return names
