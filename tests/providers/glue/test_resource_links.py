"""Resource links of AWS Glue: followed when they are read, never written, and harmless where they lead nowhere."""
# ruff: noqa: F811

from __future__ import annotations

from datetime import timedelta
from typing import Any

import orjson
import pytest
from django.utils import timezone

from authz.callers.identity import actor_of
from authz.models import User
from catalogs.lookup import nearest
from catalogs.models import Catalog, Mirror, ReservedPlace
from catalogs.services import commits
from metalake.errors import Unsupported
from metalake.lineage import Address
from metalake.models import Securable
from outside import refresh, tables
from outside.reads import LOOKS
from providers.glue.deliveries import delivered_table
from providers.glue.provider import GlueProvider
from tests.catalogs.callers import Caller, update
from tests.catalogs.conftest import admin  # noqa: F401 (fixture)
from tests.glue import Fault, Glue, Rule
from tests.providers.glue.test_native_api import CATALOGS, SCHEMAS, TABLES, caller, files, names  # noqa: F401 (fixture)
from tests.providers.glue_catalogs import FLIGHTS, entry, provider, provider_on, storage  # noqa: F401 (fixture)
from tests.providers.glue_catalogs import settings as settings_of

OTHER = "210987654321"
SHARED = pytest.mark.parametrize("shares", [False, True], ids=["asked for", "answered with"])
TABLE_INPUT = ("Name", "TableType", "Parameters", "PartitionKeys", "StorageDescriptor")
DAY = {
    "type": "identity",
    "fieldNames": [["day"]],
    "values": [{"type": "literal", "dataType": "date", "value": "2026-11-21"}],
    "properties": {},
}
pytestmark = pytest.mark.django_db(transaction=True)


def link(glue: Glue, name: str, target: str = "t1", **more: str) -> None:
    to = {"CatalogId": OTHER, "DatabaseName": "db1", "Name": target, **more}
    glue.client().create_table(DatabaseName="flights", TableInput={"Name": name, "TargetTable": to})


@pytest.fixture
def linked(caller: Caller, glue: Glue) -> Caller:
    """Links to a Hive table, an Iceberg table and to nothing, beside the tables of engines."""
    theirs = glue.client()
    theirs.create_database(CatalogId=OTHER, DatabaseInput={"Name": "db1"})
    table: dict[str, Any] = {
        "Name": "t1",
        "TableType": "EXTERNAL_TABLE",
        "StorageDescriptor": storage("s3://lake/t1", ("a", "int")),
    }
    table["PartitionKeys"] = [{"Name": "day", "Type": "date"}]
    theirs.create_table(CatalogId=OTHER, DatabaseName="db1", TableInput=table)
    caller.post(TABLES, {"name": "ice", "columns": [{"name": "a", "type": "string"}]})["table"]
    here = entry(glue, "ice")
    moved = {name: here[name] for name in ("Name", "TableType", "Parameters", "StorageDescriptor")}
    theirs.create_table(CatalogId=OTHER, DatabaseName="db1", TableInput=moved)
    link(glue, "hers")
    link(glue, "icy", "ice")
    link(glue, "lost", "nowhere")
    link(glue, "far", "t1", Region="eu-central-1")
    return caller


def refused_as(code: str, operation: str, after: int = 0) -> Rule:
    """One call of an operation is refused, once some went well."""

    def own(apply: Any, start_response: Any) -> list[bytes]:
        start_response("400 Bad Request", [("Content-Type", "application/x-amz-json-1.1")])
        return [orjson.dumps({"__type": code, "message": "no"})]

    return Rule(operation, Fault.OWN, after=after, own=own)


def actor() -> Any:
    return actor_of(User.objects.get(username="admin"))


