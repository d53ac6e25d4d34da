"""A real Spark that metalake_session starts, on a real server and metastore: its catalogs, views and silences."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.views import PROVIDERS
from tests.catalogs.racing import Client
from tests.hms import HiveMetastore
from tests.jars import cache, jars, needs_jars, pyspark_jars
from tests.metalake_client.spark.dispatch.mixed import jar_for
from tests.servers import MetalakeServer, on_a_migrated_store, prepare
from tests.spark import SETTINGS, Spark, SparkError, needs_spark, spark_process

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(1300)]

PROGRAM = Path(__file__).with_name("session_program.py")
DEMO = "/api/metalakes/demo"


@dataclass
class Running:
    """A Spark of a metalake with the catalogs `own`, `OWN`, `a=b`, `hive` (its metastore) and `rows`."""

    spark: Spark
    server: MetalakeServer
    token: str
    database: str  # in the metastore, with a table `texts` of Hive's own
    events: Path
    before_use: list[str]  # the requests that the server had answered when Spark was ready

    def sql(self, *statements: str) -> Any:
        return self.spark.sql(*statements)

    def send(self, method: str, path: str, body: Any = None) -> Any:
        answer = Client(self.server.url, token=self.token).send(method, f"{DEMO}/{path}", body)
        assert answer.status == 200, answer.body
        return answer.body

    @property
    def requests(self) -> list[str]:
        return requests_of(self.server)


def requests_of(server: MetalakeServer) -> list[str]:
    lines = server.log.read_text().splitlines()
    return [line for line in lines if "metalake.access" in line and ("/demo" in line)]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, hms: HiveMetastore) -> Iterator[Running]:
    needs_spark()
    needs_jars("iceberg-spark")
    jar_for(pyspark_jars(), jars("iceberg-spark")[0])  # which a confined process cannot keep
    warehouse = tmp_path_factory.mktemp("warehouse")
    server = prepare(
        tmp_path_factory.mktemp("metalake"),
        METALAKE_FILE_LOCATIONS=f"{warehouse},{hms.warehouse}",
        METALAKE_PROVIDERS=PROVIDERS,
        METALAKE_ACCESS_LOG="true",
    )
    on_a_migrated_store(server)
    server.start()
    try:
        admin = Client(server.url)
        token = admin.send("POST", "/api/tokens", {"name": "spark"}).body["token"]["secret"]
        for name, provider, properties in (
            ("own", "lakehouse-iceberg", {"warehouse": (warehouse / "own").as_uri()}),
            ("OWN", "lakehouse-iceberg", {"warehouse": (warehouse / "other").as_uri()}),
            ("a=b", "lakehouse-iceberg", {"warehouse": (warehouse / "odd").as_uri()}),
            ("hive", "hive", {"metastore.uris": hms.uri}),
            ("rows", "half", {"world": str(server.home / "world.json")}),
        ):
            body = {"name": name, "type": "relational", "provider": provider, "properties": properties}
            answer = admin.send("POST", f"{DEMO}/catalogs", body)
            assert answer.status == 200, answer.body
        database = hms.create_database()
        (events := warehouse / "events").mkdir()
        before = len(requests_of(server))
        folder = Path(tempfile.mkdtemp(prefix="metalake-spark-"))
        asked, places = _asked(server, token, events, folder), [warehouse, hms.warehouse]
        with spark_process(PROGRAM, asked, folder, places, XDG_CACHE_HOME=str(cache())) as spark:
            yield Running(spark, server, token, database, events, requests_of(server)[before:])
    finally:
        server.stop()


def _asked(server: MetalakeServer, token: str, events: Path, folder: Path) -> str:
    """A file with the arguments of metalake_session."""
    settings = SETTINGS | {
        "spark.master": "local[1]",
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": events.as_uri(),
    }
    asked = {
        "url": server.url,
        "metalake": "demo",
        "token": token,
        "jars": list(map(str, jars("iceberg-spark"))),
        "hive_catalog": "hive",
        "settings": settings,
    }
    (file := folder / "asked.json").write_text(json.dumps(asked))
    return str(file)


def test_a_session_asks_once_until_a_catalog_is_used(running: Running) -> None:
    assert len(running.before_use) == 1, running.before_use
    assert "/api/metalakes/demo/catalogs?details=true" in running.before_use[0]


def test_catalogs_are_there_under_their_names(running: Running) -> None:
    running.sql("create namespace own.a", "create namespace own.a.b", "create namespace `a=b`.odd")
    *_, rows = running.sql(
        "create table own.a.b.t (i int) using iceberg",
        "insert into own.a.b.t values (1)",
        "select * from own.a.b.t",
    )
    assert rows == [{"i": 1}]
    assert running.send("GET", "catalogs/own/schemas/a:b/tables/t")["table"]["name"] == "t"
    with pytest.raises(SparkError, match="STORED AS or ROW FORMAT, which are of Hive's tables"):
        running.sql("create table own.a.b.stored (i int) stored as parquet")
    assert running.sql("show namespaces in `a=b`") == [[{"namespace": "odd"}]]
    assert running.sql("show namespaces in OWN") == [[]], "names of catalogs are not folded"


def test_hive_s_tables_and_iceberg_s_are_there_by_one_name(running: Running) -> None:
    home = f"hive.{running.database}"
    *_, texts, ice = running.sql(
        f"create table {home}.texts (word string) using hive",
        f"insert into {home}.texts values ('one')",
        f"create table {home}.ice (i int) using iceberg",
        f"insert into {home}.ice values (7)",
        f"select * from {home}.texts",
        f"select * from {home}.ice",
    )
    assert texts == [{"word": "one"}] and ice == [{"i": 7}]
    assert running.sql(f"select * from spark_catalog.{running.database}.ice") == [ice], "which is the same catalog"
    running.sql(f"create view spark_catalog.{running.database}.words as select word from {running.database}.texts")
    words = running.spark.call("view", "hive", running.database, "words")
    assert words == f"`hive`.`{running.database}`.`words`"
    assert running.sql(f"select * from {words}") == [[{"word": "one"}]]


def test_views_have_the_names_that_the_session_tells(running: Running) -> None:
    running.sql(
        "create namespace own.v",
        "create table own.v.t (i int) using iceberg",
        "insert into own.v.t values (1), (2)",
        "create view own.v.iceberg as select i from own.v.t where i > 1",
    )
    assert running.spark.call("view", "own", "v", "iceberg") == "`own`.`v`.`iceberg`"
    assert running.sql("select * from own.v.iceberg") == [[{"i": 2}]]

    running.send("POST", "catalogs/rows/schemas", {"name": "sales"})
    views = "catalogs/rows/schemas/sales/views"
    columns = [{"name": "twice", "type": "integer", "comment": "it's two"}]
    where = {"defaultCatalog": "own", "defaultSchema": "v"}
    spark = {"type": "sql", "dialect": "spark", "sql": "select 2 * i from t", **where}
    hive = {"type": "sql", "dialect": "hive", "sql": "select i from t where i = 1", **where}
    trino = {"type": "sql", "dialect": "trino", "sql": "SELECT 1 FROM UNNEST(SEQUENCE(1, 2)) AS x(y)"}
    for name, queries in (("doubled", [trino, spark]), ("first", [hive, trino]), ("foreign", [trino])):
        running.send("POST", views, {"name": name, "columns": columns, "representations": queries})
    doubled = running.spark.call("view", "rows", "sales", "doubled")
    assert doubled == "global_temp.`rows.sales.doubled`"
    assert running.sql(f"select * from {doubled} order by 1") == [[{"twice": 2}, {"twice": 4}]]
    first = running.spark.call("view", "rows", "sales", "first")
    assert running.sql(f"select * from {first}") == [[{"twice": 1}]]
    assert running.spark.call("current") == "spark_catalog", "where the caller is stays"
    said = running.spark.call("view", "rows", "sales", "foreign")
    assert said.startswith("Failure: View rows.sales.foreign has no query that Spark can run, only: trino. gcli view")
    assert "404" in said or running.spark.call("view", "rows", "sales", "none").startswith("Failure: ")


def test_the_description_tells_how_each_catalog_is_reached(running: Running) -> None:
    told = running.spark.call("describe")
    for line in (
        "own: Metalake's Iceberg REST",
        "rows: not there",
        "  It is not there, since Spark has no support for its provider (half).",
    ):
        assert line in told.splitlines(), told
    assert "Of tables that are not Iceberg's: Only the store's own rights hold" in told
    assert running.token not in told


def test_a_second_session_of_the_same_spark(running: Running) -> None:
    assert "own: Metalake's Iceberg REST" in running.spark.call("second", {})
    assert "hive_catalog names a Hive catalog" in running.spark.call("second", {"hive_catalog": "own"})
    assert running.spark.call("second", {"metalake": "nowhere"}) == "Metalake nowhere does not exist."
    assert running.token not in (said := running.spark.call("second", {"token": "mlk_wrong"})) and "\n" not in said


def test_a_token_is_in_no_log_plan_statement_or_event(running: Running) -> None:
    """Last, since the log and the events of all that was done here are read."""
    running.spark.call("log_level", "DEBUG")
    shown = running.sql(
        "set",
        "set -v",
        "set spark.sql.catalog.own.token",
        "show namespaces in `a=b`",
        "show catalogs",
        "describe namespace extended own.a",
    )
    running.spark.call("log_level", "WARN")
    token = running.token
    plans = running.sql(
        "explain extended select * from own.a.b.t",
        f"explain extended select '{token}'",
        "show tblproperties own.a.b.t",
        "show create table own.a.b.t",
    )
    assert any(row["key"] == "spark.sql.catalog.own.token" for row in shown[0]), "so it is hidden, not absent"
    assert token not in repr(shown) + repr(plans)
    events = "".join(file.read_text() for file in running.events.rglob("*") if file.is_file())
    log = running.spark.log.read_text()
    assert "SparkListenerSQLExecutionStart" in events and " DEBUG " in log
    assert token not in events
    assert token not in log
    listed = subprocess.run(["ps", "-ww", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert "spark.sql.catalog.own.uri" in listed and token not in listed
