"""Iceberg tables that a system in Hive's terms points to: an entry that says where the metadata file is, and repeats
what it says for whoever looks no further.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from typing import Any, ClassVar
from uuid import uuid4

from formats.hive.names import NameRule, folded_name
from formats.hive.partitions import escape
from formats.hive.properties import PLACES, SERDE_PARAMETER
from formats.hive.tables import EXTERNAL_TABLE, HiveTable
from formats.iceberg import builder, files, guard, locations
from formats.iceberg.folders import Ground, divided
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
)
from metalake.kinds import Kind
from providers.deadline import require_time
from providers.external import MARKER, ExternalProvider, Levels, Remote
from providers.metadata_files import MetadataFiles
from providers.places import Placed

Json = dict[str, Any]

POINTER, PREVIOUS = "metadata_location", "previous_metadata_location"
MARK = {"table_type": "ICEBERG"}
PLANNED = "metalake.planned"  # in the rest of a definition: what is to be done before the entry is made
OF_HIVE_TABLES = {*PLACES} - {"location", "table-type"}
# What an entry never takes from a table's properties: its comment has a place of its own, and a drop leaves the files.
NOT_REPEATED = frozenset({"comment", "EXTERNAL", "external.table.purge", MARKER, POINTER, PREVIOUS, *MARK})
LONGEST_COMMENT = 255  # of a column; the metadata file has all of it


class IcebergEntries(Placed, ExternalProvider):
    """Definitions are HiveTables as JSON; a schema's have a `location`, which is its own place or None."""

    iceberg_names: ClassVar[NameRule]

    @abstractmethod
    def described(self, entry: HiveTable, metadata: Json) -> HiveTable:
        """The entry with the columns of the metadata, and what else the system's own Iceberg catalog says of it."""

    @abstractmethod
    def home_of(self, schema: Remote) -> str | None:
        """Where a schema's tables go that name no place."""

    def metadata_location(self, definition: dict[str, Any]) -> str | None:
        parameters = definition["parameters"]
        return parameters.get(POINTER) if parameters.get("table_type", "").upper() == "ICEBERG" else None

    def metadata_files(self, *places: str) -> MetadataFiles:
        others = [place for place in places if self.is_open_place(place)]
        return MetadataFiles(self.catalog_id, lambda: self.io, self.allowed, self.file_roots, places=others)

    # Where tables go

    def named_places(self, definition: Json) -> list[str]:
        planned = (definition.get("rest") or {}).get(PLANNED) or {}
        if "write" in planned:
            return locations.effective_locations(planned["write"])
        pointer = self.metadata_location(definition)
        spark = (definition.get("serde_parameters") or {}).get("path")  # where Spark looks for its own tables' files
        return [place for place in (definition.get("location"), pointer, spark) if place]

    def ground(self, schema: Remote) -> Ground:
        """Below its own place or where its tables go by default, and in what its owner opened."""
        own, home = schema.definition["location"], self.home_of(schema)
        opened = divided(schema.definition["parameters"].get("allowed-locations"))
        folders = tuple(dict.fromkeys(place for place in (own, home) if place))
        return Ground(own=folders, opened=tuple(place for place in opened if self.is_named(place)))

    def kept_to(self, definition: Json, ground: Ground) -> Json:
        rest = definition["rest"]
        if PLANNED not in rest:
            return definition
        return definition | {"rest": rest | {PLANNED: rest[PLANNED] | {"ground": asdict(ground)}}}

    def iceberg_place(self, schema: Remote, name: str, asked: str | None) -> str:
        """A new table's folder is its own: one that was renamed still lies where its first name led."""
        self._check_names(schema, name)
        return self.place_of(schema, name, asked, ending=f"-{uuid4().hex}")

    def _check_names(self, schema: Remote, name: str) -> None:
        folded_name(schema.name, self.iceberg_names, Kind.SCHEMA)
        folded_name(name, self.iceberg_names, Kind.TABLE)

    def place_of(self, schema: Remote, name: str, asked: str | None, ending: str = "") -> str:
        """Where a table goes: where it asks to, else into a folder of its name where the tables of its schema go."""
        own = schema.definition["location"]
        if asked:
            return self.allowed_place(asked, own)
        below = self.home_of(schema)
        if below is None:
            raise Invalid(
                f"properties.location: say where table {name} goes; neither its schema has a location nor the "
                "catalog a warehouse",
                kind=Kind.TABLE,
            )
        by_default = locations.normalise(f"{below.removesuffix('/')}/{escape(name)}{ending}")
        return self.allowed_place(by_default, own)

    def allowed_place(self, location: str, *own: str | None) -> str:
        """The location as it was sent. Raises Invalid unless it is in a place of the catalog, or in an `own` one."""
        if self.is_named(location):
            return locations.check_allowed(location, self.allowed, file_roots=self.file_roots)
        others = [place for place in own if place and self.is_open_place(place)]
        return locations.check_allowed(location, others, file_roots=self.outside_roots)

    # New tables

    def new_iceberg_table(self, schema: Remote, asked: CreateTableRequest) -> HiveTable:
        """A table to be made of a native request, or with the property `metadata_location` one to be registered."""
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
            location=self.iceberg_place(schema, asked.name, asked.properties.get("location")),
            schema=columns,
            partition_spec=spec,
            sort_order=order,
            properties=wanted,
            now_ms=int(time.time() * 1000),
        )
        return self._planned(schema, asked.name, asked.comment, metadata)

    def iceberg_table(self, schema: Remote, name: str, metadata: Json, location: str | None = None) -> Json:
        self._check_names(schema, name)
        if location is None:
            return self._planned(schema, name, None, metadata).as_json()
        asked = CreateTableRequest(name=name, columns=[], properties={POINTER: location})
        return self._registered(schema, asked).as_json()

    def _planned(self, schema: Remote, name: str, comment: str | None, metadata: Json) -> HiveTable:
        """The entry of a table whose metadata is to be written. Raises Invalid for what it must not hold."""
        place = metadata["location"]
        self.metadata_files(place).check_metadata(metadata)
        self._check_columns(metadata)
        pointer = files.new_location(metadata, version=0)
        planned = {"schema": schema.name, "places": [place], "write": metadata}
        return self._entry(HiveTable(name=name, comment=comment, rest={PLANNED: planned}), metadata, pointer)

    def _registered(self, schema: Remote, asked: CreateTableRequest) -> HiveTable:
        """The entry of a table whose metadata file is there; what it says is read when the entry is made."""
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
        self.metadata_files(*places).allowed_place(pointer)
        planned = {"schema": schema.name, "places": places}
        parameters |= MARK | {POINTER: pointer}
        return HiveTable(name=asked.name, comment=asked.comment, parameters=parameters, rest={PLANNED: planned})

    def _check_columns(self, metadata: Json) -> None:
        """Raise Invalid for columns that the entry would take for one."""
        seen: dict[str, str] = {}
        for column in current_schema(metadata)["fields"]:
            other = seen.setdefault(column["name"].lower(), column["name"])
            if other != column["name"]:
                what = f"columns: {other} and {column['name']} would be one column in {self.label}"
                raise Invalid(f"{what}, which knows no capitals", kind=Kind.TABLE)

    # Making them

    @contextmanager
    def prepared(self, schema: Levels, definition: Json) -> Iterator[HiveTable]:
        """A table as it is to be made: of Iceberg with its metadata file written or, to be registered, read.

        What was written is removed again where the table is refused. Raises AlreadyExists, Invalid, TooLarge,
        ProviderUnavailable.
        """
        table = HiveTable.from_json(definition)
        if PLANNED not in table.rest:
            yield table
            return
        self.require_free(schema, table.name)
        try:
            yield self._with_file(table)
        except OutcomeUnknown:
            raise
        except MetalakeError as refusal:
            try:
                self.discard(definition) if isinstance(refusal, AlreadyExists) else self._delete_file(definition)
            except MetalakeError:  # the file is looked for again by whoever undoes what is not known to be undone
                raise OutcomeUnknown(refusal.message, kind=refusal.kind) from refusal
            raise

    def require_free(self, schema: Levels, table: str) -> None:
        """Raise AlreadyExists before a file is written for nothing; who comes between is refused by the system."""
        with suppress(NotFound):
            self.load_table(schema, table)
            raise AlreadyExists(f"Table {schema[0]}.{table} already exists in {self.label}.", kind=Kind.TABLE)

    def _with_file(self, table: HiveTable) -> HiveTable:
        pointer, planned = table.parameters[POINTER], table.rest[PLANNED]
        store = self.metadata_files(*planned["places"])
        plain = replace(table, rest={name: value for name, value in table.rest.items() if name != PLANNED})
        if "write" in planned:
            require_time()
            try:
                files.write_metadata_at(store.io, pointer, planned["write"])
            except ProviderUnavailable as silence:
                if not silence.retryable or locations.is_local(pointer):
                    raise
                raise OutcomeUnknown(silence.message, kind=silence.kind) from silence  # the file may arrive yet
            return plain
        metadata = files.parse_metadata(store.read_foreign(pointer))
        store.check_metadata(metadata)
        _require_ground(planned, metadata)
        return self._entry(plain, metadata, pointer)

    def discard(self, definition: dict[str, Any]) -> None:
        written = written_for(definition)
        if written is None:
            return
        try:
            there = self.load_table([definition["rest"][PLANNED]["schema"]], definition["name"])
        except NotFound:
            there = None
        if there is None or self.metadata_location(there.definition) != written:
            self.metadata_files().discard(written)

    def _delete_file(self, definition: Json) -> None:
        """Raises ProviderUnavailable where the storage may do it later."""
        if written := written_for(definition):
            try:
                self.metadata_files().remove(written)
            except ProviderUnavailable as failure:
                if failure.retryable:
                    raise

    # Commits

    def committed(self, entry: HiveTable, pointer: str) -> HiveTable:
        """The entry after a commit whose metadata file is written. Raises Invalid, TooLarge, ProviderUnavailable."""
        store, was = self.metadata_files(), entry.parameters[POINTER]
        try:
            metadata, before = (files.parse_metadata(store.read(place)) for place in (pointer, was))
        except NotFound as missing:
            raise Invalid(missing.message, kind="metadata-file") from None
        now, then = _properties(metadata), _properties(before)
        gone = then.keys() - now.keys() - NOT_REPEATED
        kept = {key: value for key, value in entry.parameters.items() if key not in gone}
        comment = entry.comment if now.get("comment") == then.get("comment") else now.get("comment")
        return self._entry(replace(entry, comment=comment, parameters=kept | {PREVIOUS: was}), metadata, pointer)

    def _entry(self, table: HiveTable, metadata: Json, pointer: str) -> HiveTable:
        properties = _properties(metadata)
        told = {key: value for key, value in properties.items() if key not in NOT_REPEATED}
        entry = replace(
            table,
            table_type=EXTERNAL_TABLE,
            location=metadata["location"],
            comment=properties.get("comment") if table.comment is None else table.comment,
            parameters=table.parameters | told | MARK | {POINTER: pointer},
        )
        return self.described(entry, metadata)


def _require_ground(planned: Json, metadata: Json) -> None:
    """Raise Forbidden where a table that is registered lies off the ground that its maker is kept to."""
    if "ground" not in planned:
        return
    ground = Ground(**{name: tuple(places) for name, places in planned["ground"].items()})
    for place in locations.effective_locations(metadata):
        if not ground.holds(place):
            raise Forbidden(
                f"The metadata file says that the table is in {place!r:.200}: it may lie {ground}; any other place is "
                "for the catalog's owner, who may also open it for the schema by its property allowed-locations.",
                kind=Kind.TABLE,
            )


def written_for(definition: Mapping[str, Any]) -> str | None:
    """The metadata file that is written when a definition is made a table."""
    planned = definition["rest"].get(PLANNED) or {}
    return definition["parameters"][POINTER] if "write" in planned else None


def comment_of(field: Json) -> str | None:
    """What a column of the metadata says of itself, as an entry can hold it."""
    comment: str | None = field.get("doc")
    return comment and comment[:LONGEST_COMMENT]


def _properties(metadata: Json) -> dict[str, str]:
    return metadata.get("properties") or {}
