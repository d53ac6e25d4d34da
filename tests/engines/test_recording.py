"""Engines say what was recorded of them. With METALAKE_TEST_RECORD=1 they are recorded again:

    METALAKE_TEST_RECORD=1 make test-long ARGS="tests/engines/test_recording.py -n 0"

It fetches what the engines' other long tests do: 2 GB in all, -k duckdb, spark, flink or trino less.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest

from metalake_client.engines import flink, trino
from metalake_client.engines.catalogs import EngineCatalog
from tests.engines import replaying
from tests.flink import WITH_ICEBERG, running_flink
from tests.iceberg_rest.test_duckdb import EXTENSIONS, extension, token_of
from tests.jars import needs_jars
from tests.recording import running_recorder
from tests.servers import MetalakeServer
from tests.spark import iceberg_catalog, needs_spark, running_spark
from tests.trino import running_trino
from tests.trino_483 import running_trino_483

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]  # with what they fetch

Sql = Callable[[str], object]
BEGIN = ["CREATE SCHEMA lake.sales", 'CREATE SCHEMA lake."sales.emea"']
ORDERS = 'lake."sales.emea".orders'
OF_TRINO = [
    *BEGIN,
    "SHOW SCHEMAS FROM lake",
    f"CREATE TABLE {ORDERS} AS SELECT 1 AS id",
    f"SELECT * FROM {ORDERS}",
    f'CREATE VIEW lake."sales.emea".late AS SELECT id FROM {ORDERS}',
    'SELECT * FROM lake."sales.emea".late',
    'SHOW TABLES FROM lake."sales.emea"',
    'DROP VIEW lake."sales.emea".late',
    f"DROP TABLE {ORDERS}",
]
OF_DUCKDB = [
    *BEGIN,
    f"CREATE TABLE {ORDERS} AS SELECT 1 AS id",
    f"SELECT * FROM {ORDERS}",
    "SHOW ALL TABLES",
    f"DROP TABLE {ORDERS}",
]
OF_SPARK = [
    "CREATE NAMESPACE lake.sales",
    "CREATE NAMESPACE lake.sales.emea",
    "SHOW NAMESPACES IN lake",
    "CREATE TABLE lake.sales.emea.orders AS SELECT 1 AS id",
    "SELECT * FROM lake.sales.emea.orders",
    "CREATE VIEW lake.sales.emea.late AS SELECT id FROM lake.sales.emea.orders",
    "SELECT * FROM lake.sales.emea.late",
    "SHOW TABLES IN lake.sales.emea",
    "DROP VIEW lake.sales.emea.late",
    "DROP TABLE lake.sales.emea.orders",
]
OF_FLINK = [
    "CREATE DATABASE lake.sales",
    "SHOW DATABASES IN lake",
    "CREATE TABLE lake.sales.orders (id INT)",
    "INSERT INTO lake.sales.orders VALUES (1)",
    "SELECT * FROM lake.sales.orders",
    "SHOW TABLES IN lake.sales",
    "DROP TABLE lake.sales.orders",
]


@dataclass
class Place:
    """Where an engine speaks: `url` is the recorder's."""

    url: str
    catalog: str
    token: str
    folder: Path
    warehouse: Path

    @property
    def catalogs(self) -> list[EngineCatalog]:
        shown = {"warehouse": self.warehouse.as_uri()}
        return [EngineCatalog(name=self.catalog, provider="lakehouse-iceberg", properties=shown)]


@contextmanager
def speaking_duckdb(place: Place) -> Iterator[Sql]:
    kept = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    with duckdb.connect(config={**kept, "home_directory": str(place.folder)}) as connection:
        for name in EXTENSIONS:
            connection.execute(f"LOAD '{extension(name)}'")
        connection.execute(f"CREATE SECRET token (TYPE iceberg, TOKEN '{place.token}')")
        wire = f"TYPE iceberg, ENDPOINT '{place.url}/iceberg/demo', SECRET token"
        connection.execute(f"ATTACH '{place.catalog}' AS lake ({wire})")
        yield lambda statement: connection.execute(statement).fetchall()


@contextmanager
def speaking_spark(place: Place) -> Iterator[Sql]:
    needs_spark()
    needs_jars("iceberg-spark")
    wire = {"type": "rest", "uri": f"{place.url}/iceberg/demo", "warehouse": place.catalog, "token": place.token}
    with running_spark(iceberg="iceberg-spark", warehouses=[place.warehouse]) as spark:
        yield partial(spark.sql, settings=iceberg_catalog("lake", **wire))


@contextmanager
def speaking_flink(place: Place) -> Iterator[Sql]:
    text = flink.render(place.url, "demo", place.catalogs).files[flink.FILE]
    token = {flink.TOKEN: place.token}
    with running_flink(place.folder, WITH_ICEBERG, places=[place.warehouse], environment=token) as started:
        started.sql(text.replace(f"`{place.catalog}`", "lake").strip().removesuffix(";"))
        yield started.sql


@contextmanager
def speaking_trino(place: Place, version: int) -> Iterator[Sql]:
    ((_, text),) = trino.render(place.url, "demo", place.catalogs, version=version).files.items()
    start = {476: running_trino, 483: running_trino_483}[version]
    with start(place.folder, {"lake": text}, {trino.TOKEN: place.token}, [place.warehouse]) as started:
        yield started.sql


SPEAKERS: dict[str, tuple[str, Callable[[Place], Any], Sequence[str]]] = {
    "duckdb": ("DuckDB 1.5.5", speaking_duckdb, OF_DUCKDB),
    "spark": ("Spark 4.1 with Iceberg 1.11.0", speaking_spark, OF_SPARK),
    "flink": ("Flink 2.1.1 with Iceberg 1.11.0", speaking_flink, OF_FLINK),
    "trino-476": ("Trino 476", partial(speaking_trino, version=476), OF_TRINO),
    "trino-483": ("Trino 483", partial(speaking_trino, version=483), OF_TRINO),
}


@pytest.mark.parametrize("name", SPEAKERS)
def test_an_engine_says_what_was_recorded(metalake_server: MetalakeServer, tmp_path: Path, name: str) -> None:
    title, speaking, statements = SPEAKERS[name]
    catalog, warehouse = replaying.new_catalog(metalake_server)
    (folder := Path(warehouse.removeprefix("file://"))).mkdir(parents=True, exist_ok=True)
    with running_recorder(metalake_server.url) as recorder:
        place = Place(recorder.url, catalog, token_of(metalake_server, "admin"), tmp_path, folder)
        with speaking(place) as sql:
            for statement in statements:
                sql(statement)
    now = replaying.recorded(recorder.exchanges, catalog, warehouse)
    if os.environ.get("METALAKE_TEST_RECORD"):
        replaying.write(name, title, statements, now)
    recorded = replaying.read(name)["exchanges"]
    assert set(replaying.questions(now)) == set(replaying.questions(recorded))
