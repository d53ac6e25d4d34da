"""The base class of providers. Each declares its capabilities; services check these, never "is this Glue?"."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar

from pydantic import ValidationError

from metalake.errors import Invalid, Unsupported
from metalake.kinds import KINDS, CatalogType, Kind
from metalake.wire import complaint
from providers.metadata_files import MetadataFiles
from providers.schema_names import SchemaNames
from providers.settings import CACHE_TTL, Settings, seconds_of
from providers.stores import RemotePartitions, RemotePointers, RemoteSchemas, RemoteStore, RemoteTables
from providers.verbs import VERBS, present
from providers.view_stores import RemoteViewPointers, RemoteViews

# Properties with these prefixes belong to a storage, even if they resemble the catalog's own.
SPELT_BY_GRAVITINO = frozenset(
    f"s3-{name}" for name in ("access-key-id", "secret-access-key", "session-token", "region", "endpoint", "role-arn")
)
STORAGES = frozenset({"s3", "s3a", "gcs", "adls", "abfs", "hdfs", "oss", "client"})


class Storage(StrEnum):
    """Where the objects of a kind are stored."""

    MANAGED = "managed"  # a row in our database, pointing to a file in the catalog's own storage
    ROWS = "rows"  # only in our database
    EXTERNAL = "external"  # in another system; our database has only the securable row


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A catalog's capability for one kind of object."""

    storage: Storage
    formats: frozenset[str] = frozenset()  # of tables and views
    nested: bool = False  # nested schemas; for external ones, in the outside system itself
    folds_case: bool = False  # names are lower-cased before use
    remote: type[RemoteStore] | None = None  # the remote store, for external objects

    @property
    def commits_together(self) -> bool:
        """Whether one transaction can commit several tables: our database has all their pointers."""
        return self.storage is Storage.MANAGED


_STORED_HERE = {
    type_: {
        kind: Offer(storage=Storage.ROWS)
        for kind, declared in KINDS.items()
        if declared.stored_here and declared.catalog_type is type_
    }
    for type_ in CatalogType
}


def lies_outside(offers: Mapping[Kind, Offer]) -> bool:
    """Whether any of these kinds of object is stored in another system."""
    return any(offer.storage is Storage.EXTERNAL for offer in offers.values())


def listed_together(offers: Mapping[Kind, Offer], kind: Kind) -> tuple[Kind, ...]:
    """The external kinds that share a listing and a namespace with this one; the listing's verbs use the first."""
    listings = {each: _listing_of(each, offer) for each, offer in offers.items() if offer.remote is not None}
    listing = listings.get(kind, kind)
    return (listing, *(each for each in listings if listings[each] == listing and each != listing))


def _listing_of(kind: Kind, offer: Offer) -> Kind:
    return (offer.remote.listed_as if offer.remote else None) or kind


