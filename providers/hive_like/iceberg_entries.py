"""Iceberg tables and views in a Hive-like system: entries with the metadata location, which also repeat the columns and
properties for readers that do not open the metadata file.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, ClassVar
from uuid import uuid4

from formats.hive.names import folded_name
from formats.hive.tables import HiveTable
from formats.iceberg import files, locations, table_locations
from formats.iceberg.folders import Ground
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
from metalake.kinds import KINDS, Kind
from providers.deadline import require_time
from providers.hive_like.catalog import HiveLikeCatalog
from providers.hive_like.parameters import MARKER, POINTER, PREVIOUS
from providers.metadata_files import MetadataFiles
from providers.remote_objects import Levels, NewTable, Remote
from providers.stores import RemotePointed

Json = dict[str, Any]

TYPE = "table_type"
OLD_PLAN = "metalake.planned"  # in a definition's `rest`, where older versions stored the plan
# Properties that the entry does not repeat: the comment is a field, and a drop must leave the files.
NOT_REPEATED = frozenset({"comment", "EXTERNAL", "external.table.purge", MARKER, POINTER, PREVIOUS, TYPE})
LONGEST_COMMENT = 255  # characters of a column comment; the metadata file has it in full


class HiveLikePointed(RemotePointed):
    """Objects of one kind whose entries have the metadata location in a parameter.

    `mark` is the entry's `table_type` parameter, `entry_type` its type in the system.
    """

    provider: HiveLikeCatalog
    kind: ClassVar[Kind]
    mark: ClassVar[str]
    entry_type: ClassVar[str]

    @abstractmethod
    def described(self, entry: HiveTable, metadata: Json) -> HiveTable:
        """The entry with the metadata's columns and everything else that Iceberg's catalog for this system writes."""

    @abstractmethod
    def parse(self, content: bytes) -> Json:
        """Parse a metadata file. Raises Invalid."""

    @abstractmethod
    def columns(self, metadata: Json) -> Sequence[Json]:
        """The current columns as Iceberg fields. Raises Invalid if the metadata lacks them."""

    def location(self, definition: Json) -> str | None:
        parameters = definition["parameters"]
        return parameters.get(POINTER) if parameters.get(TYPE, "").upper() == self.mark else None

    def files(self, *places: str) -> MetadataFiles:
        catalog = self.provider
        others = [place for place in places if catalog.is_open_place(place)]
        roots, twins = catalog.file_roots, catalog.case_twins
        return MetadataFiles(
            catalog.catalog_id, lambda: catalog.io, catalog.allowed, roots, places=others, case_twins=twins
        )

    def place(self, schema: Remote, name: str, asked: str | None) -> str:
        """A new object's location; defaults are unique, since renamed objects stay in their folder. Raises Invalid."""
        self.check_names(schema, name)
        return self.provider.places.place_of(schema, name, asked, ending=f"-{uuid4().hex}")

    def check_names(self, schema: Remote, name: str) -> None:
        folded_name(schema.name, self.provider.iceberg_rule, Kind.SCHEMA)
        folded_name(name, self.provider.iceberg_rule, self.kind)

    def named_places(self, definition: Json, plan: Json | None = None) -> Sequence[str]:
        """The locations of an object's current or planned files, from its definition or plan."""
        definition, plan = with_plan(definition, plan)
        if plan and "write" in plan:
            return table_locations.effective_locations(plan["write"])
        return [place for place in (definition.get("location"), self.location(definition)) if place]

    # Drafts

    def draft(self, schema: Remote, name: str, metadata: Json, location: str | None = None) -> NewTable:
        self.check_names(schema, name)
        if location is None:
            return self.planned(schema, name, None, metadata)
        return self.registered(schema, HiveTable(name=name), location)

    def planned(self, schema: Remote, name: str, comment: str | None, metadata: Json) -> NewTable:
        """A new object's entry, and the plan to write its metadata. Raises Invalid for wrong metadata, Unsupported."""
        place = metadata["location"]
        self._check_columns(metadata)
        self.files(place).check_metadata(metadata)
        pointer = files.new_location(metadata, version=0)
        entry = self._entry(HiveTable(name=name, comment=comment), metadata, pointer)
        self.require_shown(entry)
        return NewTable(entry.as_json(), {"schema": schema.name, "places": [place], "write": metadata})

    def registered(self, schema: Remote, entry: HiveTable, pointer: str) -> NewTable:
        """The entry of an object to register; its metadata file is read on creation. Raises Invalid, Unsupported."""
        own = schema.definition["location"]
        places = [own] if own else []
        self.files(*places).allowed_place(pointer)
        parameters = entry.parameters | {TYPE: self.mark, POINTER: pointer}
        pointed = replace(entry, table_type=self.entry_type, parameters=parameters)
        self.require_shown(pointed)
        return NewTable(pointed.as_json(), {"schema": schema.name, "places": places})

    def require_shown(self, entry: HiveTable) -> None:
        """Raise Unsupported if the catalog's properties would hide the new object."""
        if not self.provider.tables.shows(Remote(entry.name, entry.as_json())):
            what = KINDS[self.kind].plural
            raise Unsupported(f"The catalog's properties hide {what} of this format, so none is made.", kind=self.kind)

    def _check_columns(self, metadata: Json) -> None:
        """Raise Invalid for column names that differ only by case, which would be one column in the entry."""
        seen: dict[str, str] = {}
        for column in self.columns(metadata):
            other = seen.setdefault(column["name"].lower(), column["name"])
            if other != column["name"]:
                what = f"columns: {other} and {column['name']} would be one column in {self.label}"
                raise Invalid(f"{what}, which knows no capitals", kind=self.kind)

    # Creation

    @contextmanager
    def prepared(self, schema: Levels, definition: Json, plan: Json | None) -> Iterator[HiveTable]:
        """The entry to create, after writing a new Iceberg object's metadata file or reading a registered one's.

        If the block raises, the written file is removed. Raises AlreadyExists, Invalid, TooLarge, ProviderUnavailable;
        OutcomeUnknown if the file may be left.
        """
        definition, plan = with_plan(definition, plan)
        entry = HiveTable.from_json(definition)
        if plan is None:
            yield entry
            return
        self.require_free(schema, entry.name)
        try:
            yield self._with_file(entry, plan)
        except OutcomeUnknown:
            raise
        except MetalakeError as refusal:
            remove = self.discard if isinstance(refusal, AlreadyExists) else self._delete_file
            try:
                remove(definition, plan)
            except MetalakeError:  # the sweeper retries this when it rolls the intent back
                raise OutcomeUnknown(refusal.message, kind=refusal.kind) from refusal
            raise

    def require_free(self, schema: Levels, name: str) -> None:
        """Raise AlreadyExists before writing a file for nothing; the system itself resolves races."""
        with suppress(NotFound):
            there = self.provider.tables.load(schema, name)
            what = KINDS[Kind(there.kind)].label
            raise AlreadyExists(f"{what} {schema[0]}.{name} already exists in {self.label}.", kind=self.kind)

    def _with_file(self, entry: HiveTable, plan: Json) -> HiveTable:
        pointer, store = entry.parameters[POINTER], self.files(*plan["places"])
        if "write" in plan:
            require_time()
            try:
                files.write_metadata_at(store.io, pointer, plan["write"])
            except ProviderUnavailable as silence:
                if not silence.retryable or locations.is_local(pointer):
                    raise
                raise OutcomeUnknown(silence.message, kind=silence.kind) from silence  # the file may still appear
            return entry
        metadata = self.parse(store.read_foreign(pointer))
        store.check_metadata(metadata)
        self._require_ground(plan, metadata)
        return self._entry(entry, metadata, pointer)

    def _require_ground(self, plan: Json, metadata: Json) -> None:
        """Raise Forbidden if a registered object lies outside its plan's allowed locations."""
        if "ground" not in plan:
            return
        ground = Ground(**{name: tuple(places) for name, places in plan["ground"].items()})
        for place in table_locations.effective_locations(metadata):
            if not ground.holds(place):
                raise Forbidden(
                    f"The metadata file says that the {self.kind} is in {place!r:.200}: it may lie {ground}; any other "
                    "place is for the catalog's owner, who may also open it for the schema by its property "
                    "allowed-locations.",
                    kind=self.kind,
                )

    def discard(self, definition: Json, plan: Json | None) -> None:
        """Remove the metadata file of an object that was not created, unless an object does point to it."""
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
        """Remove the metadata file. Raises ProviderUnavailable if a retry may succeed."""
        if written := written_for(definition, plan):
            try:
                self.files().remove(written)
            except ProviderUnavailable as failure:
                if failure.retryable:
                    raise

    # Commits

    def committed(self, entry: HiveTable, pointer: str) -> HiveTable:
        """The entry after a commit whose metadata file, `pointer`, is already written.

        Raises Invalid, TooLarge, ProviderUnavailable.
        """
        store, was = self.files(), entry.parameters[POINTER]
        try:
            metadata, before = (self.parse(store.read(place)) for place in (pointer, was))
        except NotFound as missing:
            raise Invalid(missing.message, kind="metadata-file") from None
        now, then = _properties(metadata), _properties(before)
        gone = then.keys() - now.keys() - NOT_REPEATED
        parameters = {key: value for key, value in entry.parameters.items() if key not in gone}
        comment = entry.comment if now.get("comment") == then.get("comment") else now.get("comment")
        return self._entry(replace(entry, comment=comment, parameters=parameters | {PREVIOUS: was}), metadata, pointer)

    def _entry(self, entry: HiveTable, metadata: Json, pointer: str) -> HiveTable:
        properties = _properties(metadata)
        repeated = {key: value for key, value in properties.items() if key not in NOT_REPEATED}
        pointed = replace(
            entry,
            table_type=self.entry_type,
            location=metadata["location"],
            comment=properties.get("comment") if entry.comment is None else entry.comment,
            parameters=entry.parameters | repeated | {TYPE: self.mark, POINTER: pointer},
        )
        return self.described(pointed, metadata)


def with_plan(definition: Json, plan: Json | None) -> tuple[Json, Json | None]:
    """The definition and the plan separately: intents of older versions have the plan inside the definition."""
    rest = definition.get("rest") or {}
    if OLD_PLAN not in rest:
        return definition, plan
    return definition | {"rest": {name: rest[name] for name in rest if name != OLD_PLAN}}, rest[OLD_PLAN]


def written_for(definition: Json, plan: Json | None) -> str | None:
    """The metadata file written when this object is created; None if none is."""
    definition, plan = with_plan(definition, plan)
    return definition["parameters"][POINTER] if plan and "write" in plan else None


def comment_of(field: Json) -> str | None:
    """A metadata column's comment, cut to LONGEST_COMMENT."""
    comment: str | None = field.get("doc")
    return comment and comment[:LONGEST_COMMENT]


def _properties(metadata: Json) -> dict[str, str]:
    return metadata.get("properties") or {}
