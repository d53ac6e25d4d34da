"""Iceberg tables in a Hive-like system: an entry with the location of the metadata file, which also repeats the columns
and properties for readers that do not open that file.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any
from uuid import uuid4

from formats.hive.names import folded_name
from formats.hive.properties import PLACES, SERDE_PARAMETER
from formats.hive.tables import EXTERNAL_TABLE, HiveTable
from formats.iceberg import builder, files, guard, locations, metadata_json, table_locations
from formats.iceberg.folders import Ground
from formats.iceberg.translate import current_schema, to_iceberg
from formats.native.tables import CreateTableRequest
from metalake.errors import (
    AlreadyExists,
    Forbidden,
    Invalid,
    MetalakeError,
    NotFound,
    OutcomeUnknown,
    ProviderUnavailable,
    Unsupported,
)
from metalake.kinds import Kind
from providers.answers import Levels, NewTable, Remote
from providers.deadline import require_time
from providers.hive_like.catalog import HiveLikeCatalog
from providers.hive_like.meaning import MARKER, POINTER, PREVIOUS
from providers.metadata_files import MetadataFiles
from providers.stores import RemotePointers

Json = dict[str, Any]

MARK = {"table_type": "ICEBERG"}
OLD_PLAN = "metalake.planned"  # in the rest of a definition, where older versions put the plan
OF_HIVE_TABLES = {*PLACES} - {"location", "table-type"}
# Properties of a table that its entry does not repeat: the comment is a field, and a drop must leave the files.
NOT_REPEATED = frozenset({"comment", "EXTERNAL", "external.table.purge", MARKER, POINTER, PREVIOUS, *MARK})
LONGEST_COMMENT = 255  # characters of a column's comment; the metadata file has all of it


class HiveLikePointers(RemotePointers):
    """Tables whose entry has the location of the metadata file in a parameter."""

    provider: HiveLikeCatalog

    @abstractmethod
    def described(self, entry: HiveTable, metadata: Json) -> HiveTable:
        """The entry with the metadata's columns and whatever else Iceberg's catalog for this system writes to it."""

    def location(self, definition: Json) -> str | None:
        parameters = definition["parameters"]
        return parameters.get(POINTER) if parameters.get("table_type", "").upper() == "ICEBERG" else None

    def files(self, *places: str) -> MetadataFiles:
        catalog = self.provider
        others = [place for place in places if catalog.is_open_place(place)]
        return MetadataFiles(catalog.catalog_id, lambda: catalog.io, catalog.allowed, catalog.file_roots, places=others)

    def home_of(self, schema: Remote) -> str | None:
        return self.provider.places.home_of(schema)

    def place(self, schema: Remote, name: str, asked: str | None) -> str:
        """The location of a new table; a default one is unique, since a renamed table stays in its old folder."""
        self._check_names(schema, name)
        return self.provider.places.place_of(schema, name, asked, ending=f"-{uuid4().hex}")

    def _check_names(self, schema: Remote, name: str) -> None:
        folded_name(schema.name, self.provider.iceberg_rule, Kind.SCHEMA)
        folded_name(name, self.provider.iceberg_rule, Kind.TABLE)

    # New tables

    def new_table(self, schema: Remote, asked: CreateTableRequest) -> NewTable:
        """A new table from a native request; with the property `metadata_location`, a table to register."""
        self._check_names(schema, asked.name)
        if POINTER in asked.properties:
            return self._registered(schema, asked)
        for key in asked.properties:
            if key in OF_HIVE_TABLES or key.startswith(SERDE_PARAMETER):
                raise Invalid(f"properties.{key}: an Iceberg table has none; it is for table_type=HIVE", kind="table")
        if asked.properties.get("table-type", EXTERNAL_TABLE).upper() != EXTERNAL_TABLE:
            raise Invalid(f"properties.table-type: an Iceberg table is an {EXTERNAL_TABLE} here", kind="table")
        properties = {key: value for key, value in asked.properties.items() if key not in ("location", "table-type")}
        guard.check_properties(properties)
        columns, spec, order, wanted = to_iceberg(asked.model_copy(update={"properties": properties}))
        metadata = builder.new_table_metadata(
            table_uuid=str(uuid4()),
            location=self.place(schema, asked.name, asked.properties.get("location")),
            schema=columns,
            partition_spec=spec,
            sort_order=order,
            properties=wanted,
            now_ms=int(time.time() * 1000),
        )
        return self._planned(schema, asked.name, asked.comment, metadata)

    def draft(self, schema: Remote, name: str, metadata: Json, location: str | None = None) -> NewTable:
        self._check_names(schema, name)
        if location is None:
            return self._planned(schema, name, None, metadata)
        return self._registered(schema, CreateTableRequest(name=name, columns=[], properties={POINTER: location}))

    def _planned(self, schema: Remote, name: str, comment: str | None, metadata: Json) -> NewTable:
        """The entry of a new table, and the plan to write its metadata. Raises Invalid for wrong metadata."""
        place = metadata["location"]
        self.files(place).check_metadata(metadata)
        self._check_columns(metadata)
        pointer = files.new_location(metadata, version=0)
        entry = self._entry(HiveTable(name=name, comment=comment), metadata, pointer)
        self.require_shown(entry)
        return NewTable(entry.as_json(), {"schema": schema.name, "places": [place], "write": metadata})

    def _registered(self, schema: Remote, asked: CreateTableRequest) -> NewTable:
        """The entry of a table to register; its metadata file is read only when the entry is made."""
        if asked.columns or asked.partitioning or asked.sort_orders or asked.distribution or asked.indexes:
            raise Invalid(
                "properties.metadata_location: the table is registered as its metadata file has it; leave out columns, "
                "partitioning, sort orders, distribution and indexes",
                kind="table",
            )
        if "location" in asked.properties:
            raise Invalid("properties.location: the metadata file says where the table is; leave it out", kind="table")
        guard.check_properties(asked.properties)
        parameters = {key: value for key, value in asked.properties.items() if key not in {"table-type", *NOT_REPEATED}}
        pointer = asked.properties[POINTER]
        own = schema.definition["location"]
        places = [own] if own else []
        self.files(*places).allowed_place(pointer)
        entry = HiveTable(name=asked.name, comment=asked.comment, parameters=parameters | MARK | {POINTER: pointer})
        self.require_shown(entry)
        return NewTable(entry.as_json(), {"schema": schema.name, "places": places})

    def require_shown(self, table: HiveTable) -> None:
        """Raise Unsupported for a new table that the catalog's properties would hide."""
        if not self.provider.tables.shows(Remote(table.name, table.as_json())):
            raise Unsupported("The catalog's properties hide tables of this format, so none is made.", kind=Kind.TABLE)

    def _check_columns(self, metadata: Json) -> None:
        """Raise Invalid for columns whose names differ only in case, which would be one column in the entry."""
        seen: dict[str, str] = {}
        for column in current_schema(metadata)["fields"]:
            other = seen.setdefault(column["name"].lower(), column["name"])
            if other != column["name"]:
                what = f"columns: {other} and {column['name']} would be one column in {self.label}"
                raise Invalid(f"{what}, which knows no capitals", kind=Kind.TABLE)

    # Making them

    @contextmanager
    def prepared(self, schema: Levels, definition: Json, plan: Json | None) -> Iterator[HiveTable]:
        """A table ready to be made; a new Iceberg table's metadata file is written, a registered one's is read.

        If the block refuses the table, the written file is removed. Raises AlreadyExists, Invalid, TooLarge,
        ProviderUnavailable; OutcomeUnknown if the file may be left.
        """
        definition, plan = with_plan(definition, plan)
        table = HiveTable.from_json(definition)
        if plan is None:
            yield table
            return
        self.require_free(schema, table.name)
        try:
            yield self._with_file(table, plan)
        except OutcomeUnknown:
            raise
        except MetalakeError as refusal:
            remove = self.discard if isinstance(refusal, AlreadyExists) else self._delete_file
            try:
                remove(definition, plan)
            except MetalakeError:  # the sweeper tries to remove the file again when it undoes the intent
                raise OutcomeUnknown(refusal.message, kind=refusal.kind) from refusal
            raise

    def require_free(self, schema: Levels, table: str) -> None:
        """Raise AlreadyExists before a file is written in vain; the system itself decides between racing creations."""
        with suppress(NotFound):
            self.provider.tables.load(schema, table)
            raise AlreadyExists(f"Table {schema[0]}.{table} already exists in {self.label}.", kind=Kind.TABLE)

    def _with_file(self, table: HiveTable, plan: Json) -> HiveTable:
        pointer, store = table.parameters[POINTER], self.files(*plan["places"])
        if "write" in plan:
            require_time()
            try:
                files.write_metadata_at(store.io, pointer, plan["write"])
            except ProviderUnavailable as silence:
                if not silence.retryable or locations.is_local(pointer):
                    raise
                raise OutcomeUnknown(silence.message, kind=silence.kind) from silence  # the file may arrive yet
            return table
        metadata = metadata_json.parse_metadata(store.read_foreign(pointer))
        store.check_metadata(metadata)
        _require_ground(plan, metadata)
        return self._entry(table, metadata, pointer)

    def discard(self, definition: Json, plan: Json | None) -> None:
        """Remove the metadata file of a table that was not made, unless the table points to it after all."""
        written = written_for(definition, plan)
        definition, plan = with_plan(definition, plan)
        if written is None or plan is None:
            return
        try:
            there = self.provider.tables.load([plan["schema"]], definition["name"])
        except NotFound:
            there = None
        if there is None or self.location(there.definition) != written:
            self.files().discard(written)

    def _delete_file(self, definition: Json, plan: Json | None) -> None:
        """Remove the metadata file. Raises ProviderUnavailable if a later try may succeed."""
        if written := written_for(definition, plan):
            try:
                self.files().remove(written)
            except ProviderUnavailable as failure:
                if failure.retryable:
                    raise

    # Commits

    def committed(self, entry: HiveTable, pointer: str) -> HiveTable:
        """The entry after a commit whose metadata file `pointer` is written already.

        Raises Invalid, TooLarge, ProviderUnavailable.
        """
        store, was = self.files(), entry.parameters[POINTER]
        try:
            metadata, before = (metadata_json.parse_metadata(store.read(place)) for place in (pointer, was))
        except NotFound as missing:
            raise Invalid(missing.message, kind="metadata-file") from None
        now, then = _properties(metadata), _properties(before)
        gone = then.keys() - now.keys() - NOT_REPEATED
        parameters = {key: value for key, value in entry.parameters.items() if key not in gone}
        comment = entry.comment if now.get("comment") == then.get("comment") else now.get("comment")
        return self._entry(replace(entry, comment=comment, parameters=parameters | {PREVIOUS: was}), metadata, pointer)

    def _entry(self, table: HiveTable, metadata: Json, pointer: str) -> HiveTable:
        properties = _properties(metadata)
        repeated = {key: value for key, value in properties.items() if key not in NOT_REPEATED}
        entry = replace(
            table,
            table_type=EXTERNAL_TABLE,
            location=metadata["location"],
            comment=properties.get("comment") if table.comment is None else table.comment,
            parameters=table.parameters | repeated | MARK | {POINTER: pointer},
        )
        return self.described(entry, metadata)


