"""Helpers of the services: events, property updates, optimistic locking."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db.models import F, Q
from django.utils import timezone

from authz.actor import Actor
from authz.transactions import Stale
from catalogs.models import Catalog, Intent
from catalogs.secrets import MASK, NOTHING, sends_mask_back
from formats.iceberg.forbidden_properties import check_limits
from formats.native.tables import KeepProperty, RemoveProperty, SetProperty
from metalake.errors import InUse, Invalid, NotInUse
from metalake.events import Event, event_of, stands
from metalake.kinds import Kind
from metalake.lineage import Located
from metalake.models import Securable

Row = TypeVar("Row", bound=Securable)
Facts = Sequence[list[Any]]


def event(actor: Actor, name: str, located: Located, facts: Facts = (), **details: Any) -> Event:
    return event_of(actor, name, located.kind, located.id, located.full_name, located.metalake.id, facts, **details)


def named(row: Securable, fields: Collection[str]) -> Facts:
    """The facts of an alteration for the history, which records renames but no properties."""
    return [stands(row)] if "name" in fields else []


@dataclass(frozen=True)
class Alteration:
    """Changes of the fields that all objects have; properties are applied in order."""

    new_name: str | None = None
    comment: str | None = None
    sets_comment: bool = False
    properties: tuple[tuple[str, str | None], ...] = ()  # a value, or None to remove the key

    def apply_to(self, row: Securable, declared: Mapping[str, bool] = NOTHING) -> set[str]:
        """Change the row in memory; returns the names of the changed fields. Raises Invalid for a wrong property.

        A mask that is sent back keeps the value; `declared` is as for `is_secret`.
        """
        before = (row.name, row.comment, dict(row.properties))
        row.name = row.name if self.new_name is None else self.new_name
        row.comment = self.comment if self.sets_comment else row.comment
        row.properties = dict(row.properties)
        for key, value in self.properties:
            if sends_mask_back(key, value, row.properties, declared, kind=row.kind):
                continue
            if value is None:
                row.properties.pop(key, None)
            else:
                row.properties[key] = value
        check_limits(row.properties)
        after = (row.name, row.comment, row.properties)
        fields = ("name", "comment", "properties")
        return {field for field, old, new in zip(fields, before, after, strict=True) if old != new}


def resolve_masks(
    updates: Sequence[Any], shown: Callable[[], Mapping[str, str]], kind: Kind = Kind.TABLE
) -> Sequence[Any]:
    """The updates of a table or view, with KeepProperty for each mask that is sent back.

    `shown` returns its unmasked properties. Raises Invalid for a mask of a property that is not masked.
    """
    if not any(isinstance(update, SetProperty) and update.value == MASK for update in updates):
        return updates
    properties, resolved = dict(shown()), list[Any]()
    for update in updates:
        if isinstance(update, SetProperty):
            if sends_mask_back(update.property, update.value, properties, kind=kind):
                resolved.append(KeepProperty(property=update.property))
                continue
            properties[update.property] = update.value
        elif isinstance(update, RemoveProperty):
            properties.pop(update.property, None)
        resolved.append(update)
    return resolved


def require_unreserved(properties: Mapping[str, str], kind: Kind) -> None:
    """Raise Invalid for the property `in-use`, which the native API computes."""
    if "in-use" in properties:
        raise Invalid(f"Property 'in-use' is reserved; enable or disable the {kind} instead.", kind=kind)


def require_enabled(located: Located) -> None:
    """Raise NotInUse if the object's metalake or catalog is disabled."""
    if located.disabled:
        name = located.metalake.name if located.disabled == "metalake" else located.catalog.name
        raise NotInUse(f"{located.disabled.capitalize()} {name} is disabled; enable it first.", kind=located.disabled)


def row_of(model: type[Row], located: Located, *related: str) -> Row:
    """The row of a located object, with related rows. Raises NotFound if it was deleted meanwhile."""
    row = model.objects.select_related(*related or (None,)).filter(pk=located.id).first()
    if row is None:
        raise located.missing()
    return row


def save(row: Securable, actor: Actor, fields: Iterable[str]) -> None:
    """Write these fields by compare-and-swap on the row's version. Raises Stale if it has changed since the read."""
    row.last_modifier, row.last_modified_time = actor.name, timezone.now()
    changed = {field: getattr(row, field) for field in (*fields, "last_modifier", "last_modified_time")}
    updated = Securable.objects.filter(pk=row.pk, version=row.version).update(version=F("version") + 1, **changed)
    if not updated:
        raise Stale
    row.version += 1


def require_settled(located: Located) -> None:
    """Raise InUse while a write to an outside system is pending in a catalog, or in any catalog of a metalake.

    Locks the catalogs, so that new writes wait for the caller's transaction.
    """
    catalogs = Catalog.objects.filter(Q(pk=located.id) | Q(parent_id=located.id))
    catalog_ids = list(catalogs.select_for_update(of=("self",)).values_list("pk", flat=True))
    awaited = Intent.objects.filter(in_catalog_id__in=catalog_ids).filter(
        Q(state__in=Intent.LIVE) | Q(lease_until__isnull=False)
    )
    for intent in awaited.order_by("created_at")[:1]:
        how = "waits for a decision on its catalog's page" if intent.state == Intent.State.STUCK else "is under way"
        if intent.ended_at:
            how = "was rolled back, but may still take effect late (see its catalog's page)"
        raise InUse(
            f"{located.kind.capitalize()} {located.nodes[-1].name} is in use: {intent.verb.replace('_', ' ')} "
            f"{intent.full_name} {how}. Try again once it has ended.",
            kind=located.kind,
        )
