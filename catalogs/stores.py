"""Stores of the objects of one kind in a catalog. Services use `store_for`, and never ask where objects are stored.

A managed store writes in one transaction of our database; an outside store calls another system, with no transaction
open meanwhile. The offer of the catalog's provider decides which one is used (`storage_of`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import orjson

from authz.actor import Actor
from catalogs.models import Catalog, Schema
from catalogs.table_stores import TableStore
from metalake.errors import Unsupported
from metalake.hierarchy import HierarchicalSchema
from metalake.interfaces import Interface
from metalake.kinds import KINDS, LEAVES, TOP_LEAVES, Kind
from metalake.lineage import Address, Located, SchemaName
from providers.base import Offer, Provider, Storage, lies_outside
from providers.registry import PROVIDERS, provider_class
from providers.remote_objects import Levels, Remote

if TYPE_CHECKING:
    from catalogs.services.alterations import Alteration

# Schemas


@dataclass(frozen=True)
class SchemaRecord:
    """A schema as it is shown; `taken_at` is when an outside system was asked for it, None for a managed one.

    `folder` is the default folder of its Iceberg tables, if it was requested and is known. With `is_path`, the actor
    may know only its name, as the way to an object below, and `row` is blank.
    """

    path: HierarchicalSchema
    row: Schema
    taken_at: datetime | None = None
    folder: str | None = None
    is_path: bool = False


class SchemaListing(NamedTuple):
    """The outside part of a listing: ids of rows that are missing there, and when the system was asked."""

    missing: Collection[int] = ()
    taken_at: datetime | None = None


class SchemaStore(Interface):
    """The schemas of a catalog. The caller has checked the rights; a write checks them again."""

    @abstractmethod
    def discover(self, actor: Actor, catalog: Located, name: SchemaName) -> bool:
        """Import a schema that has no row; returns whether it has one now. Do not call in a transaction."""

    @abstractmethod
    def listing(self, actor: Actor, container: Located, *, refresh: bool) -> SchemaListing:
        """Refresh the rows of schemas directly below a catalog or schema."""

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
        """Load it. Raises NotFound if it is gone. `as_published`, right after a write, asks no outside system again."""

    @abstractmethod
    def require_there(self, actor: Actor, schema: Located) -> None:
        """Raise NotFound if it is gone from its own system."""

    @abstractmethod
    def levels(self, schema: Located) -> Levels | None:
        """The levels of the schema in the outside system of its tables.

        None for a schema that exists only here, as a step to others.
        """

    @abstractmethod
    def as_remote(self, actor: Actor, schema: Located) -> Remote:
        """The schema in the form that the outside system of its tables needs: its name there, comment and properties.

        Raises NotFound if it is gone.
        """

    @abstractmethod
    def create(
        self, actor: Actor, address: Address, catalog: Located, comment: str | None, properties: dict[str, str]
    ) -> SchemaRecord:
        """Make a schema with its missing parents. Raises Forbidden, Invalid, Unsupported, AlreadyExists."""

    @abstractmethod
    def alter(
        self, actor: Actor, address: Address, schema: Located, alteration: Alteration
    ) -> tuple[SchemaRecord, dict[str, str]]:
        """Alter a schema; returns it and its previous properties."""

    @abstractmethod
    def drop(self, actor: Actor, address: Address, schema: Located, *, cascade: bool) -> str | None:
        """Drop a schema; why files of its tables stay that its system would have deleted, or None.

        Raises NotEmpty, Unsupported.
        """


# Catalogs


class CatalogStore(Interface):
    """Questions about a catalog as a whole."""

    @property
    @abstractmethod
    def is_mirrored(self) -> bool:
        """Whether rows of the catalog follow another system, so that a refresh can bring them up to it."""

    @abstractmethod
    def require_no_clash(self, provider: Provider, metalake_id: int) -> None:
        """Raise Invalid if two schemas of its system would have the same name in a catalog to be made."""

    @abstractmethod
    def nesting_conflicts(self, actor: Actor, catalog: Located, divided: Collection[str]) -> list[str]:
        """Why names in its own system keep a flat catalog from becoming nested, in sentences.

        `divided` are names of its schemas here that have the separator in them. Not for use in a transaction. Raises
        ProviderUnavailable if the system does not name all that it has.
        """

    @abstractmethod
    def flattening_conflicts(self, catalog_id: int) -> list[str]:
        """Why its own system keeps a nested catalog from becoming flat, in sentences."""

    @abstractmethod
    def forget_answers(self, catalog_id: int, reason: str) -> None:
        """Mark all stored answers of its former system as stale, since the catalog leads elsewhere now.

        In the caller's transaction.
        """


# Which store


_STORES: dict[tuple[Storage, Kind], Any] = {}


def register(storage: Storage, kind: Kind, store: Interface) -> None:
    """Register the store of a kind for providers that offer that storage. Called by apps at startup."""
    _STORES[storage, kind] = store
    _store_by.cache_clear()
    _leaf_kinds.cache_clear()


@overload
def store_for(located: Located, kind: Literal[Kind.CATALOG]) -> CatalogStore: ...
@overload
def store_for(located: Located, kind: Literal[Kind.SCHEMA]) -> SchemaStore: ...
@overload
def store_for(located: Located, kind: Literal[Kind.TABLE]) -> TableStore: ...
@overload
def store_for(located: Located, kind: Kind) -> Any: ...
def store_for(located: Located, kind: Kind) -> Any:
    """The store of this kind in the catalog on a lineage. Raises Unsupported where the catalog does not offer it.

    Top leaves, which lie in no catalog, are stored as MANAGED.
    """
    name = located.provider or ""
    if name not in PROVIDERS:
        return _store(Storage.MANAGED, kind)
    return _store_by(name, located.properties or "{}", kind)


@lru_cache(maxsize=2048)
def _store_by(provider: str, properties: str, kind: Kind) -> Any:
    return _store(_storage(_offers(provider, properties), kind), kind)


def catalog_store_of(row: Catalog) -> CatalogStore:
    """The catalog store for a catalog's row."""
    return _store(storage_in(row.provider, row.properties, Kind.CATALOG), Kind.CATALOG)


