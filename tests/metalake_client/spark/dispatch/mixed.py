"""Settings of a mixed catalog for a Spark of the tests, and tables that other engines leave in a metastore."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hive_metastore.ttypes import FieldSchema, SerDeInfo, StorageDescriptor, Table

from metalake_client.spark.dispatch import CATALOG, dispatch_jar
from tests.catalogs.racing import Client
from tests.hms import HiveMetastore
from tests.jars import cache
from tests.names import own_name
from tests.servers import MetalakeServer
from tests.spark import Rows, Spark

MAPRED = "org.apache.hadoop.mapred"
SEQUENCE = f"{MAPRED}.SequenceFileInputFormat"
HUDI = "org.apache.hudi.hadoop.HoodieParquetInputFormat"
TRINO = {"presto_view": "true", "comment": "Presto View"}


def mixed(server: MetalakeServer, name: str, catalog: str, **own: str) -> dict[str, str]:
    """The settings by which Spark has a catalog of Metalake's by `name`; `own` are those that begin with `mixed.`"""
    settings = {
        "type": "rest",
        "uri": f"{server.url}/iceberg/demo",
        "warehouse": catalog,
        "rest.auth.type": "basic",
        "rest.auth.basic.username": "admin",
        "rest.auth.basic.password": server.admin_password,
        "mixed.tables": f"{server.url}/api/metalakes/demo/catalogs/{catalog}",
        **{f"mixed.{key}": value for key, value in own.items()},
    }
    where = f"spark.sql.catalog.{name}"
    return {where: CATALOG} | {f"{where}.{key}": value for key, value in settings.items()}


def registered(server: MetalakeServer, provider: str, properties: dict[str, str]) -> str:
    name = own_name("mixed")
    body = {"name": name, "type": "relational", "provider": provider, "properties": properties}
    answer = Client(server.url).send("POST", "/api/metalakes/demo/catalogs", body)
    assert answer.status == 200, answer.body
    return name


def jar_for(spark_jars: Path, runtime: Path) -> Path:
    """The jar, kept with those that the tests fetch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "XDG_CACHE_HOME", str(cache()))
        return dispatch_jar(spark_jars, runtime)


def sql_of(spark: Spark, jar: Path, settings: dict[str, str]) -> Callable[..., list[Rows]]:
    def sql(*statements: str) -> list[Rows]:
        """The rows of each statement, in a new session that has the catalogs."""
        return spark.sql(f"add jar '{jar}'", *statements, settings=settings, timeout=150)[1:]

    return sql


def left_by_others(hms: HiveMetastore, database: str) -> None:
    """Entries as Delta, Hudi and Trino write them, and one that names no format, each with a column and no files."""
    with hms.client() as client:
        for name, input_format, parameters in (
            ("of_delta", SEQUENCE, {"spark.sql.sources.provider": "delta"}),
            ("of_hudi", HUDI, {}),
            ("of_nothing", None, {}),
        ):
            client.create_table(_table(hms, database, name, input_format, parameters))
        view = _table(hms, database, "of_trino", SEQUENCE, TRINO)
        view.tableType, view.viewOriginalText, view.viewExpandedText = "VIRTUAL_VIEW", "/* Presto View: e30= */", "-"
        client.create_table(view)


def _table(hms: HiveMetastore, database: str, name: str, input_format: str | None, parameters: dict[str, str]) -> Table:
    place = hms.warehouse / f"{database}.db" / name
    storage = StorageDescriptor(
        cols=[FieldSchema("a", "int", None)],
        location=place.as_uri(),
        inputFormat=input_format,
        outputFormat="org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat",
        serdeInfo=SerDeInfo(serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", parameters={}),
        parameters={},
    )
    return Table(
        tableName=name,
        dbName=database,
        sd=storage,
        partitionKeys=[],
        parameters={"EXTERNAL": "TRUE", **parameters},
        tableType="EXTERNAL_TABLE",
        owner="others",
    )
