"""Resource links of AWS Glue: followed when they are read, never written, and harmless where they lead nowhere."""
# ruff: noqa: F811

from __future__ import annotations

from typing import Any

import orjson
import pytest

from authz.callers.identity import actor_of
from authz.models import User
from catalogs.models import Catalog
from catalogs.services import commits
from metalake.errors import Unsupported
from metalake.lineage import Address
from metalake.models import Securable
from outside import refresh
from providers.glue.deliveries import delivered_table
from providers.glue.provider import GlueProvider
from tests.catalogs.callers import Caller, update
from tests.catalogs.conftest import admin  # noqa: F401 (fixture)
from tests.glue import Fault, Glue, Rule
from tests.providers.glue_catalogs import FLIGHTS, entry, provider, provider_on, storage  # noqa: F401 (fixture)
from tests.providers.test_glue_wire import SCHEMAS, TABLES, caller, files, names  # noqa: F401 (fixture)

OTHER = "210987654321"
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


def test_a_link_is_read_where_it_leads(linked: Caller, glue: Glue) -> None:
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


def test_a_link_is_granted_on_and_dropped_alone(linked: Caller, glue: Glue) -> None:
    linked.post("metalakes/demo/roles", {"name": "readers"})
    body = {"privileges": [{"name": "select_table", "condition": "allow"}]}
    for name in ("hers", "lost"):
        grant = f"metalakes/demo/permissions/roles/readers/table/aws.flights.{name}/grant"
        assert linked.send("PUT", grant, body).status == 200
        assert linked.delete(f"{TABLES}/{name}")["dropped"] is True
    theirs = glue.client().get_tables(CatalogId=OTHER, DatabaseName="db1")["TableList"]
    assert {table["Name"] for table in theirs} == {"t1", "ice"}
    assert not {"hers", "lost"} & set(names(linked.get(TABLES)))


def test_nothing_is_written_through_it(linked: Caller, glue: Glue) -> None:
    theirs, lake = glue.client().get_tables(CatalogId=OTHER, DatabaseName="db1")["TableList"], files(glue)
    comment = update("updateComment", newComment="x")
    value = {"type": "literal", "dataType": "date", "value": "2026-11-21"}
    day = {"type": "identity", "fieldNames": [["day"]], "values": [value], "properties": {}}
    for refused in (
        linked.put(f"{TABLES}/hers", comment),
        linked.put(f"{TABLES}/lost", comment),
        linked.put(f"{TABLES}/icy", comment),
        linked.put(f"{TABLES}/icy", update("rename", newName="cold")),
        linked.post(f"{TABLES}/hers/partitions", {"partitions": [day]}),
    ):
        assert refused.status in (400, 405) and "resource link" in refused.message, refused.body
    icy = Address(metalake="demo", catalog="aws", schema="flights", leaf="icy")
    with pytest.raises(Unsupported):
        commits.commit_table(actor(), icy, [], [{"action": "set-properties", "updates": {"team": "ops"}}])
    assert glue.client().get_tables(CatalogId=OTHER, DatabaseName="db1")["TableList"] == theirs
    assert files(glue) == lake


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
