"""Tables of an outside system, through the native wire."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from authz.actor import Actor
from authz.models import AuditEntry, Grant, User
from catalogs import lookup
from catalogs.models import Mirror, Tombstone
from catalogs.services import catalogs
from catalogs.services.provider_of import provider_at
from formats.hive.tables import HiveTable
from metalake.kinds import Kind
from metalake.lineage import Address
from metalake.models import Securable
from outside import mirror
from outside import tables as external
from outside.listing import describe
from outside.mirror_schemas import import_schemas
from outside.reads import LOOKS
from providers.hive_like.parameters import formats_in
from providers.remote_objects import Remote
from tests.catalogs.callers import Caller
from tests.demo import give
from tests.providers.world import World

pytestmark = pytest.mark.django_db(transaction=True)

CATALOG = "metalakes/demo/catalogs/deep"
FLIGHTS = f"{CATALOG}/schemas/flights/tables"
COLUMNS = [{"name": "carrier", "type": "string"}, {"name": "delay", "type": "integer"}]


@pytest.fixture
def flights(actor: Actor, admin: Caller, world: World) -> None:
    admin.send("POST", f"{CATALOG}/schemas", {"name": "flights"})
    world.put_table("flights", "airlines", owner_team="ops")


def names(answer: Any) -> list[str]:
    return [one["name"] for one in answer["identifiers"]]


def test_a_table_is_made_altered_renamed_and_dropped(flights: None, admin: Caller, world: World) -> None:
    made = admin.send("POST", FLIGHTS, {"name": "delays", "columns": COLUMNS, "properties": {"a": "1"}})["table"]
    assert [column["name"] for column in made["columns"]] == ["carrier", "delay"]
    assert made["properties"] == {"a": "1"}
    assert world.tables() == {"flights.airlines", "flights.delays"}
    update = {"@type": "setProperty", "property": "b", "value": "2"}
    assert admin.send("PUT", f"{FLIGHTS}/delays", {"updates": [update]})["table"]["properties"] == {"a": "1", "b": "2"}
    rename = {"@type": "rename", "newName": "late"}
    assert admin.send("PUT", f"{FLIGHTS}/delays", {"updates": [rename]})["table"]["name"] == "late"
    assert names(admin.get(FLIGHTS)) == ["airlines", "late"]
    assert admin.delete(f"{FLIGHTS}/late")["dropped"] is True
    assert admin.delete(f"{FLIGHTS}/late")["dropped"] is False
    assert world.tables() == {"flights.airlines"}
    done = [entry.event for entry in AuditEntry.objects.filter(kind="table", actor="admin").order_by("id")]
    assert done == ["table.created", "table.altered", "table.renamed", "table.dropped"]


def test_who_has_no_account_owns_what_they_make(flights: None, world: World, settings: Any) -> None:
    settings.METALAKE_AUTHENTICATORS, settings.METALAKE_AUTHORIZATION = ("simple",), "off"
    ada = Caller("ada")
    assert names(ada.get(FLIGHTS)) == ["airlines"]
    assert not User.objects.filter(username="ada").exists(), "who reads needs no account"
    assert ada.post(f"{CATALOG}/schemas", {"name": "cargo"}).status == 200
    assert ada.post(FLIGHTS, {"name": "delays", "columns": COLUMNS}).status == 200
    made = Securable.objects.filter(name__in=["cargo", "delays"])
    assert set(made.values_list("owner_user__username", flat=True)) == {"ada"}
    update = {"@type": "setProperty", "property": "b", "value": "2"}
    assert Caller("bob").put(f"{FLIGHTS}/airlines", update).status == 200
    assert Caller("bob").delete(f"{FLIGHTS}/delays")["dropped"] is True


def test_lists_show_what_others_made_to_those_who_may_see_it(
    flights: None, admin: Caller, mia: Caller, world: World
) -> None:
    world.put_table("flights", "weather")
    assert names(admin.get(FLIGHTS)) == ["airlines", "weather"]
    give("mia", Kind.CATALOG, "deep", "use_catalog", "use_schema")
    give("mia", Kind.TABLE, "deep.flights.weather", "select_table")
    assert names(mia.get(FLIGHTS)) == ["weather"]
    assert mia.get(f"{FLIGHTS}/airlines").error[0] == 404
    assert mia.get(f"{FLIGHTS}/weather")["table"]["name"] == "weather"


def test_what_is_dropped_and_made_again_outside_is_another_table(
    flights: None, admin: Caller, mia: Caller, world: World
) -> None:
    admin.get(FLIGHTS)
    give("mia", Kind.CATALOG, "deep", "use_catalog", "use_schema")
    give("mia", Kind.TABLE, "deep.flights.airlines", "select_table", role="readers")
    before = Securable.objects.get(name="airlines").pk
    assert mia.get(f"{FLIGHTS}/airlines").status == 200
    world.drop("flights", "airlines")
    world.put_table("flights", "airlines")
    assert mia.get(f"{FLIGHTS}/airlines").error[0] == 404, "a namesake has no old grants"
    assert admin.get(f"{FLIGHTS}/airlines").status == 200
    assert Securable.objects.get(name="airlines").pk != before
    assert not Grant.objects.filter(content_object_id=before).exists()
    stone = Tombstone.objects.get(securable_id=before)
    assert stone.grants == [{"role": "readers", "privilege": "select_table", "effect": "allow"}]


def test_a_table_that_was_only_listed_has_not_changed_when_it_is_loaded(flights: None, admin: Caller) -> None:
    assert names(admin.get(FLIGHTS)) == ["airlines"]
    assert admin.get(f"{FLIGHTS}/airlines").status == 200
    assert Mirror.objects.get(wire_name="airlines").version
    assert not AuditEntry.objects.filter(event="table.changed_outside").exists()


def test_a_change_outside_is_seen_at_once(flights: None, admin: Caller, world: World) -> None:
    admin.get(f"{FLIGHTS}/airlines")
    with world.open() as state:
        state["tables"]["flights\x1fairlines"]["definition"]["properties"]["owner_team"] = "sales"
    assert admin.get(f"{FLIGHTS}/airlines")["table"]["properties"] == {"owner_team": "sales"}
    assert AuditEntry.objects.filter(event="table.changed_outside").count() == 1
    assert Mirror.objects.get(wire_name="airlines").definition["properties"] == {"owner_team": "sales"}


def test_answers_are_kept_for_as_long_as_the_catalog_says(flights: None, admin: Caller, world: World) -> None:
    admin.put(CATALOG, {"@type": "setProperty", "property": "cache-ttl", "value": "600"})
    assert names(admin.get(FLIGHTS)) == ["airlines"]
    assert admin.get(f"{FLIGHTS}/airlines").status == 200
    asked = world.calls("list_tables"), world.calls("load_table")
    world.put_table("flights", "weather")
    world.fail("list_tables", *["down"] * 9)
    assert names(admin.get(FLIGHTS)) == ["airlines"]
    assert admin.get(f"{FLIGHTS}/airlines").status == 200
    assert (world.calls("list_tables"), world.calls("load_table")) == asked
    world.heal()
    assert names(admin.get(f"{FLIGHTS}?refresh=true")) == ["airlines", "weather"]


def test_bad_input_makes_nothing(flights: None, admin: Caller, world: World) -> None:
    taken = admin.send("POST", FLIGHTS, {"name": "airlines", "columns": COLUMNS})
    assert taken.error == (409, 1004, "TableAlreadyExistsException")
    nowhere = admin.send("POST", f"{CATALOG}/schemas/none/tables", {"name": "t", "columns": COLUMNS})
    assert nowhere.error == (404, 1003, "NoSuchSchemaException")
    part = {"strategy": "identity", "fieldName": ["carrier"]}
    refused = admin.send("POST", FLIGHTS, {"name": "t", "columns": COLUMNS, "partitioning": [part]})
    assert refused.error[:2] == (405, 1006)
    assert world.tables() == {"flights.airlines"}


@pytest.mark.store
def test_a_nul_character_outside_breaks_nothing_here(flights: None, admin: Caller, world: World) -> None:
    world.put_table("flights", "odd", note="a\0b", written="\\u0000")
    assert "odd" in names(admin.get(FLIGHTS))
    assert admin.get(f"{FLIGHTS}/odd").status == 200
    assert Mirror.objects.get(wire_name="odd").definition["properties"] == {"note": "a\ufdd0b", "written": "\\u0000"}


# Lists that leave some out


def table(name: str, **parameters: str) -> Remote:
    """Of Glue, as a walk meets it."""
    described = HiveTable(
        name=name, parameters=parameters, input_format="org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"
    )
    return Remote(name, described.as_json(), name, name, formats=formats_in(described))


POINTED = {"table_type": "ICEBERG", "metadata_location": "s3://lake/flights/delays/metadata/1.json"}


@pytest.mark.store
@pytest.mark.parametrize(
    ("filter", "iceberg", "expected"),
    [
        ("all", True, {"delays"}),
        ("hive", False, {"airports", "listed"}),
        ("iceberg", False, {"delays", "half", "listed"}),
        ("parquet,delta", False, {"airports", "listed"}),
        ("hive", True, set()),
    ],
)
def test_what_is_shown_is_told_without_definitions(
    actor: Actor, filter: str, iceberg: bool, expected: set[str]
) -> None:
    properties = {"aws-region": "eu-central-1", "table-type-filter": filter}
    properties |= {"aws-access-key-id": "AKIAIOSFODNN7EXAMPLE", "aws-secret-access-key": "sesame"}
    catalogs.create_catalog(actor, "demo", "lake-of-glue", "relational", "glue", None, properties)
    catalog = lookup.find(actor.refreshed(), Address(metalake="demo", catalog="lake-of-glue"))
    provider, now = provider_at(catalog), timezone.now()
    import_schemas(catalog, provider, [Remote("flights", {}, version="1", kind=Kind.SCHEMA)], now)
    flights = lookup.find(actor.refreshed(), Address(metalake="demo", catalog="lake-of-glue", schema="flights"))
    met = [table("delays", **POINTED), table("airports"), table("half", table_type="ICEBERG")]
    mirror.import_leaves(Kind.TABLE, flights, [*met, Remote("listed", {})], now)
    assert external._shown(flights, provider, iceberg) == expected
    Mirror.objects.filter(securable__parent_id=flights.id).exclude(wire_name="listed").update(definition={"broken": 1})
    assert external._shown(flights, provider, iceberg) == expected
    kept = {one.name: one.definition for one in met}
    for row in Mirror.objects.filter(wire_name__in=kept):
        Mirror.objects.filter(pk=row.pk).update(formats="", definition=kept[row.wire_name])
    assert external._shown(flights, provider, iceberg) == expected, "nor is it another where only they tell"


@pytest.mark.parametrize("others", [3, 2 * LOOKS])
def test_a_name_without_a_definition_is_asked_for_alone(flights: None, actor: Actor, world: World, others: int) -> None:
    """A listing may name what no other call tells of."""
    schema = lookup.find(actor.refreshed(), Address(metalake="demo", catalog="deep", schema="flights"))
    for number in range(others):
        world.put_table("flights", f"t{number:02}")
    known = [Remote(f"t{number:02}", {}) for number in range(others)]
    mirror.import_leaves(Kind.TABLE, schema, [*known, Remote("ghost", {})], timezone.now())
    describe(actor, schema, Kind.TABLE)
    listings, loads = world.calls("list_tables"), world.calls("load_table")
    describe(actor, schema, Kind.TABLE)
    assert (world.calls("list_tables"), world.calls("load_table")) == (listings, loads + 1)
    rows = mirror.of_leaves(schema.id, Kind.TABLE)
    assert set(rows.filter(definition={}).values_list("wire_name", flat=True)) == {"ghost"}
    assert "ghost" not in external._shown(schema, provider_at(schema), iceberg=True)
