"""The examples of docs/examples.md, run in order against a real server of their own; what the README says of make."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from tests.glue import Glue
from tests.hms import HiveMetastore
from tests.jars import LOCKED
from tests.servers import REPOSITORY, MetalakeServer, StartMetalake
from tests.spark import Spark, iceberg_catalog

pytestmark = pytest.mark.slow

PAGE = (REPOSITORY / "docs" / "examples.md").read_text()
EXAMPLE = re.compile(r"^```(python|bash|sql)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROMISED = re.compile(r"(?:#|--) -> (.*)$", re.MULTILINE)
ADDRESS = "http://127.0.0.1:8090"
METASTORE = "thrift://127.0.0.1:9083"
DATABASE = "127.0.0.1:5432/sales"
SALES = """
CREATE ROLE reader LOGIN;
CREATE TABLE orders (id bigint, amount numeric(10,2));
CREATE VIEW large_orders AS SELECT id, amount FROM orders WHERE amount > 100;
GRANT SELECT ON large_orders TO reader;
"""
REGION = re.compile(r'"(aws-region|s3\.region)": "us-east-1"')
ENDPOINTS = {"aws-region": "aws-glue-endpoint", "s3.region": "s3.endpoint"}
SUBMIT = re.compile(r"^spark-submit .* pipelines/(\w+)\.py (.*)$", re.MULTILINE)
PARTS = ("spark-submit", "thrift://", "AWS_", "metalake_session(", "jdbc:")

CLIENTS = {
    "PyIceberg": "pyiceberg",
    "Gravitino's Python client": "apache-gravitino",
    "DuckDB with its Iceberg extension": "duckdb",
}


def run(language: str, code: str, environment: dict[str, str]) -> str:
    command = [sys.executable, "-W", "ignore", "-c", code] if language == "python" else ["bash", "-euc", code]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert ended.returncode == 0, f"{code}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


def in_spark(spark: Spark, statement: str, server: MetalakeServer) -> str:
    """The rows that Spark answers, with the settings that docs/clients.md has for it."""
    login = {"type": "basic", "basic.username": "admin", "basic.password": server.admin_password}
    auth = {f"rest.auth.{key}": value for key, value in login.items()}
    settings = iceberg_catalog("lake", type="rest", uri=f"{server.url}/iceberg/demo", warehouse="lake", **auth)
    (rows,) = spark.sql(statement, settings=settings)
    return str([tuple(row.values()) for row in rows])


def submitted(spark: Spark, code: str, environment: dict[str, str], folder: Path) -> str:
    """What an example prints whose job runs in the Spark that runs already."""
    job = SUBMIT.search(code)
    assert job is not None, code
    asked = f'cd {folder}\n{code[: job.start()]}printf "%s\\n" $METALAKE_URL $METALAKE_METALAKE $METALAKE_TOKEN'
    names = ("METALAKE_URL", "METALAKE_METALAKE", "METALAKE_TOKEN")
    own = dict(zip(names, run("bash", asked, environment).splitlines(), strict=True))
    ending = f"from pipelines.{job[1]} import main\nassert main({shlex.split(job[2])}) == 0"
    printed: str = spark.call("python", ending, own)
    return printed


@pytest.mark.timeout(300)
def test_every_example_does_what_it_says(
    start_metalake: StartMetalake,
    start_hms: Callable[..., HiveMetastore],
    glue: Glue,
    postgres_url: str,
    iceberg_spark: Spark,
    tmp_path: Path,
) -> None:
    # Spark may write below its own folder, and its jobs write into the catalog of results.
    server, metastore = start_metalake(METALAKE_WAREHOUSE=str(iceberg_spark.folder / "readme")), start_hms()
    environment = os.environ | {"METALAKE_ADMIN_PASSWORD": server.admin_password}
    environment |= {"PGPASSWORD": "any: the suite's server trusts everybody"}
    with psycopg.connect(postgres_url) as connection:
        connection.execute(SALES)
    environment |= {"AWS_ACCESS_KEY_ID": glue.access_key, "AWS_SECRET_ACCESS_KEY": glue.secret_key}
    glue.create_bucket("lake")
    glue.client().create_database(DatabaseInput={"Name": "flights"})
    for name in ("airports", "delays"):
        glue.client().create_table(DatabaseName="flights", TableInput={"Name": name, "TableType": "EXTERNAL_TABLE"})
    examples = EXAMPLE.findall(PAGE)
    assert len(examples) >= 7
    for language, code in examples:
        here = code.replace(ADDRESS, server.url).replace(METASTORE, metastore.uri)
        here = here.replace(DATABASE, postgres_url.rpartition("@")[2])
        here = REGION.sub(lambda found: f'{found[0]}, "{ENDPOINTS[found[1]]}": "{glue.endpoint}"', here)
        if "metalake_session" in code:  # in the Spark that runs already
            printed = iceberg_spark.call("python", here, {"METALAKE_ADMIN_PASSWORD": server.admin_password})
        elif "spark-submit" in code:
            printed = submitted(iceberg_spark, here, environment, tmp_path)
        elif language == "sql":
            printed = in_spark(iceberg_spark, here, server)
        else:
            printed = run(language, here, environment)
        if language == "bash":
            assert all(promised in printed for promised in PROMISED.findall(code)), (code, printed)
        else:
            assert printed.splitlines() == PROMISED.findall(code), code


def test_what_needs_more_than_metalake_says_so() -> None:
    """All others run on a machine that has nothing but it."""
    sections = PAGE.split("\n## ")[1:]
    needing = [section for section in sections if any(part in section for part in PARTS)]
    assert len(needing) == 6 and "Six need more than Metalake" in PAGE
    for section in needing:
        assert section.partition("\n\n")[2].startswith("*Needs "), section[:40]


def test_the_clients_have_the_versions_that_run_here() -> None:
    pinned, page = ((REPOSITORY / name).read_text() for name in ("requirements-dev.txt", "docs/clients.md"))
    for client, package in CLIENTS.items():
        version = re.search(rf"^{package}(?:\[[\w,-]+\])?==(\S+)", pinned, re.MULTILINE)
        assert version is not None and f"| {client} | {version[1]}" in page, client
    spark = re.findall(r"^pyspark==(\S+)", pinned, re.MULTILINE)[0]
    runtime = next(iter(LOCKED["iceberg-spark"])).removesuffix(".jar").rpartition("-")[2]
    assert f"| Spark with Iceberg | {spark} with {runtime} |" in page


def test_the_readme_names_only_words_that_make_knows() -> None:
    readme = (REPOSITORY / "README.md").read_text()
    words = set(re.findall(r"(?:^|`)make ([a-z-]+)", readme, re.MULTILINE))
    known = set(re.findall(r"^([a-z-]+):.*##", Path(REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    assert words <= known
