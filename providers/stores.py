"""Remote stores: the clients that make up an external provider, one for each kind of object.

A verb (list, load, create, alter, rename, drop, add, commit) takes and returns plain JSON, so that it may run in a
worker. It raises our errors: NotFound, AlreadyExists, NotEmpty, Invalid, Unsupported, Conflict (the object has changed
since the caller read it), ProviderUnavailable(retryable=False) if the system rejects our credentials, ProviderBusy if
it throttles, ProviderUnavailable if the call certainly did nothing, and OutcomeUnknown for a write whose response is
lost. Verbs are called through `providers.remote`; the other members interpret definitions and make no call.

`marker` is the idempotency token of the call's intent; the store writes it to the object as its system allows.
`changes` are the native API's updates as JSON (formats.native.changes), applied to the object of that `version`, all or
none; `expected` is the resulting definition. `by_owner` means that the caller owns the catalog or its metalake and so
may use all its locations. A verb that leaves files returns the reason (`remote_objects.files_left`).
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
from metalake.errors import Unsupported
from metalake.interfaces import Interface
from metalake.kinds import Kind
from providers.metadata_files import MetadataFiles
from providers.remote_objects import Json, Levels, NewTable, Page, Remote
from providers.verbs import VERBS


class Outcome(Enum):
    """How a call ended."""

    DONE = auto()
    NOT_DONE = auto()
    OTHERS = auto()  # not done, and another object has the name


class OutcomeUnknowable(Exception):
    """The system cannot tell whether a call of ours succeeded: an operator has to look and decide."""


Ending = tuple[Outcome, Remote | None]  # a call's outcome, and its object's current state
Read = Callable[..., Remote | None]  # reads by verb and arguments; None if the object does not exist


class RemoteStore(Interface):
    """The objects of one kind in a catalog's outside system.

    `listed_as` is the kind whose verbs list and load them, if they have no listing of their own; `Remote.kind` tells
    them apart.
    """

    listed_as: ClassVar[Kind | None] = None
    carries_markers: ClassVar[bool] = True  # whether objects carry the marker of the write that made them

    def __init__(self, provider: Any) -> None:
        self.provider = provider

    @property
    def label(self) -> str:
        """The system's display name."""
        return str(self.provider.label)

    @abstractmethod
    def outcome(self, verb: str, arguments: Mapping[str, Any], marker: str, read: Read) -> Ending:
        """The outcome of a call whose response was lost. Raises the errors of `read`, and OutcomeUnknowable."""

    def delivered(self, entry: Json) -> Remote:
        """The object in a harvest's entry. Raises Invalid, and Unsupported if these catalogs are not harvested."""
        raise Unsupported(f"{self.label} catalogs are not harvested.", kind="catalog")


class RemoteSchemas(RemoteStore):
    """Schemas, addressed by their levels in the system; a flat system has one level, however deep the path here."""

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
        """Apply the changes; without any, as in intents of older versions, make the schema equal `expected`."""

    @abstractmethod
    def drop(
        self, schema: Levels, identity: str, cascade: bool = False, by_owner: bool = False
    ) -> dict[str, str] | None:
        """Drop the schema; returns `files_left` with the reason if files of its tables were left."""

    @abstractmethod
    def draft(self, comment: str | None, properties: dict[str, str]) -> Json:
        """A new schema's definition. Raises Invalid."""

    @abstractmethod
    def altered(self, definition: Json, changes: Sequence[Json]) -> Json:
        """The definition after the changes. Raises Invalid, Unsupported."""

    @abstractmethod
    def show(self, definition: Json) -> Json:
        """The native API's `comment` and `properties` of a schema."""

    @abstractmethod
    def is_marked(self, schema: Remote, marker: str) -> bool:
        """Whether this marker's write created or last altered it. Raises OutcomeUnknowable if it cannot have one."""

    def outcome(self, verb: str, arguments: Mapping[str, Any], marker: str, read: Read) -> Ending:
        there = read("load_schema", schema=arguments["schema"])
        return ending(verb, arguments, there, lambda schema: self.is_marked(schema, marker))

    deletes_folders: ClassVar[bool] = False  # whether dropping a table deletes its folder with everything in it

    def overlaps(self, location: str, other: Remote) -> bool:
        """Whether a schema at this location would lie among another's tables; matters if folders are deleted."""
        return False


