"""The outside stores: objects are read from another system, cached here as mirrors, and written by intents."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from authz.actor import Actor
from catalogs.leaf_stores import LeafDescription, LeafListing
from catalogs.models import Mirror
from catalogs.services.alterations import Alteration
from catalogs.services.commits import commit, native_change
from catalogs.services.resolution import located_now
from catalogs.stores import CatalogStore, SchemaListing, SchemaRecord, SchemaStore, store_for
from catalogs.table_stores import (
    Json,
    PartitionStore,
    TableRecord,
    TableStore,
)
from formats.iceberg.outlines import current_columns
from formats.native.outlines import outline_keys, outline_native
from formats.native.partitions import IdentityPartition
from formats.native.tables import CreateTableRequest
from metalake.kinds import Kind
from metalake.lineage import Address, Located, SchemaName
from outside import (
    creation,
    discovery,
    mirror,
    nesting,
    partitions,
    reads,
    renames,
    schema_places,
    schemas,
    tables,
)
from outside import iceberg_tables as iceberg
from outside.pointers import OutsideTablePointers
from providers.base import Provider
from providers.remote_objects import Levels, Remote

DETAILS = (("Kind", "table-type"), ("Format", "format"), ("Location", "location"))  # shown besides all properties


class OutsideCatalogs(CatalogStore):
    """Catalogs with at least one kind of object in another system."""

    is_mirrored = True

    def require_no_clash(self, provider: Provider, metalake_id: int) -> None:
        nesting.require_no_clash(provider, metalake_id)

    def nesting_conflicts(self, actor: Actor, catalog: Located, divided: Collection[str]) -> list[str]:
        return nesting.conflicts(actor, catalog, divided)

    def flattening_conflicts(self, catalog_id: int) -> list[str]:
        return nesting.spelt_otherwise(catalog_id)

    def forget_answers(self, catalog_id: int, reason: str) -> None:
        reads.forget_answers(catalog_id, reason)


class OutsideSchemas(SchemaStore):
    """Schemas of another system; each has a row here, to which grants refer."""

    def discover(self, actor: Actor, catalog: Located, name: SchemaName) -> bool:
        return discovery.import_schema(actor, catalog, name)

    def listing(self, actor: Actor, container: Located, *, refresh: bool) -> SchemaListing:
        return SchemaListing(*schemas.update_listing(actor, container, force=refresh))

    def load(
        self,
        actor: Actor,
        schema: Located,
        *,
        refresh: bool = False,
        as_published: bool = False,
        with_folder: bool = False,
    ) -> SchemaRecord:
        row, taken_at = schemas.loaded(actor, schema, force=refresh, as_published=as_published)
        folder = store_for(schema, Kind.TABLE).pointers.home_of(actor, schema, row.properties) if with_folder else None
        return SchemaRecord(schema.path, row, taken_at, folder)

    def require_there(self, actor: Actor, schema: Located) -> None:
        schemas.loaded(actor, schema)

    def levels(self, schema: Located) -> Levels | None:
        return mirror.levels_at(schema.id)

    def as_remote(self, actor: Actor, schema: Located) -> Remote:
        return schema_places.as_remote(schema)

    def create(
        self, actor: Actor, address: Address, catalog: Located, comment: str | None, properties: dict[str, str]
    ) -> SchemaRecord:
        return self.load(actor, schemas.create(actor, address, comment, properties), as_published=True)

    def alter(
        self, actor: Actor, address: Address, schema: Located, alteration: Alteration
    ) -> tuple[SchemaRecord, dict[str, str]]:
        before = schemas.alter(actor, schema, alteration)
        return self.load(actor, schema, as_published=True), before

    def drop(self, actor: Actor, address: Address, schema: Located, *, cascade: bool) -> str | None:
        return schemas.drop(actor, schema, cascade=cascade)


class OutsideTables(TableStore):
    """Tables of another system; each has a row here, and a record's `entry` is the definition there."""

    pointers = OutsideTablePointers()

    def discover(self, actor: Actor, schema: Located, name: str) -> bool:
        return discovery.import_leaf(actor, schema, Kind.TABLE, name)

    def listing(self, actor: Actor, schema: Located, *, refresh: bool, iceberg: bool = False) -> LeafListing:
        return LeafListing(*tables.update_listing(actor, schema, force=refresh, iceberg=iceberg))

    def load(self, actor: Actor, table: Located, *, refresh: bool = False, as_published: bool = False) -> TableRecord:
        return _record_of(tables.loaded(actor, table, force=refresh, as_published=as_published))

    def require_there(self, actor: Actor, table: Located, *, iceberg: bool) -> None:
        tables.loaded(actor, table, iceberg=iceberg)

    def parts(self, record: TableRecord) -> dict[str, Any]:
        return iceberg.native_parts(record.entry, iceberg.metadata_of(record.entry))

    def describe(self, actor: Actor, leaf: Located) -> LeafDescription:
        entry = self.load(actor, leaf).entry
        metadata = iceberg.metadata_of(entry)
        parts = iceberg.native_parts(entry, metadata)
        properties = dict(parts["properties"])
        return LeafDescription(
            comment=parts["comment"] or "",
            properties=properties,
            details=tuple((label, properties[key]) for label, key in DETAILS if key in properties),
            columns=current_columns(metadata) if metadata else outline_native(parts["columns"]),
            keys=outline_keys(parts.get("indexes") or ()),
            metadata=metadata,
        )

    def create(self, actor: Actor, address: Address, home: Located, asked: CreateTableRequest) -> TableRecord:
        return _record_of(creation.create(actor, address, home, asked))

    def alter(
        self,
        actor: Actor,
        address: Address,
        table: Located,
        updates: Sequence[Any],
        requires: Callable[[Json], None] | None = None,
    ) -> TableRecord:
        """Alter a table; an Iceberg table by a commit to its metadata, like a managed one."""
        current = self.load(actor, table, refresh=True)
        if current.metadata_location is None:
            tables.alter(actor, table, updates, requires)
        else:
            commit(actor, address, table, native_change(updates, requires), current=self.pointers.read(current))
        return self.load(actor, table, as_published=True)

    def rename(self, actor: Actor, source: Address, table: Located, target: Address, *, iceberg: bool) -> Located:
        def require_shown(provider: Provider, mirrored: Mirror) -> None:
            tables.require_shown(table, provider, mirrored.definition, iceberg=iceberg)

        renames.rename(actor, table, target, require_shown=require_shown)
        return located_now(table)

    def drop(self, actor: Actor, address: Address, table: Located, *, purge: bool, iceberg: bool) -> str | None:
        return tables.drop(actor, table, purge=purge, iceberg=iceberg)

    def partitions(self, record: TableRecord) -> PartitionStore:
        return OutsidePartitions(record.entry)


def _record_of(entry: tables.ExternalTable) -> TableRecord:
    location = entry.provider.pointers.location(entry.definition)
    return TableRecord(entry.located, location, taken_at=entry.taken_at, entry=entry)


class OutsidePartitions(PartitionStore):
    """Partitions of an outside table; they have no rows here, since no grant refers to them."""

    def __init__(self, table: tables.ExternalTable) -> None:
        self.table = table

    def names(self, actor: Actor) -> list[str]:
        return partitions.names(actor, self.table)

    def listing(self, actor: Actor) -> Iterable[dict[str, Any]]:
        return partitions.listed(actor, self.table)

    def load(self, actor: Actor, name: str) -> dict[str, Any]:
        return partitions.loaded(actor, self.table, name)

    def add(self, actor: Actor, asked: IdentityPartition) -> dict[str, Any]:
        return partitions.add(actor, self.table, asked)

    def drop(self, actor: Actor, name: str) -> str | None:
        return partitions.drop(actor, self.table, name)
