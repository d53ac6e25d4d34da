"""Managed schemas: one row for each level."""

from __future__ import annotations

from functools import partial

from authz import operations
from authz.actor import Actor
from authz.locks import Lock
from catalogs.leaf_stores import asking_once
from catalogs.models import LEVELS, Schema
from catalogs.services import places, schema_paths
from catalogs.services.alterations import Alteration, event, row_of, save
from catalogs.services.cascade import remove
from catalogs.services.provider_of import provider_at
from catalogs.services.schema_paths import Chain
from catalogs.services.writes import Locks, Target, Write, write_to
from catalogs.stores import SchemaListing, SchemaRecord, SchemaStore, leaf_kinds, store_for
from metalake.errors import NotEmpty
from metalake.events import gone, record
from metalake.kinds import Kind
from metalake.lineage import Address, Located, SchemaName
from metalake.models import Securable
from metalake.prefetch import ReadAhead
from providers.remote_objects import Levels, Remote


class ManagedSchemas(SchemaStore):
    """Schemas that are rows of our database."""

    def discover(self, actor: Actor, catalog: Located, name: SchemaName) -> bool:
        return False

    def listing(self, actor: Actor, container: Located, *, refresh: bool) -> SchemaListing:
        return SchemaListing()

    def load(
        self,
        actor: Actor,
        schema: Located,
        *,
        refresh: bool = False,
        as_published: bool = False,
        with_folder: bool = False,
    ) -> SchemaRecord:
        row = row_of(Schema, schema, "owner_user", "owner_group")
        folder = store_for(schema, Kind.TABLE).pointers.home_of(actor, schema, row.properties) if with_folder else None
        return SchemaRecord(schema.path, row, folder=folder)

    def require_there(self, actor: Actor, schema: Located) -> None:
        pass

    def levels(self, schema: Located) -> Levels:
        return provider_at(schema).names.levels_of(schema.path)

    def as_remote(self, actor: Actor, schema: Located) -> Remote:
        row = row_of(Schema, schema)
        shown = {"comment": row.comment, "properties": row.properties}
        return Remote(LEVELS.join(self.levels(schema)), shown, kind=Kind.SCHEMA)

    def create(
        self, actor: Actor, address: Address, catalog: Located, comment: str | None, properties: dict[str, str]
    ) -> SchemaRecord:
        """Create the schema with its missing parents, in one transaction.

        It takes eight statements at any depth: caller, policy with catalog, chain, two inserts, audit, history,
        outbox; with row locks also eight, since one insert then covers several tables (metalake.bulk_insert).
        """
        place = address.of_catalog()
        parent = partial(_parent_of_new, address=address, properties=properties)
        target = Target(place, None, Lock.HANGS, check=parent, makes=Kind.SCHEMA, ahead=place)
        with ReadAhead(place, catalog):
            return write_to(actor, target, _create, address, comment, properties)

    def alter(
        self, actor: Actor, address: Address, schema: Located, alteration: Alteration
    ) -> tuple[SchemaRecord, dict[str, str]]:
        return write_to(actor, Target(address, operations.ALTER_SCHEMA), _alter, alteration)

    def drop(self, actor: Actor, address: Address, schema: Located, *, cascade: bool) -> str | None:
        """Drop the schema; a cascade does not drop objects in it that lie in another system."""
        with asking_once():
            for kind in leaf_kinds(schema):
                store_for(schema, kind).listing(actor, schema, refresh=True)
        target = Target(address, operations.DROP_SCHEMA, Lock.MOVES, check=_require_flat if cascade else None)
        write_to(actor, target, _drop, cascade)
        return None


def _parent_of_new(actor: Actor, catalog: Located, *, address: Address, properties: dict[str, str]) -> Locks:
    """The container of a new schema, which may be the catalog. Raises if the schema may not be created."""
    schema_paths.require_reach(actor, catalog)
    places.require_choice(actor, catalog, {}, properties)
    return [(schema_paths.may_create(actor, catalog, address.schema or "").parent, Lock.HANGS)]


def _create(write: Write, address: Address, comment: str | None, properties: dict[str, str]) -> SchemaRecord:
    catalog = write.located
    chain = Chain(catalog, schema_paths.path_in(catalog, address.schema or ""), write.home)
    places.check_choice(catalog, chain.path, {}, properties)
    return SchemaRecord(chain.path, schema_paths.make(write.actor, chain, comment, properties)[-1])


def _alter(write: Write, alteration: Alteration) -> tuple[SchemaRecord, dict[str, str]]:
    actor, schema = write.actor, write.located
    row = row_of(Schema, schema)
    before = dict(row.properties)
    fields = alteration.apply_to(row)
    places.require_choice(actor, schema, before, row.properties)
    places.check_choice(schema, schema.path, before, row.properties)
    if fields:
        save(row, actor, fields)
        changed = sorted(set(before) ^ set(row.properties)) or sorted(fields)
        record(event(actor, "schema.altered", schema, changed=changed))
    return SchemaRecord(schema.path, row), before


def _require_flat(actor: Actor, schema: Located) -> None:
    schema_paths.check_cascade(schema, True)


def _drop(write: Write, cascade: bool) -> None:
    schema = write.located
    takes_all = cascade and not store_for(schema, Kind.CATALOG).is_mirrored
    if not takes_all and Securable.objects.filter(parent_id=schema.id).exists():
        raise NotEmpty(f"Schema {schema.path.logical()} is not empty.", kind=Kind.SCHEMA)
    remove(schema)
    record(event(write.actor, "schema.dropped", schema, [gone(schema.id)], cascade=cascade))