def _require_ground(plan: Json, metadata: Json) -> None:
    """Raise Forbidden if a registered table lies outside the ground that its plan allows."""
    if "ground" not in plan:
        return
    ground = Ground(**{name: tuple(places) for name, places in plan["ground"].items()})
    for place in table_locations.effective_locations(metadata):
        if not ground.holds(place):
            raise Forbidden(
                f"The metadata file says that the table is in {place!r:.200}: it may lie {ground}; any other place is "
                "for the catalog's owner, who may also open it for the schema by its property allowed-locations.",
                kind=Kind.TABLE,
            )


def with_plan(definition: Json, plan: Json | None) -> tuple[Json, Json | None]:
    """The definition and the plan as two values: intents of older versions have the plan inside the definition."""
    rest = definition.get("rest") or {}
    if OLD_PLAN not in rest:
        return definition, plan
    return definition | {"rest": {name: rest[name] for name in rest if name != OLD_PLAN}}, rest[OLD_PLAN]


def written_for(definition: Json, plan: Json | None) -> str | None:
    """The metadata file that making this table writes; None if it writes none."""
    definition, plan = with_plan(definition, plan)
    return definition["parameters"][POINTER] if plan and "write" in plan else None


def comment_of(field: Json) -> str | None:
    """The comment of a column of the metadata, as long as an entry can have it."""
    comment: str | None = field.get("doc")
    return comment and comment[:LONGEST_COMMENT]


def _properties(metadata: Json) -> dict[str, str]:
    return metadata.get("properties") or {}