class Provider:
    """The connector of a registered catalog, created from its stored properties on demand."""

    label: ClassVar[str]
    catalog_type: ClassVar[CatalogType] = CatalogType.RELATIONAL
    settings: ClassVar[type[Settings]] = Settings
    # Declared properties that cannot change once the catalog exists, with the reason.
    immutable: ClassVar[Mapping[str, str]] = {}
    longest_name: ClassVar[int] = 255  # of a schema in the outside system, in bytes
    # Canonical locations that the catalog already has; the checks of new ones skip these.
    existing_places: Collection[str] = ()
    # Canonical locations whose storage the catalog has reached before.
    reached_places: Collection[str] = ()

    def __init__(self, catalog_id: int, properties: Mapping[str, str]) -> None:
        self.catalog_id = catalog_id
        self.properties = dict(properties)

    @classmethod
    def check(cls, properties: Mapping[str, str]) -> Any:
        """Parse the properties. Raises Invalid, naming the property and, for a near miss, the right name."""
        declared = cls.settings.declared()
        for key in properties:
            if key in declared or key.partition(".")[0] in STORAGES:
                continue
            near = get_close_matches(key.lower().replace("_", "-"), declared, n=1, cutoff=0.85)
            if key in SPELT_BY_GRAVITINO:  # would have no effect under this name
                near = [key.replace("-", ".", 1)]
            if near:
                raise Invalid(f"Unknown property {key!r}; did you mean {near[0]!r}?", kind="catalog")
        try:
            return cls.settings.model_validate(dict(properties))
        except ValidationError as wrong:
            fault = wrong.errors()[0]
            raise Invalid(f"Property {fault['loc'][0]!r} {complaint(fault)}.", kind="catalog") from None

    @classmethod
    def check_given(cls, properties: Mapping[str, str]) -> None:
        """Raise Invalid for a new property that this provider cannot satisfy; stored ones are not checked."""

    @classmethod
    def completed(cls, catalog_id: int, properties: Mapping[str, str]) -> dict[str, str]:
        """A new catalog's properties to store, including defaults that must not change for it later."""
        return dict(properties)

    @classmethod
    def offers(cls, properties: Mapping[str, str]) -> Mapping[Kind, Offer]:
        """The capabilities of a catalog with these properties, by kind; absent kinds are not offered.

        Computed from class and properties, without a connection, and never stored, so that existing catalogs gain the
        capabilities of later provider versions.
        """
        raise NotImplementedError

    @classmethod
    def all_offers(cls, properties: Mapping[str, str]) -> Mapping[Kind, Offer]:
        """`offers`, plus the kinds that Metalake itself stores if the provider does not offer them."""
        offers = cls.offers(properties)
        return {
            **offers,
            **{kind: offer for kind, offer in _STORED_HERE[cls.catalog_type].items() if kind not in offers},
        }

    @property
    def offered(self) -> Mapping[Kind, Offer]:
        """This catalog's capabilities."""
        return self.all_offers(self.properties)

    @property
    def only_formats(self) -> frozenset[str] | None:
        """The table and file formats that the catalog shows; None if it shows all tables."""
        return None

    @property
    def reaches_out(self) -> bool:
        """Whether checking its locations or testing its connection may use the network."""
        return True

    @property
    def files(self) -> MetadataFiles:
        """The metadata files of managed tables. Raises Unsupported if the catalog has none."""
        raise Unsupported(f"{self.label} catalogs keep no tables here.", kind=Kind.TABLE)

    def locations(self) -> list[str]:
        """The locations exclusive to this catalog, in canonical form."""
        return []

    def check_locations(self) -> None:
        """Raise Invalid for a location that this server's current settings do not allow."""

    def require_identity(self) -> None:
        """Raise ProviderUnavailable without credentials for a system where the server's own identity is not allowed."""

    def load_clients(self) -> None:
        """Import the libraries of `reach_storages`, which takes seconds on a busy machine."""

    def reach_storages(self) -> list[str]:
        """The storages of its locations, as `s3://host:port`, after reaching each new one with the catalog's keys.

        Raises Invalid or ProviderUnavailable.
        """
        return []

    def test_connection(self) -> None:
        """Make one cheap call to the system. Raises Invalid or ProviderUnavailable with the reason."""
        raise NotImplementedError

    # External catalogs only

    @property
    def freshness(self) -> int:
        """Seconds for which a response of the system may be cached."""
        return seconds_of(self.properties, CACHE_TTL) or 0

    @classmethod
    def target_of(cls, definition: Mapping[str, Any]) -> str | None:
        """The target of a schema or table that is a resource link, empty if not known yet; None if it is no link."""
        return None

    def system_names(self) -> list[str]:
        """URLs that identify the system, from the settings alone; empty if these do not identify it.

        Catalogs that share a URL have the same system.
        """
        return []

    def system(self) -> list[str]:
        """`system_names`, plus the names from a DNS lookup. Raises Invalid, ProviderUnavailable."""
        return self.system_names()

    def is_named(self, location: str) -> bool:
        """Whether a location lies in one that the catalog's properties configure for its tables."""
        return False

    @property
    def names(self) -> SchemaNames:
        """How schemas are named in the system."""
        offer = self.offered[Kind.SCHEMA]
        return SchemaNames(
            label=self.label,
            nests_there=offer.nested,
            nests_here=self.properties.get("nested-namespaces") == "true" and not offer.nested,
            folds_case=offer.folds_case,
            longest=self.longest_name,
            check=self.checked_name,
        )

    def checked_name(self, name: str) -> str:
        """A schema's name in the system's form. Raises Invalid."""
        return name

    @cached_property
    def schemas(self) -> RemoteSchemas:
        store = self._store(Kind.SCHEMA)
        assert isinstance(store, RemoteSchemas)
        return store

    @cached_property
    def tables(self) -> RemoteTables:
        store = self._store(Kind.TABLE)
        assert isinstance(store, RemoteTables)
        return store

    @cached_property
    def views(self) -> RemoteViews:
        store = self._store(Kind.VIEW)
        assert isinstance(store, RemoteViews)
        return store

    @cached_property
    def partitions(self) -> RemotePartitions:
        return self.tables.partitions(self)

    @cached_property
    def pointers(self) -> RemotePointers:
        return self.tables.pointers(self)

    @cached_property
    def view_pointers(self) -> RemoteViewPointers:
        return self.views.pointers(self)

    def keeps_outside(self, kind: Kind) -> bool:
        """Whether objects of this kind are stored in the outside system."""
        offer = self.offered.get(kind)
        return offer is not None and offer.remote is not None

    def store(self, name: str) -> RemoteStore:
        """The remote store of a verb. Raises Unsupported."""
        return getattr(self, name) if hasattr(type(self), name) else self._store(Kind(name))

    def _store(self, kind: Kind) -> RemoteStore:
        offer = self.offered.get(kind)
        if offer is None or offer.remote is None:
            raise Unsupported(f"{self.label} keeps no {kind}s outside.", kind=kind)
        return offer.remote(self)

    def call(self, verb: str, arguments: Mapping[str, Any]) -> Any:
        """Call a verb's method of its remote store. Only `providers.remote` calls this, with a deadline."""
        declared = VERBS[verb]
        return getattr(self.store(declared.store), declared.method)(**present(verb, dict(arguments)))
