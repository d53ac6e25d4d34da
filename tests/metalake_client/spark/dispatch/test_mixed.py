"""Iceberg's and Hive's tables by one name in real Spark 4.1, on a real metastore and a real Metalake server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

from tests.catalogs.racing import Client
from tests.glue import Glue
from tests.hms import HiveMetastore
from tests.iceberg_rest.world import COLUMNS, view_version
from tests.jars import jars, pyspark_jars
from tests.metalake_client.spark.dispatch.mixed import jar_for, left_by_others, mixed, registered, sql_of
from tests.providers.glue_catalogs import settings as glue_settings
from tests.servers import MetalakeServer, on_a_migrated_store, prepare
from tests.spark import Rows, Spark, SparkError

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
MISSING = {
    "delta": "the jar is missing: io.delta:delta-spark_2.13:4.1.0",
    "hudi": "Hudi has no jar for this Spark; Spark 3.5 has org.apache.hudi:hudi-spark3.5-bundle_2.12:1.0.2",
}
MESSAGE = "Spark 4.1 knows one metastore, and this is not the one"


class World(NamedTuple):
    """A database of a metastore: `lake` has all its tables in Spark, `other` only those of Iceberg."""

    sql: Callable[..., list[Rows]]
    server: MetalakeServer
    catalog: str
    database: str

    def wire(self) -> RestCatalog:
        auth = {"type": "basic", "basic": {"username": "admin", "password": self.server.admin_password}}
        return RestCatalog("lake", uri=f"{self.server.url}/iceberg/demo", warehouse=self.catalog, auth=auth)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, hms: HiveMetastore) -> Iterator[MetalakeServer]:
    server = prepare(tmp_path_factory.mktemp("metalake"), METALAKE_FILE_LOCATIONS=str(hms.warehouse))
    on_a_migrated_store(server)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def world(server: MetalakeServer, hms: HiveMetastore, iceberg_spark: Spark) -> World:
    catalog = registered(server, "hive", {"metastore.uris": hms.uri})
    settings = mixed(server, "other", catalog, hive="none", message=MESSAGE)
    for name in ("lake", "spark_catalog"):
        settings |= mixed(server, name, catalog, hive="session")
    sql = sql_of(iceberg_spark, jar_for(pyspark_jars(), jars("iceberg-spark")[0]), settings)
    database = hms.create_database("mixed")
    left_by_others(hms, database)
    sql(
        f"create table lake.{database}.text (a int, p string) using hive options (fileFormat 'textfile')",
        f"create table lake.{database}.orc (a int, p string) using orc",
        f"create table lake.{database}.parts (a int, p string) using parquet partitioned by (p)",
        f"create table lake.{database}.ice (a int, p string) using iceberg",
        *(f"insert into lake.{database}.{name} values (1, 'x')" for name in ("text", "orc", "parts", "ice")),
        f"create view {database}.plain as select a + 1 as b from {database}.text",
    )
    return World(sql, server, catalog, database)


def test_each_table_is_read_and_written_in_its_own_format(world: World, hms: HiveMetastore) -> None:
    world.wire().load_table((world.database, "ice")).append(pa.table({"a": pa.array([2], pa.int32()), "p": ["y"]}))
    *_, joined, parts, counted, tables = world.sql(
        f"use lake.{world.database}",
        "insert into parts values (2, 'y')",
        "select text.a, orc.p, plain.b, ice.a as i from text, orc, plain, ice order by i",
        f"select a, p from spark_catalog.{world.database}.parts order by a",
        f"select count(*) as n from lake.{world.database}.ice.snapshots",
        "show tables",
    )
    assert joined == [{"a": 1, "p": "x", "b": 2, "i": 1}, {"a": 1, "p": "x", "b": 2, "i": 2}]
    assert parts == [{"a": 1, "p": "x"}, {"a": 2, "p": "y"}], "the partition was not told to the metastore"
    assert counted == [{"n": 2}]
    assert {"text", "orc", "parts", "ice", "of_delta"} <= {row["tableName"] for row in tables}
    with hms.client() as client:
        entries = {name: client.get_table(world.database, name) for name in ("text", "orc", "parts", "ice")}
    assert entries["ice"].parameters["table_type"] == "ICEBERG"
    assert [entries[name].sd.inputFormat.rpartition(".")[2] for name in ("text", "orc", "parts")] == [
        "TextInputFormat", "OrcInputFormat", "MapredParquetInputFormat",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ("of_delta", "it is a table of delta, and the jar is missing: io.delta:delta-spark_2.13:4.1.0"),
        ("of_hudi", "it is a table of hudi, and Hudi has no jar for this Spark"),
        ("of_nothing", "its entry names no format"),
        ("of_trino", "it is a view in the SQL of Trino, which is its only query: make one for Spark beside it"),
        ("text version as of 1", "it is not a table of Iceberg, so it has no earlier versions"),
    ],
)
def test_what_spark_cannot_read_is_refused_with_the_reason(world: World, table: str, why: str) -> None:
    with pytest.raises(SparkError) as refused:
        world.sql(f"select * from lake.{world.database}.{table}")
    name = table.partition(" ")[0]
    assert str(refused.value).startswith(f"lake.{world.database}.{name} cannot be used here: {why}")


@pytest.mark.parametrize(("format", "why"), MISSING.items())
def test_what_has_a_format_whose_jar_is_missing_is_not_made(world: World, format: str, why: str) -> None:
    name = f"{world.database}.made"
    for statement in (
        f"create table lake.{name} (a int) using {format}",
        f"create table lake.{name} using {format} partitioned by (a) as select 1 as a, 2 as b",
        f"create table spark_catalog.{name} using {format} location 'file:/nowhere'",
        f"create temporary view made using {format} options (path 'file:/nowhere')",
    ):
        with pytest.raises(SparkError) as refused:
            world.sql(statement)
        assert why in str(refused.value), statement
    (tables,) = world.sql(f"show tables in lake.{world.database} like 'made'")
    assert tables == []


def test_a_table_that_metalake_hides_is_not_read_around_it(world: World, hms: HiveMetastore) -> None:
    """Here its metadata is gone from the metastore's entry, so that Metalake answers 404 for it."""
    world.sql(f"create table lake.{world.database}.hidden (a int) using iceberg")
    with hms.client() as client:
        entry = client.get_table(world.database, "hidden")
        del entry.parameters["metadata_location"]
        client.alter_table(world.database, "hidden", entry)
    with pytest.raises(SparkError, match="a table of Iceberg in the metastore, and Metalake does not show it to you"):
        world.sql(f"select * from lake.{world.database}.hidden")


