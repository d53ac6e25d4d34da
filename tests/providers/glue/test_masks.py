"""Secrets that others keep in Glue: no surface shows them, and a mask that is sent back does not overwrite them."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from django.test import Client

from catalogs.secrets import MASK
from metalake.models import Securable
from providers import circuit_breaker
from tests.catalogs.callers import Answer, Caller
from tests.catalogs.canaries import Canary, leaks
from tests.catalogs.conftest import admin  # noqa: F401 (fixture)
from tests.demo import PASSWORD
from tests.glue import Glue
from tests.providers.glue_catalogs import settings, storage

pytestmark = pytest.mark.django_db(transaction=True)

CATALOG = "metalakes/demo/catalogs/aws"
SCHEMAS = f"{CATALOG}/schemas"
TABLES = f"{SCHEMAS}/flights/tables"
PARTITIONS = f"{TABLES}/delays/partitions"
ICEBERG = "/iceberg/demo/v1/aws/namespaces"
COLUMNS = [{"name": "carrier", "type": "string"}, {"name": "delay", "type": "integer"}]
DAY = "day=2026-11-21"
NOTHING_TO_KEEP = "stands for a secret that is already stored, but none is; send its value."
ASTERISKS = {"a": "*****", "b": "*******", "c": "x******", "some-token": f"{MASK} "}


def location(of: str) -> Canary:
    key = f"AKIA{of.upper():Q<16}"
    return Canary(f"location of the {of}", f"s3n://{key}:sekret{of}sekret@lake/{of}", f"sekret{of}sekret")


def token(of: str) -> Canary:
    return Canary(f"api-token of the {of}", f"{of}Token7hunter{of}", f"{of}Token7hunter{of}")


PLANTED = {of: (location(of), token(of)) for of in ("database", "table", "partition")}
SERDE, ENTRY, FILE = token("serde"), token("entry"), token("file")
ADDED, MADE, SET = token("added"), token("made"), token("set")


def parameters(of: str) -> dict[str, str]:
    return {"api-token": PLANTED[of][1].value, "jdbc-url": PLANTED[of][0].value, "team": "crew"}


@pytest.fixture
def caller(admin: Caller, glue: Glue) -> Caller:  # noqa: F811
    """The owner of the catalog `aws`; others have put secrets wherever Glue takes some."""
    circuit_breaker.forget_all()
    glue.create_bucket("lake")
    client = glue.client()
    database = {"Name": "flights", "LocationUri": PLANTED["database"][0].value, "Parameters": parameters("database")}
    client.create_database(DatabaseInput=database)
    place = storage(PLANTED["table"][0].value, ("carrier", "string"), serde="x.Serde")
    place["SerdeInfo"]["Parameters"] = {"secret.key": SERDE.value}
    delays = {"Name": "delays", "TableType": "EXTERNAL_TABLE", "Parameters": parameters("table")}
    days = [{"Name": "day", "Type": "date"}]
    client.create_table(DatabaseName="flights", TableInput=delays | {"PartitionKeys": days, "StorageDescriptor": place})
    part = {"Values": ["2026-11-21"], "Parameters": parameters("partition")}
    part["StorageDescriptor"] = storage(PLANTED["partition"][0].value, ("carrier", "string"))
    client.create_partition(DatabaseName="flights", TableName="delays", PartitionInput=part)
    body = {"name": "aws", "type": "relational", "provider": "glue", "properties": settings(glue)}
    admin.post("metalakes/demo/catalogs", body)["catalog"]
    return admin


@pytest.fixture
def stops(caller: Caller, glue: Glue) -> str:
    """An Iceberg table with a secret in its metadata, and one of Glue's own in its entry."""
    properties = {"table_type": "iceberg", "location": "s3://lake/warehouse/stops", "api-token": FILE.value}
    caller.post(TABLES, {"name": "stops", "columns": COLUMNS, "properties": properties})["table"]
    entry = held(glue, "stops")
    kept = {key: entry[key] for key in ("Name", "TableType", "StorageDescriptor")}
    changed = kept | {"Parameters": entry["Parameters"] | {"entry-token": ENTRY.value}}
    glue.client().update_table(DatabaseName="flights", TableInput=changed)
    return f"{TABLES}/stops"


def held(glue: Glue, table: str) -> dict[str, Any]:
    found: dict[str, Any] = glue.client().get_table(DatabaseName="flights", Name=table)["Table"]
    return found


def database(glue: Glue) -> dict[str, Any]:
    found: dict[str, Any] = glue.client().get_database(Name="flights")["Database"]
    return found


def text(answer: Answer) -> str:
    assert answer.status == 200, answer.body
    return orjson.dumps(answer.body).decode()


def iceberg(method: str, path: str, body: Any = None, *, status: int = 200) -> dict[str, Any]:
    credential = base64.b64encode(f"admin:{PASSWORD}".encode()).decode()
    answer = Client().generic(
        method,
        f"{ICEBERG}{path}",
        b"" if body is None else orjson.dumps(body),
        content_type="application/json",
        headers={"Authorization": f"Basic {credential}"},
    )
    assert answer.status_code == status, answer.content
    told: dict[str, Any] = orjson.loads(answer.content)
    return told


