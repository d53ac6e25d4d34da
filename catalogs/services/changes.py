"""What the services share: the events of changes, property updates, version checks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db.models import F, Q
from django.utils import timezone

from authz.actor import Actor
from authz.writing import Stale
from catalogs.models import Catalog, Intent
from catalogs.secrets import MASK, keeps
from formats.iceberg.guard import check_limits
from formats.native.tables import KeepProperty, RemoveProperty, SetProperty
from metalake.errors import InUse, Invalid, NotInUse
from metalake.events import Event, event_of, stands
from metalake.kinds import Kind
from metalake.lineage import Located
from metalake.models import Securable

Row = TypeVar("Row", bound=Securable)
Facts = Sequence[list[Any]]


def event(actor: Actor, name: str, found: Located, facts: Facts = (), **details: Any) -> Event:
    return event_of(actor, name, found.kind, found.id, found.full_name, found.metalake.id, facts, **details)


def named(row: Securable, fields: Collection[str]) -> Facts:
    """What an alteration of these fields is to the history, which keeps names and no properties."""
    return [stands(row)] if "name" in fields else []


@dataclass(frozen=True)
class Alteration:
    """Changes to what every object has; properties are applied in the order given."""

    new_name: str | None = None
    comment: str | None = None
    sets_comment: bool = False
    properties: tuple[tuple[str, str | None], ...] = ()  # a value, or None to remove the key

    def apply_to(self, row: Securable, declared: Collection[str] = ()) -> set[str]:
        """Change the row in memory; returns the fields that differ now. Raises Invalid where a property is unfit.

        A mask that is sent back keeps what is there; `declared` are the provider's own secrets.
        """
        before = (row.name, row.comment, dict(row.properties))
        row.name = row.name if self.new_name is None else self.new_name
        row.comment = self.comment if self.sets_comment else row.comment
        row.properties = dict(row.properties)
        for key, value in self.properties:
            if keeps(key, value, row.properties, declared, kind=row.kind):
                continue
            if value is None:
                row.properties.pop(key, None)
            else:
                row.properties[key] = value
        check_limits(row.properties)
        after = (row.name, row.comment, row.properties)
        fields = ("name", "comment", "properties")
        return {field for field, old, new in zip(fields, before, after, strict=True) if old != new}


def keeping(updates: Sequence[Any], shown: Callable[[], Mapping[str, str]]) -> Sequence[Any]:
    """A table's changes, where a mask that is sent back keeps what is there; `shown` gives its properties in the open.

    Raises Invalid for a mask where nothing is shown masked.
    """
    if not any(isinstance(update, SetProperty) and update.value == MASK for update in updates):
        return updates
    held, meant = dict(shown()), list[Any]()
    for update in updates:
        if isinstance(update, SetProperty) and keeps(update.property, update.value, held, kind=Kind.TABLE):
            meant.append(KeepProperty(property=update.property))
            continue
        if isinstance(update, SetProperty):
            held[update.property] = update.value
        elif isinstance(update, RemoveProperty):
            held.pop(update.property, None)
        meant.append(update)
    return meant


def require_unreserved(properties: Mapping[str, str], kind: Kind) -> None:
    """Raise Invalid for the property by which the wire says whether a container is enabled."""
    if "in-use" in properties:
        raise Invalid(f"Property 'in-use' is reserved; enable or disable the {kind} instead.", kind=kind)


def require_enabled(found: Located) -> None:
    """Raise NotInUse where the metalake or the catalog above the object is disabled."""
    if found.disabled:
        name = found.metalake.name if found.disabled == "metalake" else found.catalog.name
        raise NotInUse(f"{found.disabled.capitalize()} {name} is disabled; enable it first.", kind=found.disabled)


def row_of(model: type[Row], found: Located) -> Row:
    """The row of an object that was just found. Raises NotFound where it went away in between."""
    row = model.objects.filter(pk=found.id).first()
    if row is None:
        raise found.missing()
    return row


def save(row: Securable, actor: Actor, fields: Iterable[str]) -> None:
    """Write these fields if nobody changed the row since it was read. Raises Stale otherwise."""
    row.last_modifier, row.last_modified_time = actor.name, timezone.now()
    changed = {field: getattr(row, field) for field in (*fields, "last_modifier", "last_modified_time")}
    updated = Securable.objects.filter(pk=row.pk, version=row.version).update(version=F("version") + 1, **changed)
    if not updated:
        raise Stale
    row.version += 1


def require_settled(found: Located) -> None:
    """Raise InUse while a write to an outside system is under way in a catalog, or in any of a metalake's.

    In the caller's transaction, whose end writes that are promised meanwhile wait for.
    """
    catalogs = Catalog.objects.filter(Q(pk=found.id) | Q(parent_id=found.id))
    held = list(catalogs.select_for_update(of=("self",)).values_list("pk", flat=True))
    awaited = Intent.objects.filter(in_catalog_id__in=held).filter(
        Q(state__in=Intent.LIVE) | Q(lease_until__isnull=False)
    )
    for intent in awaited.order_by("created_at")[:1]:
        how = "waits for a decision on its catalog's page" if intent.state == Intent.State.STUCK else "is under way"
        if intent.ended_at:
            how = "was taken back, and is looked for while it may still arrive (its catalog's page tells)"
        raise InUse(
            f"{found.kind.capitalize()} {found.nodes[-1].name} is in use: {intent.verb.replace('_', ' ')} "
            f"{intent.full_name} {how}. Try again once it has ended.",
            kind=found.kind,
        )
