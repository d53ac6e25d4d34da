"""Who may choose a place.

The catalog's owner chooses the places of schemas, and of tables outside their schema's folder. Whoever may create a
table chooses its place below that folder, or in a place that a table of their own left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import orjson

from authz import operations, policy
from authz.actor import Actor
from catalogs.models import LocationClaim, Schema
from catalogs.services import claims, reserved_places
from catalogs.services.provider_of import files_of
from formats.iceberg import locations
from formats.iceberg.folders import Ground, divided, has_dash, schema_folder
from metalake.errors import Forbidden, Invalid
from metalake.hierarchy import HierarchicalSchema
from metalake.kinds import Kind
from metalake.lineage import Located
from metalake.models import Securable
from providers.metadata_files import MetadataFiles

LOCATION, OPENED = "location", "allowed-locations"  # properties of a schema
Properties = Mapping[str, str]


def may_choose(actor: Actor, located: Located) -> bool:
    """Whether the actor owns the object's catalog or metalake, and so may choose any place of the catalog."""
    return policy.permits(actor, operations.CHOOSE_PLACES, located)


# Schemas


def require_choice(actor: Actor, located: Located, before: Properties, after: Properties) -> None:
    """Raise Forbidden if a schema's places change and the actor may not choose places.

    `located` is any object of the catalog. Nothing else is read, so that the refusal reveals nothing hidden.
    """
    changed = [key for key in (LOCATION, OPENED) if before.get(key) != after.get(key)]
    if changed and not may_choose(actor, located):
        raise Forbidden(
            f"{actor.name} may not choose a schema's location: only the owner of catalog {located.catalog.name} may "
            f"set {' and '.join(changed)}, when creating the schema or later.",
            kind=Kind.SCHEMA,
        )


def check_choice(located: Located, path: HierarchicalSchema, before: Properties, after: Properties) -> None:
    """Raise Invalid for places that a managed schema cannot have, in the caller's transaction.

    `located` is the schema, or the catalog of a new one; `before` and `after` are the schema's properties. A schema's
    location must not overlap another schema's places or lie in a table's place; places that are opened may be opened
    for several schemas.
    """
    if all(before.get(key) == after.get(key) for key in (LOCATION, OPENED)):
        return
    own_files = files_of(located)
    default = schema_folder(own_files.warehouse, path.segments)
    chosen, opened = _places_in(after)
    for place in (*chosen, *opened):
        if reason := why_unfit(place, default, own_files):
            raise Invalid(reason, kind=Kind.SCHEMA)
    # Serialized per catalog: concurrent choices could miss each other.
    claims.lock_claims(located.catalog.id)
    others = Schema.objects.filter(in_catalog_id=located.catalog.id, properties__has_any_keys=[LOCATION, OPENED])
    for other in others.exclude(pk=located.id):
        theirs, open_to_them = _places_in(other.properties)
        for place in chosen:
            _require_apart(place, (*theirs, *open_to_them), other)
        for place in opened:
            _require_apart(place, theirs, other)
    if chosen and (above := claims.claim_around(locations.canonical(chosen[0]), located.catalog.id)):
        raise Invalid(f"Location {chosen[0]!r:.200} lies in the place of a table, {above}.", kind=Kind.SCHEMA)


def _places_in(properties: Properties) -> tuple[list[str], list[str]]:
    return [place for place in [properties.get(LOCATION)] if place], divided(properties.get(OPENED))


def _require_apart(place: str, others: Iterable[str], schema: Schema) -> None:
    if any(locations.overlap(place, other) for other in others):
        raise Invalid(f"Location {place!r:.200} overlaps a place of schema {schema.path.logical()}.", kind=Kind.SCHEMA)


@dataclass(frozen=True)
class SchemaFolder:
    """A managed schema's default `folder` for tables, and the `ground` for tables whose creator chooses a place."""

    folder: str
    ground: Ground


def folder_of(schema: Located, own_files: MetadataFiles, properties: Properties | None = None) -> SchemaFolder:
    """The folder of a schema, by its own properties alone: it inherits no place from the schemas above it.

    Places among the properties that nobody could choose today are ignored. Makes one statement, or none if the caller
    passes the properties, or a schema that was looked up.
    """
    default = schema_folder(own_files.warehouse, schema.path.segments)
    if properties is None and schema.own_properties is not None:
        properties = orjson.loads(schema.own_properties)
    if properties is None:
        properties = Securable.objects.filter(pk=schema.id).values_list("properties", flat=True).first() or {}
    opened = tuple(place for place in divided(properties.get(OPENED)) if why_unfit(place, default, own_files) is None)
    chosen = properties.get(LOCATION) or ""
    if locations.are_one(chosen, default):
        default = chosen  # as the chooser spelled it
    elif chosen and why_unfit(chosen, default, own_files) is None:
        return SchemaFolder(chosen, Ground(own=(chosen,), opened=opened))
    if schema.nested:
        return SchemaFolder(default, Ground(shared=(default,), opened=opened))
    return SchemaFolder(default, Ground(own=(default,), opened=opened))


def why_unfit(place: str, default: str, own_files: MetadataFiles) -> str | None:
    """Why a place cannot be chosen for a schema with the folder `default`; None if it can.

    In the warehouse, any other folder without a dash may be another schema's, now or later.
    """
    try:
        locations.check_allowed(place, own_files.allowed, file_roots=own_files.file_roots)
        if locations.is_under(own_files.warehouse, place):
            return f"Location {place!r:.200} holds the warehouse, where all schemas have their folders."
        if not locations.is_under(place, own_files.warehouse) or locations.are_one(place, default):
            return None
    except Invalid as refusal:
        return refusal.message
    if has_dash(place, own_files.warehouse):
        return None
    return (
        f"Location {place!r:.200} may be another schema's folder: in the warehouse choose one whose first name has a "
        f"dash, such as {own_files.warehouse.removesuffix('/')}/of-sales, or the schema's own, {default}."
    )


# Tables


def require_ground_of(actor: Actor, table: Located, own_files: MetadataFiles, places: Iterable[str]) -> None:
    """`require_ground` and `require_giver` for places that a table neither has nor had before."""
    had = list(LocationClaim.objects.filter(securable_id=table.id).values_list("location", flat=True))
    new = [place for place in places if not any(locations.is_under(place, other) for other in had)]
    if new:
        claims.require_giver(actor, table, new)
        schema = table.above()
        require_ground(actor, schema, folder_of(schema, own_files).ground, new)


def require_ground(actor: Actor, schema: Located, ground: Ground, places: Iterable[str]) -> None:
    """Raise Forbidden for a place outside the ground of a table's schema, unless the actor may choose any place.

    Called before the place itself is read, so that the refusal reveals nothing of its content.
    """
    for place in places:
        if not (
            ground.holds(place)
            or may_choose(actor, schema)
            or reserved_places.is_left_to(actor, place, schema.catalog.id)
        ):
            raise Forbidden(
                f"{actor.name} may not choose {place!r:.200}: {_of_engine(ground, place)}a table of schema "
                f"{schema.path.logical()} must be {ground}; only the owner of catalog {schema.catalog.name} may choose "
                f"another location, or allow it for the schema by its property {OPENED}.",
                kind=Kind.TABLE,
            )


def _of_engine(ground: Ground, place: str) -> str:
    """What helps where an engine chose the place: many take the schema's folder and the table's bare name."""
    if not ground.is_among_schemas(place):
        return ""
    return (
        "this could be the folder of a nested schema. Leave the location out, or have the engine choose a unique one "
        "(Trino: iceberg.unique-table-location=true); "
    )
