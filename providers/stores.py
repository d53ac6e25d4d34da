"""Remote stores: what a provider of an outside system is composed of, one for each kind of object there.

A verb (list, load, create, alter, rename, drop, add, commit) takes and returns plain JSON, so that it may run in a
worker. It raises our errors: NotFound, AlreadyExists, NotEmpty, Invalid, Unsupported, Conflict (the object is no longer
as the caller saw it), Unauthenticated to the remote as ProviderUnavailable(retryable=False), ProviderBusy where the
system throttles, ProviderUnavailable where the call certainly did nothing, and for a write whose answer is lost
OutcomeUnknown. Verbs are called through `providers.remote`; the other members say what definitions mean and call
nobody.

`marker` is the mark of the write that a call belongs to; the store carries it in whatever way its system can. `changes`
are the native wire's updates as JSON (formats.native.changes), made on the object of that `version`, all of them or
none; `expected` is the definition that they come to. `by_owner` says that the catalog's owner asks, or its metalake's:
to them all places of the catalog are open, and they answer for what cannot be looked at. A verb that was to delete
files and left them says why: `kept`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import Any, ClassVar

from formats.iceberg.folders import Ground
from formats.iceberg.metadata_json import parse_metadata
from formats.native.partitions import IdentityPartition
from formats.native.tables import CreateTableRequest
from metalake.surface import Surface
from providers.answers import Json, Levels, NewTable, Page, Remote
from providers.metadata_files import MetadataFiles
from providers.verbs import VERBS


class Outcome(Enum):
    """Whether a call was made, by whom what it makes is there."""

    DONE = auto()
    NOT_DONE = auto()
    OTHERS = auto()  # something of that name is there, and it is not ours


class CannotTell(Exception):
    """The system has no way to say whether a call of ours was made: somebody has to look and decide."""


Ending = tuple[Outcome, Remote | None]  # how a call ended, and the object it was about as it is now
Read = Callable[..., Remote | None]  # reads by a verb's name and arguments, in time; None where nothing is there


class RemoteStore(Surface):
    """What keeps the objects of one kind in one catalog's outside system."""

    def __init__(self, provider: Any) -> None:
        self.provider = provider

    @property
    def label(self) -> str:
        """Which system it is, for people."""
        return str(self.provider.label)

    @abstractmethod
    def outcome(self, verb: str, arguments: Mapping[str, Any], marker: str, read: Read) -> Ending:
        """How a call ended whose answer is lost. Raises what `read` raises, and CannotTell."""


class RemoteSchemas(RemoteStore):
    """Schemas, each addressed by its levels there: one in a flat system, however deep it is here."""

    @abstractmethod
    def list(self, page: str | None = None) -> Page: ...

    @abstractmethod
    def load(self, schema: Levels) -> Remote: ...

    @abstractmethod
    def create(self, schema: Levels, definition: Json, marker: str = "") -> Remote: ...

    @abstractmethod
    def alter(
        self,
        schema: Levels,
        changes: Sequence[Json] | None,
        version: str,
        expected: Json | None = None,
        marker: str = "",
    ) -> Remote:
        """Without changes, as intents of older versions have it, the schema becomes what is expected."""

    @abstractmethod
    def drop(
        self, schema: Levels, identity: str, cascade: bool = False, by_owner: bool = False
    ) -> dict[str, str] | None:
        """What `kept` says of its tables' files."""

    @abstractmethod
    def draft(self, comment: str | None, properties: dict[str, str]) -> Json:
        """A new schema's definition. Raises Invalid."""

    @abstractmethod
    def altered(self, definition: Json, changes: Sequence[Json]) -> Json:
        """The definition that the changes come to. Raises Invalid, Unsupported."""

    @abstractmethod
    def show(self, definition: Json) -> Json:
        """`comment` and `properties`."""

    @abstractmethod
    def is_marked(self, schema: Remote, marker: str) -> bool:
        """Whether the write of this marker made it, or altered it last. Raises CannotTell where none is carried."""

    def outcome(self, verb: str, arguments: Mapping[str, Any], marker: str, read: Read) -> Ending:
        there = read("load_schema", schema=arguments["schema"])
        return _ending(verb, arguments, there, lambda schema: self.is_marked(schema, marker))

    deletes_folders: ClassVar[bool] = False  # where a table of its own is dropped, whoever else's files are in them

    def overlaps(self, location: str, other: Remote) -> bool:
        """Whether a schema at this location would lie among another's tables; asked where folders are deleted."""
        return False


