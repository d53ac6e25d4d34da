"""Schemas of an outside system, through the native wire: read through, made with their parents, altered, dropped."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from authz.actor import Actor
from authz.models import AuditEntry
from catalogs.models import Intent, Reservation, Schema, Tombstone
from catalogs.services import schemas
from metalake.errors import ProviderUnavailable
from metalake.kinds import Kind
from metalake.lineage import Address
from metalake.models import Securable
from providers.remote_objects import Page
from tests.catalogs.callers import Caller
from tests.demo import give
from tests.providers.memory import MemoryTables
from tests.providers.world import World

pytestmark = pytest.mark.django_db(transaction=True)

DEEP, FLAT = "metalakes/demo/catalogs/deep", "metalakes/demo/catalogs/flat"


def names(answer: object) -> list[str]:
    return [one["name"] for one in answer["identifiers"]]


def test_a_schema_is_made_outside_with_its_parents(actor: Actor, admin: Caller, world: World) -> None:
    made = admin.send("POST", f"{DEEP}/schemas", {"name": "sales:emea:q3", "comment": "c", "properties": {"k": "v"}})
    assert made["schema"]["name"] == "sales:emea:q3"
    assert made["schema"]["properties"] == {"k": "v"}
    assert world.schemas() == {"sales", "sales.emea", "sales.emea.q3"}
    assert {row.owner_user_id for row in Schema.objects.all()} == {actor.id}
    assert names(admin.send("GET", f"{DEEP}/schemas")) == ["sales"]
    assert names(admin.send("GET", f"{DEEP}/schemas?parentSchema=sales")) == ["sales:emea"]
    assert [entry.event for entry in AuditEntry.objects.filter(event="schema.created")] == ["schema.created"] * 3
    assert Intent.objects.get().state == Intent.State.COMMITTED
    assert not Reservation.objects.exists()


def test_in_a_flat_system_only_the_target_is_made(actor: Actor, admin: Caller, flat_world: World) -> None:
    assert admin.send("POST", f"{FLAT}/schemas", {"name": "Sales:EMEA"})["schema"]["name"] == "sales:emea"
    assert flat_world.schemas() == {"sales_x001f_emea"}
    assert flat_world.calls("create_schema") == 1
    assert names(admin.send("GET", f"{FLAT}/schemas")) == ["sales"]
    assert names(admin.send("GET", f"{FLAT}/schemas?parentSchema=SALES")) == ["sales:emea"]
    assert admin.send("GET", f"{FLAT}/schemas/sales")["schema"]["properties"] == {}
    again = admin.send("POST", f"{FLAT}/schemas", {"name": "sales:emea"})
    assert again.error == (409, 1004, "SchemaAlreadyExistsException")


def test_what_others_made_is_found_and_belongs_to_the_catalogs_owner(
    actor: Actor, admin: Caller, mia: Caller, world: World
) -> None:
    world.put_schema("hr", team="people")
    world.put_schema("hr", "pay")
    assert admin.send("GET", f"{DEEP}/schemas/hr:pay")["schema"]["name"] == "hr:pay"
    assert names(admin.send("GET", f"{DEEP}/schemas")) == ["hr"]
    assert admin.send("GET", f"{DEEP}/schemas/hr")["schema"]["properties"] == {"team": "people"}
    assert {row.owner_user_id for row in Schema.objects.all()} == {actor.id}
    assert AuditEntry.objects.filter(event="schema.found_outside").count() == 2
    asked = world.calls("load_schema")
    assert mia.send("GET", f"{DEEP}/schemas/other").error[:2] == (404, 1003)
    assert world.calls("load_schema") == asked, "asked for somebody who may not see it"


def test_a_schema_dropped_outside_is_gone_here(actor: Actor, admin: Caller, world: World) -> None:
    world.put_schema("hr")
    assert admin.send("GET", f"{DEEP}/schemas/hr")["schema"]
    world.drop("hr")
    assert admin.send("GET", f"{DEEP}/schemas/hr").error[:2] == (404, 1003)
    assert not Securable.objects.filter(name="hr").exists()


def test_alter_and_drop(actor: Actor, admin: Caller, world: World) -> None:
    admin.send("POST", f"{DEEP}/schemas", {"name": "sales", "properties": {"a": "1", "b": "2"}})
    updates = [
        {"@type": "setProperty", "property": "a", "value": "3"},
        {"@type": "removeProperty", "property": "b"},
    ]
    altered = admin.send("PUT", f"{DEEP}/schemas/sales", {"updates": updates})
    assert altered["schema"]["properties"] == {"a": "3"}
    assert altered["schema"]["audit"]["lastModifier"] == "admin"
    admin.send("POST", f"{DEEP}/schemas", {"name": "sales:emea"})
    assert admin.send("DELETE", f"{DEEP}/schemas/sales").error[:2] == (409, 1005)
    assert admin.send("DELETE", f"{DEEP}/schemas/sales:emea")["dropped"] is True
    assert admin.send("DELETE", f"{DEEP}/schemas/sales")["dropped"] is True
    assert admin.send("DELETE", f"{DEEP}/schemas/sales")["dropped"] is False
    assert world.schemas() == set()
    assert not Schema.objects.exists()


@pytest.mark.store
def test_a_place_dropped_outside_still_leads_to_what_is_below(
    actor: Actor, admin: Caller, mia: Caller, flat_world: World
) -> None:
    admin.send("POST", f"{FLAT}/schemas", {"name": "sales"})
    admin.send("POST", f"{FLAT}/schemas", {"name": "sales:emea"})
    flat_world.put_table("sales", "orders")
    assert admin.get(f"{FLAT}/schemas/sales/tables/orders").status == 200
    give("mia", Kind.CATALOG, "flat", "use_catalog")
    give("mia", Kind.SCHEMA, "flat.sales:emea", "use_schema")
    flat_world.drop("sales", "orders")
    flat_world.drop("sales")
    assert admin.get(f"{FLAT}/schemas/sales").error[0] == 404
    assert admin.get(f"{FLAT}/schemas/sales")["schema"]["properties"] == {}, "by now a step to others"
    assert mia.get(f"{FLAT}/schemas/sales:emea").status == 200
    assert not Securable.objects.filter(name="orders").exists()
    assert {stone.full_name for stone in Tombstone.objects.all()} == {"flat.sales.orders"}


def test_a_namesake_made_outside_takes_the_place(actor: Actor, admin: Caller, world: World) -> None:
    world.put_schema("hr")
    before = admin.get(f"{DEEP}/schemas/hr") and Securable.objects.get(name="hr").pk
    world.drop("hr")
    world.put_schema("hr", team="people")
    assert names(admin.get(f"{DEEP}/schemas")) == ["hr"]
    assert Securable.objects.get(name="hr").pk != before
    assert admin.get(f"{DEEP}/schemas/hr")["schema"]["properties"] == {"team": "people"}


# Dropping what is empty there


def with_tables(admin: Caller, world: World, count: int) -> None:
    """Schema `flights` with so many tables that are known here for long."""
    admin.post(f"{DEEP}/schemas", {"name": "flights"})
    for number in range(count):
        world.put_table("flights", f"day{number:02}")
    assert len(names(admin.get(f"{DEEP}/schemas/flights/tables"))) == count
    Securable.objects.update(create_time=timezone.now() - timedelta(hours=1))


def empty(world: World, *, but: str = "") -> None:
    with world.open() as state:
        state["tables"] = {name: table for name, table in state["tables"].items() if but and name.endswith(but)}


@pytest.mark.store
@pytest.mark.parametrize("count", [3, 40])
def test_a_schema_that_is_empty_there_is_dropped(actor: Actor, admin: Caller, world: World, count: int) -> None:
    with_tables(admin, world, count)
    empty(world)
    asked = world.calls("list_tables"), world.calls("load_table")
    assert admin.delete(f"{DEEP}/schemas/flights")["dropped"] is True
    assert (world.calls("list_tables"), world.calls("load_table")) == (asked[0] + 1, asked[1] + min(count, 10))
    assert world.schemas() == set()
    assert not Securable.objects.filter(name__startswith="day").exists()


def test_one_that_holds_something_there_is_not(actor: Actor, admin: Caller, world: World) -> None:
    with_tables(admin, world, 40)
    empty(world, but="day07")
    refused = admin.delete(f"{DEEP}/schemas/flights")
    assert refused.error == (409, 1005, "NonEmptySchemaException")
    assert world.schemas() == {"flights"}
    assert names(admin.get(f"{DEEP}/schemas/flights/tables")) == ["day07"]


def test_the_catalog_s_owner_hears_what_the_settings_hide(
    actor: Actor, admin: Caller, mia: Caller, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemoryTables, "hides_some", True)
    monkeypatch.setattr(MemoryTables, "shows", lambda self, table: table.name == "day")
    give("mia", Kind.METALAKE, "demo", "use_catalog", "use_schema", "create_schema")
    mia.post(f"{DEEP}/schemas", {"name": "flights"})
    for name in ("planes", "gates", "weather", "staff"):
        world.put_table("flights", name)
    hers, his = (one.delete(f"{DEEP}/schemas/flights") for one in (mia, admin))
    assert hers.error == his.error == (409, 1005, "NonEmptySchemaException")
    assert hers.message == "Schema flights is not empty."
    said = his.message.removeprefix(f"{hers.message} It holds 4 tables that the catalog's filter (table-type-filter")
    assert said.endswith(" hides: gates, planes, staff, weather.")
    world.put_table("flights", "day")
    assert admin.delete(f"{DEEP}/schemas/flights").message == hers.message, "which a list shows"


@pytest.mark.store
def test_a_listing_that_does_not_know_yet_is_not_believed(
    actor: Actor, admin: Caller, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin.post(f"{DEEP}/schemas", {"name": "flights"})
    column = {"name": "carrier", "type": "string"}
    admin.post(f"{DEEP}/schemas/flights/tables", {"name": "delays", "columns": [column]})
    monkeypatch.setattr(MemoryTables, "list", lambda self, *args, **arguments: Page([]))
    assert admin.delete(f"{DEEP}/schemas/flights").error == (409, 1005, "NonEmptySchemaException")
    assert (world.tables(), world.calls("drop_schema")) == ({"flights.delays"}, 0)
    assert Securable.objects.filter(name="delays").exists()


def test_what_cannot_be_asked_stays(actor: Actor, admin: Caller, world: World) -> None:
    with_tables(admin, world, 12)
    empty(world)
    world.fail("list_tables", "denied")
    with pytest.raises(ProviderUnavailable):
        schemas.drop_schema(actor, Address(metalake="demo", catalog="deep", schema="flights"))
    assert Securable.objects.filter(name__startswith="day").count() == 12


def test_schemas_below_that_are_gone_there_are_in_nobodys_way(actor: Actor, admin: Caller, world: World) -> None:
    admin.post(f"{DEEP}/schemas", {"name": "sales:emea"})
    admin.post(f"{DEEP}/schemas", {"name": "sales:apac"})
    world.drop("sales", "emea")
    assert admin.delete(f"{DEEP}/schemas/sales").error == (409, 1005, "NonEmptySchemaException")
    world.drop("sales", "apac")
    assert admin.delete(f"{DEEP}/schemas/sales")["dropped"] is True
    assert {stone.full_name for stone in Tombstone.objects.all()} == {"deep.sales:emea", "deep.sales:apac"}


def test_a_step_to_what_is_there_is_not_dropped(actor: Actor, admin: Caller, flat_world: World) -> None:
    admin.post(f"{FLAT}/schemas", {"name": "sales:emea:q3"})
    assert admin.delete(f"{FLAT}/schemas/sales").error == (409, 1005, "NonEmptySchemaException")
    flat_world.drop("sales_x001f_emea_x001f_q3")
    assert admin.delete(f"{FLAT}/schemas/sales:emea")["dropped"] is True
    assert admin.delete(f"{FLAT}/schemas/sales")["dropped"] is True
