"""Trino 476 and 483 through the files that are generated for a metalake.

The first time it fetches 821 MB for Trino 476 and 490 MB for Trino 483; -k 476 and -k 483 run one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest
from pyiceberg.catalog.rest import RestCatalog

from metalake_client.engines import trino as engine
from tests.catalogs.racing import Client
from tests.engines.lakes import running_lakes, shown, token_of_a_reader
from tests.hms import HiveMetastore
from tests.iceberg_rest.test_duckdb import token_of
from tests.iceberg_rest.test_pyiceberg import connect
from tests.names import own_name
from tests.servers import MetalakeServer
from tests.trino import Trino, TrinoError, running_trino
from tests.trino_483 import running_trino_483

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]  # with what it fetches

STARTS = {476: running_trino, 483: running_trino_483}
READERS_TOKEN = "READERS_TOKEN"
# Else it stages rows below /tmp, where it may write nothing here.
IN_PLACE = "hive.temporary-staging-directory-enabled=false\n"
REFUSED = r"Forbidden|Failed to|not allowed|Access Denied"


@dataclass
class World:
    version: int
    trino: Trino
    server: MetalakeServer
    ice: RestCatalog
    files: Mapping[str, str]
    secrets: Mapping[str, str]


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: pytest.TempPathFactory, hms: HiveMetastore) -> Iterator[MetalakeServer]:
    with running_lakes(tmp_path_factory.mktemp("metalake"), hms) as server:
        yield server


@pytest.fixture(scope="module", params=STARTS)
def world(
    request: pytest.FixtureRequest,
    lakes: MetalakeServer,
    hms: HiveMetastore,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[World]:
    """Trino with the generated files, and with `theirs`: that of `lake` again, with a reader's token."""
    rendered = engine.render(lakes.url, "demo", shown(lakes), version=request.param)
    assert not rendered.refused
    files = {name.removesuffix(".properties"): text for name, text in rendered.files.items()}
    secrets = {engine.TOKEN: token_of(lakes, "admin"), READERS_TOKEN: token_of_a_reader(lakes)}
    given = files | {"theirs": files["lake"].replace(engine.TOKEN, READERS_TOKEN)}
    if "hive" in files:
        given["hive"] = files["hive"] + IN_PLACE
    folder = tmp_path_factory.mktemp("trino")
    with STARTS[request.param](folder, given, secrets, [lakes.home, hms.warehouse]) as trino:
        yield World(request.param, trino, lakes, connect(lakes), files, secrets)


@pytest.fixture
def home(world: World) -> str:
    """A schema of the test's own."""
    name = own_name("trino")
    world.trino.sql(f"CREATE SCHEMA lake.{name}")
    return name


def test_each_catalog_is_there_and_no_secret_is_in_a_file(world: World) -> None:
    assert set(world.files) == {"lake", "hive_iceberg"} | ({"hive"} if world.version == 476 else set())
    assert {name for (name,) in world.trino.sql("SHOW CATALOGS")} >= set(world.files)
    assert not [text for text in world.files.values() for secret in world.secrets.values() if secret in text]


def test_a_table_in_a_nested_schema(world: World, home: str) -> None:
    sql, nested = world.trino.sql, f'lake."{home}.emea"'
    sql(f'CREATE SCHEMA lake."{home}.emea.2026"')
    assert {f"{home}", f"{home}.emea", f"{home}.emea.2026"} <= {name for (name,) in sql("SHOW SCHEMAS FROM lake")}
    sql(f"CREATE TABLE {nested}.t (id bigint, city varchar) WITH (partitioning = ARRAY['bucket(id, 4)'])")
    assert sql(f"INSERT INTO {nested}.t VALUES (1, 'Oslo'), (2, 'Rome'), (3, 'Lima')") == [[3]]
    ((before,),) = sql(f'SELECT snapshot_id FROM {nested}."t$snapshots" ORDER BY committed_at DESC LIMIT 1')
    merged = sql(
        f"MERGE INTO {nested}.t USING (VALUES (2, 'Roma'), (4, 'Kiel')) AS n (id, city) ON t.id = n.id"
        " WHEN MATCHED THEN UPDATE SET city = n.city WHEN NOT MATCHED THEN INSERT VALUES (n.id, n.city)"
    )
    assert merged == [[2]]
    assert sql(f"DELETE FROM {nested}.t WHERE id = 1") == [[1]]
    sql(f"ALTER TABLE {nested}.t EXECUTE optimize")
    now = [[2, "Roma"], [3, "Lima"], [4, "Kiel"]]
    assert sql(f"SELECT * FROM {nested}.t ORDER BY id") == now
    then = sql(f"SELECT city FROM {nested}.t FOR VERSION AS OF {before} ORDER BY id")
    assert then == [["Oslo"], ["Rome"], ["Lima"]]
    ((last,),) = sql(f'SELECT operation FROM {nested}."t$snapshots" ORDER BY committed_at DESC LIMIT 1')
    assert last == "replace"
    rows = world.ice.load_table((home, "emea", "t")).scan().to_arrow().sort_by("id").to_pylist()
    assert [[row["id"], row["city"]] for row in rows] == now
    sql(f"CREATE TABLE {nested}.c AS SELECT id FROM {nested}.t")
    assert world.ice.load_table((home, "emea", "c")).scan().count() == 3
    sql(f"DROP TABLE {nested}.c")
    assert world.ice.list_tables((home, "emea")) == [(home, "emea", "t")]


