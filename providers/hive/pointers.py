"""Iceberg tables and views in a metastore: entries that point to metadata files."""

from __future__ import annotations

from collections.abc import Sequence

from formats.hive.tables import HiveTable
from formats.hive.views.forms import ICEBERG_VIEW
from formats.iceberg.views.metadata_json import parse_view_metadata
from metalake.errors import Conflict, Unsupported
from metalake.kinds import KINDS, Kind
from providers.hive import iceberg
from providers.hive.calls import alter, read_table
from providers.hive.catalog import HiveCatalog
from providers.hive.files import TableFiles
from providers.hive.folders import VIRTUAL_VIEW, places_of
from providers.hive.locks import locked_table
from providers.hive.objects import DDL_TIME, hive_table, table_of, written
from providers.hive_like.iceberg_entries import HiveLikePointed
from providers.hive_like.parameters import POINTER, marked
from providers.hive_like.pointers import HiveLikePointers
from providers.hive_like.views import about_views
from providers.remote_objects import Json, Levels, Remote
from providers.view_stores import RemoteViewPointers


class HivePointed(HiveLikePointed):
    """Objects of one kind in a metastore whose entries point to metadata files."""

    provider: HiveCatalog

    def moved(
        self,
        schema: Levels,
        name: str,
        location: str,
        previous: str,
        *,
        by_owner: bool,
        marker: str = "",
    ) -> Remote:
        """Compare-and-swap the entry's pointer under its lock, as Iceberg's HiveCatalog does.

        Raises Conflict, and Unsupported if the metastore has no locks or the entry is not Iceberg.
        """
        full_name = f"{KINDS[self.kind].label} {schema[0]}.{name}"
        with locked_table(self.provider, schema[0], name) as (metastore, has_lock):
            there = read_table(metastore, schema[0], name)
            points_to = self.location(table_of(there).definition)
            if points_to is None:
                raise Unsupported(f"{full_name} is no Iceberg {self.kind}.", kind=self.kind)
            if not has_lock:
                raise Unsupported(
                    f"{full_name}: this metastore keeps no locks, so a commit could undo another; "
                    "create its transaction tables.",
                    kind=self.kind,
                )
            if points_to != previous:
                raise Conflict(f"{full_name} points to {points_to} by now.", kind=self.kind)
            last, before = there.parameters.get(DDL_TIME, ""), places_of(there)
            definition = self.committed(hive_table(there), location).as_json()
            changed = written(HiveTable.from_json(marked(definition, marker)), onto=there)
            TableFiles(self.provider).require_unshared(changed, before, by_owner)
            return alter(metastore, changed, last, expected=(POINTER, previous))


class HivePointers(HivePointed, HiveLikePointers):
    def commit(self, schema: Levels, table: str, location: str, previous: str, by_owner: bool = False) -> Remote:
        return self.moved(schema, table, location, previous, by_owner=by_owner)

    def described(self, entry: HiveTable, metadata: Json) -> HiveTable:
        return iceberg.described(entry, metadata)


class HiveViewPointers(HivePointed, RemoteViewPointers):
    kind, mark, entry_type = Kind.VIEW, ICEBERG_VIEW.upper(), VIRTUAL_VIEW

    def commit(
        self, schema: Levels, view: str, location: str, previous: str, marker: str = "", by_owner: bool = False
    ) -> Remote:
        with about_views():
            return self.moved(schema, view, location, previous, by_owner=by_owner, marker=marker)

    def parse(self, content: bytes) -> Json:
        return parse_view_metadata(content)

    def columns(self, metadata: Json) -> Sequence[Json]:
        return iceberg.view_fields(metadata)

    def described(self, entry: HiveTable, metadata: Json) -> HiveTable:
        return iceberg.described_view(entry, metadata)