def test_without_hive_its_tables_are_refused_and_not_missing(world: World, iceberg_spark: Spark) -> None:
    (rows,) = world.sql(f"select count(*) as n from other.{world.database}.ice")
    assert rows[0]["n"] >= 1
    for statement in ("select * from {}", "insert into {} values (2, 'y')", "drop table {}", "drop table if exists {}"):
        with pytest.raises(SparkError, match=f"cannot be used here: {MESSAGE}"):
            world.sql(statement.format(f"other.{world.database}.text"))
    said = len(iceberg_spark.log.read_text())
    with pytest.raises(SparkError) as missing:
        world.sql(f"select * from other.{world.database}.nothing")
    assert missing.value.condition == "TABLE_OR_VIEW_NOT_FOUND"
    assert "\n\tat " not in iceberg_spark.log.read_text()[said:], "a trace of Java for each absent name"
    with pytest.raises(SparkError) as there:
        world.sql(f"create table other.{world.database}.text (a int) using iceberg")
    assert there.value.condition == "TABLE_OR_VIEW_ALREADY_EXISTS"
    delimited = "(a int) row format delimited fields terminated by ','"
    for statement in ("(a int) stored as parquet", "stored as orc as select 1 as a", delimited):
        with pytest.raises(SparkError, match=f"STORED AS and ROW FORMAT are of tables of Hive .*: {MESSAGE}"):
            world.sql(f"create table other.{world.database}.stored {statement}")