def partition(day: str, **properties: str) -> dict[str, Any]:
    value = {"type": "literal", "dataType": "date", "value": day}
    return {"partitions": [{"type": "identity", "fieldNames": [["day"]], "values": [value], "properties": properties}]}


def change(key: str, value: str) -> dict[str, str]:
    return {"@type": "setProperty", "property": key, "value": value}


# Showing


def shown(caller: Caller, stops: str) -> Iterator[tuple[str, str]]:
    """Everything that a reader is told of the schema, its tables and their partitions."""
    for path in (CATALOG, SCHEMAS, f"{SCHEMAS}/flights", TABLES, f"{TABLES}/delays", stops):
        yield f"native {path}", text(caller.get(path))
    for path in (PARTITIONS, f"{PARTITIONS}?details=true", f"{PARTITIONS}/{quote(DAY)}"):
        yield f"native {path}", text(caller.get(path))
    yield "partition added", text(caller.post(PARTITIONS, partition("2026-11-22", password=ADDED.value)))
    yield "schema altered", text(caller.put(f"{SCHEMAS}/flights", change("team", "ops")))
    yield "table altered", text(caller.put(f"{TABLES}/delays", change("team", "ops")))
    yield "Iceberg table altered", text(caller.put(stops, change("team", "ops")))
    for path in ("", "/flights", "/flights/tables"):
        yield f"Iceberg {path}", orjson.dumps(iceberg("GET", path)).decode()
    made = {"namespace": ["weather"], "properties": {"api-token": MADE.value}}
    yield "Iceberg namespace made", orjson.dumps(iceberg("POST", "", made)).decode()
    updates = {"updates": {"other-token": SET.value}, "removals": ["jdbc-url"]}
    yield "Iceberg namespace altered", orjson.dumps(iceberg("POST", "/flights/properties", updates)).decode()
    # The metadata is the table's own, for engines to read as it is.
    loaded = iceberg("GET", "/flights/tables/stops")
    yield "Iceberg table but its metadata", orjson.dumps({**loaded, "metadata": None}).decode()
    browser = Client()
    assert browser.login(username="admin", password=PASSWORD)
    for row in Securable.objects.all():
        for path in (f"/objects/{row.pk}", f"/objects/{row.pk}/children"):
            yield f"page {path} of {row.name}", browser.get(path).content.decode()


def test_secrets_of_outside_objects_are_shown_nowhere(caller: Caller, stops: str) -> None:
    watched = [*(canary for pair in PLANTED.values() for canary in pair), SERDE, ENTRY, FILE, ADDED, MADE, SET]
    heard = list(shown(caller, stops))
    assert not leaks(heard, watched)
    for where, what in heard:
        told = [f"{PARTITIONS}?", f"{PARTITIONS}/", "of delays", "of flights", "Iceberg /flights", "made"]
        if any(each in where for each in told) and "children" not in where and not where.endswith("/tables"):
            assert MASK in what, where
    assert sum("page" in where for where, _ in heard) > 8


def test_what_is_masked_is_kept_in_the_open_where_it_belongs(caller: Caller, glue: Glue, stops: str) -> None:
    list(shown(caller, stops))
    assert database(glue)["LocationUri"] == PLANTED["database"][0].value
    assert database(glue)["Parameters"].items() >= {"api-token": PLANTED["database"][1].value}.items()
    assert held(glue, "delays")["Parameters"].items() >= {"api-token": PLANTED["table"][1].value}.items()
    part = glue.client().get_partition(DatabaseName="flights", TableName="delays", PartitionValues=["2026-11-22"])
    assert part["Partition"]["Parameters"].items() >= {"password": ADDED.value}.items()


def test_the_metadata_is_the_tables_own_and_the_config_is_empty(caller: Caller, glue: Glue, stops: str) -> None:
    loaded = iceberg("GET", "/flights/tables/stops")
    key = loaded["metadata-location"].removeprefix("s3://lake/")
    file = glue.client("s3").get_object(Bucket="lake", Key=key)["Body"].read()
    assert loaded["metadata"] == orjson.loads(file)
    assert loaded["metadata"]["properties"]["api-token"] == FILE.value
    assert loaded["config"] == {}


# Sending a mask back


def test_a_table_that_is_copied_edited_and_written_keeps_its_secrets(caller: Caller, glue: Glue) -> None:
    before = held(glue, "delays")
    copied = caller.get(f"{TABLES}/delays")["table"]["properties"]
    masked = {key for key, value in copied.items() if value == MASK}
    assert masked == {"api-token", "jdbc-url", "location", "serde.parameter.secret.key"}
    changes = [change(key, copied[key]) for key in sorted(masked)]
    assert caller.put(f"{TABLES}/delays", *changes)["table"]["properties"] == copied
    assert held(glue, "delays") == before, "nothing was written"
    edited = caller.put(f"{TABLES}/delays", *changes, change("team", "ops"))["table"]["properties"]
    assert edited == copied | {"team": "ops"}
    after = held(glue, "delays")
    assert after["StorageDescriptor"] == before["StorageDescriptor"]
    assert {**after["Parameters"], "metalake.intent": ""} == {
        **before["Parameters"], "team": "ops", "metalake.intent": "",
    }  # fmt: skip


