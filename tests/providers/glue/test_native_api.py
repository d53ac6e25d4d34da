"""A Glue catalog through the native wire."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from authz.callers.identity import actor_of
from authz.models import User
from catalogs.models import Catalog
from catalogs.secrets import MASK
from catalogs.services import commits
from catalogs.services.tables import create_native_table, load_iceberg_table
from formats.native.tables import CreateTableRequest
from metalake.errors import Invalid, ProviderBusy, ProviderUnavailable
from metalake.lineage import Address
from metalake.models import Securable
from providers import circuit_breaker
from providers.metadata_files import METADATA
from tests.cases import each
from tests.catalogs.callers import Caller
from tests.catalogs.conftest import admin  # noqa: F401 (fixture)
from tests.glue import Fault, Glue
from tests.providers.glue_catalogs import files, settings, tables_of_engines

pytestmark = pytest.mark.django_db(transaction=True)

CATALOGS = "metalakes/demo/catalogs"
SCHEMAS = f"{CATALOGS}/aws/schemas"
TABLES = f"{SCHEMAS}/flights/tables"
COLUMNS = [{"name": "carrier", "type": "string"}, {"name": "delay", "type": "integer"}]


def registration(glue: Glue, name: str = "aws", **properties: str) -> dict[str, Any]:
    given = settings(glue, **properties)
    return {"name": name, "type": "relational", "provider": "glue", "comment": None, "properties": given}


@pytest.fixture
def caller(admin: Caller, glue: Glue) -> Caller:  # noqa: F811
    """The owner of the catalog `aws`, in whose database `flights` engines have tables of every format."""
    circuit_breaker.forget_all()
    glue.create_bucket("lake")
    glue.client().create_database(DatabaseInput={"Name": "flights"})
    for table in tables_of_engines():
        glue.client().create_table(DatabaseName="flights", TableInput=table)
    admin.post(CATALOGS, registration(glue))["catalog"]
    return admin


def names(answer: Any) -> list[str]:
    return [one["name"] for one in answer["identifiers"]]


def held(glue: Glue) -> dict[str, list[str]]:
    """What Glue has: tables by database."""
    client = glue.client()
    databases = [one["Name"] for one in client.get_databases()["DatabaseList"]]
    return {name: [table["Name"] for table in client.get_tables(DatabaseName=name)["TableList"]] for name in databases}


def test_a_catalog_is_tried_registered_and_keeps_its_secrets(caller: Caller, glue: Glue) -> None:
    assert caller.post(f"{CATALOGS}/testConnection", registration(glue, "trial")).status == 200
    shown = caller.get(f"{CATALOGS}/aws")["catalog"]["properties"]
    assert shown["aws-access-key-id"] == shown["aws-secret-access-key"] == MASK
    assert shown["aws-region"] == "us-east-1"
    fixed = {"@type": "setProperty", "property": "aws-region", "value": "eu-central-1"}
    refused = caller.put(f"{CATALOGS}/aws", fixed)
    assert refused.error[:2] == (400, 1001) and "another region has other databases" in refused.message
    assert names(caller.get(SCHEMAS)) == ["flights"]


def test_tables_of_all_formats_are_shown(caller: Caller, glue: Glue) -> None:
    tables = {table["Name"]: table for table in tables_of_engines() if table["TableType"] != "VIRTUAL_VIEW"}
    assert names(caller.get(TABLES)) == sorted(tables)
    for name, table in tables.items():
        assert caller.get(f"{TABLES}/{name.upper()}")["table"]["properties"].items() >= table["Parameters"].items()
    caller.put(f"{CATALOGS}/aws", {"@type": "setProperty", "property": "table-type-filter", "value": "iceberg"})
    assert names(caller.get(TABLES)) == ["airports"]
    assert caller.get(f"{TABLES}/delays").error[:2] == (404, 1003)
    assert caller.get(f"{TABLES}/airports").status == 200


@pytest.mark.parametrize("format", ["ICEBERG", "HIVE"])
def test_a_table_lives_and_ends(caller: Caller, glue: Glue, format: str) -> None:
    body = {"name": "Late", "comment": "by day", "columns": COLUMNS, "properties": {"table_type": format, "a": "1"}}
    made = caller.post(TABLES, body)["table"]
    assert (made["name"], made["comment"], made["properties"]) == ("late", "by day", body["properties"])
    assert [column["type"] for column in made["columns"]] == ["string", "integer"]
    update = {"@type": "setProperty", "property": "b", "value": "2"}
    assert caller.put(f"{TABLES}/late", update)["table"]["properties"].items() >= {"a": "1", "b": "2"}.items()
    renamed = caller.put(f"{TABLES}/late", {"@type": "rename", "newName": "later"})
    if format == "HIVE":
        assert renamed.error[:2] == (405, 1006) and "cannot rename" in renamed.message
        assert caller.delete(f"{TABLES}/late")["dropped"] is True
    else:
        assert renamed["table"]["name"] == "later"
        assert "later" in held(glue)["flights"] and "late" not in held(glue)["flights"]
        assert caller.delete(f"{TABLES}/later?purge=true")["dropped"] is True
    assert held(glue)["flights"] == [table["Name"] for table in tables_of_engines()]


@pytest.mark.parametrize("format", ["ICEBERG", "HIVE"])
def test_a_creation_hands_on_what_it_has_read(caller: Caller, glue: Glue, format: str) -> None:
    """Who calls, the promise, the progress of the call, what is published, and the answer; BEGIN is counted."""
    assert names(caller.get(SCHEMAS)) == ["flights"]
    body = {"name": "late", "columns": COLUMNS, "properties": {"table_type": format}}
    with CaptureQueriesContext(connection) as captured:
        assert caller.post(TABLES, body).status == 200
    statements = [each["sql"] for each in captured if each["sql"] != "COMMIT"]
    assert len(statements) <= 30, "\n".join(statements)


def test_a_native_change_of_an_iceberg_table_reads_it_no_more_than_it_must(caller: Caller, glue: Glue) -> None:
    """As it is, as it is when the pointer moves, and as it is then."""
    caller.post(TABLES, {"name": "late", "comment": "by day", "columns": COLUMNS})["table"]
    glue.calls.clear()
    changes = [
        {"@type": "setProperty", "property": "b", "value": "2"},
        {"@type": "updateComment", "newComment": "in minutes"},
    ]
    altered = caller.put(f"{TABLES}/late", *changes)["table"]
    assert (altered["properties"]["b"], altered["comment"]) == ("2", "in minutes")
    assert [operation for operation, _ in glue.calls if operation == "GetTable"] == ["GetTable"] * 3


def test_an_iceberg_table_is_shown_as_its_metadata_has_it(caller: Caller, glue: Glue) -> None:
    path = {"name": "stop", "type": "struct", "fields": [{"name": "gate", "type": "uuid", "nullable": False}]}
    columns = [
        {"name": "departure", "type": "timestamp_tz(6)", "nullable": False},
        {"name": "at_noon", "type": "time(6)"},
        {"name": "stop", "type": {"type": "struct", "fields": path["fields"]}},
    ]
    laid_out = {
        "partitioning": [{"strategy": "day", "fieldName": ["departure"]}],
        "sortOrders": [{"sortTerm": {"type": "field", "fieldName": ["departure"]}, "direction": "desc"}],
        "distribution": {"strategy": "hash", "number": 0, "funcArgs": []},
    }
    body = {"name": "stops", "columns": columns, "properties": {"table_type": "iceberg"}, **laid_out}
    made = caller.post(TABLES, body)["table"]
    shown = caller.get(f"{TABLES}/stops")["table"]
    assert made["columns"] == shown["columns"]
    assert [(column["name"], column["nullable"]) for column in shown["columns"]] == [
        ("departure", False), ("at_noon", True), ("stop", True),
    ]  # fmt: skip
    assert [column["type"] for column in shown["columns"][:2]] == ["timestamp_tz(6)", "time(6)"]
    assert shown["columns"][2]["type"]["fields"] == path["fields"]
    assert shown["partitioning"] == laid_out["partitioning"]
    assert shown["distribution"]["strategy"] == "hash"
    assert shown["sortOrders"][0]["direction"] == "desc"
    assert shown["properties"]["metadata_location"].endswith(".metadata.json")
    METADATA.forget(Catalog.objects.get(provider="glue").pk, shown["properties"]["metadata_location"])
    for file in files(glue):
        glue.client("s3").delete_object(Bucket="lake", Key=file.removeprefix("s3://lake/"))
    repeated = caller.get(f"{TABLES}/stops")["table"]
    assert [column["name"] for column in repeated["columns"]] == ["departure", "at_noon", "stop"]
    assert repeated["partitioning"] == [], "what Glue does not repeat is not known without the file"


def test_one_folder_holds_one_table(caller: Caller, glue: Glue) -> None:
    body = {"name": "first", "columns": COLUMNS, "properties": {"table_type": "iceberg"}}
    caller.post(TABLES, body)["table"]
    before = caller.get(f"{TABLES}/first")["table"]["properties"]["location"]
    caller.put(f"{TABLES}/first", {"@type": "rename", "newName": "second"})
    assert caller.get(f"{TABLES}/second")["table"]["properties"]["location"] == before
    caller.post(TABLES, body)["table"]
    assert caller.get(f"{TABLES}/first")["table"]["properties"]["location"] != before


def test_what_was_just_made_is_listed_though_glue_does_not_yet(caller: Caller, glue: Glue) -> None:
    glue.stop_listing_new_ones()
    caller.post(TABLES, {"name": "late", "columns": COLUMNS})["table"]
    assert "late" not in held(glue)["flights"] and "late" in names(caller.get(TABLES))
    assert caller.get(f"{TABLES}/late").status == 200


def test_names_that_fold_alike_are_one(caller: Caller, glue: Glue) -> None:
    assert caller.post(SCHEMAS, {"name": "Flights"}).error[:2] == (409, 1004)
    assert caller.post(TABLES, {"name": "Airlines", "columns": COLUMNS}).error[:2] == (409, 1004)
    twins = [{"name": "carrier", "type": "string"}, {"name": "Carrier", "type": "string"}]
    body = {"name": "late", "columns": twins, "properties": {"table_type": "hive"}}
    assert caller.post(TABLES, body).error[:2] == (400, 1001)
    assert held(glue) == {"flights": [table["Name"] for table in tables_of_engines()]}


def test_a_lost_answer_is_read_back(caller: Caller, glue: Glue) -> None:
    glue.fail("CreateTable", Fault.REPLY_LOST)
    made = caller.post(TABLES, {"name": "late", "columns": COLUMNS})["table"]
    assert made["columns"][0]["name"] == "carrier"
    glue.fail("UpdateTable", Fault.REPLY_LOST)
    update = {"@type": "updateComment", "newComment": "minutes"}
    assert caller.put(f"{TABLES}/late", update)["table"]["comment"] == "minutes"
    glue.fail("DeleteTable", Fault.REPLY_LOST)
    assert caller.delete(f"{TABLES}/late")["dropped"] is True
    assert "late" not in held(glue)["flights"]


@pytest.mark.parametrize("fault", [Fault.REQUEST_LOST, Fault.ERROR, Fault.THROTTLED, Fault.EXPIRED])
def test_what_was_not_made_leaves_no_file(caller: Caller, glue: Glue, fault: Fault) -> None:
    actor, before = actor_of(User.objects.get(username="admin")), held(glue)
    asked = CreateTableRequest.model_validate({"name": "late", "columns": COLUMNS})
    glue.fail("CreateTable", fault)
    with pytest.raises(ProviderUnavailable):
        create_native_table(actor, Address(metalake="demo", catalog="aws", schema="flights", leaf="late"), asked)
    assert "s3:PUT" in [operation for operation, _ in glue.calls]
    assert held(glue) == before and files(glue) == set()
    create_native_table(actor, Address(metalake="demo", catalog="aws", schema="flights", leaf="late"), asked)
    assert "late" in held(glue)["flights"] and len(files(glue)) == 1


def test_a_commit_here_is_seen_by_others(caller: Caller, glue: Glue) -> None:
    caller.post(TABLES, {"name": "late", "comment": "by day", "columns": COLUMNS})["table"]
    before = glue.client().get_table(DatabaseName="flights", Name="late")["Table"]
    actor, late = (
        actor_of(User.objects.get(username="admin")),
        Address(metalake="demo", catalog="aws", schema="flights", leaf="late"),
    )
    update = {"action": "set-properties", "updates": {"owner_team": "ops"}}
    glue.fail("UpdateTable", Fault.REPLY_LOST)
    done = commits.commit_table(actor, late, [], [update])
    assert done.metadata["properties"]["owner_team"] == "ops"
    after = glue.client().get_table(DatabaseName="flights", Name="late")["Table"]
    assert after["Parameters"]["metadata_location"] == done.metadata_location
    assert after["Parameters"]["previous_metadata_location"] == before["Parameters"]["metadata_location"]
    assert after["CreateTime"] == before["CreateTime"]
    assert caller.get(f"{TABLES}/late")["table"]["properties"]["owner_team"] == "ops"
    glue.fail("UpdateTable", Fault.THROTTLED)
    with pytest.raises(ProviderBusy):
        commits.commit_table(actor, late, [], [update | {"updates": {"owner_team": "bi"}}])
    assert glue.client().get_table(DatabaseName="flights", Name="late")["Table"] == after


def test_partitions(caller: Caller, glue: Glue) -> None:
    partitions = f"{TABLES}/delays/partitions"
    value = {"type": "literal", "dataType": "date", "value": "2026-11-21"}
    one = {"type": "identity", "fieldNames": [["day"]], "values": [value], "properties": {}}
    made = caller.post(partitions, {"partitions": [one]})["partitions"]
    assert [each["name"] for each in made] == ["day=2026-11-21"]
    assert caller.get(partitions)["names"] == ["day=2026-11-21"]
    assert caller.get(f"{partitions}/day%3D2026-11-21")["partition"]["values"] == [value]
    assert caller.delete(f"{partitions}/day%3D2026-11-21")["dropped"] is True
    assert caller.get(partitions)["names"] == []


def test_a_full_schema_is_dropped_only_with_its_tables(caller: Caller, glue: Glue) -> None:
    assert caller.delete(f"{SCHEMAS}/flights").error[:2] == (409, 1005)
    assert len(held(glue)["flights"]) == 6
    assert caller.delete(f"{SCHEMAS}/flights?cascade=true")["dropped"] is True
    assert held(glue) == {}


def test_schemas_inside_schemas_of_flat_glue(caller: Caller, glue: Glue) -> None:
    caller.post(CATALOGS, registration(glue, "deep", nested_namespaces="true", warehouse="s3://lake/deep"))["catalog"]
    schemas = f"{CATALOGS}/deep/schemas"
    made = caller.post(schemas, {"name": "sales:emea:Orders 2013", "comment": "all", "properties": {"a": "1"}})
    assert made["schema"]["name"] == "sales:emea:orders 2013"
    database = "sales_x001f_emea_x001f_orders_x0020_2013"
    assert set(held(glue)) == {"flights", database}
    assert names(caller.get(schemas)) == ["flights", "sales"]
    assert names(caller.get(f"{schemas}?parentSchema=sales:emea")) == ["sales:emea:orders 2013"]
    where = f"{schemas}/sales:emea:orders%202013/tables"
    assert caller.post(where, {"name": "lines", "columns": COLUMNS})["table"]["name"] == "lines"
    assert held(glue)[database] == ["lines"]
    glue.client().create_database(DatabaseInput={"Name": "sales_x001f_apac"})
    assert names(caller.get(f"{schemas}?parentSchema=sales")) == ["sales:apac", "sales:emea"]
    assert caller.delete(f"{schemas}/sales:emea").error[:2] == (409, 1005)
    assert caller.delete(f"{where}/lines")["dropped"] is True
    assert caller.delete(f"{schemas}/sales:emea:orders%202013")["dropped"] is True
    assert set(held(glue)) == {"flights", "sales_x001f_apac"}


def test_bad_registrations_register_nothing(caller: Caller, glue: Glue) -> None:
    before = Securable.objects.count()
    for changed in (
        {"aws-region": "moon-1", "aws-glue-endpoint": ""},
        {"aws-regoin": "us-east-1"},
        {"aws-region": ""},
        {"aws-secret-access-key": ""},
        {"aws-glue-endpoint": "file:///etc/passwd"},
        {"aws-glue-endpoint": "http://169.254.169.254"},
        {"warehouse": "file:///tmp/lake"},
        {"warehouse": "s3://lake/warehouse/below"},
    ):
        body = registration(glue, "other")
        body["properties"] |= {"warehouse": "s3://lake/other"} | changed
        assert caller.post(CATALOGS, body).error[:2] == (400, 1001), changed
    assert Securable.objects.count() == before


@each(
    "body",
    [
        {"name": "weather", "columns": COLUMNS},
        {"name": "WEATHER", "columns": COLUMNS},
        {"name": "my-table", "columns": COLUMNS},
        {"name": "t" * 256, "columns": COLUMNS},
        {"name": "t", "columns": []},
        {"name": "t", "columns": [{"name": "a", "type": {"type": "unparsed", "unparsedType": "mo(on"}}]},
        {"name": "t", "columns": [{"name": "a", "type": "string"}, {"name": "a", "type": "string"}]},
        {"name": "t", "columns": COLUMNS, "properties": {"table_type": "paimon"}},
        {"name": "t", "columns": COLUMNS, "properties": {"location": "s3://elsewhere/t"}},
        {"name": "t", "columns": [], "properties": {"metadata_location": "s3://lake/warehouse/none.metadata.json"}},
    ],
)
def test_bad_tables_make_nothing(caller: Caller, glue: Glue, body: dict[str, Any]) -> None:
    caller.get(f"{SCHEMAS}/flights")
    before, rows = held(glue), Securable.objects.count()
    refused = caller.post(TABLES, body)
    assert refused.status in (400, 405, 409), refused.body
    assert held(glue) == before and Securable.objects.count() == rows
    assert glue.client("s3").list_objects_v2(Bucket="lake")["KeyCount"] == 0


@pytest.mark.parametrize("name", ["sales\x01", "sales*", "s" * 300, " sales"])
def test_bad_schemas_make_nothing(caller: Caller, glue: Glue, name: str) -> None:
    refused = caller.post(SCHEMAS, {"name": name})
    assert refused.status == 400, refused.body
    assert set(held(glue)) == {"flights"}


def test_a_table_of_two_thousand_columns(caller: Caller, glue: Glue) -> None:
    columns = [{"name": f"c{number}", "type": "string"} for number in range(2000)]
    assert len(caller.post(TABLES, {"name": "wide", "columns": columns})["table"]["columns"]) == 2000
    assert len(caller.get(f"{TABLES}/wide")["table"]["columns"]) == 2000


def test_a_catalog_does_not_reach_the_tables_that_another_keeps_here(caller: Caller, glue: Glue) -> None:
    """Whoever owns a Glue may write any place into its entries; the server's own keys could open it."""
    ours = {name: value for name, value in settings(glue).items() if name.startswith("s3.")}
    ours |= {
        "warehouse": "s3://lake/ours",
        "s3.access-key-id": glue.access_key,
        "s3.secret-access-key": glue.secret_key,
    }
    given = {"name": "ours", "type": "relational", "provider": "lakehouse-iceberg", "comment": None, "properties": ours}
    caller.post(CATALOGS, given)["catalog"]
    caller.post(f"{CATALOGS}/ours/schemas", {"name": "hr"})["schema"]
    tables = f"{CATALOGS}/ours/schemas/hr/tables"
    caller.post(tables, {"name": "staff", "columns": COLUMNS})["table"]
    place = caller.get(f"{tables}/staff")["table"]["properties"]["location"]
    pointer = next(url for url in files(glue) if url.startswith("s3://lake/ours/"))
    entry = {
        "Name": "spy",
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {"table_type": "ICEBERG", "metadata_location": pointer},
        "StorageDescriptor": {"Location": place, "Columns": []},
    }
    glue.client().create_table(DatabaseName="flights", TableInput=entry)
    with pytest.raises(Invalid, match="this catalog does not allow it"):
        load_iceberg_table(
            actor_of(User.objects.get(username="admin")),
            Address(metalake="demo", catalog="aws", schema="flights", leaf="spy"),
        )


