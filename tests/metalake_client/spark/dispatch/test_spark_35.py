"""Iceberg's and Hive's tables by one name in Spark 3.5, through Kyuubi's connector; 4.1 is in test_mixed.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from metalake_client.engines.spark_pairs import pair_for
from tests.hms import HiveMetastore, running_hms
from tests.jars import JarsMissing, jars, needs_jars
from tests.metalake_client.spark.dispatch.mixed import jar_for, left_by_others, mixed, registered, sql_of
from tests.packages import installed
from tests.servers import MetalakeServer, on_a_migrated_store, prepare
from tests.spark import SPARK_35, Rows, SparkError, needs_spark, running_spark

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(1200),  # the first time it fetches 380 MB: Spark 317, Iceberg 48, Delta 7, Kyuubi 4
]
JARS = "spark-3.5-mixed"
SPARK_354 = {
    "pyspark==3.5.4": "1c2926d63020902163f58222466adf6f8016f6c43c1f319b8e7a71dbaa05fc51",
    **{pin: sha256 for pin, sha256 in SPARK_35.items() if not pin.startswith("pyspark")},
}
DELTA = "org.apache.spark.sql.delta.catalog.DeltaCatalog"


class World(NamedTuple):
    """Two metastores, `lake` and `second` in Spark, with a database each."""

    sql: Callable[..., list[Rows]]
    server: MetalakeServer
    lake: str
    second: str


@pytest.fixture(scope="module")
def second_hms() -> Iterator[HiveMetastore]:
    with running_hms() as second:
        yield second


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, hms: HiveMetastore, second_hms: HiveMetastore) -> Iterator[World]:
    needs_spark()
    needs_jars(JARS)
    try:
        packages = installed("spark-3.5.4", SPARK_354)
    except JarsMissing as missing:
        pytest.skip(f"needs Spark 3.5: {missing}")
    jar = jar_for(packages / "pyspark" / "jars", jars(JARS)[0])
    places = [hms.warehouse, second_hms.warehouse]
    server = prepare(tmp_path_factory.mktemp("metalake"), METALAKE_FILE_LOCATIONS=",".join(map(str, places)))
    on_a_migrated_store(server)
    server.start()
    settings = {"spark.sql.catalog.spark_catalog": DELTA, "spark.databricks.delta.snapshotPartitions": "1"}
    for name, metastore in (("lake", hms), ("second", second_hms)):
        uris = {"kyuubi.hive.metastore.uris": metastore.uri}
        catalog = registered(server, "hive", {"metastore.uris": metastore.uri})
        settings |= mixed(server, name, catalog, hive="kyuubi", **uris)
    delta = ["io.delta.sql.DeltaSparkSessionExtension"]
    with running_spark(hms, iceberg=JARS, warehouses=places, packages=packages, extensions=delta) as spark:
        assert pair_for(spark.version).hive, "Kyuubi's connector reads nothing here"
        made = World(sql_of(spark, jar, settings), server, hms.create_database(), second_hms.create_database())
        left_by_others(hms, made.lake)
        yield made
    server.stop()


def test_two_metastores_are_there_by_their_names(world: World) -> None:
    for name, database in (("lake", world.lake), ("second", world.second)):
        world.sql(
            f"create table {name}.{database}.text (a int, p string) using hive options (fileFormat 'textfile')",
            f"create table {name}.{database}.orc (a int, p string) using orc",
            f"create table {name}.{database}.parts (a int, p string) using parquet partitioned by (p)",
            f"create table {name}.{database}.ice (a int, p string) using iceberg",
            *(f"insert into {name}.{database}.{each} values (1, '{name}')" for each in ("text", "orc", "parts", "ice")),
        )
    for name, database in (("lake", world.lake), ("second", world.second)):
        (rows,) = world.sql(
            f"select t.a, o.p as o, r.p as r, i.p as i from {name}.{database}.text t, {name}.{database}.orc o,"
            f" {name}.{database}.parts r, {name}.{database}.ice i"
        )
        assert rows == [{"a": 1, "o": name, "r": name, "i": name}]


def test_a_table_of_delta_is_read_and_written(world: World) -> None:
    name = f"{world.lake}.of_spark"
    *_, rows = world.sql(
        f"create table {name} (a int) using delta",
        f"insert into {name} values (1)",
        f"insert into lake.{name} values (2)",
        f"select a from lake.{name} order by a",
    )
    assert rows == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("select * from lake.{}.of_hudi", "a table of hudi, and the jar is missing: org.apache.hudi:hudi-spark3.5-"),
        ("select * from lake.{}.of_nothing", "its entry names no format"),
        ("select * from lake.{}.of_trino", "it is a view in the SQL of Trino"),
        ("create table lake.{}.made (a int) using hudi", "jar is missing: org.apache.hudi:hudi-spark3.5-bundle_2.12"),
        ("create table lake.{}.made (a int) using csv", "Kyuubi's connector makes no tables of csv"),
        ("alter table lake.{}.columns add columns (z int)", "Kyuubi's connector would leave the columns as they are"),
    ],
)
def test_what_kyuubi_cannot_do_is_refused(world: World, statement: str, why: str) -> None:
    world.sql(f"create table if not exists lake.{world.lake}.columns (a int) using orc")
    with pytest.raises(SparkError, match=why):
        world.sql(statement.format(world.lake))