def test_an_iceberg_view_without_sql_of_spark_is_refused_with_what_to_do(world: World) -> None:
    name, version = "of_trino_in_iceberg", view_version("trino")
    view = {"name": name, "schema": COLUMNS, "view-version": version, "properties": {}}
    path = f"/iceberg/demo/v1/{world.catalog}/namespaces/{world.database}/views"
    made = Client(world.server.url).send("POST", path, view)
    assert made.status == 200, made.body
    for catalog in ("lake", "other"):
        with pytest.raises(SparkError) as refused:
            world.sql(f"select * from {catalog}.{world.database}.{name}")
        why = "it is a view in the SQL of Trino, and has none that Spark reads: `gcli view add-dialect` adds one"
        assert str(refused.value).startswith(f"{catalog}.{world.database}.{name} cannot be used here: {why}")


def test_the_metastore_is_asked_once_about_each_table_of_iceberg(world: World, hms: HiveMetastore) -> None:
    """By Spark, whose connection the log knows by a name of its own; Metalake asks the metastore, too."""

    def asked(table: str, since: int = 0) -> list[str]:
        words = f"get_table : db={world.database} tbl={table}\t"
        log = (hms.folder / "hms.log").read_text()[since:]
        return [line.split("[")[1].split("]")[0] for line in log.splitlines() if words in line]

    before = len((hms.folder / "hms.log").read_text())
    world.sql(f"select a from lake.{world.database}.orc")
    (spark,) = set(asked("orc", before))  # Metalake is not asked about it
    world.sql(*[f"select a from lake.{world.database}.ice"] * 3)
    assert asked("ice", before).count(spark) == 1


def test_a_table_that_metalake_made_in_another_format(world: World) -> None:
    body = {"name": "ours", "columns": [{"name": "a", "type": "integer"}], "properties": {"format": "ORC"}}
    path = f"/api/metalakes/demo/catalogs/{world.catalog}/schemas/{world.database}/tables"
    assert Client(world.server.url).send("POST", path, body).status == 200
    *_, rows = world.sql(f"insert into lake.{world.database}.ours values (7)", f"table lake.{world.database}.ours")
    assert rows == [{"a": 7}]


def test_a_table_that_changes_its_kind_is_read_as_what_it_is(world: World) -> None:
    name = f"lake.{world.database}.changing"
    *_, first, _, _, _, second = world.sql(
        f"create table {name} (a int) using iceberg",
        f"insert into {name} values (1)",
        f"select * from {name}",
        f"drop table {name}",
        f"create table {name} (b int) using parquet",
        f"insert into {name} values (2)",
        f"select * from {name}",
    )
    assert (first, second) == ([{"a": 1}], [{"b": 2}])


def test_hive_tables_of_glue_are_refused(
    server: MetalakeServer, world: World, glue: Glue, iceberg_spark: Spark
) -> None:
    glue.create_bucket("lake")
    client = glue.client()
    client.create_database(DatabaseInput={"Name": "flights"})
    columns = [{"Name": "a", "Type": "int"}]
    text = {"Columns": columns, "Location": "s3://lake/t", "InputFormat": "org.apache.hadoop.mapred.TextInputFormat"}
    client.create_table(DatabaseName="flights", TableInput={"Name": "plain", "StorageDescriptor": text})
    catalog = registered(server, "glue", glue_settings(glue))
    why = "a client of Glue for Hive is not on Maven Central; Trino's lakehouse connector reads these tables"
    jar = jar_for(pyspark_jars(), jars("iceberg-spark")[0])
    sql = sql_of(iceberg_spark, jar, mixed(server, "glue", catalog, hive="none", message=why))
    with pytest.raises(SparkError, match=f"glue.flights.plain cannot be used here: {why}"):
        sql("select * from glue.flights.plain")
    with pytest.raises(SparkError) as missing:
        sql("select * from glue.flights.nothing")
    assert missing.value.condition == "TABLE_OR_VIEW_NOT_FOUND"
