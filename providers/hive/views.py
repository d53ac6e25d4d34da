"""A metastore's views."""

from __future__ import annotations

from hive_metastore.ttypes import Table

from formats.hive.names import HIVE, folded_name
from formats.hive.tables import VIEW_TYPES, HiveTable
from metalake.errors import AlreadyExists
from metalake.kinds import Kind
from providers.hive.calls import (
    alter,
    drop,
    is_there,
    part_of,
    read_database,
    read_same,
    read_table,
    read_whole,
    require_ours,
    require_same,
    send_alteration,
    unknown_after_write,
)
from providers.hive.catalog import HiveCatalog
from providers.hive.errors import About
from providers.hive.files import TableFiles
from providers.hive.locks import locked_table
from providers.hive.objects import DDL_TIME, table_of, written
from providers.hive.pointers import HiveViewPointers
from providers.hive_like.parameters import marked
from providers.hive_like.views import HiveLikeViews, about_views
from providers.remote_objects import Json, Levels, Page, Remote

VIEWS = 200  # page size


class HiveViews(HiveLikeViews):
    """Views; as for tables, an alteration compares versions under the lock."""

    provider: HiveCatalog
    pointers = HiveViewPointers

    def list(self, schema: Levels, page: str | None = None) -> Page:
        database, about = schema[0], About(Kind.SCHEMA, schema[0])
        with self.provider.metastore() as metastore:
            names: set[str] = set()
            for view_type in VIEW_TYPES:
                names.update(metastore.call("get_tables_by_type", database, "*", view_type, about=about))
            if not names:
                read_database(metastore, database)
            chosen, following = part_of(sorted(names), page, VIEWS)
            return read_whole(metastore, database, chosen, following)

    def create(
        self,
        schema: Levels,
        view: str,
        definition: Json,
        marker: str = "",
        plan: Json | None = None,
        by_owner: bool = False,
    ) -> Remote:
        database, definition = schema[0], marked(definition, marker) | {"name": view}
        files = TableFiles(self.provider)
        with about_views(), self.provider.metastore() as metastore:
            is_fresh = plan is None or files.is_fresh(definition, plan)
            with self.pointed.prepared(schema, definition, plan) as wanted:
                made = written(wanted, onto=Table(tableName=view, dbName=database))
                if not is_fresh:
                    files.require_unshared(made, [], by_owner)
                try:
                    metastore.call("create_table", made, about=About(Kind.VIEW, f"{database}.{view}"))
                except AlreadyExists:
                    return require_ours(table_of(read_table(metastore, database, view)), definition)
            with unknown_after_write():
                return table_of(read_table(metastore, database, view))

    def discard(self, definition: Json, plan: Json | None = None) -> None:
        self.pointed.discard(definition, plan)

    @property
    def pointed(self) -> HiveViewPointers:
        """The store of Iceberg views."""
        store = self.provider.view_pointers
        assert isinstance(store, HiveViewPointers)
        return store

    def alter(self, schema: Levels, view: str, expected: Json, version: str, marker: str = "") -> Remote:
        with about_views(), locked_table(self.provider, schema[0], view) as (metastore, _):
            there = read_table(metastore, schema[0], view)
            require_same(table_of(there), version)
            last = (there.parameters or {}).get(DDL_TIME, "")
            changed = written(HiveTable.from_json(marked(expected, marker)), onto=there)
            return alter(metastore, changed, last, expected=(DDL_TIME, last))

    def rename(self, schema: Levels, view: str, to_schema: Levels, to_view: str, identity: str) -> Remote:
        source, target = schema[0], to_schema[0]
        name = folded_name(to_view, HIVE, Kind.VIEW)
        with about_views(), locked_table(self.provider, source, view) as (metastore, _):
            there = read_same(metastore, source, view, identity)
            read_database(metastore, target)
            if is_there(metastore, target, name):
                raise AlreadyExists(f"View {target}.{name} already exists.", kind=Kind.VIEW)
            there.dbName, there.tableName = target, name
            send_alteration(metastore, source, view, there, {})
            with unknown_after_write():
                return table_of(read_table(metastore, target, name))

    def drop(self, schema: Levels, view: str, identity: str, version: str | None = None) -> None:
        with about_views(), self.provider.metastore() as metastore:
            there = table_of(read_same(metastore, schema[0], view, identity))
            if version is not None:
                require_same(there, version)
            drop(metastore, schema[0], view, with_files=False)