class RemoteTables(RemoteStore):
    """Tables of every format, and what keeps their partitions and Iceberg pointers (`providers.absent` where none)."""

    partitions: ClassVar[type[RemotePartitions]]
    pointers: ClassVar[type[RemotePointers]]

    @abstractmethod
    def list(self, schema: Levels, page: str | None = None, whole: bool = False) -> Page:
        """By name; with `whole`, each with its definition, which may be empty otherwise."""

    @abstractmethod
    def load(self, schema: Levels, table: str) -> Remote: ...

    @abstractmethod
    def create(
        self,
        schema: Levels,
        table: str,
        definition: Json,
        plan: Json | None = None,
        marker: str = "",
        by_owner: bool = False,
    ) -> Remote: ...

    @abstractmethod
    def alter(
        self,
        schema: Levels,
        table: str,
        changes: Sequence[Json] | None,
        version: str,
        expected: Json | None = None,
        marker: str = "",
        by_owner: bool = False,
    ) -> Remote:
        """Without changes, as intents of older versions have it, the table becomes what is expected."""

    @abstractmethod
    def rename(
        self, schema: Levels, table: str, to_schema: Levels, to_table: str, identity: str, by_owner: bool = False
    ) -> Remote: ...

    @abstractmethod
    def drop(
        self, schema: Levels, table: str, identity: str, purge: bool = False, by_owner: bool = False
    ) -> dict[str, str] | None:
        """What `kept` says of its files. Raises Unsupported where they are to be purged and must stay."""

    @abstractmethod
    def draft(self, schema: Remote, asked: CreateTableRequest) -> NewTable:
        """A table to be made as the native wire describes it. Raises Invalid, Unsupported, TooLarge."""

    @abstractmethod
    def altered(self, definition: Json, updates: Sequence[Any]) -> Json:
        """The definition that updates of the native wire come to. Raises Invalid, Unsupported, TooLarge."""

    @abstractmethod
    def show(self, definition: Json) -> Json:
        """The native wire's table without its name and audit."""

    @abstractmethod
    def is_marked(self, table: Remote, marker: str) -> bool:
        """Whether the write of this marker made it, or altered it last. Raises CannotTell where none is carried."""

    def outcome(self, verb: str, arguments: Mapping[str, Any], marker: str, read: Read) -> Ending:
        if verb == "rename_table":
            return _renamed(arguments, read)
        there = read("load_table", schema=arguments["schema"], table=arguments["table"])
        return _ending(verb, arguments, there, lambda table: self.is_marked(table, marker))

    def renaming(
        self, schema: Levels, to_schema: Levels, to_table: str, table: Remote, marker: str
    ) -> Sequence[tuple[str, Json]]:
        """The calls that rename a table. Raises Unsupported where the system cannot."""
        arguments = {"schema": schema, "table": table.name, "to_schema": to_schema, "to_table": to_table}
        return [("rename_table", arguments | {"identity": table.identity})]

    def discard(self, definition: Json, plan: Json | None = None) -> None:
        """Remove what `create` wrote beside the system for a creation that came to nothing."""

    def named_places(self, definition: Json, plan: Json | None = None) -> Sequence[str]:
        """Where a table's files are, or are to go, as its definition or plan says."""
        return []

    def ground(self, schema: Remote) -> Ground:
        """Where tables of a schema may lie that name their place, whoever makes them."""
        return Ground()

    @property
    def hides_some(self) -> bool:
        """Whether the catalog's settings keep some tables from being seen."""
        return False

    def shows(self, table: Remote) -> bool:
        """Whether the catalog's settings let a table be seen; of one that has formats, they are all that is asked."""
        return True


