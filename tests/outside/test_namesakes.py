"""What is dropped outside and made again by others there: no write that was meant for the old one reaches it."""

from __future__ import annotations

import pytest

from authz.actor import Actor
from catalogs.models import Tombstone
from catalogs.services import catalogs
from metalake.kinds import Kind
from metalake.models import Securable
from tests.catalogs.callers import Caller, update
from tests.demo import give
from tests.providers.world import World

pytestmark = pytest.mark.django_db(transaction=True)

DEEP = "metalakes/demo/catalogs/deep"
FLIGHTS = f"{DEEP}/schemas/flights"
DELAYS = f"{FLIGHTS}/tables/delays"
CREW = f"{DEEP}/schemas/crew"
COLUMNS = [{"name": "carrier", "type": "string"}]


@pytest.fixture
def mias(actor: Actor, admin: Caller, mia: Caller) -> None:
    """In schema `flights` the table `delays` is Mia's own, and so is schema `crew`."""
    give("mia", Kind.METALAKE, "demo", "use_catalog", "use_schema", "create_schema", "create_table")
    assert admin.post(f"{DEEP}/schemas", {"name": "flights"}).status == 200
    assert mia.post(f"{DEEP}/schemas", {"name": "crew"}).status == 200
    assert mia.post(f"{FLIGHTS}/tables", {"name": "delays", "columns": COLUMNS}).status == 200


def replace_table(world: World) -> None:
    world.drop("flights", "delays")
    world.put_table("flights", "delays", owner_team="finance")


def replace_schema(world: World) -> None:
    world.drop("crew")
    world.put_schema("crew", team="finance")


def test_a_namesake_of_a_table_is_not_dropped(mias: None, admin: Caller, mia: Caller, world: World) -> None:
    give("mia", Kind.TABLE, "deep.flights.delays", "select_table")
    before = Securable.objects.get(name="delays").pk
    replace_table(world)
    assert mia.delete(DELAYS)["dropped"] is False
    assert (world.tables(), world.calls("drop_table")) == ({"flights.delays"}, 0)
    assert mia.get(DELAYS).error[0] == 404, "the old owner and the old grants are gone"
    assert mia.delete(DELAYS)["dropped"] is False
    assert Tombstone.objects.get(securable_id=before).grants
    assert admin.get(DELAYS)["table"]["properties"] == {"owner_team": "finance"}
    assert world.tables() == {"flights.delays"}


def test_who_may_drop_the_namesake_too_does_so_by_asking_again(mias: None, admin: Caller, world: World) -> None:
    replace_table(world)
    assert admin.delete(DELAYS)["dropped"] is False
    assert world.tables() == {"flights.delays"}
    assert admin.delete(DELAYS)["dropped"] is True
    assert world.tables() == set()


def test_a_table_that_only_changed_outside_is_still_dropped(mias: None, mia: Caller, world: World) -> None:
    with world.open() as state:
        state["tables"]["flights\x1fdelays"]["definition"]["properties"]["team"] = "finance"
    assert mia.delete(DELAYS)["dropped"] is True
    assert world.tables() == set()


def test_a_namesake_that_a_write_of_ours_keeps_from_being_met_is_not_dropped(
    mias: None, mia: Caller, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_table(world)
    monkeypatch.setattr("outside.mirror.moving_leaves", lambda slot, schema, names, asked_at: set(names))
    assert mia.delete(DELAYS)["dropped"] is False
    assert (world.tables(), world.calls("drop_table")) == ({"flights.delays"}, 0)
    assert Securable.objects.filter(name="delays").exists()


def test_a_namesake_of_a_schema_is_not_dropped(mias: None, admin: Caller, mia: Caller, world: World) -> None:
    replace_schema(world)
    assert mia.delete(CREW)["dropped"] is False
    assert (world.schemas(), world.calls("drop_schema")) == ({"crew", "flights"}, 0)
    assert mia.delete(CREW).error[0] == 403, "it is the catalog owner's"
    assert {stone.full_name for stone in Tombstone.objects.all()} == {"deep.crew"}
    assert admin.delete(CREW)["dropped"] is True


def test_nor_is_it_with_all_that_it_holds(actor: Actor, mia: Caller, tmp_path_factory: pytest.TempPathFactory) -> None:
    plain = World(tmp_path_factory.mktemp("plain") / "world.json")
    catalogs.create_catalog(actor, "demo", "plain", "relational", "memory-flat", None, {"world": str(plain.path)})
    give("mia", Kind.CATALOG, "plain", "use_catalog", "use_schema", "create_schema")
    schemas = "metalakes/demo/catalogs/plain/schemas"
    assert mia.post(schemas, {"name": "flights"}).status == 200
    plain.drop("flights")
    plain.put_schema("flights")
    plain.put_table("flights", "ledger")
    assert mia.delete(f"{schemas}/flights?cascade=true")["dropped"] is False
    assert (plain.schemas(), plain.tables()) == ({"flights"}, {"flights.ledger"})
    assert mia.delete(f"{schemas}/flights?cascade=true").error[0] == 403
    assert plain.tables() == {"flights.ledger"}


def test_no_table_is_made_in_a_namesake_of_its_schema(actor: Actor, mia: Caller, world: World) -> None:
    give("mia", Kind.CATALOG, "deep", "use_catalog", "create_schema")
    assert mia.post(f"{DEEP}/schemas", {"name": "crew"}).status == 200
    replace_schema(world)
    made = mia.post(f"{CREW}/tables", {"name": "pilots", "columns": COLUMNS})
    assert made.error == (404, 1003, "NoSuchSchemaException")
    made = mia.post(f"{CREW}/tables", {"name": "pilots", "columns": COLUMNS})
    assert made.error == (404, 1003, "NoSuchSchemaException"), "by now it is the catalog owner's, and hidden"
    assert (world.tables(), world.calls("create_table")) == (set(), 0)


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_no_partition_of_a_namesake_is_written(
    mias: None, admin: Caller, mia: Caller, world: World, method: str
) -> None:
    admin.put(DEEP, update("setProperty", property="cache-ttl", value="600"))
    assert mia.get(DELAYS).status == 200
    replace_table(world)
    assert mia.get(DELAYS).status == 200, "as it was a moment ago"
    value = {"type": "literal", "dataType": "string", "value": "UA"}
    partition = {"type": "identity", "name": "carrier=UA", "fieldNames": [["carrier"]], "values": [value]}
    path, body = (
        (f"{DELAYS}/partitions", {"partitions": [partition]})
        if method == "POST"
        else (f"{DELAYS}/partitions/carrier=UA", None)
    )
    assert mia.send(method, path, body).error == (404, 1003, "NoSuchTableException")
    assert (world.calls("add_partition"), world.calls("drop_partition")) == (0, 0)
