"""What the two metastores and Spark really do, and what the tests of the provider rest on."""

from collections.abc import Callable

import pytest
from hive_metastore.ThriftHiveMetastore import Client
from hive_metastore.ttypes import (
    EnvironmentContext,
    FieldSchema,
    LockComponent,
    LockLevel,
    LockRequest,
    LockResponse,
    LockState,
    LockType,
    MetaException,
    SerDeInfo,
    StorageDescriptor,
    Table,
    UnlockRequest,
)

from tests.hms import NEW, HiveMetastore
from tests.spark import Spark, SparkError, iceberg_catalog

pytestmark = pytest.mark.timeout(300)  # a test that is the first to ask may start three Java processes


def make_table(hms: HiveMetastore, client: Client, database: str, name: str, **parameters: str) -> Table:
    columns = [FieldSchema("carrier", "string", "two letters"), FieldSchema("delay", "int", "")]
    storage = StorageDescriptor(cols=columns, location=(hms.warehouse / name).as_uri(), serdeInfo=SerDeInfo())
    client.create_table(
        Table(
            dbName=database,
            tableName=name,
            tableType="EXTERNAL_TABLE",
            parameters={"EXTERNAL": "TRUE", **parameters},
            partitionKeys=[],
            sd=storage,
        )
    )
    return client.get_table(database, name)


def lock(client: Client, database: str, table: str) -> LockResponse:
    component = LockComponent(LockType.EXCLUSIVE, LockLevel.TABLE, database, table)
    return client.lock(LockRequest(component=[component], user="loader", hostname="localhost"))


def alter_if(client: Client, table: Table, key: str, expected: str) -> None:
    context = EnvironmentContext({"expected_parameter_key": key, "expected_parameter_value": expected})
    client.alter_table_with_environment_context(table.dbName, table.tableName, table, context)


def test_a_lock_keeps_the_second_writer_waiting_until_it_is_released(any_hms: HiveMetastore) -> None:
    database = any_hms.create_database()
    with any_hms.client() as client:
        make_table(any_hms, client, database, "delays")
        first, second = lock(client, database, "delays"), lock(client, database, "delays")
        assert (first.state, second.state) == (LockState.ACQUIRED, LockState.WAITING)
        client.unlock(UnlockRequest(first.lockid))
        assert lock(client, database, "delays").state == LockState.WAITING  # the second stands before it
        client.unlock(UnlockRequest(second.lockid))
        client.drop_database(database, False, True)


def test_an_alter_with_a_stale_expectation_is_refused_by_2_3_10_and_done_by_2_3_9(any_hms: HiveMetastore) -> None:
    database = any_hms.create_database()
    with any_hms.client() as client:
        table = make_table(any_hms, client, database, "delays", metadata_location="file:///v1")
        table.parameters["metadata_location"] = "file:///v2"
        if any_hms.version == NEW:
            with pytest.raises(MetaException, match="has been modified"):
                alter_if(client, table, "metadata_location", "file:///v0")
        else:
            alter_if(client, table, "metadata_location", "file:///v0")
        now = client.get_table(database, "delays").parameters["metadata_location"]
        assert now == ("file:///v1" if any_hms.version == NEW else "file:///v2")
        alter_if(client, table, "metadata_location", now)
        assert client.get_table(database, "delays").parameters["metadata_location"] == "file:///v2"


@pytest.mark.long  # as are the tests that kill one
def test_a_killed_metastore_comes_back_with_its_tables(start_hms: Callable[..., HiveMetastore]) -> None:
    hms = start_hms()
    database = hms.create_database()
    with hms.client() as client:
        make_table(hms, client, database, "delays")
    hms.kill()
    assert not hms.is_ready()
    hms.start()
    with hms.client() as client:
        assert client.get_all_tables(database) == ["delays"]


def test_spark_makes_a_table_that_the_thrift_client_reads(hms: HiveMetastore, iceberg_spark: Spark) -> None:
    database = hms.create_database()
    create = f"create table {database}.delays (carrier string, delay int comment 'minutes') partitioned by (year int)"
    insert = f"insert into {database}.delays values ('UA', 12, 2013), ('DL', -3, 2014)"
    *_, rows = iceberg_spark.sql(
        f"{create} stored as orc", insert, f"select carrier, delay from {database}.delays where year = 2013"
    )
    assert rows == [{"carrier": "UA", "delay": 12}]
    with hms.client() as client:
        table = client.get_table(database, "delays")
        assert [(column.name, column.type, column.comment) for column in table.sd.cols] == [
            ("carrier", "string", None),
            ("delay", "int", "minutes"),
        ]
        assert [key.name for key in table.partitionKeys] == ["year"]
        assert table.parameters["spark.sql.create.version"] == iceberg_spark.version
        years = {tuple(partition.values) for partition in client.get_partitions(database, "delays", 10)}
    assert years == {("2013",), ("2014",)}


def test_spark_says_why_it_refused(iceberg_spark: Spark) -> None:
    with pytest.raises(SparkError, match="nowhere") as refused:
        iceberg_spark.sql("select * from nowhere.delays")
    assert refused.value.condition == "TABLE_OR_VIEW_NOT_FOUND"
    assert iceberg_spark.sql("select 1 as still") == [[{"still": 1}]]


def test_each_script_has_a_session_of_its_own(iceberg_spark: Spark) -> None:
    *_, rows = iceberg_spark.sql("create temporary view late as select 'UA' as carrier", "select * from late")
    assert rows == [{"carrier": "UA"}]
    with pytest.raises(SparkError, match="late"):
        iceberg_spark.sql("select * from late")


@pytest.mark.slow
def test_iceberg_in_spark_commits_to_both_metastores(any_hms: HiveMetastore, iceberg_spark: Spark) -> None:
    database = any_hms.create_database()
    lake = iceberg_catalog("lake", type="hive", uri=any_hms.uri, warehouse=any_hms.warehouse.as_uri())
    *_, rows = iceberg_spark.sql(
        f"create table lake.{database}.delays (carrier string) using iceberg",
        f"insert into lake.{database}.delays values ('UA')",
        f"alter table lake.{database}.delays add column delay int",
        f"create view lake.{database}.late (who) as select carrier from lake.{database}.delays",
        f"select * from lake.{database}.delays join lake.{database}.late on who = carrier",
        settings=lake,
    )
    assert rows == [{"carrier": "UA", "delay": None, "who": "UA"}]
    with any_hms.client() as client:
        table, view = client.get_table(database, "delays"), client.get_table(database, "late")
    assert table.parameters["table_type"] == "ICEBERG" and table.parameters["metadata_location"]
    assert (view.tableType, view.parameters["table_type"]) == ("VIRTUAL_VIEW", "ICEBERG-VIEW")
