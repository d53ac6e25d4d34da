"""Objects that were dropped outside: their rows are removed at once, and tombstones describe them for a day."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import Q
from django.utils import timezone

from authz.actor import SERVER
from authz.models import Grant
from catalogs.lookup import by_id
from catalogs.models import Mirror, Tombstone
from catalogs.services.cascade import remove
from metalake.events import Event, event_of, gone, record
from metalake.full_names import dotted
from metalake.kinds import Kind, Slot
from metalake.lineage import Located, Node
from metalake.models import Securable, below

RETENTION = timedelta(hours=24)


def remove_dropped(securable_id: int, *, steps_stay: bool = False) -> int:
    """Remove an object that was dropped outside, with all below it, leaving a tombstone of each for a day.

    With `steps_stay`, a schema with schemas inside stays; it loses only its mirror and its tables. Runs in the
    caller's transaction; returns how many objects were removed.
    """
    located = by_id(securable_id)
    if located is None:
        return 0
    inside = Securable.objects.filter(parent_id=located.id)
    if steps_stay and located.kind == Kind.SCHEMA and inside.filter(slot=Slot.SCHEMA).exists():
        tables = list(inside.filter(slot=Slot.TABULAR).values_list("pk", flat=True))
        Mirror.objects.filter(pk=located.id).delete()
        record(_dropped(located, []))
        return sum(remove_dropped(table) for table in tables)
    with_below = Securable.objects.filter(Q(pk=located.id) | below(located.lineage))
    rows = {row.pk: row for row in with_below.select_related("owner_user", "owner_group")}
    grants = _grants_on(list(rows))
    Tombstone.objects.bulk_create(
        Tombstone(
            in_catalog_id=located.catalog.id,
            kind=row.kind,
            full_name=dotted(_lineage_of(located, row, rows).full_name)[:2048],
            securable_id=row.pk,
            owner=str(row.owner_user or row.owner_group),
            grants=grants.get(row.pk, []),
        )
        for row in rows.values()
    )
    remove(located)
    record(_dropped(located, [gone(located.id)]))
    return len(rows)


def _dropped(located: Located, facts: list[list[Any]]) -> Event:
    name, full_name = f"{located.kind}.dropped_outside", located.full_name
    return event_of(SERVER, name, located.kind, located.id, full_name, located.metalake.id, facts)


def _lineage_of(top: Located, row: Securable, rows: dict[int, Securable]) -> Located:
    """The lineage of a row below an object, built from the rows between."""
    ids = [int(part) for part in row.lineage[1:].split("/")][len(top.nodes) :]
    return top.below(*(Node(id, rows[id].kind, rows[id].name, None, None) for id in ids))


def _grants_on(ids: list[int]) -> dict[int, list[dict[str, Any]]]:
    by_object: dict[int, list[dict[str, Any]]] = {}
    grants = Grant.objects.filter(content_object_id__in=ids).select_related("permission", "group__role")
    for grant in grants:
        described = {"role": grant.group.role.name, "privilege": grant.permission.codename, "effect": grant.effect}
        by_object.setdefault(grant.content_object_id, []).append(described)
    return by_object


def clear() -> int:
    """Delete tombstones older than RETENTION; returns how many."""
    return Tombstone.objects.filter(found_at__lt=timezone.now() - RETENTION).delete()[0]
