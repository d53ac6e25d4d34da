"""The stores of tables, pointers and partitions, as services use them, and the records that they return."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from authz.actor import Actor
from catalogs.leaf_stores import LeafListing, LeafStore
from catalogs.pointer_stores import PointerStore, now_ms
from formats.iceberg import builder
from formats.native.partitions import IdentityPartition
from formats.native.tables import CreateTableRequest
from metalake.interfaces import Interface
from metalake.lineage import Address, Located
from providers.metadata_files import PARSED

Json = dict[str, Any]


@dataclass(frozen=True)
class TableDraft:
    """A creation request in Iceberg's terms."""

    schema: Json
    partition_spec: Json | None
    sort_order: Json | None
    properties: dict[str, str]
    location: str | None = None

    def metadata(self, uuid: UUID, location: str) -> Json:
        return builder.new_table_metadata(
            table_uuid=str(uuid),
            location=location,
            schema=self.schema,
            partition_spec=self.partition_spec,
            sort_order=self.sort_order,
            properties=self.properties,
            now_ms=now_ms(),
        )


@dataclass(frozen=True)
class TableRecord:
    """A table as its store had it at one moment.

    `metadata_location` is None for a table that is only staged or in another format than Iceberg; `content` is the
    metadata file once `TablePointers.read` has read it. `taken_at` is when an outside system was asked, None for a
    managed table; `entry` is for the table's own store.
    """

    table: Located | None
    metadata_location: str | None
    content: bytes = b""
    taken_at: datetime | None = None
    entry: Any = None

    @cached_property
    def metadata(self) -> Json:
        """Shared between callers that read the same file: do not modify."""
        return PARSED.of(self.content)

    @property
    def published(self) -> Located:
        """The table; not for a record that is only staged."""
        assert self.table is not None
        return self.table


class PartitionStore(Interface):
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


class TablePointers(PointerStore[TableRecord, TableDraft]):
    """Tables that are a pointer to an Iceberg metadata file."""

    @abstractmethod
    def stage(self, actor: Actor, address: Address, home: Located, draft: TableDraft) -> TableRecord:
        """Describe a table that a commit is to make; nothing is stored, but its folders are made."""

    @abstractmethod
    def create_from(self, actor: Actor, address: Address, home: Located, metadata: Json) -> TableRecord:
        """Make a table from the metadata at the end of a staged creation. Raises AlreadyExists."""

    @abstractmethod
    def read(self, record: TableRecord) -> TableRecord:
        """The record with its metadata. Raises NotFound for a table in another format."""

    @abstractmethod
    def home_of(self, actor: Actor, schema: Located, properties: Mapping[str, str]) -> str | None:
        """Where tables of a schema with these properties go that name no place, if it is known."""

    @abstractmethod
    def require_claims(self, table: Located) -> None:
        """Raise Unsupported if our database does not have the table's places, present and former."""


class TableStore(LeafStore):
    """The tables of a catalog. Rights on what is named are asked by the caller before, and by a write once more.

    With `iceberg`, only Iceberg tables count: NotFound is raised for a table in another format.
    """

    @property
    @abstractmethod
    def pointers(self) -> TablePointers: ...

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
        """Create a table in a schema from a native create request."""

    @abstractmethod
    def alter(
        self,
        actor: Actor,
        address: Address,
        table: Located,
        updates: Sequence[Any],
        requires: Callable[[Json], None] | None = None,
    ) -> TableRecord:
        """Apply the native API's updates, all or none, to the table whose parts `requires` accepts: it may raise."""

    @abstractmethod
    def rename(self, actor: Actor, source: Address, table: Located, target: Address, *, iceberg: bool) -> Located:
        """Rename a table; the table with its new name. Only who may move it learns whether the target exists."""

    @abstractmethod
    def drop(self, actor: Actor, address: Address, table: Located, *, purge: bool, iceberg: bool) -> str | None:
        """Drop a table; why files stay that its system would have deleted with it, or None."""

    @abstractmethod
    def partitions(self, record: TableRecord) -> PartitionStore:
        """The partitions of a table. Raises Unsupported, saying why, if there are none to manage."""
