"""Managed tables: a row points to a metadata file, which defines the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from authz import operations
from authz.actor import Actor
from authz.locks import Lock
from catalogs.leaf_stores import LeafDescription, LeafListing
from catalogs.managed.pointers import ManagedPointers
from catalogs.models import Table
from catalogs.services import purge as purging
from catalogs.services import shared_folders
from catalogs.services.alterations import event
from catalogs.services.cascade import remove
from catalogs.services.commits import commit, native_change
from catalogs.services.renames import rename, to_rename
from catalogs.services.writes import Target, Write, write_to
from catalogs.table_stores import Json, PartitionStore, TableDraft, TableRecord, TableStore
from formats.iceberg import metadata_json
from formats.iceberg.outlines import current_columns
from formats.iceberg.translate import from_iceberg, to_iceberg
from formats.native.tables import CreateTableRequest
from metalake.blocking import may_block
from metalake.errors import Unsupported
from metalake.events import follow_up, gone, record
from metalake.lineage import Address, Located

SMALL = 32 * 1024  # bytes of metadata; the translation of anything up to this is cached


@lru_cache(maxsize=256)
def _parts_of(content: bytes) -> dict[str, Any]:
    """The native API's JSON of a metadata file, cached: a table is loaded more often than changed."""
    return from_iceberg(metadata_json.parse_metadata(content))


class ManagedTables(TableStore):
    """Managed tables, which are all Iceberg tables."""

    pointers = ManagedPointers()

    def discover(self, actor: Actor, schema: Located, name: str) -> bool:
        return False

    def listing(self, actor: Actor, schema: Located, *, refresh: bool, iceberg: bool = False) -> LeafListing:
        return LeafListing()

    def load(self, actor: Actor, table: Located, *, refresh: bool = False, as_published: bool = False) -> TableRecord:
        return self.pointers.current(actor, table)

    def require_there(self, actor: Actor, table: Located, *, iceberg: bool) -> None:
        pass

    def parts(self, record: TableRecord) -> dict[str, Any]:
        if len(record.content) <= SMALL:
            return dict(_parts_of(record.content))
        may_block()  # parsing larger metadata takes milliseconds
        return from_iceberg(record.metadata)

    def describe(self, actor: Actor, leaf: Located) -> LeafDescription:
        metadata = self.load(actor, leaf).metadata
        properties = dict(metadata.get("properties") or {})
        return LeafDescription(
            comment=properties.pop("comment", ""),
            properties=properties,
            details=(
                ("Format", f"Iceberg v{metadata.get('format-version')}"),
                ("Location", metadata.get("location", "")),
            ),
            columns=current_columns(metadata),
            metadata=metadata,
        )

    def create(self, actor: Actor, address: Address, home: Located, asked: CreateTableRequest) -> TableRecord:
        schema, spec, order, properties = to_iceberg(asked)
        location = properties.pop("location", None)
        draft = TableDraft(schema, spec, order, properties, location)
        return self.pointers.create(actor, address, home, draft)

    def alter(
        self,
        actor: Actor,
        address: Address,
        table: Located,
        updates: Sequence[Any],
        requires: Callable[[Json], None] | None = None,
    ) -> TableRecord:
        return commit(actor, address, table, native_change(updates, requires))

    def rename(self, actor: Actor, source: Address, table: Located, target: Address, *, iceberg: bool) -> Located:
        return write_to(actor, to_rename(source, target), rename, target.leaf or "")

    def drop(self, actor: Actor, address: Address, table: Located, *, purge: bool, iceberg: bool) -> str | None:
        """Drop the row now; with `purge`, the table's files are deleted in the background."""
        if purge and table.metadata_location:
            shared_folders.mark(table.metadata_location)
        write_to(actor, Target(address, operations.DROP_TABLE, Lock.MOVES, ahead=address), _drop, purge)
        return None

    def partitions(self, record: TableRecord) -> PartitionStore:
        raise Unsupported(
            "Iceberg tables have no partitions to manage: they are partitioned by transforms of their columns.",
            kind="partition",
        )


def _drop(write: Write, purge: bool) -> None:
    table = write.located
    uuid = Table.objects.values_list("uuid", flat=True).get(pk=table.id) if purge else None
    places = remove(table)
    record(event(write.actor, "table.dropped", table, [gone(table.id)], purge=purge))
    if uuid is not None:
        follow_up(purging.PURGE, [purging.purge_of(write.actor, table, uuid, places)])
