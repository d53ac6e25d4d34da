"""Names that fold to one: in case, or as a path is spelt in a flat system. A clear refusal, and nothing made there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from authz.actor import Actor
from catalogs.models import Catalog, Mirror, Tombstone
from catalogs.services import catalogs
from catalogs.services.alterations import Alteration
from metalake.errors import ProviderUnavailable
from metalake.models import Securable
from outside import refresh
from providers import remote
from tests.catalogs.callers import Caller, segment, update
from tests.providers import world
from tests.providers.world import World, fresh

pytestmark = [pytest.mark.store, pytest.mark.django_db(transaction=True)]

CATALOGS, FLAT = "metalakes/demo/catalogs", "metalakes/demo/catalogs/flat"
COLUMNS = [{"name": "carrier", "type": "string"}]
NESTED = "nested-namespaces"


def names(answer: Any) -> list[str]:
    return [one["name"] for one in answer["identifiers"]]


def nested(value: str) -> dict[str, str]:
    return update("setProperty", property=NESTED, value=value)


def switch_on(actor: Actor) -> None:
    catalogs.alter_catalog(actor, "demo", "flat", Alteration(properties=((NESTED, "true"),)))


@pytest.fixture
def plain(actor: Actor, admin: Caller, flat_world: World) -> str:
    """The flat catalog without schemas inside schemas."""
    admin.put(FLAT, nested("false"))
    return FLAT


# A catalog that is to have schemas inside schemas


@pytest.mark.parametrize("is_known", [True, False])
def test_names_that_would_be_paths(plain: str, admin: Caller, flat_world: World, is_known: bool) -> None:
    for name in ("gates_x001f_north", "flights", "sales"):
        flat_world.put_schema(name)
    if is_known:
        assert "gates_x001f_north" in names(admin.get(f"{plain}/schemas"))
    before = admin.get(plain)["catalog"]
    refused = admin.put(plain, nested("true"))
    assert refused.error == (400, 1001, "IllegalArgumentException")
    assert refused.message == (
        "'nested-namespaces' cannot be switched on: Schema gates_x001f_north would be read as gates:north."
    )
    assert admin.get(plain)["catalog"] == before
    flat_world.drop("gates_x001f_north")
    assert admin.put(plain, nested("true")).status == 200


def test_two_names_that_would_be_one_path(plain: str, admin: Caller, flat_world: World) -> None:
    flat_world.put_schema("north-gates")
    flat_world.put_schema("north_x002d_gates")
    refused = admin.put(plain, nested("true"))
    assert refused.error == (400, 1001, "IllegalArgumentException")
    assert "north-gates and north_x002d_gates would be one schema." in refused.message


def test_a_system_that_names_no_schemas_refuses(actor: Actor, plain: str, admin: Caller, flat_world: World) -> None:
    flat_world.put_schema("flights")
    admin.get(f"{plain}/schemas")
    flat_world.fail("list_schemas", *["down"] * 9)
    with pytest.raises(ProviderUnavailable) as refused:
        switch_on(actor)
    assert "must say first which schemas it has" in refused.value.message
    assert not Catalog.objects.get(name="flat").nested


def test_all_schemas_are_asked_for_and_not_for_long(
    actor: Actor, plain: str, admin: Caller, flat_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with flat_world.open() as state:
        made = fresh({"comment": None, "properties": {}})
        state["schemas"] |= {f"s{number:05}": made for number in range(5_100)}
    flat_world.put_schema("z_x001f_last")
    monkeypatch.setattr(world, "PAGE", 1_000)
    assert "z_x001f_last would be read as z:last" in admin.put(plain, nested("true")).message
    monkeypatch.setattr(remote, "TOTAL", 0.0)
    with pytest.raises(ProviderUnavailable) as refused:
        switch_on(actor)
    assert "did not list all" in refused.value.message


def test_other_alterations_ask_nobody(plain: str, admin: Caller, flat_world: World) -> None:
    flat_world.put_schema("gates_x001f_north")
    asked = flat_world.calls("list_schemas")
    assert admin.put(plain, update("setProperty", property="cache-ttl", value="60")).status == 200
    assert admin.put(plain, update("rename", newName="flatter")).status == 200
    assert flat_world.calls("list_schemas") == asked


@pytest.mark.parametrize("others", [[], ["north_x002d_gates"]])
def test_a_new_catalog(actor: Actor, admin: Caller, tmp_path: Path, others: list[str]) -> None:
    world = World(tmp_path / "airport.json")
    for name in ("gates_x001f_north", "north-gates", *others):
        world.put_schema(name)
    asked = {"name": "airport", "type": "RELATIONAL", "provider": "memory-flat"}
    made = admin.post(CATALOGS, asked | {"properties": {"world": str(world.path), NESTED: "true"}})
    if others:
        assert made.error == (400, 1001, "IllegalArgumentException")
        assert "north-gates and north_x002d_gates would be one schema." in made.message
        assert not Catalog.objects.filter(name="airport").exists()
    else:
        assert names(admin.get(f"{CATALOGS}/airport/schemas")) == ["gates", "north-gates"]


def test_a_new_catalog_of_a_system_that_is_away(actor: Actor, admin: Caller, tmp_path: Path) -> None:
    world = World(tmp_path / "airport.json")
    world.fail("list_schemas", "down")
    asked = {"name": "airport", "type": "RELATIONAL", "provider": "memory-flat"}
    properties = {"world": str(world.path), NESTED: "true"}
    with pytest.raises(ProviderUnavailable):
        catalogs.create_catalog(actor, "demo", "airport", "relational", "memory-flat", None, properties)
    assert admin.post(CATALOGS, asked | {"properties": {"world": str(world.path)}}).status == 200, "flat as before"


def test_a_nested_one_whose_names_are_spelt_there_stays_nested(actor: Actor, admin: Caller, flat_world: World) -> None:
    admin.post(f"{FLAT}/schemas", {"name": "north-gates"})
    refused = admin.put(FLAT, nested("false"))
    assert refused.error == (400, 1001, "IllegalArgumentException")
    assert "Schema north-gates is called north_x002d_gates there." in refused.message
    admin.delete(f"{FLAT}/schemas/north-gates")
    assert admin.put(FLAT, nested("false")).status == 200


def test_of_two_that_are_one_path_the_first_keeps_its_row(actor: Actor, admin: Caller, flat_world: World) -> None:
    """Whoever made the second one takes nothing from those who have grants on the first."""
    flat_world.put_schema("north-gates")
    admin.get(f"{FLAT}/schemas")
    before = Securable.objects.get(name="north-gates").pk
    flat_world.put_schema("north_x002d_gates")
    for _ in range(2):
        assert names(admin.get(f"{FLAT}/schemas")) == ["north-gates"]
    run = refresh.carry_on(refresh.begin(Catalog.objects.get(name="flat").pk, here=True).pk)
    assert run is not None
    assert (run.state, run.skipped) == ("done", 1)
    assert (Securable.objects.get(name="north-gates").pk, Tombstone.objects.count()) == (before, 0)
    assert Mirror.objects.get(pk=before).wire_name == "north-gates"


# Schemas and tables


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize(
    ("there", "asked"),
    [("flights", "Flights"), ("gates_x001f_north", "gates:north"), ("gates_x001f_north", "GATES:North")],
)
def test_a_schema_that_is_there(
    actor: Actor, admin: Caller, flat_world: World, there: str, asked: str, is_known: bool
) -> None:
    flat_world.put_schema(there)
    if is_known:
        assert admin.get(f"{FLAT}/schemas/{segment(asked)}").status == 200
    refused = admin.post(f"{FLAT}/schemas", {"name": asked})
    assert refused.error == (409, 1004, "SchemaAlreadyExistsException")
    assert refused.message.lower() == f"schema {asked.lower()} already exists."
    assert flat_world.schemas() == {there}


@pytest.mark.parametrize("is_known", [True, False])
def test_a_schema_that_others_named_plainly(actor: Actor, admin: Caller, flat_world: World, is_known: bool) -> None:
    flat_world.put_schema("north-gates")
    if is_known:
        assert admin.get(f"{FLAT}/schemas/North-Gates")["schema"]["name"] == "north-gates"
    refused = admin.post(f"{FLAT}/schemas", {"name": "north-gates"})
    assert refused.error == (409, 1004, "SchemaAlreadyExistsException")
    assert flat_world.schemas() == {"north-gates"}
    assert admin.get(f"{FLAT}/schemas/north-gates").status == 200


def test_a_name_that_looks_like_a_path_is_another(actor: Actor, admin: Caller, flat_world: World) -> None:
    admin.post(f"{FLAT}/schemas", {"name": "gates:north"})
    assert admin.post(f"{FLAT}/schemas", {"name": "gates_x001f_north"}).status == 200
    assert flat_world.schemas() == {"gates_x001f_north", "gates_x005f_x001f_north"}
    assert names(admin.get(f"{FLAT}/schemas")) == ["gates", "gates_x001f_north"]


def test_a_place_that_others_named_plainly_is_used(actor: Actor, admin: Caller, flat_world: World) -> None:
    """The schema was only a step to others here; a table needs its place."""
    admin.post(f"{FLAT}/schemas", {"name": "north-gates:a1"})
    flat_world.put_schema("north-gates")
    made = admin.post(f"{FLAT}/schemas/north-gates/tables", {"name": "boarding", "columns": COLUMNS})
    assert made.status == 200
    assert flat_world.tables() == {"north-gates.boarding"}


@pytest.mark.parametrize("is_known", [True, False])
def test_a_table_that_is_there(actor: Actor, admin: Caller, flat_world: World, is_known: bool) -> None:
    flat_world.put_schema("flights")
    flat_world.put_table("flights", "delays")
    tables = f"{FLAT}/schemas/flights/tables"
    if is_known:
        assert names(admin.get(tables)) == ["delays"]
    refused = admin.post(tables, {"name": "Delays", "columns": COLUMNS})
    assert refused.error == (409, 1004, "TableAlreadyExistsException")
    assert "delays" in refused.message
    assert admin.post(tables, {"name": "Airports", "columns": COLUMNS})["table"]["name"] == "airports"
    for name in ("DELAYS", "Airports"):
        refused = admin.put(f"{tables}/airports", update("rename", newName=name))
        assert refused.error == (409, 1004, "TableAlreadyExistsException")
    assert flat_world.tables() == {"flights.delays", "flights.airports"}