class RemotePartitions(RemoteStore):
    """Partitions of tables: Remotes of kind PARTITION, by the names that their system has for them."""

    @abstractmethod
    def list(self, schema: Levels, table: str, page: str | None = None) -> Page: ...

    @abstractmethod
    def load(self, schema: Levels, table: str, partition: str) -> Remote: ...

    @abstractmethod
    def add(self, schema: Levels, table: str, definition: Json, by_owner: bool = False) -> Remote: ...

    @abstractmethod
    def drop(self, schema: Levels, table: str, partition: str, by_owner: bool = False) -> dict[str, str] | None:
        """With its files where the system keeps the table's; what `kept` says of them."""

    @abstractmethod
    def draft(self, table: Json, asked: IdentityPartition) -> Json:
        """A partition's definition, which has its `name`; `table` is the table's. Raises Invalid where it is unfit."""

    @abstractmethod
    def show(self, table: Json, definition: Json) -> Json:
        """The native wire's partition, `table` being the table's definition."""

    def outcome(self, verb: str, arguments: Mapping[str, Any], marker: str, read: Read) -> Ending:
        """Told by the name alone: whoever added it, it is what was asked for."""
        name = arguments["partition"] if "partition" in arguments else arguments["definition"]["name"]
        there = read("load_partition", schema=arguments["schema"], table=arguments["table"], partition=name)
        is_done = (there is None) is (verb == "drop_partition")
        return (Outcome.DONE if is_done else Outcome.NOT_DONE), there


class RemotePointers(RemoteStore):
    """Tables that are a pointer to Iceberg metadata: the files are ours to write, the pointer is the system's."""

    @abstractmethod
    def commit(self, schema: Levels, table: str, location: str, previous: str, by_owner: bool = False) -> Remote:
        """Point a table to new metadata. Raises Conflict where it does not point to `previous` any more."""

    @abstractmethod
    def location(self, definition: Json) -> str | None:
        """Where an Iceberg table's metadata is; None for another table."""

    @abstractmethod
    def files(self, *places: str) -> MetadataFiles:
        """The files of a table that lies in these places, or in others that the catalog allows."""

    @abstractmethod
    def home_of(self, schema: Remote) -> str | None:
        """Where a schema's tables go that name no place; None where that is not known before they are made."""

    @abstractmethod
    def place(self, schema: Remote, name: str, asked: str | None) -> str:
        """Where a new table goes. Raises Invalid for a place that is not allowed."""

    @abstractmethod
    def draft(self, schema: Remote, name: str, metadata: Json, location: str | None = None) -> NewTable:
        """A new table, whose metadata is to be written unless it lies at `location`."""

    def outcome(self, verb: str, arguments: Mapping[str, Any], marker: str, read: Read) -> Ending:
        """Told by the pointer, or by the log of the metadata that somebody else has committed since."""
        there = read("load_table", schema=arguments["schema"], table=arguments["table"])
        if there is None:
            return Outcome.NOT_DONE, None
        pointer = self.location(there.definition)
        if pointer is None or pointer == arguments["previous"]:
            return Outcome.NOT_DONE, there
        is_done = pointer == arguments["location"] or arguments["location"] in self._log_at(pointer)
        return (Outcome.DONE if is_done else Outcome.NOT_DONE), there

    def _log_at(self, pointer: str) -> set[str | None]:
        """The metadata files that came before this one, as it says."""
        metadata = parse_metadata(self.files(pointer.rpartition("/")[0]).read(pointer))
        return {entry.get("metadata-file") for entry in metadata.get("metadata-log") or ()}


def _ending(verb: str, arguments: Mapping[str, Any], there: Remote | None, is_ours: Callable[[Remote], bool]) -> Ending:
    """By the identity for a drop, by the marker for what is made or altered."""
    if VERBS[verb].may_repeat:
        is_gone = there is None or there.identity != arguments["identity"]
        return (Outcome.DONE if is_gone else Outcome.NOT_DONE), there
    if there is None:
        return Outcome.NOT_DONE, None
    if is_ours(there):
        return Outcome.DONE, there
    return (Outcome.OTHERS if VERBS[verb].undone_by else Outcome.NOT_DONE), there


def _renamed(arguments: Mapping[str, Any], read: Read) -> Ending:
    """By the identity, where the system has any: the old name may have another table by now."""
    target = read("load_table", schema=arguments["to_schema"], table=arguments["to_table"])
    if target is None:
        return Outcome.NOT_DONE, None
    if identity := arguments["identity"]:
        is_done = target.identity == identity
    else:
        is_done = read("load_table", schema=arguments["schema"], table=arguments["table"]) is None
    return (Outcome.DONE, target) if is_done else (Outcome.NOT_DONE, None)