def test_a_schema_keeps_its_secrets_by_either_wire(caller: Caller, glue: Glue) -> None:
    before = database(glue)
    changes = [change(key, MASK) for key in ("api-token", "jdbc-url", "location")]
    caller.put(f"{SCHEMAS}/flights", *changes, change("team", "ops"))["schema"]
    copied = iceberg("GET", "/flights")["properties"]
    assert copied["api-token"] == copied["jdbc-url"] == copied["location"] == MASK
    iceberg("POST", "/flights/properties", {"updates": {**copied, "more": "1"}})
    after = database(glue)
    assert after["LocationUri"] == before["LocationUri"]
    assert after["Parameters"].items() >= (before["Parameters"] | {"team": "ops", "more": "1"}).items()


def test_an_iceberg_table_keeps_its_secrets_and_those_of_its_entry(caller: Caller, glue: Glue, stops: str) -> None:
    before = held(glue, "stops")
    assert caller.put(stops, change("api-token", MASK), change("entry-token", MASK)).status == 200
    assert held(glue, "stops") == before, "nothing was written"
    caller.put(stops, change("api-token", MASK), change("team", "ops"))["table"]
    loaded = iceberg("GET", "/flights/tables/stops")["metadata"]["properties"]
    assert loaded.items() >= {"api-token": FILE.value, "team": "ops"}.items()
    assert held(glue, "stops")["Parameters"]["entry-token"] == ENTRY.value


@pytest.mark.parametrize("key", ["team", "absent", "absent-token"])
def test_a_mask_is_refused_where_there_is_nothing_to_keep(caller: Caller, glue: Glue, stops: str, key: str) -> None:
    before = database(glue), held(glue, "delays"), held(glue, "stops")
    for path in (f"{SCHEMAS}/flights", f"{TABLES}/delays", stops):
        refused = caller.put(path, change("region", "eu"), change("api-token", MASK), change(key, MASK))
        assert refused.error[:2] == (400, 1001), path
        assert repr(key) in refused.message and NOTHING_TO_KEEP in refused.message
        gone = caller.put(path, {"@type": "removeProperty", "property": "api-token"}, change("api-token", MASK))
        assert gone.error[:2] == (400, 1001) and NOTHING_TO_KEEP in gone.message, path
    refusal = iceberg("POST", "/flights/properties", {"updates": {key: MASK, "region": "eu"}}, status=400)
    assert refusal["error"]["type"] == "BadRequestException" and NOTHING_TO_KEEP in refusal["error"]["message"]
    assert (database(glue), held(glue, "delays"), held(glue, "stops")) == before


def test_nothing_is_made_with_a_mask(caller: Caller, glue: Glue) -> None:
    given = {"api-token": MASK}
    hive, ice = (
        {"name": "late", "columns": COLUMNS, "properties": given | {"table_type": format}}
        for format in ("hive", "iceberg")
    )
    bodies: list[tuple[str, dict[str, Any]]] = [
        (SCHEMAS, {"name": "weather", "properties": given}),
        (TABLES, hive),
        (TABLES, ice),
        (PARTITIONS, partition("2026-11-23", **given)),
    ]
    for path, body in bodies:
        refused = caller.post(path, body)
        assert refused.error[:2] == (400, 1001) and NOTHING_TO_KEEP in refused.message, path
    refusal = iceberg("POST", "", {"namespace": ["weather"], "properties": given}, status=400)
    assert NOTHING_TO_KEEP in refusal["error"]["message"]
    assert [one["Name"] for one in glue.client().get_databases()["DatabaseList"]] == ["flights"]
    assert [one["Name"] for one in glue.client().get_tables(DatabaseName="flights")["TableList"]] == ["delays"]
    assert caller.get(PARTITIONS)["names"] == [DAY]


def test_other_asterisks_are_values(caller: Caller, glue: Glue, stops: str) -> None:
    changes = [change(key, value) for key, value in ASTERISKS.items()]
    for path in (f"{SCHEMAS}/flights", f"{TABLES}/delays", stops):
        assert caller.put(path, *changes).status == 200, path
    assert database(glue)["Parameters"].items() >= ASTERISKS.items()
    assert held(glue, "delays")["Parameters"].items() >= ASTERISKS.items()
    assert iceberg("GET", "/flights/tables/stops")["metadata"]["properties"].items() >= ASTERISKS.items()


def test_a_wrong_change_is_named_by_its_place_among_those_sent(caller: Caller, stops: str) -> None:
    wrong = {"@type": "deleteColumn", "fieldName": ["absent"], "ifExists": False}
    for path in (f"{TABLES}/delays", stops):
        refused = caller.put(path, change("api-token", MASK), change("api-token", "new"), wrong)
        assert "updates[2]" in refused.message
