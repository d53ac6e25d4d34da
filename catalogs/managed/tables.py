"""Managed tables: a row points to a metadata file, which defines the table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from authz import operations, policy
from authz.actor import Actor
from authz.locks import Lock
from authz.services import ownership_rules
from catalogs.leaf_stores import LeafDescription, LeafListing
from catalogs.lookup import find
from catalogs.managed.pointers import ManagedPointers
from catalogs.models import Table
from catalogs.services import purge as purging
from catalogs.services import shared_folders
from catalogs.services.alterations import event, require_enabled
from catalogs.services.cascade import remove
from catalogs.services.commits import commit, native_change
from catalogs.services.free_names import require_free_for_rename
from catalogs.services.renames import rename_row
from catalogs.services.resolution import as_home, find_table
from catalogs.services.writes import Locks, write_to
from catalogs.table_stores import PartitionStore, TableDraft, TableRecord, TableStore
from formats.iceberg import metadata_json
from formats.iceberg.outlines import current_columns
from formats.iceberg.translate import from_iceberg, to_iceberg
from formats.native.tables import CreateTableRequest
from metalake.blocking import may_block
from metalake.errors import Unsupported
from metalake.events import follow_up, gone, record
from metalake.kinds import Kind
from metalake.lineage import Address, Located

SMALL = 32 * 1024  # bytes of metadata whose translation is remembered


@lru_cache(maxsize=256)
def _parts_of(content: bytes) -> dict[str, Any]:
    """The native wire's JSON of a metadata file, remembered: a table is loaded more often than changed."""
    return from_iceberg(metadata_json.parse_metadata(content))


class ManagedTables(TableStore):
    """Managed tables, which are all Iceberg tables."""

    pointers = ManagedPointers()

    def meet(self, actor: Actor, schema: Located, name: str) -> bool:
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
        may_block()  # parsing what is larger takes milliseconds
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

    def alter(self, actor: Actor, address: Address, table: Located, updates: Sequence[Any]) -> TableRecord:
        return commit(actor, address, table, native_change(updates))

    def rename(self, actor: Actor, source: Address, table: Located, target: Address, *, iceberg: bool) -> Located:
        name, moves = target.leaf or "", source.schema != target.schema

        def locate(actor: Actor) -> Locks:
            fresh = find_table(actor, source)
            # Before the target is looked up, so that only who may move the table learns whether it exists.
            policy.require(actor, operations.MOVE_TABLE if moves else operations.ALTER_TABLE, fresh)
            require_enabled(fresh)
            home = find(actor, target.of_schema())
            if moves:
                as_home(actor, home, operations.CREATE_TABLE)
            return [(home, Lock.HANGS), (fresh, Lock.MOVES)]

        def act(actor: Actor, home: Located, fresh: Located) -> Located:
            if moves:
                ownership_rules.require_no_escape(actor, fresh, home)
            require_free_for_rename(fresh, home, name)
            return rename_row(actor, fresh, home, name)

        return write_to(actor, locate, act, kind=Kind.TABLE)

    def drop(self, actor: Actor, address: Address, table: Located, *, purge: bool, iceberg: bool) -> str | None:
        """Drop the row now; with `purge`, the table's files are deleted in the background."""
        if purge and table.metadata_location:
            shared_folders.mark(table.metadata_location)

        def locate(actor: Actor) -> Locks:
            fresh = find_table(actor, address)
            policy.require(actor, operations.DROP_TABLE, fresh)
            require_enabled(fresh)
            return [(fresh, Lock.MOVES)]

        def act(actor: Actor, fresh: Located) -> None:
            uuid = Table.objects.values_list("uuid", flat=True).get(pk=fresh.id) if purge else None
            places = remove(fresh)
            record(event(actor, "table.dropped", fresh, [gone(fresh.id)], purge=purge))
            if uuid is not None:
                follow_up(purging.PURGE, [purging.purge_of(actor, fresh, uuid, places)])

        write_to(actor, locate, act, kind=Kind.TABLE, at=address)
        return None

    def partitions(self, record: TableRecord) -> PartitionStore:
        raise Unsupported(
            "Iceberg tables have no partitions to manage: they are partitioned by expressions of their columns.",
            kind="partition",
        )