@pytest.mark.parametrize(("mode", "ours"), [("DEFINER", "DEFINER"), ("INVOKER", None)])
def test_a_view_has_its_security_mode(world: World, home: str, mode: str, ours: str | None) -> None:
    """Trino notes in an Iceberg view that it runs as its owner, and of another nothing: the catalog shows as much."""
    sql = world.trino.sql
    sql(f"CREATE TABLE lake.{home}.t AS SELECT 7 AS id")
    sql(f"CREATE VIEW lake.{home}.v SECURITY {mode} AS SELECT id FROM lake.{home}.t")
    assert sql(f"SELECT * FROM lake.{home}.v") == [[7]]
    ((created,),) = sql(f"SHOW CREATE VIEW lake.{home}.v")
    assert f"SECURITY {mode}" in created
    path = f"/api/metalakes/demo/catalogs/lake/schemas/{home}/views/v"
    view = Client(world.server.url).send("GET", path).body["view"]
    assert (view["securityMode"], [each["dialect"] for each in view["representations"]]) == (ours, ["trino"])


def test_a_reader_reads_and_changes_nothing(world: World, home: str) -> None:
    sql = world.trino.sql
    sql(f"CREATE TABLE lake.{home}.t AS SELECT 7 AS id")
    sql(f"CREATE VIEW lake.{home}.v SECURITY INVOKER AS SELECT id FROM lake.{home}.t")
    assert sql(f"SELECT * FROM theirs.{home}.t") == [[7]]
    assert sql(f"SELECT * FROM theirs.{home}.v") == [[7]]
    for statement in (
        f"INSERT INTO theirs.{home}.t VALUES (8)",
        f"DELETE FROM theirs.{home}.t WHERE id = 7",
        f"CREATE TABLE theirs.{home}.u AS SELECT 1 AS id",
        f"CREATE VIEW theirs.{home}.w AS SELECT 1 AS id",
        f"DROP TABLE theirs.{home}.t",
        f'CREATE SCHEMA theirs."{home}.inner"',
    ):
        with pytest.raises(TrinoError, match=REFUSED):
            sql(statement)
    assert sql(f"SHOW TABLES FROM theirs.{home}") == [["t"], ["v"]]
    assert sql(f"SELECT * FROM lake.{home}.t") == [[7]]


def test_a_metastore_s_tables(world: World, hms: HiveMetastore) -> None:
    """Hive's own through the metastore, Iceberg's through our wire, to which Trino's Hive connector redirects.

    Trino 483 found no row of Hive tables in a local folder, without an error, so no file is made for them.
    """
    sql, database = world.trino.sql, hms.create_database("trino")
    if world.version == 483:
        sql(f"CREATE TABLE hive_iceberg.{database}.ice AS SELECT 7 AS id")
        assert sql(f"SELECT * FROM hive_iceberg.{database}.ice") == [[7]]
        return
    sql(f"CREATE TABLE hive.{database}.orders (id bigint, city varchar) WITH (format = 'ORC')")
    assert sql(f"INSERT INTO hive.{database}.orders VALUES (1, 'Oslo'), (2, 'Rome')") == [[2]]
    sql(f"CREATE TABLE hive.{database}.cities AS SELECT city FROM hive.{database}.orders")
    assert sql(f"SELECT count(*) FROM hive.{database}.cities") == [[2]]
    sql(f"CREATE TABLE hive_iceberg.{database}.ice AS SELECT 7 AS id")
    assert sql(f"SELECT * FROM hive.{database}.ice") == sql(f"SELECT * FROM hive_iceberg.{database}.ice") == [[7]]
    tables = Client(world.server.url).send("GET", f"/api/metalakes/demo/catalogs/hive/schemas/{database}/tables").body
    assert sorted(each["name"] for each in tables["identifiers"]) == ["cities", "ice", "orders"]
