"""Renames and drops of tables of an outside system tell nobody of what he may not see, and touch nothing of it."""

from __future__ import annotations

from typing import Any

import pytest

from authz.actor import Actor
from catalogs.services import tables
from metalake.errors import NotFound
from metalake.kinds import Kind
from metalake.lineage import Address
from tests.catalogs.callers import Answer, Caller, update
from tests.catalogs.test_same_statements import about_a_table, assert_alike, below_a_schema, natively
from tests.demo import give
from tests.iceberg_rest.world import Caller as Engine
from tests.providers.memory import MemoryTables
from tests.providers.pointers import MemoryPointers
from tests.providers.world import World

pytestmark = pytest.mark.django_db(transaction=True)

DEEP = "metalakes/demo/catalogs/deep"
TABLES = f"{DEEP}/schemas/flights/tables"
COLUMNS = [{"name": "carrier", "type": "string"}]


@pytest.fixture
def flights(actor: Actor, admin: Caller) -> None:
    """Tables `delays` and `staff`, and a schema `secret` beside theirs."""
    for schema in ("flights", "secret"):
        assert admin.post(f"{DEEP}/schemas", {"name": schema}).status == 200
    for table in ("delays", "staff"):
        assert admin.post(TABLES, {"name": table, "columns": COLUMNS}).status == 200


def rename(caller: Caller, table: str, name: str, schema: str | None = None) -> Answer:
    return caller.put(f"{TABLES}/{table}", update("rename", newName=name, newSchemaName=schema))


def asked(world: World) -> int:
    with world.open() as state:
        return sum(state["calls"].values())


# Renames


def test_who_may_not_move_a_table_learns_nothing_of_the_target(flights: None, mia: Caller, world: World) -> None:
    give("mia", Kind.CATALOG, "deep", "use_catalog")
    give("mia", Kind.SCHEMA, "deep.flights", "use_schema")
    give("mia", Kind.TABLE, "deep.flights.delays", "select_table", "modify_table")
    before = asked(world)
    hidden, missing = rename(mia, "delays", "late", "secret"), rename(mia, "delays", "late", "nowhere")
    assert (hidden.status, hidden.body) == (missing.status, missing.body)
    assert hidden.error == (403, 1008, "ForbiddenException")
    assert asked(world) == before


def test_to_its_owner_a_hidden_schema_is_a_missing_one(flights: None, admin: Caller, mia: Caller, world: World) -> None:
    give("mia", Kind.CATALOG, "deep", "use_catalog")
    give("mia", Kind.SCHEMA, "deep.flights", "use_schema", "create_table")
    assert mia.post(TABLES, {"name": "hers", "columns": COLUMNS}).status == 200
    before = asked(world)
    hidden, missing = rename(mia, "hers", "late", "secret"), rename(mia, "hers", "late", "nowhere")
    assert hidden.error == missing.error == (404, 1003, "NoSuchSchemaException")
    assert hidden.message.replace("secret", "nowhere") == missing.message
    assert asked(world) == before
    world.fail("load_table", *["denied"] * 3)
    assert rename(mia, "hers", "late", "secret").error == missing.error, "whatever state the system is in"


def test_a_hidden_table_is_a_missing_one(flights: None, mia: Caller, world: World) -> None:
    give("mia", Kind.CATALOG, "deep", "use_catalog")
    give("mia", Kind.SCHEMA, "deep.flights", "use_schema")
    before = asked(world)
    world.fail("load_table", *["denied"] * 3)
    for target in (None, "secret", "nowhere"):
        hidden, missing = rename(mia, "staff", "late", target), rename(mia, "none", "late", target)
        assert hidden.error == missing.error == (404, 1003, "NoSuchTableException")
        assert hidden.message.replace("staff", "none") == missing.message
    assert asked(world) == before


def test_a_catalog_that_is_out_of_use_is_not_asked(flights: None, admin: Caller, world: World) -> None:
    admin.patch(DEEP, False)
    before = asked(world)
    assert rename(admin, "delays", "late").error[2] == "CatalogNotInUseException"
    assert rename(admin, "delays", "late", "secret").error[2] == "CatalogNotInUseException"
    assert admin.delete(f"{TABLES}/delays").error[2] == "CatalogNotInUseException"
    assert asked(world) == before


def test_who_may_alter_a_table_renames_it_where_it_is(flights: None, admin: Caller, mia: Caller, world: World) -> None:
    give("mia", Kind.METALAKE, "demo", "use_catalog", "use_schema", "modify_table")
    assert rename(mia, "delays", "late", "flights")["table"]["name"] == "late"
    assert world.tables() == {"flights.late", "flights.staff"}
    flat = "metalakes/demo/catalogs/flat/schemas"
    assert admin.post(flat, {"name": "flights"}).status == 200
    assert admin.post(f"{flat}/flights/tables", {"name": "delays", "columns": COLUMNS}).status == 200
    renamed = mia.put(f"{flat}/flights/tables/delays", update("rename", newName="late", newSchemaName="FLIGHTS"))
    assert renamed["table"]["name"] == "late", "the same schema, however it is written"


