"""Views in a metastore or Glue, read and written in the private form of their engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from formats.hive.names import folded_name
from formats.hive.tables import HiveTable
from formats.hive.views.forms import Form, detect
from formats.hive.views.reader import read
from formats.hive.views.unreadable import Unreadable
from formats.hive.views.writer import rewritten, written
from formats.iceberg import forbidden_properties
from formats.native.view_definition import ViewDefinition
from metalake.errors import Invalid, MetalakeError
from metalake.kinds import Kind
from providers.hive_like.catalog import HiveLikeCatalog
from providers.hive_like.parameters import POINTER, checked, marker_of, without_marker
from providers.hive_like.tables import HiveLikeTables
from providers.metadata_files import MetadataFiles
from providers.remote_objects import Json, Remote, ViewEntry
from providers.view_stores import RemoteViews


class HiveLikeViews(RemoteViews):
    provider: HiveLikeCatalog

    def read(self, definition: Json) -> ViewEntry:
        entry = _entry_of(definition)
        if detect(entry) is Form.ICEBERG:
            if not (location := entry.parameters.get(POINTER)):
                raise Unreadable(f"It is an Iceberg view without a {POINTER}.")
            return ViewEntry(Form.ICEBERG, Form.ICEBERG, metadata_location=location)
        view = read(entry)
        return ViewEntry(
            view.engine, view.format, view.definition, view.is_materialized, query_columns=view.query_columns
        )

    def files(self, *places: str) -> MetadataFiles:
        return self.provider.pointers.files(*places)

    def draft(self, schema: Remote, name: str, wanted: ViewDefinition, owner: str) -> Json:
        self._check_properties(wanted)
        entry = written(folded_name(name, self.provider.rule, Kind.VIEW), schema.name, wanted, owner=owner)
        self._require_fit(entry)
        return entry.as_json()

    def altered(self, definition: Json, wanted: ViewDefinition, owner: str) -> Json:
        self._check_properties(wanted)
        entry = rewritten(_entry_of(definition), wanted, owner=owner)
        self._require_fit(entry)
        return entry.as_json()

    def is_marked(self, view: Remote, marker: str) -> bool:
        return marker_of(view.definition) == marker

    def _check_properties(self, wanted: ViewDefinition) -> None:
        for key in checked(wanted.properties):
            if forbidden_properties.loads_class(key):
                raise Invalid(
                    f"properties.{key}: names a class to load; only a server may choose classes", kind=Kind.VIEW
                )

    def _require_fit(self, entry: HiveTable) -> None:
        tables = self.provider.tables
        assert isinstance(tables, HiveLikeTables)
        tables.require_fit(entry)


def _entry_of(definition: Json) -> HiveTable:
    entry = HiveTable.from_json(definition)
    return replace(entry, parameters=without_marker(entry.parameters))


@contextmanager
def about_views() -> Iterator[None]:
    """Make errors of calls that tables and views share refer to a view."""
    try:
        yield
    except MetalakeError as failure:
        if failure.kind == Kind.TABLE:
            failure.kind = Kind.VIEW
        raise
