"""Flink 2.1.1 with Iceberg's catalog through the SQL that is generated for a metalake.

The first time it fetches 400 MB; the test of a Hive catalog takes Flink 1.20.1, 231 MB.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

from metalake_client.engines import flink as engine
from metalake_client.engines.schemas import parents_of
from tests.engines.lakes import reader_of, running_lakes, shown, token_of_a_reader
from tests.flink import WITH_HIVE, WITH_ICEBERG, Flink, FlinkError, of_hadoop, running_flink
from tests.hms import HiveMetastore
from tests.iceberg_rest.test_duckdb import token_of
from tests.iceberg_rest.test_pyiceberg import connect
from tests.names import own_name
from tests.servers import MetalakeServer

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]  # with what it fetches


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: pytest.TempPathFactory, hms: HiveMetastore) -> Iterator[MetalakeServer]:
    with running_lakes(tmp_path_factory.mktemp("metalake"), hms) as server:
        yield server


@pytest.fixture(scope="module")
def ice(lakes: MetalakeServer) -> RestCatalog:
    return connect(lakes)


@pytest.fixture(scope="module")
def home(ice: RestCatalog) -> str:
    """A schema of the tests with `emea` in it; made before the file, which has a catalog for each that holds others."""
    name = own_name("flink")
    ice.create_namespace((name, "emea"))
    return name


@pytest.fixture(scope="module")
def flink(lakes: MetalakeServer, home: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flink]:
    with attached(lakes, token_of(lakes, "admin"), tmp_path_factory.mktemp("flink")) as started:
        yield started


@contextmanager
def attached(lakes: MetalakeServer, token: str, folder: Path) -> Iterator[Flink]:
    """Flink with the generated catalogs of `lake`, for the user of a token."""
    catalogs = [each for each in shown(lakes) if each.name == "lake"]
    rendered = engine.render(lakes.url, "demo", catalogs, parents=parents_of(reader_of(lakes), "demo", catalogs))
    text = rendered.files[engine.FILE]
    assert token not in text
    places = [lakes.home]
    with running_flink(folder, WITH_ICEBERG, places=places, environment={engine.TOKEN: token}) as started:
        for statement in statements(text):
            started.sql(statement)
        yield started


def statements(text: str) -> list[str]:
    """Those of a file; the gateway takes one at a time."""
    return [each for each in text.split(";\n") if each.strip()]


def test_it_lists_one_level_of_schemas_in_each_catalog(flink: Flink, home: str) -> None:
    assert [home] in flink.sql("SHOW DATABASES IN lake")
    assert [f"{home}.emea"] not in flink.sql("SHOW DATABASES IN lake")
    assert [f"lake.{home}"] in flink.sql("SHOW CATALOGS")
    assert flink.sql(f"SHOW DATABASES IN `lake.{home}`") == [["emea"]]


def test_a_table_lives_and_ends(flink: Flink, ice: RestCatalog, home: str) -> None:
    table = f"`lake.{home}`.emea.t"
    flink.sql(f"CREATE TABLE {table} (id BIGINT, city STRING)")
    flink.sql(f"INSERT INTO {table} VALUES (1, 'Oslo'), (2, 'Rome')")
    assert flink.sql(f"SELECT * FROM {table} ORDER BY id") == [[1, "Oslo"], [2, "Rome"]]
    flink.sql(f"ALTER TABLE {table} ADD zip STRING")
    flink.sql(f"INSERT INTO {table} VALUES (3, 'Lima', '15001')")
    made = ice.load_table((home, "emea", "t"))
    assert made.scan().to_arrow().sort_by("id")["zip"].to_pylist() == [None, None, "15001"]
    made.append(pa.table({"id": pa.array([4], pa.int64()), "city": ["Kiel"], "zip": ["24103"]}))
    assert flink.sql(f"SELECT COUNT(*) FROM {table}") == [[4]]
    flink.sql(f"DROP TABLE {table}")
    assert ice.list_tables((home, "emea")) == []


def test_an_upsert_replaces_by_the_key(flink: Flink, ice: RestCatalog, home: str) -> None:
    table = f"lake.{home}.latest"
    flink.sql(
        f"CREATE TABLE {table} (id BIGINT, city STRING, PRIMARY KEY (id) NOT ENFORCED)"
        " WITH ('format-version' = '2', 'write.upsert.enabled' = 'true')"
    )
    flink.sql(f"INSERT INTO {table} VALUES (1, 'Oslo'), (2, 'Rome')")
    flink.sql(f"INSERT INTO {table} VALUES (1, 'Bergen')")
    assert flink.sql(f"SELECT * FROM {table} ORDER BY id") == [[1, "Bergen"], [2, "Rome"]]
    assert ice.load_table((home, "latest")).schema().identifier_field_names() == {"id"}


def test_a_schema_lives_and_ends(flink: Flink, ice: RestCatalog, home: str) -> None:
    flink.sql(f"CREATE DATABASE `lake.{home}`.apac")
    assert (home, "apac") in ice.list_namespaces(home)
    flink.sql(f"DROP DATABASE `lake.{home}`.apac")
    assert (home, "apac") not in ice.list_namespaces(home)


def test_a_reader_reads_and_changes_nothing(lakes: MetalakeServer, ice: RestCatalog, home: str, tmp_path: Path) -> None:
    table = ice.create_table((home, "read"), pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": pa.array([7], pa.int64())}))
    with attached(lakes, token_of_a_reader(lakes), tmp_path) as theirs:
        assert theirs.sql(f"SELECT * FROM lake.{home}.`read`") == [[7]]
        for statement in (
            f"CREATE TABLE lake.{home}.made (id BIGINT)",
            f"DROP TABLE lake.{home}.`read`",
            f"CREATE DATABASE `lake.{home}`.made",
        ):
            with pytest.raises(FlinkError, match=r"Forbidden|may not"):
                theirs.sql(statement)
        with pytest.raises(FlinkError):  # refused as its job commits, of which the gateway says only that it failed
            theirs.sql(f"INSERT INTO lake.{home}.`read` VALUES (8)")
    assert ice.load_table((home, "read")).scan().count() == 1 and (home, "made") not in ice.list_namespaces(home)


def test_a_metastore_s_tables(
    lakes: MetalakeServer, hms: HiveMetastore, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Maven Central has Flink's Hive catalog for 1.20: its generated statement and hive-site.xml are run on that."""
    folder, database = tmp_path_factory.mktemp("flink"), hms.create_database("flink")
    catalogs = [each for each in shown(lakes) if each.name == "hive"]
    rendered = engine.render(lakes.url, "demo", catalogs, folder=str(folder / "files"), version="1.20.1")
    for name, text in rendered.files.items():
        (folder / "files" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "files" / name).write_text(text)
    with running_flink(folder, WITH_HIVE, more=of_hadoop()) as flink:
        flink.sql(statements(rendered.files[engine.FILE])[0])
        assert [database] in flink.sql("SHOW DATABASES IN hive")
