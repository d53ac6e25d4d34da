"""Where tables of a Glue catalog may lie whose maker does not own it."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import orjson
import pytest

from catalogs.models import ReservedPlace
from metalake.kinds import Kind
from tests.catalogs.callers import Answer, Caller
from tests.catalogs.conftest import admin, mia  # noqa: F401 (fixtures)
from tests.catalogs.services.test_places import metadata_of
from tests.demo import give
from tests.glue import Glue
from tests.providers.glue.test_native_api import CATALOGS, COLUMNS, caller  # noqa: F401 (fixture)

pytestmark = pytest.mark.django_db(transaction=True)

SCHEMAS = f"{CATALOGS}/aws/schemas"
OWN = f"{SCHEMAS}/own/tables"
HR = "s3://lake/warehouse/hr"


@pytest.fixture
def maker(caller: Caller, mia: Caller, glue: Glue) -> Caller:  # noqa: F811
    """Creates tables in `own`; `hr` is hidden from her, and so is `inner`, which lies in the folder of `own`."""
    for name in ("own", "hr"):
        assert caller.post(SCHEMAS, {"name": name}).status == 200
    inner = {"location": "s3://lake/warehouse/own/inner"}
    assert caller.post(SCHEMAS, {"name": "inner", "properties": inner}).status == 200
    give("mia", Kind.CATALOG, "aws", "use_catalog")
    give("mia", Kind.SCHEMA, "aws.own", "use_schema", "create_table")
    return mia


def made(caller: Caller, name: str, **properties: str) -> Answer:  # noqa: F811
    given = {key.replace("__", "."): value for key, value in properties.items()}
    columns = [] if "metadata_location" in given else COLUMNS
    return caller.post(OWN, {"name": name, "columns": columns, "properties": given})


def put_metadata(glue: Glue, folder: str, lies: str) -> str:
    """A metadata file in a folder, of a table that lies elsewhere."""
    place = f"{folder}/metadata/{uuid4()}.metadata.json"
    body = orjson.dumps(metadata_of(lies))
    glue.client("s3").put_object(Bucket="lake", Key=place.removeprefix("s3://lake/"), Body=body)
    return place


def test_a_table_lies_on_its_schemas_ground(caller: Caller, maker: Caller, glue: Glue) -> None:  # noqa: F811
    mine = "s3://lake/warehouse/own"
    led_off = put_metadata(glue, f"{mine}/from", f"{HR}/staff")
    wrong: list[dict[str, str]] = [
        *[{"location": place} for place in (f"{HR}/staff", HR, mine, f"{mine}/inner", f"{mine}/inner/x")],
        *[{"table_type": "HIVE", "location": f"{HR}/staff"}, {"write__data__path": f"{HR}/staff"}],
        {"table_type": "ICEBERG", "metadata_location": put_metadata(glue, f"{HR}/staff", f"{HR}/staff")},
        {"table_type": "ICEBERG", "metadata_location": f"{HR}/none/metadata/0.metadata.json"},
        {"table_type": "ICEBERG", "metadata_location": led_off},
    ]
    for properties in wrong:
        refused = made(maker, "t", **properties)
        assert refused.error[:2] == (403, 1008), (properties, refused.body)
    assert maker.get(OWN)["identifiers"] == []
    for number, properties in enumerate([{}, {"location": f"{mine}/sub/x"}, {"table_type": "HIVE"}]):
        assert made(maker, f"t{number}", **properties).status == 200, properties
    assert made(caller, "anywhere", location=f"{HR}/lent").status == 200
    kept = {"@type": "setProperty", "property": "write.data.path", "value": f"{HR}/staff"}
    assert maker.put(f"{OWN}/t0", kept).error[:2] == (403, 1008)
    moved = {"@type": "setProperty", "property": "location", "value": f"{HR}/staff"}
    assert maker.put(f"{OWN}/t2", moved).error[:2] == (403, 1008)
    moved["value"] = f"{mine}/moved"
    assert maker.put(f"{OWN}/t2", moved)["table"]["properties"]["location"] == f"{mine}/moved"
    give("mia", Kind.SCHEMA, "aws.own", "modify_table")
    given = kept | {"value": f"{mine}/moved-2"}
    assert maker.put(f"{OWN}/anywhere", given).error[:2] == (403, 1008), "a new place is its owner's to give"
    assert caller.put(f"{OWN}/anywhere", given).status == 200


def test_what_is_opened_is_open_and_what_is_reserved_is_not(caller: Caller, maker: Caller) -> None:  # noqa: F811
    opened = "s3://lake/warehouse/shared"
    assert made(maker, "t", location=f"{opened}/x").status == 403
    setting = {"@type": "setProperty", "property": "allowed-locations", "value": opened}
    assert maker.put(f"{SCHEMAS}/own", setting).status == 403
    assert caller.put(f"{SCHEMAS}/own", setting).status == 200
    ReservedPlace.objects.create(location=f"{opened}/x", kind="table", full_name="x.y.z", of_metalake=1, of_catalog=2)
    refused = made(maker, "t", location=f"{opened}/x")
    assert refused.error[0] == 403 and "is reserved" in refused.message
    assert made(maker, "t", location=f"{opened}/y").status == 200


def test_a_partition_lies_on_it_too(caller: Caller, maker: Caller) -> None:  # noqa: F811
    days = {
        "name": "days",
        "columns": [{"name": "carrier", "type": "string"}, {"name": "day", "type": "string"}],
        "partitioning": [{"strategy": "identity", "fieldName": ["day"]}],
        "properties": {"table_type": "HIVE"},
    }
    assert maker.post(OWN, days).status == 200

    def add(day: str, **properties: str) -> Answer:
        literal: dict[str, Any] = {"type": "literal", "dataType": "string", "value": day}
        one = {"type": "identity", "fieldNames": [["day"]], "values": [literal], "properties": properties}
        return maker.post(f"{OWN}/days/partitions", {"partitions": [one]})

    assert add("1").status == 200
    assert add("2", location="s3://lake/warehouse/own/elsewhere").status == 200
    assert add("3", location=f"{HR}/staff").error[:2] == (403, 1008)


def test_what_was_dropped_there_is_its_former_owners(caller: Caller, maker: Caller) -> None:  # noqa: F811
    """Glue keeps the files; who could only read the table does not register it."""
    give("mia", Kind.CATALOG, "aws", "use_catalog", "use_schema", "create_table", "select_table")
    caller.post(OWN, {"name": "kept", "columns": COLUMNS})["table"]
    kept = caller.get(f"{OWN}/kept")["table"]["properties"]
    assert caller.delete(f"{OWN}/kept")["dropped"] is True
    assert ReservedPlace.objects.get().location == kept["location"]
    refused = made(maker, "mine", table_type="ICEBERG", metadata_location=kept["metadata_location"])
    assert refused.error[:2] == (403, 1008) and "is reserved" in refused.message
    assert made(caller, "back", table_type="ICEBERG", metadata_location=kept["metadata_location"]).status == 200


def test_nor_does_its_owner_shed_a_deny_with_it(caller: Caller, maker: Caller) -> None:  # noqa: F811
    give("mia", Kind.SCHEMA, "aws.hr", "use_schema", "create_table")
    maker.post(OWN, {"name": "kept", "columns": COLUMNS})["table"]
    kept = maker.get(f"{OWN}/kept")["table"]["properties"]
    give(None, Kind.SCHEMA, "aws.own", "deny select_table")
    assert maker.delete(f"{OWN}/kept")["dropped"] is True
    again = {"name": "t", "columns": [], "properties": {"table_type": "ICEBERG"}}
    again["properties"]["metadata_location"] = kept["metadata_location"]
    refused = maker.post(f"{SCHEMAS}/hr/tables", again)
    assert refused.error[:2] == (403, 1008) and "would shed a DENY that mia may not lift" in refused.message
    assert maker.post(OWN, again).status == 200
    assert ReservedPlace.objects.count() == 1, "what was reserved keeps its DENYs"
    assert maker.delete(f"{OWN}/t")["dropped"] is True
    assert ReservedPlace.objects.count() == 1