@pytest.mark.parametrize("odd", ["ofs://service/volume", "/user/hive/warehouse/spots", "s3a://lake//spots"])
def test_a_table_whose_entry_names_an_odd_place_is_read_where_its_metadata_is(
    caller: Caller, glue: Glue, odd: str
) -> None:
    caller.post(TABLES, {"name": "spots", "columns": COLUMNS, "properties": {"table_type": "ICEBERG"}})["table"]
    made = caller.get(f"{TABLES}/spots")["table"]
    entry = {
        "Name": "odd",
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {"table_type": "ICEBERG", "metadata_location": made["properties"]["metadata_location"]},
        "StorageDescriptor": {"Location": odd, "Columns": []},
    }
    glue.client().create_table(DatabaseName="flights", TableInput=entry)
    admin_user = actor_of(User.objects.get(username="admin"))
    assert load_iceberg_table(
        admin_user, Address(metalake="demo", catalog="aws", schema="flights", leaf="odd")
    ).metadata["schemas"]


def test_the_catalog_of_s3_tables_is_named_in_every_call(caller: Caller, glue: Glue) -> None:
    """The stand-in keeps databases by this id, as Glue does; moto alone ignores it, so this says nothing of AWS."""
    nested = "123456789012:s3tablescatalog/lake"
    properties = {"aws-glue-catalog-id": nested, "warehouse": "s3://lake/tables"}
    assert caller.post(CATALOGS, registration(glue, "s3tables", **properties))["catalog"]["name"] == "s3tables"
    glue.calls.clear()
    schemas = f"{CATALOGS}/s3tables/schemas"
    assert names(caller.get(schemas)) == []
    caller.post(schemas, {"name": "sales", "comment": None, "properties": {}})["schema"]
    made = caller.post(f"{schemas}/sales/tables", {"name": "late", "columns": COLUMNS, "properties": {}})["table"]
    assert made["name"] == "late"
    assert names(caller.get(f"{schemas}/sales/tables")) == ["late"]
    assert caller.delete(f"{schemas}/sales/tables/late").status == 200
    asked = [(operation, given) for operation, given in glue.calls if not operation.startswith(("s3:", "Assume"))]
    assert {operation for operation, _ in asked} >= {"GetDatabases", "CreateDatabase", "CreateTable", "GetTables"}
    assert [operation for operation, given in asked if given.get("CatalogId") != nested] == []
    assert held(glue).keys() == {"flights"}
