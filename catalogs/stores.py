"""Stores: what keeps the objects of one kind in a catalog. Services ask `store_for`, and never who keeps them.

A store of ours writes in one transaction of our database; one of an outside system asks that system, with no
transaction open meanwhile. Which of them keeps a kind follows from what the catalog's provider offers (`storage_of`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Literal, NamedTuple, overload

from authz.policy import Actor
from catalogs.models import Catalog, Schema
from catalogs.services.changes import Alteration
from catalogs.services.holding import Held
from formats.iceberg import files
from formats.native.partitions import IdentityPartition
from formats.native.tables import CreateTableRequest
from metalake.errors import Unsupported
from metalake.hierarchy import HierarchicalSchema
from metalake.kinds import Kind
from metalake.lineage import Address, Located, SchemaName
from metalake.surface import Surface
from providers.base import Storage
from providers.metadata_files import MetadataFiles
from providers.registry import PROVIDERS, provider_class

# Schemas


@dataclass(frozen=True)
class SchemaRecord:
    """A schema as its doors show it; `taken_at` says when an outside system was asked for it.

    `folder` is where Iceberg tables go that name no place, if it was asked for and is known.
    """

    path: HierarchicalSchema
    row: Schema
    taken_at: datetime | None = None
    folder: str | None = None


class SchemaListing(NamedTuple):
    """What a listing adds to the rows: ids of those that are missing there, and when an outside system was asked."""

    missing: Collection[int] = ()
    taken_at: datetime | None = None


class SchemaStore(Surface):
    """The schemas of a catalog. Rights on what is named are asked by the caller before, and by a write once more."""

    @abstractmethod
    def meet(self, actor: Actor, catalog: Located, name: SchemaName) -> bool:
        """Look for a schema that has no row yet; whether it has one now. Not for use in a transaction."""

    @abstractmethod
    def listing(self, actor: Actor, container: Located, *, refresh: bool) -> SchemaListing:
        """Bring the rows directly below a catalog or schema up to date."""

    @abstractmethod
    def load(
        self,
        actor: Actor,
        schema: Located,
        *,
        refresh: bool = False,
        as_published: bool = False,
        with_folder: bool = False,
    ) -> SchemaRecord:
        """Raises NotFound where it is gone. `as_published`, right after a write, asks no outside system again."""

    @abstractmethod
    def require_there(self, actor: Actor, schema: Located) -> None:
        """Raise NotFound where it is gone from its own system."""

    @abstractmethod
    def parents_to_hold(self, actor: Actor, catalog: Located, name: SchemaName) -> Held:
        """What `create` puts a new schema below in the caller's transaction.

        Raises Forbidden, Invalid, Unsupported, AlreadyExists.
        """

    @abstractmethod
    def create(
        self,
        actor: Actor,
        address: Address,
        comment: str | None,
        properties: dict[str, str],
        catalog: Located,
        *parents: Located,
    ) -> Callable[[], SchemaRecord]:
        """Make a schema with its missing parents, in the caller's transaction, or in what is returned.

        That is called once the transaction is over, and returns the schema.
        """

    @abstractmethod
    def alter(
        self, actor: Actor, address: Address, schema: Located, alteration: Alteration
    ) -> tuple[SchemaRecord, dict[str, str]]:
        """The schema, and its properties as they were before."""

    @abstractmethod
    def drop(self, actor: Actor, address: Address, schema: Located, *, cascade: bool) -> str | None:
        """Why files of its tables stay that its system would have deleted. Raises NotEmpty, Unsupported."""


# Tables


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
        return files.parse_metadata(self.content)

    @property
    def published(self) -> Located:
        """The table of a record that is not only staged."""
        assert self.table is not None
        return self.table


@dataclass(frozen=True)
class TableDescription:
    """A table as people read it; `columns` have name, type, required and doc."""

    comment: str
    properties: dict[str, str]
    facts: tuple[tuple[str, str], ...] = ()
    columns: tuple[Json, ...] = ()


class TableListing(NamedTuple):
    """Names that may be shown of a schema's tables, None where all rows may; when an outside system was asked."""

    names: Collection[str] | None = None
    taken_at: datetime | None = None


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
    def find_again(self, actor: Actor, address: Address, table: Located) -> Located:
        """The table as it is after a lost race. Raises NotFound."""

    @abstractmethod
    def require_claims(self, table: Located) -> None:
        """Raise Unsupported where not we say which places the table has, and had before."""


class TableStore(Surface):
    """The tables of a catalog. Rights on what is named are asked by the caller before, and by a write once more.

    `iceberg` asks for Iceberg tables alone: NotFound is raised of one in another format.
    """

    @property
    @abstractmethod
    def pointers(self) -> PointerStore: ...

    @abstractmethod
    def meet(self, actor: Actor, schema: Located, name: str) -> bool:
        """Look for a table that has no row yet; whether it has one now. Not for use in a transaction."""

    @abstractmethod
    def listing(self, actor: Actor, schema: Located, *, refresh: bool, iceberg: bool) -> TableListing:
        """Bring the rows of a schema's tables up to date."""

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
    def describe(self, record: TableRecord) -> TableDescription: ...

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


# Which store


_STORES: dict[tuple[Storage, Kind], Any] = {}


def register(storage: Storage, kind: Kind, store: Surface) -> None:
    """Have a store keep this kind wherever a provider offers it so. Apps do at start."""
    _STORES[storage, kind] = store


@overload
def store_for(located: Located, kind: Literal[Kind.SCHEMA]) -> SchemaStore: ...
@overload
def store_for(located: Located, kind: Literal[Kind.TABLE]) -> TableStore: ...
@overload
def store_for(located: Located, kind: Kind) -> Any: ...
def store_for(located: Located, kind: Kind) -> Any:
    """The store of this kind in the catalog on a lineage. Raises Unsupported where nothing keeps it."""
    return _store(storage_of(located, kind), kind)


def _store(storage: Storage, kind: Kind) -> Any:
    try:
        return _STORES[storage, kind]
    except KeyError:
        raise Unsupported(f"Nothing keeps objects of kind {kind} in such catalogs.", kind=kind) from None


def storage_of(located: Located, kind: Kind) -> Storage:
    """Who keeps the objects of this kind in the catalog on a lineage; of a catalog, whether any of it lies outside."""
    return _storage(located.provider or "", {}, kind)


def storage_in(row: Catalog, kind: Kind) -> Storage:
    """The same for a catalog's row."""
    return _storage(row.provider, row.properties, kind)


def _storage(provider: str, properties: Mapping[str, str], kind: Kind) -> Storage:
    """Our own where the provider is here no more, or does not offer the kind: what is asked of it then says so."""
    if provider not in PROVIDERS:
        return Storage.MANAGED
    chosen = provider_class(provider)
    if kind == Kind.CATALOG:
        return Storage.EXTERNAL if chosen.is_outside(properties) else Storage.MANAGED
    offer = chosen.offers(properties).get(kind)
    return Storage.MANAGED if offer is None else offer.storage
