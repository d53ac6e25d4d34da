"""Iceberg views in a metastore: PyIceberg through our wire, and a real Spark with Iceberg's own Hive catalog."""

from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.exceptions import NoSuchViewError, ViewAlreadyExistsError
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType
from pyiceberg.view.metadata import ViewVersion

from tests.catalogs.racing import Client
from tests.engines.test_iceberg_wire import ROWS, SCHEMA, register, through
from tests.hms import HiveMetastore
from tests.names import own_name
from tests.servers import StartMetalake
from tests.spark import Spark, iceberg_catalog

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

COLUMNS = Schema(NestedField(1, "carrier", StringType()), NestedField(2, "delay", LongType()))


def version(namespace: str, **queries: str) -> ViewVersion:
    return ViewVersion.model_validate(
        {
            "version-id": 1,
            "schema-id": 1,
            "timestamp-ms": 1_700_000_000_000,
            "summary": {"engine-name": "tests"},
            "representations": [{"type": "sql", "sql": sql, "dialect": name} for name, sql in queries.items()],
            "default-catalog": "lake",
            "default-namespace": [namespace],
        }
    )


def test_pyiceberg_and_spark_share_views_with_metalake(
    start_metalake: StartMetalake, hms: HiveMetastore, iceberg_spark: Spark
) -> None:
    server = start_metalake(METALAKE_FILE_LOCATIONS=str(hms.warehouse))
    catalog = register(server, "hive", {"metastore.uris": hms.uri})
    wire, namespace = through(server, catalog), own_name("flights")
    wire.create_namespace(namespace)
    wire.create_table((namespace, "delays"), SCHEMA).append(ROWS)
    lake = iceberg_catalog("lake", type="hive", uri=hms.uri, warehouse=hms.warehouse.as_uri())

    def sql(*statements: str) -> list[Any]:
        return iceberg_spark.sql(f"use lake.{namespace}", *statements, settings=lake)[1:]

    def alter(name: str, *updates: dict[str, Any]) -> Any:
        path = f"/api/metalakes/demo/catalogs/{catalog}/schemas/{namespace}/views/{name}"
        answer = Client(server.url).send("PUT", path, {"updates": list(updates)})
        assert answer.status == 200, answer.body
        return answer.body["view"]

    def text_of(name: str) -> str:
        with hms.client() as client:
            return str(client.get_table(namespace, name).viewOriginalText)

    ours = version(namespace, spark="select carrier, delay from delays where delay > 0", trino="SELECT 1")
    wire.create_view((namespace, "ours"), COLUMNS, ours, properties={"comment": "late ones"})
    with pytest.raises(ViewAlreadyExistsError):
        wire.create_view((namespace, "ours"), COLUMNS, ours)
    late, shown, listed, _ = sql(
        "select * from ours",
        "show create table ours",
        "show views",
        "alter view ours set tblproperties ('owner_team' = 'ops')",
    )
    assert late == [{"carrier": "UA", "delay": 11}] and [row["viewName"] for row in listed] == ["ours"]
    assert "late ones" in shown[0]["createtab_stmt"]
    view = wire.load_view((namespace, "ours"))
    assert view.properties["owner_team"] == "ops" and len(view.current_version().representations) == 2
    early = {"type": "sql", "dialect": "spark", "sql": "select carrier, delay from delays where delay < 0"}
    altered = alter("ours", {"@type": "updateRepresentation", "representation": early})
    assert altered["version"] == 3, "each of three commits is one"
    assert text_of("ours") == early["sql"]

    rows, *_ = sql(
        "select carrier from ours",
        "create view theirs (who comment 'a carrier') comment 'of Spark' as select carrier from delays",
        "create or replace view theirs (who comment 'a carrier') as select carrier from delays where delay > 0",
    )
    assert rows == [{"carrier": "AA"}]
    assert sorted(wire.list_views(namespace)) == [(namespace, "ours"), (namespace, "theirs")]
    assert wire.view_exists((namespace, "theirs")) and not wire.view_exists((namespace, "delays"))
    trino = {"type": "sql", "dialect": "trino", "sql": "SELECT carrier who FROM delays"}
    more = alter("theirs", {"@type": "addRepresentation", "representation": trino})
    assert more["version"] == 3, "both of Spark's, and ours"
    assert [column["name"] for column in more["columns"]] == ["who"]
    renamed = {"@type": "rename", "newName": "renamed"}
    assert alter("theirs", renamed)["name"] == "renamed"
    rows, listed, _ = sql("select * from renamed", "show views", "drop view ours")
    assert rows == [{"who": "UA"}] and sorted(row["viewName"] for row in listed) == ["ours", "renamed"]
    wire.drop_view((namespace, "renamed"))
    with pytest.raises(NoSuchViewError):
        wire.load_view((namespace, "ours"))
    assert wire.list_views(namespace) == []
