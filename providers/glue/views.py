"""Glue's views; its multi-dialect views are read like those in Hive's forms."""

from __future__ import annotations

from collections.abc import Sequence

from formats.hive.names import folded_name
from formats.hive.tables import HiveTable
from formats.hive.views.forms import VIEW_DEFINITION
from formats.native.view_definition import ViewDefinition
from metalake.errors import Invalid, Unsupported
from metalake.kinds import Kind
from providers.glue.catalog import GlueCatalog
from providers.glue.mapping import table_input
from providers.glue.resource_links import require_own
from providers.glue.responses import after_write, changed, read_table, require_same, table_of, update, writable
from providers.hive_like.parameters import marked
from providers.hive_like.views import HiveLikeViews, about_views
from providers.remote_objects import Json, Levels, Page, Remote


class GlueViews(HiveLikeViews):
    provider: GlueCatalog

    def list(self, schema: Levels, page: str | None = None) -> Page:
        """A page of Glue's entries without the tables; may be empty before the last page."""
        entries = self.provider.tables.list(schema, page)
        return Page([entry for entry in entries.items if entry.kind == Kind.VIEW], entries.next)

    def draft(self, schema: Remote, name: str, wanted: ViewDefinition, owner: str) -> Json:
        _require_one_dialect(wanted)
        return super().draft(schema, name, wanted, owner)

    def altered(self, definition: Json, wanted: ViewDefinition, owner: str) -> Json:
        if not definition["rest"].get(VIEW_DEFINITION):
            _require_one_dialect(wanted)
        return super().altered(definition, wanted, owner)

    def create(self, schema: Levels, view: str, definition: Json, marker: str = "") -> Remote:
        glue, made = self.provider.glue, HiveTable.from_json(marked(definition, marker) | {"name": view})
        with about_views():
            wanted = writable(glue, table_input(made), "TableInput")
            glue.call("CreateTable", [*schema, view], DatabaseName=schema[0], TableInput=wanted)
            return after_write(lambda: table_of(read_table(glue, schema, view)))

    def alter(self, schema: Levels, view: str, expected: Json, version: str, marker: str = "") -> Remote:
        with about_views():
            entry = read_table(self.provider.glue, schema, view)
            require_own(entry)
            if table_of(entry).version != version:
                raise changed(schema, view)
            return update(self.provider.glue, schema, entry, HiveTable.from_json(marked(expected, marker)))

    def rename(self, schema: Levels, view: str, to_schema: Levels, to_view: str, identity: str) -> Remote:
        raise Unsupported("AWS Glue cannot rename a view.", kind=Kind.VIEW)

    def renaming(
        self, schema: Levels, to_schema: Levels, to_view: str, view: Remote, marker: str
    ) -> Sequence[tuple[str, Json]]:
        """Create a second entry, then drop the first unless it has changed."""
        if view.definition["rest"].get(VIEW_DEFINITION):
            raise Unsupported(
                "AWS Glue cannot rename a view, and one of several dialects is made by Lake Formation alone.",
                kind=Kind.VIEW,
            )
        folded_name(to_view, self.provider.rule, Kind.VIEW)
        renamed = {**view.definition, "name": to_view}
        old = {"identity": view.identity, "version": view.version}
        return [
            ("create_view", {"schema": to_schema, "view": to_view, "definition": renamed, "marker": marker}),
            ("drop_view", {"schema": schema, "view": view.name, **old}),
        ]

    def drop(self, schema: Levels, view: str, identity: str, version: str | None = None) -> None:
        with about_views():
            there = table_of(read_table(self.provider.glue, schema, view))
            require_same(there, identity)
            if version is not None and there.version != version:
                raise changed(schema, view)
            self.provider.glue.call("DeleteTable", [*schema, view], DatabaseName=schema[0], Name=view)


def _require_one_dialect(wanted: ViewDefinition) -> None:
    if len(wanted.representations) > 1:
        raise Invalid(
            "representations[1]: a view written here has one representation in AWS Glue; one of several dialects takes "
            "Lake Formation, which checks each with its engine",
            kind=Kind.VIEW,
        )
