"""What the services share: the events of changes, property updates, version checks, removal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import F
from django.utils import timezone

from authz import services as authz
from authz.models import Role
from authz.policy import Actor
from authz.writing import Stale
from catalogs.iceberg.guard import check_limits
from catalogs.lookup import Found
from catalogs.models import Catalog, LocationClaim, Schema, Table
from metalake.errors import NotInUse
from metalake.events import Event
from metalake.models import Metalake, Securable
from metalake.names import dotted


def event(actor: Actor, name: str, found: Found, **details: Any) -> Event:
    return event_of(actor, name, found.kind, found.id, found.full_name, found.metalake.id, **details)


def event_of(
    actor: Actor, name: str, kind: str, object_id: int, full_name: Sequence[str], metalake_id: int, **details: Any
) -> Event:
    return Event(
        name=name,
        actor=actor.name,
        kind=kind,
        object_id=object_id,
        full_name=dotted(full_name),
        metalake_id=metalake_id,
        details=details,
    )


@dataclass(frozen=True)
class Alteration:
    """Changes to what every object has; properties are applied in the order given."""

    new_name: str | None = None
    comment: str | None = None
    sets_comment: bool = False
    properties: tuple[tuple[str, str | None], ...] = ()  # a value, or None to remove the key

    def apply_to(self, row: Securable) -> set[str]:
        """Change the row in memory; returns the fields that differ now. Raises Invalid for a property over its limits."""
        before = (row.name, row.comment, dict(row.properties))
        row.name = self.new_name or row.name
        row.comment = self.comment if self.sets_comment else row.comment
        row.properties = dict(row.properties)
        for key, value in self.properties:
            if value is None:
                row.properties.pop(key, None)
            else:
                row.properties[key] = value
        check_limits(row.properties)
        after = (row.name, row.comment, row.properties)
        return {field for field, old, new in zip(("name", "comment", "properties"), before, after, strict=True) if old != new}


def require_enabled(found: Found) -> None:
    """Raise NotInUse where the metalake or the catalog above the object is disabled."""
    if found.disabled:
        name = found.metalake.name if found.disabled == "metalake" else found.catalog.name
        raise NotInUse(f"{found.disabled.capitalize()} {name} is disabled; enable it first.", kind=found.disabled)


def save(row: Securable, actor: Actor, fields: Iterable[str]) -> None:
    """Write these fields if nobody changed the row since it was read. Raises Stale otherwise."""
    row.last_modifier, row.last_modified_time = actor.name, timezone.now()
    changed = {field: getattr(row, field) for field in (*fields, "last_modifier", "last_modified_time")}
    updated = Securable.objects.filter(pk=row.pk, version=row.version).update(version=F("version") + 1, **changed)
    if not updated:
        raise Stale
    row.version += 1


def hold(found: Found) -> None:
    """Lock the object until the transaction ends, so that nothing is put below it meanwhile. Raises Stale if it is gone."""
    if not Securable.objects.select_for_update().filter(pk=found.id).values_list("pk", flat=True):
        raise Stale


def remove(found: Found) -> None:
    """Delete an object and all below it, with every grant on them, in the caller's transaction."""
    authz.forget_grants_under(found.lineage)
    ids = Securable.objects.filter(pk=found.id) | Securable.objects.filter(
        lineage__gt=f"{found.lineage}/", lineage__lt=f"{found.lineage}0"
    )
    below = list(ids.values_list("pk", flat=True))
    LocationClaim.objects.filter(table_id__in=below)._raw_delete("default")
    for model in (Table, Schema, Catalog):
        _raw_delete(model, below)
    if found.kind == "metalake":
        authz.drop_people_of(found.id)
        _raw_delete(Role, below)
        _raw_delete(Metalake, below)
    # Deepest first, so that no parent goes before its child.
    rows = sorted(Securable.objects.filter(pk__in=below).values_list("lineage", "pk"), key=lambda row: -row[0].count("/"))
    for _, pk in rows:
        Securable.objects.filter(pk=pk)._raw_delete("default")


def _raw_delete(model: Any, ids: list[int]) -> None:
    """Only this model's own table; Django's delete would take the parent row first."""
    model.objects.filter(pk__in=ids).order_by()._raw_delete("default")