@SHARED
def test_a_link_is_read_where_it_leads(linked: Caller, glue: Glue, shares: bool) -> None:
    glue.shares = shares
    assert {"hers", "icy", "lost", "far", "delays"} <= set(names(linked.get(TABLES)))
    shown = linked.get(f"{TABLES}/hers")["table"]
    assert [column["name"] for column in shown["columns"]] == ["a", "day"]
    assert shown["properties"]["location"] == "s3://lake/t1"
    assert shown["properties"]["resource-link"] == f"{OTHER}.db1.t1"
    icy = linked.get(f"{TABLES}/icy")["table"]
    assert [column["name"] for column in icy["columns"]] == ["a"]
    assert icy["properties"]["metadata_location"].startswith("s3://lake/warehouse/flights/ice-")
    before = Securable.objects.get(name="hers").pk
    for _ in range(2):
        assert "hers" in names(linked.get(TABLES))
        refresh.carry_on(refresh.begin(Catalog.objects.get(name="aws").pk, here=True).pk)
    assert linked.get(f"{TABLES}/hers")["table"]["columns"] == shown["columns"]
    assert Securable.objects.get(name="hers").pk == before, "with its grants"


def test_one_that_leads_nowhere_is_one_sentence(linked: Caller, glue: Glue) -> None:
    for name, why in (("lost", "does not exist in AWS Glue"), ("far", "another region")):
        refused = linked.get(f"{TABLES}/{name}")
        assert refused.status == 405 and why in refused.message
        assert f"Table {name} is a resource link to {OTHER}.db1." in refused.message
    assert linked.get(f"{TABLES}/delays").status == 200


def test_a_forbidden_target_too(provider: GlueProvider, glue: Glue) -> None:
    link(glue, "hers")
    filtered = provider_on(glue, table_type_filter="iceberg")
    glue._rules.append(refused_as("AccessDeniedException", "GetTable", after=1))
    found = filtered.tables.load(FLIGHTS, "hers")
    assert filtered.tables.shows(found) and filtered.tables.shows(filtered.tables.list(FLIGHTS).items[0])
    with pytest.raises(Unsupported) as refused:
        filtered.tables.show(found.definition)
    assert "lack the permission" in refused.value.message


@SHARED
def test_a_link_is_granted_on_and_dropped_alone(linked: Caller, glue: Glue, shares: bool) -> None:
    glue.shares = shares
    linked.post("metalakes/demo/roles", {"name": "readers"})
    body = {"privileges": [{"name": "select_table", "condition": "allow"}]}
    for name in ("hers", "lost"):
        grant = f"metalakes/demo/permissions/roles/readers/table/aws.flights.{name}/grant"
        assert linked.send("PUT", grant, body).status == 200
        glue.calls.clear()
        assert linked.delete(f"{TABLES}/{name}")["dropped"] is True
        assert not [each for _, each in glue.calls if each.get("CatalogId") == OTHER], "whatever the target answers"
    assert not ReservedPlace.objects.exists(), "the files are not this catalog's to leave"
    theirs = glue.client().get_tables(CatalogId=OTHER, DatabaseName="db1")["TableList"]
    assert {table["Name"] for table in theirs} == {"t1", "ice"}
    assert not {"hers", "lost"} & set(names(linked.get(TABLES)))


@SHARED
def test_nothing_is_written_through_it(linked: Caller, glue: Glue, shares: bool) -> None:
    glue.shares = shares
    theirs, lake = glue.client().get_tables(CatalogId=OTHER, DatabaseName="db1")["TableList"], files(glue)
    comment = update("updateComment", newComment="x")
    for refused in (
        linked.put(f"{TABLES}/hers", comment),
        linked.put(f"{TABLES}/lost", comment),
        linked.put(f"{TABLES}/icy", comment),
        linked.put(f"{TABLES}/icy", update("rename", newName="cold")),
        linked.post(f"{TABLES}/hers/partitions", {"partitions": [DAY]}),
    ):
        assert refused.status in (400, 405) and "resource link" in refused.message, refused.body
    icy = Address(metalake="demo", catalog="aws", schema="flights", leaf="icy")
    with pytest.raises(Unsupported, match="resource link"):
        commits.commit_table(actor(), icy, [], [{"action": "set-properties", "updates": {"team": "ops"}}])
    assert glue.client().get_tables(CatalogId=OTHER, DatabaseName="db1")["TableList"] == theirs
    assert files(glue) == lake
    assert not [each for each in glue.calls if each[0] in ("s3:PUT", "s3:DELETE") and "/icy" in each[1]["path"]]
    listed = linked.get(f"{TABLES}/hers/partitions")
    assert listed.status == 405 and "its partitions are listed there" in listed.message


