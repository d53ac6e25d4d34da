"""Iceberg views in a metastore: entries that point to metadata files."""

from __future__ import annotations

from collections.abc import Sequence

from formats.hive.tables import HiveTable
from formats.hive.views.forms import ICEBERG_VIEW
from formats.iceberg.views.metadata_json import parse_view_metadata
from metalake.kinds import Kind
from providers.hive import iceberg
from providers.hive.folders import VIRTUAL_VIEW
from providers.hive.pointers import HivePointed
from providers.hive_like.views import about_views
from providers.remote_objects import Json, Levels, Remote
from providers.view_stores import RemoteViewPointers


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
