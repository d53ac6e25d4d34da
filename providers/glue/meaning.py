"""What is Glue's own in the meaning of definitions; no call is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from formats.hive.names import GLUE, ICEBERG_IN_GLUE, folded_name
from formats.hive.tables import EXTERNAL_TABLE, FILE_FORMATS, HiveTable, formats_of, passes
from formats.native.tables import CreateTableRequest
from metalake.errors import Unsupported
from metalake.kinds import Kind
from providers.external import CACHE_TTL, REFRESH_INTERVAL, Levels, Remote
from providers.glue import iceberg as iceberg
from providers.glue.settings import GlueSettings, read_shown_formats
from providers.hive_like.meaning import MADE_HERE, HiveLike, formats_of_remote


class GlueMeaning(HiveLike):
    label = "AWS Glue"
    settings = GlueSettings
    immutable: ClassVar[Mapping[str, str]] = {
        "aws-region": "another region has other databases",
        "aws-glue-catalog-id": "another Glue catalog has other databases",
    }
    longest_name = GLUE.longest
    names, iceberg_names = GLUE, ICEBERG_IN_GLUE

    @property
    def file_roots(self) -> Sequence[str]:
        return ()

    @cached_property
    def given(self) -> GlueSettings:
        """Without the seconds, of which an older row may hold what is not valid any more; `seconds_of` reads them."""
        others = {key: value for key, value in self.properties.items() if key not in (CACHE_TTL, REFRESH_INTERVAL)}
        return GlueSettings.model_validate(others)

    # Schemas

    def new_schema(self, comment: str | None, properties: dict[str, str]) -> dict[str, Any]:
        return self.altered_schema({"location": None, "parameters": {}, "rest": {}}, comment, properties)

    def altered_schema(
        self, definition: dict[str, Any], comment: str | None, properties: dict[str, str]
    ) -> dict[str, Any]:
        location, parameters = self.taken_apart(definition, properties)
        if location is not None and location != definition["location"]:
            self.hive_place(location)
        return {**definition, "comment": comment, "location": location, "parameters": parameters}

    def home_of(self, schema: Remote) -> str | None:
        if own := schema.definition["location"]:
            return str(own)
        return f"{self.warehouse.removesuffix('/')}/{schema.name}" if self.warehouse else None

    # Tables

    @property
    def default_format(self) -> str:
        return self.given.default_table_format

    def placed(self, schema: Remote, asked: CreateTableRequest) -> dict[str, str]:
        """Glue decides nothing."""
        place = self.place_of(schema, asked.name, asked.properties.get("location"))
        return {"table-type": EXTERNAL_TABLE} | asked.properties | {"location": place}

    def described(self, entry: HiveTable, metadata: dict[str, Any]) -> HiveTable:
        return iceberg.described(entry, metadata)

    def shown_table(self, definition: dict[str, Any]) -> dict[str, Any]:
        shown, table = super().shown_table(definition), HiveTable.from_json(definition)
        if "iceberg" in formats_of(table):
            shown["columns"] = iceberg.shown_columns(table, shown["columns"])
        return shown

    @property
    def hides_some(self) -> bool:
        return "all" not in self._shown_formats

    def shows(self, table: Remote) -> bool:
        return not self.hides_some or passes(self._shown_formats, formats_of_remote(table))

    @property
    def only_formats(self) -> frozenset[str] | None:
        """A table of Hive's has a file format, too."""
        if not self.hides_some:
            return None
        return self._shown_formats.union(FILE_FORMATS.values() if "hive" in self._shown_formats else ())

    @classmethod
    def shown_formats(cls, properties: Mapping[str, str]) -> frozenset[str]:
        words = read_shown_formats(properties.get("table-type-filter"), properties.get("table-format-filter"))
        return MADE_HERE if "all" in words else MADE_HERE & words

    @cached_property
    def _shown_formats(self) -> frozenset[str]:
        return self.given.shown_formats

    def renaming(
        self, schema: Levels, to_schema: Levels, to_table: str, table: Remote, marker: str
    ) -> list[tuple[str, dict[str, Any]]]:
        """A second entry for the same metadata file, then the first one goes, unless it was changed meanwhile."""
        if self.metadata_location(table.definition) is None:
            raise Unsupported(
                "AWS Glue cannot rename a table, and only an Iceberg table can be entered under another name without "
                "losing what belongs to it.",
                kind=Kind.TABLE,
            )
        folded_name(to_table, ICEBERG_IN_GLUE, Kind.TABLE)
        renamed = self.marked({**table.definition, "name": to_table}, marker)
        old = {"identity": table.identity, "version": table.version}
        return [
            ("create_table", {"schema": to_schema, "table": to_table, "definition": renamed}),
            ("drop_table", {"schema": schema, "table": table.name, **old}),
        ]
