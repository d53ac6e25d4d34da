"""Tables of another system in schemas of ours: the schema says where its tables lie there, whoever keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from authz.actor import Actor
from catalogs.models import Catalog, Intent, Mirror, RefreshRun
from catalogs.services import catalogs
from metalake.kinds import Kind
from metalake.models import Securable
from outside import refresh
from providers import registry
from providers.base import Offer, Storage
from tests.catalogs.callers import Caller
from tests.demo import give
from tests.iceberg_rest.world import Caller as IcebergCaller
from tests.providers.half import HalfMemoryProvider
from tests.providers.viewing import MemoryViews
from tests.providers.world import World

pytestmark = [pytest.mark.store, pytest.mark.django_db(transaction=True)]

CATALOG = "metalakes/demo/catalogs/half"
SCHEMAS = f"{CATALOG}/schemas"
FLIGHTS = f"{SCHEMAS}/flights/tables"
COLUMNS = [{"name": "carrier", "type": "string"}, {"name": "delay", "type": "integer"}]


@pytest.fixture
def half(actor: Actor, admin: Caller, world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A catalog whose tables are in the world and whose schemas are ours, with one schema."""
    monkeypatch.setitem(registry.PROVIDERS, "half", "tests.providers.half:HalfMemoryProvider")
    catalogs.create_catalog(actor, "demo", "half", "relational", "half", None, {"world": str(world.path)})
    admin.send("POST", SCHEMAS, {"name": "flights", "properties": {"team": "ops"}})
    return world


def names(answer: Any) -> list[str]:
    return [one["name"] for one in answer["identifiers"]]


def test_a_schema_is_ours_and_its_system_is_not_asked_for_it(half: World, admin: Caller) -> None:
    assert half.schemas() == set() and not Mirror.objects.exists() and not Intent.objects.exists()
    assert admin.get(f"{SCHEMAS}/flights")["schema"]["properties"] == {"team": "ops"}
    assert names(admin.get(SCHEMAS)) == ["flights"]
    assert sum(half.calls(f"{verb}_schema") for verb in ("load", "create")) == half.calls("list_schemas") == 0


def test_its_tables_are_made_altered_moved_and_dropped_there(half: World, admin: Caller) -> None:
    admin.send("POST", SCHEMAS, {"name": "flights:late"})
    made = admin.send("POST", FLIGHTS, {"name": "delays", "columns": COLUMNS, "properties": {"a": "1"}})["table"]
    assert made["properties"] == {"a": "1"} and half.tables() == {"flights.delays"}
    update = {"@type": "setProperty", "property": "b", "value": "2"}
    assert admin.send("PUT", f"{FLIGHTS}/delays", {"updates": [update]})["table"]["properties"] == {"a": "1", "b": "2"}
    rename = {"@type": "rename", "newName": "all", "newSchemaName": "flights:late"}
    assert admin.send("PUT", f"{FLIGHTS}/delays", {"updates": [rename]})["table"]["name"] == "all"
    assert half.tables() == {"flights.late.all"}
    moved = f"{SCHEMAS}/flights%3Alate/tables"
    assert names(admin.get(FLIGHTS)) == [] and names(admin.get(moved)) == ["all"]
    assert admin.delete(f"{moved}/all")["dropped"] is True
    assert half.tables() == set() and not Mirror.objects.exists()
    assert set(Intent.objects.values_list("state", flat=True)) == {Intent.State.COMMITTED}


def test_what_others_made_there_is_found_and_may_be_granted(half: World, admin: Caller, mia: Caller) -> None:
    half.put_table("flights", "weather")
    assert names(admin.get(FLIGHTS)) == ["weather"]
    half.put_table("flights", "airlines")
    assert admin.get(f"{FLIGHTS}/airlines")["table"]["name"] == "airlines", "not listed yet"
    assert mia.get(f"{FLIGHTS}/airlines").status == 404
    give("mia", Kind.METALAKE, "demo", "use_catalog", "use_schema")
    give("mia", Kind.TABLE, "half.flights.airlines", "select_table")
    assert names(mia.get(FLIGHTS)) == ["airlines"]
    half.drop("flights", "airlines")
    assert mia.get(f"{FLIGHTS}/airlines").status == 404
    assert not Securable.objects.filter(name="airlines").exists()


def test_a_refresh_walks_the_tables_of_our_schemas_alone(half: World, admin: Caller) -> None:
    admin.send("POST", SCHEMAS, {"name": "sales"})
    for schema in ("flights", "sales", "nobody's"):
        for number in range(4):
            half.put_table(schema, f"t{number}")
    begun = refresh.begin(Catalog.objects.get(name="half").pk, here=True)
    ended = refresh.carry_on(begun.pk)
    assert ended is not None and ended.state == RefreshRun.State.DONE, ended and ended.error
    assert (ended.seen, ended.created, ended.dropped) == (8, 8, 0)
    assert set(Securable.objects.filter(kind=Kind.SCHEMA, name__in=["flights", "sales"])), "ours stay as they are"


def test_a_schema_with_tables_there_is_not_dropped(half: World, admin: Caller) -> None:
    half.put_table("flights", "weather")
    refused = admin.delete(f"{SCHEMAS}/flights")
    assert refused.status == 409 and "not empty" in refused.message, "though it had no row here"
    half.drop("flights", "weather")
    assert admin.delete(f"{SCHEMAS}/flights").status == 409, "what was seen a moment ago is asked for by its own name"
    assert admin.get(f"{FLIGHTS}/weather").status == 404
    assert admin.delete(f"{SCHEMAS}/flights")["dropped"] is True


def test_a_lost_answer_is_read_back_there(half: World, admin: Caller) -> None:
    half.fail("create_table", "lost")
    admin.send("POST", FLIGHTS, {"name": "delays", "columns": COLUMNS})
    assert half.tables() == {"flights.delays"} and names(admin.get(FLIGHTS)) == ["delays"]


def test_the_iceberg_wire_shows_the_schema(half: World) -> None:
    shown = IcebergCaller("admin", catalog="half").get("namespaces/flights").json
    assert shown == {"namespace": ["flights"], "properties": {"team": "ops"}}


class HalfWithViews(HalfMemoryProvider):
    """Tables and views there, schemas here."""

    @classmethod
    def offers(cls, properties: Mapping[str, str]) -> Mapping[Kind, Offer]:
        return {**super().offers(properties), Kind.VIEW: Offer(storage=Storage.EXTERNAL, remote=MemoryViews)}


def test_a_schema_is_dropped_after_one_look_at_what_lies_in_it(
    actor: Actor, admin: Caller, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry.PROVIDERS, "half", f"{__name__}:{HalfWithViews.__name__}")
    catalogs.create_catalog(actor, "demo", "half", "relational", "half", None, {"world": str(world.path)})
    admin.send("POST", SCHEMAS, {"name": "flights"})
    world.put_schema("flights")
    world.put_view("flights", "late")
    refused = admin.delete(f"{SCHEMAS}/flights")
    assert refused.status == 409 and world.calls("list_tables") == 1
    assert admin.delete(f"{FLIGHTS.removesuffix('tables')}views/late")["dropped"] is True
    assert admin.delete(f"{SCHEMAS}/flights")["dropped"] is True and world.calls("list_tables") == 2
