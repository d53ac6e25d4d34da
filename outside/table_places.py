"""Where an outside table may lie if its creator chooses the location: as for managed ones, and not in other schemas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from authz.actor import Actor
from catalogs.services import claims, places, reserved_places
from catalogs.stores import store_for
from formats.iceberg import locations
from formats.iceberg.folders import Ground
from metalake.errors import Invalid
from metalake.kinds import Kind
from metalake.lineage import Located
from outside import mirror
from providers.base import Provider
from providers.remote_objects import Remote


def require_named(
    actor: Actor, schema: Located, there: Remote, provider: Provider, named: Sequence[str]
) -> Ground | None:
    """Raise Forbidden for a location outside the ground of the schema's tables, or as `reserved_places.require_open`.

    Raises Invalid for one of others that the catalog does not name. Returns the ground that limits the actor; None for
    an actor who may choose any location.
    """
    if not named:
        return None
    ground = None
    if not places.may_choose(actor, schema):
        ground = _ground_of(schema, there, provider)
        places.require_ground(actor, schema, ground, named)
    reserved_places.require_open(actor, _comparable(named), schema)
    claims.require_unclaimed(provider, *named)
    return ground


def require_new(actor: Actor, table: Located, provider: Provider, before: Sequence[str], after: Sequence[str]) -> None:
    """Apply `require_named` to a table's new locations, and check that the actor may give them to it."""
    new = _new(before, after)
    claims.require_giver(actor, table, new)
    _require_named_for(actor, table, provider, new)


def require_partition(
    actor: Actor, table: Located, provider: Provider, before: Sequence[str], place: str | None
) -> None:
    """Apply `require_named` to a new partition's location, unless it lies in one of its table's."""
    _require_named_for(actor, table, provider, _new(before, [place] if place else []))


def _new(before: Sequence[str], after: Sequence[str]) -> list[str]:
    return [place for place in after if not any(place == other or _lies_in(place, other) for other in before)]


def _require_named_for(actor: Actor, table: Located, provider: Provider, new: Sequence[str]) -> None:
    if new:
        schema = table.above()
        require_named(actor, schema, store_for(schema, Kind.SCHEMA).as_remote(actor, schema), provider, new)


def _lies_in(place: str, other: str) -> bool:
    try:
        return locations.is_under(place, other)
    except Invalid:
        return False


def _ground_of(schema: Located, there: Remote, provider: Provider) -> Ground:
    """The provider's ground for the schema, minus the locations of the catalog's other schemas in it."""
    ground = provider.tables.ground(there)
    folders = [*ground.own, *ground.shared]
    others = mirror.of_schemas(schema.catalog.id).exclude(wire_name=there.name)
    their_places = [definition.get("location") for definition in others.values_list("definition", flat=True)]
    apart = [place for place in their_places if place and not any(_lies_in(folder, place) for folder in folders)]
    return replace(ground, apart=tuple(apart))


def _comparable(named: Sequence[str]) -> list[str]:
    """The canonical locations; malformed ones are left out, since they are never reserved."""
    comparable = []
    for place in named:
        try:
            comparable.append(locations.canonical(place))
        except Invalid:
            continue
    return comparable


def with_ground(ground: Ground | None, plan: dict[str, Any] | None) -> dict[str, Any] | None:
    """A new table's plan with the ground that it must lie on, since a registered file may name any location."""
    return plan if ground is None or plan is None else plan | {"ground": asdict(ground)}