def test_no_table_moves_to_a_namesake_of_the_schema(flights: None, admin: Caller, world: World) -> None:
    world.drop("secret")
    world.put_schema("secret", team="finance")
    assert rename(admin, "delays", "late", "secret").error == (404, 1003, "NoSuchSchemaException")
    assert (world.tables(), world.calls("rename_table")) == ({"flights.delays", "flights.staff"}, 0)
    assert rename(admin, "delays", "late", "secret")["table"]["name"] == "late"


# What a wire does not show, it does not write


@pytest.fixture
def engine(flights: None, world: World, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """The same owner on the Iceberg wire, where `delays` and `staff` are Hive tables and `routes` is Iceberg's."""

    monkeypatch.setattr(MemoryPointers, "parameter", "pointer")
    monkeypatch.setattr(MemoryTables, "pointers", MemoryPointers)
    world.put_table("flights", "routes", pointer="s3://lake/flights/routes/metadata/00001.json")
    return Engine("admin", catalog="deep")


def moved(name: str, to: str, namespace: str = "flights") -> dict[str, Any]:
    source, destination = {"namespace": ["flights"], "name": name}, {"namespace": [namespace], "name": to}
    return {"source": source, "destination": destination}


def test_the_iceberg_wire_writes_no_table_of_another_format(
    engine: Engine, actor: Actor, admin: Caller, world: World
) -> None:
    before = world.tables()
    hive = "namespaces/flights/tables/delays"
    miss = (404, "NoSuchTableException", "Table does not exist: flights.delays")
    assert engine.get(hive).error == miss
    assert engine.head(hive).status == 404
    assert engine.delete(hive).error == engine.delete(f"{hive}?purgeRequested=true").error == miss
    assert engine.post("tables/rename", moved("delays", "late")).error == miss
    assert engine.post("tables/rename", moved("delays", "late", "secret")).error == miss
    assert engine.post(f"{hive}/metrics", {}).error == miss
    source, target = (
        Address(metalake="demo", catalog="deep", schema=["flights"], leaf=name) for name in ("delays", "late")
    )
    with pytest.raises(NotFound):
        tables.rename_table(actor, source, target, iceberg=True)
    assert world.tables() == before
    assert (world.calls("drop_table"), world.calls("rename_table")) == (0, 0)
    assert admin.delete(f"{TABLES}/delays")["dropped"] is True, "the native wire shows it"


def test_the_iceberg_wire_writes_its_own(engine: Engine, world: World) -> None:
    assert engine.head("namespaces/flights/tables/routes").status == 204
    assert engine.post("tables/rename", moved("routes", "ways")).status == 204
    assert engine.delete("namespaces/flights/tables/ways").status == 204
    assert world.tables() == {"flights.delays", "flights.staff"}


def test_a_table_that_the_settings_hide_is_not_written(
    engine: Engine, admin: Caller, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = ("delays", "routes")
    monkeypatch.setattr(MemoryTables, "hides_some", True)
    monkeypatch.setattr(MemoryTables, "shows", lambda self, table: table.name not in hidden)
    before = world.tables()
    for table in hidden:
        assert admin.get(f"{TABLES}/{table}").error[0] == 404
        assert rename(admin, table, "late").error == (404, 1003, "NoSuchTableException")
        assert admin.delete(f"{TABLES}/{table}")["dropped"] is False
        assert engine.post("tables/rename", moved(table, "late")).error[0] == 404
        assert engine.delete(f"namespaces/flights/tables/{table}").error[0] == 404
    assert world.tables() == before
    assert (world.calls("drop_table"), world.calls("rename_table")) == (0, 0)


# Time


def test_nothing_hidden_takes_what_a_miss_does_not(flights: None, mia: Caller, world: World) -> None:
    """The same statements, and no question to the other system, on both wires."""
    give("mia", Kind.CATALOG, "deep", "use_catalog")
    before = asked(world)
    natively(mia, "secret", "nowhere", below_a_schema(f"{DEEP}/schemas/secret")[:8])
    engine = Engine("mia", catalog="deep")
    for verb, path in (("GET", ""), ("HEAD", ""), ("DELETE", ""), ("GET", "/tables"), ("GET", "/tables/t")):
        assert_alike(
            lambda verb=verb, path=path: engine.ask(verb, f"namespaces/secret{path}"),  # type: ignore[misc]
            lambda verb=verb, path=path: engine.ask(verb, f"namespaces/nowhere{path}"),  # type: ignore[misc]
            (verb, path),
        )
    give("mia", Kind.SCHEMA, "deep.flights", "use_schema")
    natively(mia, "staff", "nobody", about_a_table(f"{TABLES}/staff"))
    assert asked(world) == before
