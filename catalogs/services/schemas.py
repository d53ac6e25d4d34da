"""Schemas: list, create (with missing parents), load, alter and drop them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial

from authz import operations, policy
from authz.actor import Actor
from catalogs.lookup import nearest
from catalogs.models import Schema
from catalogs.secrets import require_values
from catalogs.services import places, schema_paths
from catalogs.services.alterations import Alteration, require_enabled
from catalogs.services.children import schemas_shown
from catalogs.services.resolution import find, read_or_namesake
from catalogs.stores import SchemaRecord, store_for
from formats.iceberg.forbidden_properties import check_limits
from metalake.errors import NotFound, Unsupported
from metalake.hierarchy import HierarchicalSchema
from metalake.kinds import Kind
from metalake.lineage import Address, Located


@dataclass(frozen=True)
class SchemaList:
    """The schemas directly below a catalog or schema, by name, and when an outside system returned them."""

    paths: list[HierarchicalSchema]
    taken_at: datetime | None = None


def list_schemas(
    actor: Actor, container: Address, after: str | None = None, limit: int | None = None, *, refresh: bool = False
) -> SchemaList:
    """The schemas directly below a catalog or schema that the actor sees, by name; after `after`, at most `limit`."""
    try:
        parent = find(actor, container)
        policy.require_seen(actor, parent, operations.FAMILIES["list_below"].get(parent.kind))
    except NotFound:
        _check_parent(actor, container)
        raise
    return schemas_of(actor, parent, after, limit, refresh=refresh)


def schemas_of(
    actor: Actor, parent: Located, after: str | None = None, limit: int | None = None, *, refresh: bool = False
) -> SchemaList:
    """The same for a container that is located, and that the actor sees. Raises Unsupported, NotInUse."""
    if parent.kind == Kind.SCHEMA and not parent.nested:
        raise Unsupported(schema_paths.FLAT, kind=Kind.SCHEMA)
    require_enabled(parent)
    missing, taken_at = store_for(parent, Kind.SCHEMA).listing(actor, parent, refresh=refresh)
    rows = schemas_shown(actor, parent, after, None if missing else limit)
    shown = [name for id, name in rows if id not in missing][:limit]
    above = parent.path.segments
    return SchemaList([HierarchicalSchema((*above, name)) for name in shown], taken_at)


def _check_parent(actor: Actor, container: Address) -> None:
    """Raise a clearer error than NotFound for a bad name if the actor sees the catalog, whose rules it reveals."""
    catalog = nearest(container.of_catalog())
    if catalog is None or not policy.sees(actor, catalog):
        return
    if catalog.kind == Kind.CATALOG and container.schema is not None:
        if not catalog.nested:
            raise Unsupported(schema_paths.FLAT, kind=Kind.SCHEMA)
        schema_paths.path_in(catalog, container.schema)


def to_be_made(actor: Actor, address: Address) -> list[HierarchicalSchema]:
    """The schemas that creating this one would create: its missing parents, outermost first, then itself.

    Raises what create_schema raises about the name and the right to create it.
    """
    catalog = schema_paths.catalog_at(actor, address)
    return schema_paths.may_create(actor, catalog, address.schema or "").missing


def create_schema(actor: Actor, address: Address, comment: str | None, properties: dict[str, str]) -> SchemaRecord:
    """Create a schema with all its missing parents, which get the same owner."""
    check_limits(properties)
    require_values(properties, kind=Kind.SCHEMA)
    catalog = schema_paths.catalog_at(actor, address)
    places.require_choice(actor, catalog, {}, properties)  # before the name, which may be a hidden schema's
    return store_for(catalog, Kind.SCHEMA).create(actor, address, catalog, comment, properties)


def load_schema(actor: Actor, address: Address, *, refresh: bool = False, with_folder: bool = False) -> SchemaRecord:
    """A schema that the actor sees; only its name if they see it just as the path to an object below."""
    return load_located_schema(actor, find(actor, address), address, refresh=refresh, with_folder=with_folder)


def load_located_schema(
    actor: Actor, schema: Located, address: Address, *, refresh: bool = False, with_folder: bool = False
) -> SchemaRecord:
    """The same for a schema that is located, at this address."""

    def read(schema: Located) -> SchemaRecord:
        store = store_for(schema, Kind.SCHEMA)
        if not policy.permits(actor, operations.LOAD_SCHEMA, schema):
            store.require_there(actor, schema)
            return SchemaRecord(schema.path, Schema(), is_path=True)
        return store.load(actor, schema, refresh=refresh, with_folder=with_folder)

    return read_or_namesake(address, schema, partial(_require_seen, actor), read)


def _require_seen(actor: Actor, schema: Located) -> None:
    policy.require_seen(actor, schema)
    require_enabled(schema)


def schema_exists(actor: Actor, address: Address) -> None:
    """Raise NotFound unless the actor sees the schema, even if only as the path to an object below."""

    def read(schema: Located) -> None:
        store_for(schema, Kind.SCHEMA).require_there(actor, schema)

    read_or_namesake(address, find(actor, address), partial(_require_seen, actor), read)


def alter_schema(actor: Actor, address: Address, alteration: Alteration) -> tuple[SchemaRecord, dict[str, str]]:
    """Alter a schema; returns it and its previous properties."""
    schema = find(actor, address)
    policy.require(actor, operations.ALTER_SCHEMA, schema)
    return store_for(schema, Kind.SCHEMA).alter(actor, address, schema, alteration)


def drop_schema(actor: Actor, address: Address, *, cascade: bool = False) -> str | None:
    """Drop a schema; returns why table files stay that its system would have deleted, or None.

    Raises NotEmpty unless it is empty, or `cascade` is set, which only flat catalogs support.
    """
    schema = find(actor, address)
    policy.require(actor, operations.DROP_SCHEMA, schema)
    return store_for(schema, Kind.SCHEMA).drop(actor, address, schema, cascade=cascade)