@SHARED
def test_the_servers_identity_follows_only_where_the_operator_says(
    linked: Caller, glue: Glue, settings: Any, monkeypatch: pytest.MonkeyPatch, shares: bool
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", glue.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", glue.secret_key)
    glue.shares = shares
    link(glue, "near", "delays", CatalogId=glue.account, DatabaseName="flights")
    named = (f"glue://server/{glue.region}", glue.endpoint)
    settings.METALAKE_OWN_IDENTITY = named
    properties = {key: value for key, value in settings_of(glue).items() if "-key" not in key}
    server = GlueProvider(1, properties)
    glue.calls.clear()
    for found in (server.tables.load(FLIGHTS, "hers"), *server.tables.list(FLIGHTS).items):
        if found.name == "hers" and found.definition:
            assert "s3://" not in str(found.definition)
            with pytest.raises(Unsupported, match=f"METALAKE_OWN_IDENTITY.* It needs glue://{OTHER}/{glue.region}"):
                server.tables.show(found.definition)
    assert not [each for _, each in glue.calls if each.get("CatalogId") == OTHER]
    assert server.tables.show(server.tables.load(FLIGHTS, "near").definition)["columns"]
    settings.METALAKE_OWN_IDENTITY = (*named, f"glue://{OTHER}/{glue.region}")
    assert server.tables.show(server.tables.load(FLIGHTS, "hers").definition)["columns"]


def test_a_link_is_as_fresh_as_its_own_answer(linked: Caller, glue: Glue) -> None:
    """A walk sees only the name of it."""
    for key, value in (("cache-ttl", "300"), ("refresh-interval", "60")):
        linked.put(f"{CATALOGS}/aws", update("setProperty", property=key, value=value))
    assert [column["name"] for column in linked.get(f"{TABLES}/hers")["table"]["columns"]] == ["a", "day"]
    wider = {"Name": "t1", "StorageDescriptor": storage("s3://lake/t1", ("a", "int"), ("b", "int"))}
    glue.client().update_table(CatalogId=OTHER, DatabaseName="db1", TableInput=wider)
    Mirror.objects.update(taken_at=timezone.now() - timedelta(hours=1))
    Catalog.objects.update(last_modified_time=timezone.now() - timedelta(hours=2))
    refresh.carry_on(refresh.begin(Catalog.objects.get(name="aws").pk, here=True).pk)
    assert [column["name"] for column in linked.get(f"{TABLES}/hers")["table"]["columns"]] == ["a", "b"]


def test_many_links_are_looked_at_a_few_at_a_time(linked: Caller, glue: Glue) -> None:
    for number in range(12):
        link(glue, f"h{number:02}")
    at = nearest(Address(metalake="demo", catalog="aws", schema="flights"))
    assert at is not None
    asked, shown = [], set[str]()
    for _ in range(3):
        glue.calls.clear()
        found, _at = tables.update_listing(actor(), at, iceberg=True)
        shown |= found or set()
        asked.append([operation for operation, _ in glue.calls].count("GetTable"))
    assert asked[0] <= 2 * LOOKS and asked[2] == 0
    assert shown == {"airports", "ice", "icy"}


@pytest.mark.parametrize("to", [{"Name": "t1"}, {"CatalogId": OTHER, "Name": "t1"}, {}])
def test_half_a_link_leads_nowhere(provider: GlueProvider, glue: Glue, to: dict[str, str]) -> None:
    glue.client().create_table(DatabaseName="flights", TableInput={"Name": "half", "TargetTable": to})
    with pytest.raises(Unsupported, match="It does not name an account, a database and a table"):
        provider.tables.show(provider.tables.load(FLIGHTS, "half").definition)


