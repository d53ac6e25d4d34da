"""The stores of tables: what services ask of whoever keeps the tables of a catalog, and what is told of a table."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from authz.actor import Actor
from catalogs.leaf_stores import LeafListing, LeafStore
from formats.iceberg import metadata_json
from formats.native.partitions import IdentityPartition
from formats.native.tables import CreateTableRequest
from metalake.lineage import Address, Located
from metalake.surface import Surface
from providers.metadata_files import MetadataFiles

Json = dict[str, Any]


@dataclass(frozen=True)
class TableDraft:
    """What a creation asks for, in Iceberg's terms."""

    schema: Json
    partition_spec: Json | None
    sort_order: Json | None
    properties: dict[str, str]
    location: str | None = None


@dataclass(frozen=True)
class TableRecord:
    """A table as its store had it at one moment.

    `metadata_location` is None for a table that is only staged or in another format than Iceberg; `content`, the
    metadata file, is there once `PointerStore.read` has read it. `taken_at` says when an outside system was asked,
    `entry` is what only the table's own store understands.
    """

    table: Located | None
    metadata_location: str | None
    content: bytes = b""
    taken_at: datetime | None = None
    entry: Any = None

    @cached_property
    def metadata(self) -> Json:
        return metadata_json.parse_metadata(self.content)

    @property
    def published(self) -> Located:
        """The table of a record that is not only staged."""
        assert self.table is not None
        return self.table


class PartitionStore(Surface):
    """The partitions of one table, as the native wire has them."""

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
        """Why its files stay that its system would have deleted. Raises NotFound."""


@dataclass(frozen=True)
class NewState:
    """What a commit leads to: metadata that was written to `location` as `content`."""

    files: MetadataFiles
    metadata: Json
    location: str
    content: bytes


class PointerStore(Surface):
    """Tables that are a pointer to an Iceberg metadata file: whoever keeps the pointer, the files are ours to write."""

    @abstractmethod
    def create(self, actor: Actor, address: Address, home: Located, draft: TableDraft, *, stage: bool) -> TableRecord:
        """Make a table in a schema; with `stage` it is described and not kept."""

    @abstractmethod
    def create_from(self, actor: Actor, address: Address, home: Located, metadata: Json) -> TableRecord:
        """Make a table of metadata that a staged creation has led to. Raises AlreadyExists."""

    @abstractmethod
    def register(self, actor: Actor, address: Address, home: Located, location: str) -> TableRecord:
        """Make a table of a metadata file that is there."""

    @abstractmethod
    def read(self, record: TableRecord) -> TableRecord:
        """The same with its metadata. Raises NotFound for a table in another format."""

    @abstractmethod
    def files(self, record: TableRecord) -> MetadataFiles:
        """Where the table's metadata files are read and written."""

    @abstractmethod
    def require_places(self, actor: Actor, current: TableRecord, files: MetadataFiles, metadata: Json) -> None:
        """Raise Forbidden for places in new metadata where the table may not lie that are not its own already."""

    @abstractmethod
    def swap(self, actor: Actor, address: Address, current: TableRecord, new: NewState) -> TableRecord | None:
        """Point the table to its new state; None where it is not in its current one any more.

        The new file is removed, unless the table points there or may do so. Raises OutcomeUnknown in that case.
        """

    @abstractmethod
    def home_of(self, actor: Actor, schema: Located, properties: Mapping[str, str]) -> str | None:
        """Where tables of a schema with these properties go that name no place, if it is known."""

    @abstractmethod
    def find_again(self, actor: Actor, address: Address, table: Located) -> Located:
        """The table as it is after a lost race. Raises NotFound."""

    @abstractmethod
    def require_claims(self, table: Located) -> None:
        """Raise Unsupported where not we say which places the table has, and had before."""


class TableStore(LeafStore):
    """The tables of a catalog. Rights on what is named are asked by the caller before, and by a write once more.

    `iceberg` asks for Iceberg tables alone: NotFound is raised of one in another format.
    """

    @property
    @abstractmethod
    def pointers(self) -> PointerStore: ...

    @abstractmethod
    def listing(self, actor: Actor, schema: Located, *, refresh: bool, iceberg: bool = False) -> LeafListing: ...

    @abstractmethod
    def load(self, actor: Actor, table: Located, *, refresh: bool = False, as_published: bool = False) -> TableRecord:
        """Raises NotFound where it is gone. `as_published`, right after a write, asks no outside system again."""

    @abstractmethod
    def require_there(self, actor: Actor, table: Located, *, iceberg: bool) -> None:
        """Raise NotFound where it is gone from its own system."""

    @abstractmethod
    def parts(self, record: TableRecord) -> Json:
        """The native wire's table without its name and audit."""

    @abstractmethod
    def create(self, actor: Actor, address: Address, home: Located, asked: CreateTableRequest) -> TableRecord:
        """Make a table in a schema as the native wire describes it."""

    @abstractmethod
    def alter(self, actor: Actor, address: Address, table: Located, updates: Sequence[Any]) -> TableRecord:
        """Make the native wire's changes, all or none."""

    @abstractmethod
    def rename(self, actor: Actor, source: Address, table: Located, target: Address, *, iceberg: bool) -> Located:
        """The table as it is called then; whether the target exists is told only to who may move it."""

    @abstractmethod
    def drop(self, actor: Actor, address: Address, table: Located, *, purge: bool, iceberg: bool) -> str | None:
        """Why files stay that its system would have deleted with the table."""

    @abstractmethod
    def partitions(self, record: TableRecord) -> PartitionStore:
        """Raises Unsupported where tables have none to manage, saying why."""