class RemoteTabulars(RemoteStore):
    """Tables or views: objects of one kind in schemas, which share a namespace with the other kind."""

    kind: ClassVar[Kind]

    @abstractmethod
    def is_marked(self, entry: Remote, marker: str) -> bool:
        """Whether this marker's write created or last altered it. Raises OutcomeUnknowable if it cannot have one."""

    def outcome(self, verb: str, arguments: Mapping[str, Any], marker: str, read: Read) -> Ending:
        if verb == f"rename_{self.kind}":
            return ending_of_rename(self.kind, arguments, read)
        there = read("load_table", schema=arguments["schema"], table=arguments[self.kind])
        return ending(verb, arguments, there, lambda entry: self.is_marked(entry, marker))

    def renaming(
        self, schema: Levels, to_schema: Levels, to_name: str, entry: Remote, marker: str
    ) -> Sequence[tuple[str, Json]]:
        """The calls (verb, arguments) that rename it. Raises Unsupported if the system cannot."""
        source = {"schema": schema, str(self.kind): entry.name, "identity": entry.identity}
        return [(f"rename_{self.kind}", {**source, "to_schema": to_schema, f"to_{self.kind}": to_name})]


class RemoteTables(RemoteTabulars):
    """Tables of every format, with the stores of their partitions and Iceberg pointers (`providers.absent` if none)."""

    kind = Kind.TABLE
    partitions: ClassVar[type[RemotePartitions]]
    pointers: ClassVar[type[RemotePointers]]
    lists_by_names: ClassVar[bool] = False  # whether `list` takes `names` and lists those that exist

    @abstractmethod
    def list(self, schema: Levels, page: str | None = None, whole: bool = False) -> Page:
        """A page of tables ordered by name; definitions may be empty unless `whole`.

        Raises NotFound for a missing schema; if schemas are stored here, one that the system does not know is empty.
        """

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
        """Apply the changes; without any, as in intents of older versions, make the table equal `expected`."""

    @abstractmethod
    def rename(
        self, schema: Levels, table: str, to_schema: Levels, to_table: str, identity: str, by_owner: bool = False
    ) -> Remote: ...

    @abstractmethod
    def drop(
        self, schema: Levels, table: str, identity: str, purge: bool = False, by_owner: bool = False
    ) -> dict[str, str] | None:
        """Drop the table; returns `files_left` with the reason if its files were left.

        Raises Unsupported for a purge if its files must stay.
        """

    @abstractmethod
    def draft(self, schema: Remote, asked: CreateTableRequest) -> NewTable:
        """A new table from a native API request. Raises Invalid, TooLarge, and Unsupported if it cannot be stored."""

    @abstractmethod
    def altered(self, definition: Json, updates: Sequence[Any]) -> Json:
        """The definition after updates of the native API. Raises Invalid, Unsupported, TooLarge."""

    @abstractmethod
    def show(self, definition: Json) -> Json:
        """The native API's JSON of a table: `comment`, `columns`, `properties`, `partitioning`, `sortOrders`,
        `distribution` and `indexes`."""

    def discard(self, definition: Json, plan: Json | None = None) -> None:
        """Remove the files that `create` wrote for a table that was not created in the end."""

    def named_places(self, definition: Json, plan: Json | None = None) -> Sequence[str]:
        """The locations of a table's current or planned files, from its definition or plan."""
        return []

    def ground(self, schema: Remote) -> Ground:
        """The allowed locations of a table in the schema if its creator chooses one."""
        return Ground()

    @property
    def hides_some(self) -> bool:
        """Whether the catalog's settings hide some tables."""
        return False

    def shows(self, table: Remote) -> bool:
        """Whether the catalog's settings show a table; needs no definition if the table has `formats`."""
        return True


