"""The stores of tables, pointers and partitions, as services use them, and the records that they return."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, ClassVar

from authz.actor import Actor
from catalogs.leaf_stores import LeafListing, LeafStore
from formats.native.partitions import IdentityPartition
from formats.native.tables import CreateTableRequest
from metalake.errors import Unsupported
from metalake.interfaces import Surface
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from providers.metadata_files import PARSED, MetadataFiles

Json = dict[str, Any]


@dataclass(frozen=True)
class TableDraft:
    """A creation request in Iceberg's terms."""

    schema: Json
    partition_spec: Json | None
    sort_order: Json | None
    properties: dict[str, str]
    location: str | None = None


@dataclass(frozen=True)
class TableRecord:
    """A table as its store had it at one moment.

    `metadata_location` is None for a table that is only staged or in another format than Iceberg; `content` is the
    metadata file once `PointerStore.read` has read it. `taken_at` is when an outside system was asked, None for a
    managed table; `entry` is for the table's own store.
    """

    table: Located | None
    metadata_location: str | None
    content: bytes = b""
    taken_at: datetime | None = None
    entry: Any = None

    @cached_property
    def metadata(self) -> Json:
        """Shared with others who ask for the same file: to be read, not changed."""
        return PARSED.of(self.content)

    @property
    def published(self) -> Located:
        """The table; not for a record that is only staged."""
        assert self.table is not None
        return self.table


class PartitionStore(Surface):
    """The partitions of one table, in the native wire's form."""

    @abstractmethod
    def names(self, actor: Actor) -> list[str]: ...

    @abstractmethod
    def listing(self, actor: Actor) -> Iterable[Json]: ...

    @abstractmethod
    def load(self, actor: Actor, name: str) -> Json:
        """Raises NotFound."""

    @abstractmethod
    def add(self, actor: Actor, asked: IdentityPartition) -> Json: ...

    @abstractmethod
    def drop(self, actor: Actor, name: str) -> str | None:
        """Drop a partition; why files stay that its system would have deleted, or None. Raises NotFound."""


@dataclass(frozen=True)
class NewState:
    """The result of a commit: metadata that was written to `location` as `content`."""

    files: MetadataFiles
    metadata: Json
    location: str
    content: bytes


@dataclass(frozen=True)
class Prepared:
    """A table's new state, written and not published, with the state that it was made from."""

    pointers: PointerStore
    address: Address
    current: TableRecord
    new: NewState


class PointerStore(Surface):
    """Tables that are a pointer to an Iceberg metadata file; we write the files, wherever the pointer is stored."""

    commits_together: ClassVar[bool] = False
    """Whether the pointers of several tables can be moved at once."""

    @abstractmethod
    def create(self, actor: Actor, address: Address, home: Located, draft: TableDraft, *, stage: bool) -> TableRecord:
        """Make a table in a schema; with `stage` it is only described, not stored."""

    @abstractmethod
    def create_from(self, actor: Actor, address: Address, home: Located, metadata: Json) -> TableRecord:
        """Make a table from the metadata at the end of a staged creation. Raises AlreadyExists."""

    @abstractmethod
    def register(self, actor: Actor, address: Address, home: Located, location: str) -> TableRecord:
        """Make a table from an existing metadata file."""

    @abstractmethod
    def read(self, record: TableRecord) -> TableRecord:
        """The record with its metadata. Raises NotFound for a table in another format."""

    @abstractmethod
    def files(self, record: TableRecord) -> MetadataFiles:
        """The metadata files of the table, to read and write."""

    @abstractmethod
    def require_places(self, actor: Actor, current: TableRecord, files: MetadataFiles, metadata: Json) -> None:
        """Raise Forbidden for places in new metadata that are new to the table and that it may not use."""

    @abstractmethod
    def swap(self, actor: Actor, address: Address, current: TableRecord, new: NewState) -> TableRecord | None:
        """Point the table to its new state; None if it is not in its `current` state any more.

        The new file is removed unless the table points to it, or may do so: then OutcomeUnknown is raised.
        """

    def swap_all(self, actor: Actor, states: Sequence[Prepared]) -> bool:
        """Point all these tables to their new states, or none; whether they were in their `current` states still.

        New files are removed as by `swap`. Raises Unsupported unless it `commits_together`.
        """
        raise Unsupported("These tables are committed one at a time.", kind=Kind.TABLE)

    @abstractmethod
    def home_of(self, actor: Actor, schema: Located, properties: Mapping[str, str]) -> str | None:
        """Where tables of a schema with these properties go that name no place, if it is known."""

    @abstractmethod
    def find_again(self, actor: Actor, address: Address, table: Located) -> Located:
        """The table as it is after a lost race. Raises NotFound."""

    @abstractmethod
    def require_claims(self, table: Located) -> None:
        """Raise Unsupported if our database does not have the table's places, present and former."""


class TableStore(LeafStore):
    """The tables of a catalog. Rights on what is named are asked by the caller before, and by a write once more.

    With `iceberg`, only Iceberg tables count: NotFound is raised for a table in another format.
    """

    @property
    @abstractmethod
    def pointers(self) -> PointerStore: ...

    @abstractmethod
    def listing(self, actor: Actor, schema: Located, *, refresh: bool, iceberg: bool = False) -> LeafListing: ...

    @abstractmethod
    def load(self, actor: Actor, table: Located, *, refresh: bool = False, as_published: bool = False) -> TableRecord:
        """Load it. Raises NotFound if it is gone. `as_published`, right after a write, asks no outside system again."""

    @abstractmethod
    def require_there(self, actor: Actor, table: Located, *, iceberg: bool) -> None:
        """Raise NotFound if it is gone from its own system."""

    @abstractmethod
    def parts(self, record: TableRecord) -> Json:
        """The native wire's JSON of a table, without its name and audit information."""

    @abstractmethod
    def create(self, actor: Actor, address: Address, home: Located, asked: CreateTableRequest) -> TableRecord:
        """Make a table in a schema from a native create request."""

    @abstractmethod
    def alter(self, actor: Actor, address: Address, table: Located, updates: Sequence[Any]) -> TableRecord:
        """Apply the native wire's updates, all or none."""

    @abstractmethod
    def rename(self, actor: Actor, source: Address, table: Located, target: Address, *, iceberg: bool) -> Located:
        """Rename a table; the table with its new name. Only who may move it learns whether the target exists."""

    @abstractmethod
    def drop(self, actor: Actor, address: Address, table: Located, *, purge: bool, iceberg: bool) -> str | None:
        """Drop a table; why files stay that its system would have deleted with it, or None."""

    @abstractmethod
    def partitions(self, record: TableRecord) -> PartitionStore:
        """The partitions of a table. Raises Unsupported, saying why, if there are none to manage."""
