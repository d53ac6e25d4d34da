"""Stores of before former and reserved places, and of other names for columns, go on with the claims they have."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from catalogs.models import LocationClaim, ReservedPlace
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