def test_a_link_that_the_filter_hides_is_named_when_its_schema_is_dropped(linked: Caller, glue: Glue) -> None:
    linked.put(f"{CATALOGS}/aws", update("setProperty", property="table-type-filter", value="iceberg"))
    glue.client().create_database(DatabaseInput={"Name": "mid"})
    to = {"CatalogId": OTHER, "DatabaseName": "db1", "Name": "t1"}
    glue.client().create_table(DatabaseName="mid", TableInput={"Name": "hers", "TargetTable": to})
    assert names(linked.get(f"{SCHEMAS}/mid/tables")) == ["hers"]
    assert linked.get(f"{SCHEMAS}/mid/tables/hers").status == 404, "which is a Hive table"
    assert linked.delete(f"{SCHEMAS}/mid").message.endswith("hides: hers.")


def test_a_harvest_may_deliver_one() -> None:
    to = {"CatalogId": OTHER, "DatabaseName": "db1", "Name": "t1"}
    delivered = delivered_table({"Name": "hers", "TargetTable": to})
    assert (delivered.name, delivered.version, delivered.definition) == ("hers", "", {})


def test_a_link_to_a_database_is_named(caller: Caller, glue: Glue) -> None:
    to = {"CatalogId": OTHER, "DatabaseName": "db1"}
    glue.client().create_database(DatabaseInput={"Name": "shared", "TargetDatabase": to})
    assert "shared" in names(caller.get(SCHEMAS))
    shown = caller.get(f"{SCHEMAS}/shared")["schema"]
    assert shown["properties"]["resource-link"] == f"{OTHER}.db1"
    refused = caller.put(f"{SCHEMAS}/shared", update("setProperty", property="a", value="b"))
    assert refused.status == 405 and "resource link" in refused.message
    glue._rules.append(refused_as("EntityNotFoundException", "GetTables"))
    assert names(caller.get(f"{SCHEMAS}/shared/tables")) == []


def test_nothing_is_written_in_a_linked_database(linked: Caller, glue: Glue) -> None:
    to, inside = {"CatalogId": OTHER, "DatabaseName": "db1"}, f"{SCHEMAS}/shared/tables"
    client = glue.client()
    client.create_database(DatabaseInput={"Name": "shared", "TargetDatabase": to})
    for name in ("ice", "delays"):  # as AWS lists what lies where it leads
        table = {key: value for key, value in entry(glue, name).items() if key in TABLE_INPUT}
        client.create_table(DatabaseName="shared", TableInput=table)
    assert names(linked.get(inside)) == ["delays", "ice"]
    lake, made = files(glue), {"name": "new", "columns": [{"name": "a", "type": "string"}]}
    view = {
        "name": "v",
        "columns": made["columns"],
        "representations": [{"type": "sql", "dialect": "hive", "sql": "SELECT 1 AS a"}],
    }
    glue.calls.clear()
    for refused in (
        linked.post(inside, made),
        linked.post(inside, made | {"properties": {"table_type": "HIVE"}}),
        linked.post(f"{SCHEMAS}/shared/views", view),
        linked.put(f"{inside}/delays", update("updateComment", newComment="x")),
        linked.put(f"{inside}/ice", update("setProperty", property="a", value="b")),
        linked.put(f"{inside}/ice", update("rename", newName="cold")),
        linked.delete(f"{inside}/ice"),
        linked.post(f"{inside}/delays/partitions", {"partitions": [DAY]}),
    ):
        assert refused.status == 405 and "Schema shared is a resource link" in refused.message, refused.body
    assert not [operation for operation, _ in glue.calls if operation.startswith(("Create", "Update", "Delete"))]
    assert files(glue) == lake
    glue.calls.clear()
    glue._rules.append(refused_as("AccessDeniedException", "GetTables"))
    assert linked.delete(f"{SCHEMAS}/shared?cascade=true")["dropped"] is True
    assert {"DeleteDatabase", "GetDatabase"} == {operation for operation, _ in glue.calls}
    assert not ReservedPlace.objects.exists()