def catalog_store_by(provider: Provider) -> CatalogStore:
    """The catalog store for a catalog that may have no row yet."""
    return _store(_storage(provider.offered, Kind.CATALOG), Kind.CATALOG)


def _store(storage: Storage, kind: Kind) -> Any:
    try:
        return _STORES[storage, kind]
    except KeyError:
        raise Unsupported(f"Catalogs of this type do not support objects of kind {kind}.", kind=kind) from None


def storage_of(located: Located, kind: Kind) -> Storage:
    """Where objects of this kind are stored in the catalog on a lineage; for the catalog, EXTERNAL if any are.

    Raises Unsupported if the catalog does not offer the kind.
    """
    return _storage(offers_of(located), kind)


def storage_in(provider: str, properties: Mapping[str, str], kind: Kind) -> Storage:
    """As `storage_of`, for a catalog's provider and properties."""
    return _storage(provider_class(provider).all_offers(properties) if provider in PROVIDERS else {}, kind)


def _storage(offers: Mapping[Kind, Offer], kind: Kind) -> Storage:
    """The storage of a kind among these offers. Raises Unsupported for a kind that is not offered.

    Without any offer the provider is not installed any more; then MANAGED, whose stores raise an error that says so.
    """
    if not offers:
        return Storage.MANAGED
    if kind == Kind.CATALOG:
        return Storage.EXTERNAL if lies_outside(offers) else Storage.MANAGED
    if kind not in offers:
        offered = ", ".join(KINDS[each].plural for each in offers)
        raise Unsupported(
            f"Catalogs of this type do not support {KINDS[kind].plural}; they support {offered}.", kind=kind
        )
    return offers[kind].storage


def offers_of(located: Located) -> Mapping[Kind, Offer]:
    """What the catalog on a lineage offers, by kind; empty if its provider is not installed any more."""
    name = located.provider or ""
    return _offers(name, located.properties or "{}") if name in PROVIDERS else {}


@lru_cache(maxsize=512)
def _offers(provider: str, properties: str) -> Mapping[Kind, Offer]:
    """The offers, cached: they depend on these two only, and hot reads would parse the properties each time."""
    return provider_class(provider).all_offers(orjson.loads(properties))


def leaf_kinds(located: Located) -> list[Kind]:
    """The kinds of leaves that the catalog on a lineage offers and for which a store is registered.

    Without a catalog these are the kinds of top leaves that the tree and a page of their own show.
    """
    if len(located.nodes) == 1 or located.kind in TOP_LEAVES:
        return [kind for kind in TOP_LEAVES if (Storage.MANAGED, kind) in _STORES]
    name = located.provider or ""
    return _leaf_kinds(name if name in PROVIDERS else "", located.properties or "{}")


@lru_cache(maxsize=512)
def _leaf_kinds(provider: str, properties: str) -> list[Kind]:
    """The same, cached: a name that is missing is looked for among them."""
    offers = _offers(provider, properties) if provider else {}
    offered = [kind for kind in LEAVES if kind in offers or not offers]
    return [kind for kind in offered if (_storage(offers, kind), kind) in _STORES]


def keeps_tables_here(row: Catalog) -> bool:
    """Whether the tables of a catalog are managed; false if its provider is not installed any more."""
    return row.provider in PROVIDERS and storage_in(row.provider, row.properties, Kind.TABLE) == Storage.MANAGED
