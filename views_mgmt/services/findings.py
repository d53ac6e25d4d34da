"""Check results of engines: a job analyses views' SQL in the engine and delivers the results per version.

Delivering requires load and alter on the view; reading requires load on it and on all that it reads, and results are
shown only while the view has that version (`views_mgmt.services.redaction`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from django.db.models import F, Q, QuerySet
from django.utils import timezone

from authz import operations, policy
from authz.actor import Actor
from authz.objects import by_ids
from authz.services.change import enter
from authz.transactions import write
from catalogs.services.alterations import event
from metalake.events import Event, record
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from views_mgmt import versions
from views_mgmt.models import ViewFinding, ViewMeta, ViewVersion
from views_mgmt.services.redaction import show_to
from views_mgmt.services.views import find_loadable

Json = dict[str, Any]
DRIFTED, MENDED = "view.drifted", "view.mended"
BATCH = 50  # views whose SQL is in memory at once


class Finding(NamedTuple):
    """An engine's check result for a version of a view, by dialect analysed."""

    view: int
    version: int
    dialects: list[Json]

    @property
    def is_broken(self) -> bool:
        return bool(self.broken_dialects)

    @property
    def broken_dialects(self) -> list[str]:
        return [each["dialect"] for each in self.dialects if each["problems"] or each["differences"]]


class Outcome(NamedTuple):
    """View ids: whose finding was stored; that have another version by now; that the caller may load but not alter;
    and that they may not load."""

    stored: list[int]
    outdated: list[int]
    refused: list[int]
    missing: list[int]


def deliver(actor: Actor, metalake: str, engine: str, findings: Sequence[Finding]) -> Outcome:
    """Store an engine's check results; idempotent. Raises NotFound, NotInUse."""
    enter(actor, metalake)
    ids = [each.view for each in findings]
    return write(
        actor,
        lambda fresh: _deliver(fresh, metalake, engine, findings),
        holds=partial(versions.locked, ids),
        kind=Kind.VIEW,
    )


def _deliver(actor: Actor, metalake: str, engine: str, findings: Sequence[Finding]) -> Outcome:
    top = enter(actor, metalake)
    metas = ViewMeta.objects.filter(metalake_id=top.id, deleted_at=0).in_bulk([each.view for each in findings])
    views = _loadable(actor, metas)
    before = ViewFinding.objects.in_bulk(list(views))
    outcome, rows, events = Outcome([], [], [], []), list[ViewFinding](), list[Event]()
    for each in findings:
        view = views.get(each.view)
        if view is None:
            outcome.missing.append(each.view)
        elif not policy.permits(actor, operations.ALTER_VIEW, view):
            outcome.refused.append(each.view)
        elif metas[each.view].current_version != each.version:
            outcome.outdated.append(each.view)
        else:
            outcome.stored.append(each.view)
            rows.append(_row(actor, top, engine, each))
            events += _news(actor, view, engine, each, before.get(each.view))
    _save(rows)
    record(*events)
    return outcome


def _row(actor: Actor, top: Located, engine: str, finding: Finding) -> ViewFinding:
    return ViewFinding(
        view_id=finding.view,
        metalake_id=top.id,
        version=finding.version,
        engine=engine,
        at=timezone.now(),
        by=actor.name,
        dialects=finding.dialects,
        is_broken=finding.is_broken,
    )


def _save(rows: Sequence[ViewFinding]) -> None:
    fields = ["version", "engine", "at", "by", "dialects", "is_broken"]
    ViewFinding.objects.bulk_create(rows, update_conflicts=True, unique_fields=["view"], update_fields=fields)


def _news(actor: Actor, view: Located, engine: str, finding: Finding, before: ViewFinding | None) -> Iterator[Event]:
    """The event for a view that broke, broke differently, or recovered."""
    was = _wrong(before.dialects) if before else {}
    now = _wrong(finding.dialects)
    if now == was:
        return
    name = DRIFTED if now else MENDED
    yield event(actor, name, view, version=finding.version, engine=engine, dialects=finding.broken_dialects)


def _wrong(dialects: Iterable[Json]) -> dict[str, Any]:
    return {
        each["dialect"]: (each["problems"], each["differences"])
        for each in dialects
        if each["problems"] or each["differences"]
    }


def finding_of(actor: Actor, address: Address) -> ViewFinding | None:
    """The check result for a view's current version; None if there is none. Raises NotFound, Forbidden."""
    return finding_about(actor, find_loadable(actor, address))


def finding_about(actor: Actor, view: Located) -> ViewFinding | None:
    """The same for a view that the caller may load."""
    findings = list(_present().filter(view_id=view.id))
    show_to(actor, view.top, findings)
    return next(iter(findings), None)


class Broken(NamedTuple):
    """A view that is unreadable, for the reason `why`, or that failed an engine's check."""

    view: Located
    why: str
    finding: ViewFinding | None


def broken_views(actor: Actor, metalake: str, after: int = 0) -> Iterator[Broken]:
    """A metalake's broken views that the caller may load, by id, starting after the view `after`.

    Raises NotFound, NotInUse.
    """
    return _broken(actor, enter(actor, metalake), after)


def _broken(actor: Actor, top: Located, after: int) -> Iterator[Broken]:
    current = Q(finding__version=F("current_version"), finding__is_broken=True)
    while True:
        metas = ViewMeta.objects.filter(current | ~Q(broken=""), metalake_id=top.id, deleted_at=0, pk__gt=after)
        rows = list(metas.order_by("pk")[:BATCH])
        views = _loadable(actor, {row.pk: row for row in rows})
        findings = {each.pk: each for each in _present().filter(pk__in=views)}
        show_to(actor, top, list(findings.values()))
        for row in rows:
            finding = findings.get(row.pk)
            if row.pk in views and (row.broken or (finding is not None and finding.is_broken)):
                yield Broken(views[row.pk], row.broken, finding)
        if len(rows) < BATCH:
            return
        after = rows[-1].pk


def readable_views(actor: Actor, metalake: str, after: int = 0) -> Iterator[list[tuple[Located, ViewVersion]]]:
    """A metalake's views that the caller may load with their current versions, by id, in batches.

    Raises NotFound, NotInUse.
    """
    return _readable(actor, enter(actor, metalake), after)


def _readable(actor: Actor, top: Located, after: int) -> Iterator[list[tuple[Located, ViewVersion]]]:
    while True:
        rows = list(versions.present().filter(metalake_id=top.id, view_id__gt=after).order_by("view_id")[:BATCH])
        views = _loadable(actor, {row.view_id: row.view for row in rows})
        yield [(views[row.view_id], row) for row in rows if row.view_id in views]
        if len(rows) < BATCH:
            return
        after = rows[-1].view_id


def _loadable(actor: Actor, metas: Mapping[int, ViewMeta]) -> dict[int, Located]:
    """The views among these that the actor may load, except in disabled catalogs."""
    return {
        id: view
        for id, view in by_ids(metas).items()
        if not view.disabled and policy.permits(actor, operations.LOAD_VIEW, view)
    }


def _present() -> QuerySet[ViewFinding]:
    return ViewFinding.objects.filter(view__deleted_at=0, version=F("view__current_version"))
