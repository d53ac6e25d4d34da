"""Stores of before former and reserved places, and of other names for columns, go on with the claims they have."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from catalogs.models import Catalog, LocationClaim, ReservedPlace
from metalake.kinds import Kind
from tests.catalogs.callers import Caller

pytestmark = [pytest.mark.store, pytest.mark.django_db(transaction=True)]

BEFORE = "0005_what_was_said"
RENAMED = {"catalogs_table": ("table_uuid", "uuid"), "catalogs_locationclaim": ("table_id", "securable_id")}
TABLES = "metalakes/demo/catalogs/lake/schemas/nycflights13/tables"


def migrate(to: str | None = None) -> None:
    """The app's tables as that migration leaves them; all tables as the newest do, without one."""
    executor = MigrationExecutor(connection)
    executor.migrate([("catalogs", to)] if to else executor.loader.graph.leaf_nodes())


@pytest.fixture
def again() -> Iterator[None]:
    yield
    migrate()


def test_claims_of_before_are_claims(admin: Caller, again: None) -> None:
    assert admin.post("metalakes/demo/catalogs/lake/schemas", {"name": "nycflights13"}).status == 200
    columns = [{"name": "tailnum", "type": "string"}]
    for name in ("flights", "planes"):
        assert admin.post(TABLES, {"name": name, "columns": columns}).status == 200
    held = sorted(LocationClaim.objects.values_list("securable_id", "location"))
    assert len(held) == 2
    migrate(BEFORE)
    migrate()
    assert sorted(LocationClaim.objects.filter(former_since=None).values_list("securable_id", "location")) == held
    assert not ReservedPlace.objects.exists()
    place = admin.get(f"{TABLES}/flights")["table"]["properties"]["location"]
    taken = admin.post(TABLES, {"name": "mine", "columns": columns, "properties": {"location": place}})
    assert taken.status == 400 and "overlaps another table's" in taken.message
    assert admin.delete(f"{TABLES}/planes")["dropped"] is True
    assert ReservedPlace.objects.get().full_name == "lake.nycflights13.planes"


def test_a_store_with_other_names_for_two_columns_goes_on(admin: Caller, again: None) -> None:
    assert admin.post("metalakes/demo/catalogs/lake/schemas", {"name": "nycflights13"}).status == 200
    assert admin.post(TABLES, {"name": "flights", "columns": [{"name": "tailnum", "type": "string"}]}).status == 200
    place = LocationClaim.objects.get().location
    migrate("0009_claims_of_any_object")
    with connection.schema_editor() as editor:
        for table, (name, between) in RENAMED.items():
            editor.execute(f'ALTER TABLE "{table}" RENAME COLUMN "{name}" TO "{between}"')
    with pytest.raises(DatabaseError):
        LocationClaim.objects.get()
    migrate()
    assert LocationClaim.objects.get().location == place
    assert admin.delete(f"{TABLES}/flights")["dropped"] is True
    assert not LocationClaim.objects.exists() and ReservedPlace.objects.exists()


def test_what_fake_entries_reserved_concerns_their_catalog_alone(admin: Caller, again: None) -> None:
    """Rows of an outside catalog are looked at; those of a managed one and of one that is gone stay as they are."""
    lake = Catalog.objects.get(name="lake")
    hive = Catalog.made(Kind.CATALOG, "h", lake.parent, provider="hive", creator="x", owner_user_id=lake.owner_user_id)
    hive.properties = {"metastore.uris": "thrift://h", "warehouse": "s3a://hers/w", "allowed-locations": "s3://more/a/"}
    hive.save(force_insert=True)
    expected = {
        ("s3://hers/w/t", hive.pk): True,
        ("s3://more/a", hive.pk): True,
        ("s3://theirs/w/t", hive.pk): False,
        ("s3://hers", hive.pk): False,
        ("s3://theirs/w/t", lake.pk): True,
        ("s3://theirs/w/u", 1): True,
    }
    for location, of_catalog in expected:
        at = {"location": location, "of_catalog": of_catalog, "of_metalake": lake.parent_id}
        ReservedPlace.objects.create(kind="table", full_name="x", **at)
    migrate("0011_harvests")
    migrate()
    rows = ReservedPlace.objects.values_list("location", "of_catalog", "is_named")
    assert {(location, catalog): named for location, catalog, named in rows} == expected
    assert Catalog.objects.get(name="h").storages is None