class RemotePartitions(RemoteStore):
    """Partitions of tables: Remotes of kind PARTITION, by their names in the system."""

    @abstractmethod
    def list(self, schema: Levels, table: str, page: str | None = None) -> Page: ...

    @abstractmethod
    def load(self, schema: Levels, table: str, partition: str) -> Remote: ...

    @abstractmethod
    def add(self, schema: Levels, table: str, definition: Json, by_owner: bool = False) -> Remote: ...

    @abstractmethod
    def drop(self, schema: Levels, table: str, partition: str, by_owner: bool = False) -> dict[str, str] | None:
        """Drop a partition, with its files if the system manages the table's; returns `files_left` if they stay."""

    @abstractmethod
    def draft(self, table: Json, asked: IdentityPartition) -> Json:
        """A new partition's definition, with its `name`; `table` is the table's definition. Raises Invalid."""

    @abstractmethod
    def show(self, table: Json, definition: Json) -> Json:
        """The native API's JSON of a partition; `table` is the table's definition."""

    def outcome(self, verb: str, arguments: Mapping[str, Any], marker: str, read: Read) -> Ending:
        """Decided by the name alone: a partition is the requested one, whoever added it."""
        name = arguments["partition"] if "partition" in arguments else arguments["definition"]["name"]
        there = read("load_partition", schema=arguments["schema"], table=arguments["table"], partition=name)
        is_done = (there is None) is (verb == "drop_partition")
        return (Outcome.DONE if is_done else Outcome.NOT_DONE), there


class RemotePointed(RemoteStore):
    """Objects that point to Iceberg metadata: we write the metadata files, the system stores the pointer."""

    @abstractmethod
    def location(self, definition: Json) -> str | None:
        """The location of an Iceberg object's metadata file; None for another format."""

    @abstractmethod
    def files(self, *places: str) -> MetadataFiles:
        """The files of an object below these locations or others that the catalog allows."""

    @abstractmethod
    def place(self, schema: Remote, name: str, asked: str | None) -> str:
        """The location of a new object: the requested one, or a default. Raises Invalid if it is not allowed."""

    @abstractmethod
    def draft(self, schema: Remote, name: str, metadata: Json, location: str | None = None) -> NewTable:
        """A new object, with a plan to write its metadata unless that already exists at `location`."""


class RemotePointers(RemotePointed):
    """Tables that point to Iceberg metadata."""

    @abstractmethod
    def commit(self, schema: Levels, table: str, location: str, previous: str, by_owner: bool = False) -> Remote:
        """Compare-and-swap the table's pointer. Raises Conflict if it no longer points to `previous`."""

    @abstractmethod
    def home_of(self, schema: Remote) -> str | None:
        """The default folder for a schema's tables; None if only the system knows it, once they are created."""

    def outcome(self, verb: str, arguments: Mapping[str, Any], marker: str, read: Read) -> Ending:
        """Decided by the pointer, or by the metadata log if another commit came later."""
        there = read("load_table", schema=arguments["schema"], table=arguments["table"])
        if there is None:
            return Outcome.NOT_DONE, None
        pointer = self.location(there.definition)
        if pointer is None or pointer == arguments["previous"]:
            return Outcome.NOT_DONE, there
        is_done = pointer == arguments["location"] or arguments["location"] in self._log_at(pointer)
        return (Outcome.DONE if is_done else Outcome.NOT_DONE), there

    def _log_at(self, pointer: str) -> set[str | None]:
        """The metadata files in the metadata log of the one at `pointer`."""
        metadata = parse_metadata(self.files(pointer.rpartition("/")[0]).read(pointer))
        return {entry.get("metadata-file") for entry in metadata.get("metadata-log") or ()}


def ending(verb: str, arguments: Mapping[str, Any], there: Remote | None, is_ours: Callable[[Remote], bool]) -> Ending:
    """A call's outcome: decided by the identity for a drop, by the marker for a creation or alteration."""
    if VERBS[verb].may_repeat:
        is_gone = there is None or there.identity != arguments["identity"]
        return (Outcome.DONE if is_gone else Outcome.NOT_DONE), there
    if there is None:
        return Outcome.NOT_DONE, None
    if is_ours(there):
        return Outcome.DONE, there
    return (Outcome.OTHERS if VERBS[verb].undone_by else Outcome.NOT_DONE), there


def ending_of_rename(kind: Kind, arguments: Mapping[str, Any], read: Read) -> Ending:
    """A rename's outcome: decided by the identity if there is one, as another object may have the old name by now.

    Two objects may share an identity if it is a time, so the renamed one must also be gone from its old name.
    """
    target = read("load_table", schema=arguments["to_schema"], table=arguments[f"to_{kind}"])
    if target is None:
        return Outcome.NOT_DONE, None
    identity = arguments["identity"]
    if target.kind != kind or (identity and target.identity != identity):
        return Outcome.NOT_DONE, None
    source = read("load_table", schema=arguments["schema"], table=arguments[kind])
    is_done = source is None or (identity and source.identity != identity)
    return (Outcome.DONE, target) if is_done else (Outcome.NOT_DONE, None)
