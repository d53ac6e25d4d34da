"""The built-in templates of Spark as a server runs them: spark-submit, their arguments, their tokens, their results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet

from tests.jars import jars
from tests.jobs.serving import Serving
from tests.metastore_stand_in import StandIn, running
from tests.names import own_name
from tests.parts import needs
from tests.servers import MetalakeServer, running_metalake

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.timeout(600)]
SECONDS = 400


@pytest.fixture(scope="module", params=["local[1]", "local-cluster[2,1,1024]"])
def spark_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[MetalakeServer, Path]]:
    needs("java")
    named, spool = tmp_path_factory.mktemp("programs"), tmp_path_factory.mktemp("spool")
    key = spool / "key"
    key.write_bytes(Fernet.generate_key())
    own = {
        "METALAKE_JOB_PATHS": str(named),
        "METALAKE_SPARK_MASTER": request.param,
        "METALAKE_SPOOL": str(spool),
        "METALAKE_KEY_FILE": str(key),
        "METALAKE_SPARK_JARS": ",".join(map(str, jars("iceberg-spark"))),
    }
    with running_metalake(tmp_path_factory.mktemp("metalake"), **own) as server:
        yield server, named


@pytest.fixture
def serving(spark_server: tuple[MetalakeServer, Path]) -> Serving:
    server, named = spark_server
    made = Serving(server, named, own_name("m"))
    lake = {"name": "lake", "type": "relational", "provider": "lakehouse-iceberg", "properties": {}}
    made.admin.call("POST", "metalakes", made.metalake, "catalogs", body=lake)
    schemas = ("metalakes", made.metalake, "catalogs", "lake", "schemas")
    made.admin.call("POST", *schemas, body={"name": "travel"})
    columns = [{"name": "code", "type": "string", "nullable": True}]
    made.admin.call("POST", *schemas, "travel", "tables", body={"name": "airports", "columns": columns})
    made.admin.call("POST", "metalakes", made.metalake, "system")
    return made


def succeeds(serving: Serving, template: str, **conf: str) -> str:
    """What the run printed, which is to end well and to say how far it came."""
    ended = serving.ends(serving.start(template, None, **conf), SECONDS)
    log: str = serving.admin.get(*serving.runs, ended["jobId"], "logs")["log"]["text"]
    assert ended["status"] == "succeeded", log[-4000:]
    assert serving.admin.get(*serving.runs, ended["jobId"], "progress")["progress"]["stage"]
    assert "mlk_" not in log
    return log


def shown(serving: Serving, *path: str) -> Any:
    return serving.admin.get("metalakes", serving.metalake, *path)


def test_an_access_review(serving: Serving) -> None:
    log = succeeds(serving, "builtin-access_review", sample="50")
    assert "50 answers compared with the server, no difference" in log
    assert shown(serving, "access", "review")["review"]["days"] == 90


def test_an_audit_rollup(serving: Serving) -> None:
    assert "Nothing is new." in succeeds(serving, "builtin-audit_rollup", days="30")  # all is of today


def test_a_view_check(serving: Serving) -> None:
    query = {"type": "sql", "dialect": "spark", "sql": "select city from airports", "defaultSchema": "travel"}
    view = {"name": "cities", "columns": [], "representations": [query]}
    path = ("catalogs", "lake", "schemas", "travel", "views")
    serving.admin.call("POST", "metalakes", serving.metalake, *path, body=view)
    assert "Views checked: 1, of which broken: 1" in succeeds(serving, "builtin-view_check")
    assert [each["fullName"] for each in shown(serving, "views", "broken")["views"]] == ["lake.travel.cities"]


def test_a_harvest(serving: Serving) -> None:
    stand_in = StandIn()
    stand_in.fill(2, 3)
    with running(stand_in):
        properties = {"metastore.uris": stand_in.uri, "cache-ttl": "0"}
        body = {"name": "hive", "type": "relational", "provider": "hive", "properties": properties}
        serving.admin.call("POST", "metalakes", serving.metalake, "catalogs", body=body)
        succeeds(serving, "builtin-harvest", catalog="hive", tasks="2")
        assert shown(serving, "catalogs", "hive", "refreshes")["refreshes"][0]["created"] == 2 + 2 * 3
