"""Which store keeps a kind follows from the provider and the catalog's properties, whatever the row said when made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from catalogs.lookup import nearest
from catalogs.managed.catalogs import ManagedCatalogs
from catalogs.managed.schemas import ManagedSchemas
from catalogs.managed.tables import ManagedTables
from catalogs.models import Catalog
from catalogs.stores import CatalogStore, SchemaStore, keeps_tables_here, storage_of, store_for
from catalogs.table_stores import PartitionStore, TablePointers, TableStore
from metalake.errors import Unsupported
from metalake.interfaces import Interface
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from metalake.models import Securable
from outside.stores import OutsideCatalogs, OutsideTables
from providers import registry
from providers.base import Offer, Storage
from providers.iceberg.provider import IcebergProvider
from tests.catalogs.callers import Caller

pytestmark = [pytest.mark.store, pytest.mark.django_db]


class MixedProvider(IcebergProvider):
    """Schemas of ours; tables where the property `catalog-backend` says; models in a store that nobody has."""

    label = "Mixed"

    @classmethod
    def offers(cls, properties: Mapping[str, str]) -> Mapping[Kind, Offer]:
        offers = dict(super().offers(properties))
        if properties.get("catalog-backend") == "elsewhere":
            offers[Kind.TABLE] = replace(offers[Kind.TABLE], storage=Storage.EXTERNAL)
        return offers | {Kind.MODEL: Offer(storage=Storage.MANAGED)}


@pytest.fixture
def lake(admin: Caller, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    monkeypatch.setitem(registry.PROVIDERS, "mixed", f"{__name__}:MixedProvider")
    row = Catalog.objects.get(name="lake")
    Catalog.objects.filter(pk=row.pk).update(provider="mixed")
    return Catalog.objects.get(pk=row.pk)


def located() -> Located:
    found = nearest(Address(metalake="demo", catalog="lake"))
    assert found is not None
    return found


def test_the_same_provider_keeps_tables_here_or_elsewhere_as_the_properties_say(lake: Catalog) -> None:
    assert isinstance(store_for(located(), Kind.TABLE), ManagedTables)
    assert isinstance(store_for(located(), Kind.CATALOG), ManagedCatalogs)
    assert keeps_tables_here(lake)
    lake.properties = lake.properties | {"catalog-backend": "elsewhere"}
    Securable.objects.filter(pk=lake.pk).update(properties=lake.properties)
    assert isinstance(store_for(located(), Kind.TABLE), OutsideTables)
    assert isinstance(store_for(located(), Kind.SCHEMA), ManagedSchemas)
    assert isinstance(store_for(located(), Kind.CATALOG), OutsideCatalogs), "something of it lies outside"
    assert not keeps_tables_here(lake)


def test_a_kind_that_no_app_keeps_is_unsupported(lake: Catalog) -> None:
    with pytest.raises(Unsupported):
        store_for(located(), Kind.MODEL)


def test_a_kind_that_the_catalog_does_not_offer_is_refused_with_what_it_offers(lake: Catalog) -> None:
    for ask in (store_for, storage_of):
        with pytest.raises(Unsupported, match="do not support filesets; they support schemas, tables, views"):
            ask(located(), Kind.FILESET)


def test_a_catalog_whose_provider_is_gone_is_asked_here_and_keeps_nothing(lake: Catalog) -> None:
    Catalog.objects.filter(pk=lake.pk).update(provider="gone")
    lake.refresh_from_db()
    assert storage_of(located(), Kind.TABLE) == Storage.MANAGED
    assert not keeps_tables_here(lake)


@pytest.mark.parametrize("surface", [CatalogStore, SchemaStore, TableStore, TablePointers, PartitionStore])
def test_a_store_that_lacks_a_member_cannot_be_made(surface: type[Interface]) -> None:
    for missing in surface.__abstractmethods__:
        members = dict.fromkeys(surface.__abstractmethods__ - {missing}, lambda *_: None)
        with pytest.raises(TypeError, match=missing):
            type("Incomplete", (surface,), members)()
