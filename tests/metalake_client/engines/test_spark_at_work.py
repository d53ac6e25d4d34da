"""Real Sparks that start with the spark-defaults.conf that gcli wrote, and fetch the packages that it names."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.hms import HiveMetastore
from tests.jars import JarsMissing, jars, needs_jars
from tests.metalake_client.gcli import Gcli
from tests.names import own_name
from tests.packages import installed
from tests.servers import StartMetalake
from tests.spark import SETTINGS, SPARK_35, needs_spark, spark_process

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]  # the first time it fetches 365 MB for Spark 3.5

PROGRAM = Path(__file__).parents[2] / "spark_program.py"
RUNTIMES = {"4.1": "iceberg-spark", "3.5": "spark-3.5-mixed"}  # of which it is the first
# Maven's own address is another on some machines; what the file names comes from a folder that is laid out as it is.
IVY = """<ivysettings>
  <settings defaultResolver="here"/>
  <resolvers><ibiblio name="here" m2compatible="true" root="{root}"/></resolvers>
</ivysettings>
"""
POM = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>org.apache.iceberg</groupId><artifactId>{artifact}</artifactId><version>1.11.0</version>
</project>
"""


def repository(folder: Path, version: str) -> Path:
    """Settings of Ivy, by which Spark fetches Iceberg's runtime."""
    jar, *_ = jars(RUNTIMES[version])
    artifact = jar.name.removesuffix("-1.11.0.jar")
    assert f"{artifact}-1.11.0.jar" == jar.name, "the file names another version of Iceberg"
    place = folder / "maven" / "org" / "apache" / "iceberg" / artifact / "1.11.0"
    place.mkdir(parents=True)
    shutil.copy(jar, place)
    (place / jar.with_suffix(".pom").name).write_text(POM.format(artifact=artifact))
    settings = folder / "ivy.xml"
    settings.write_text(IVY.format(root=(folder / "maven").as_uri()))
    return settings


@pytest.mark.parametrize("version", RUNTIMES)
def test_spark_starts_with_the_file(
    alone: Gcli,
    start_metalake: StartMetalake,
    hms: HiveMetastore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: str,
) -> None:
    needs_spark()
    needs_jars(RUNTIMES[version])
    try:
        packages = installed("spark-3.5.8", SPARK_35) if version == "3.5" else None
    except JarsMissing as missing:
        pytest.skip(f"needs Spark 3.5: {missing}")
    gcli, warehouse, folder = alone, tmp_path / "warehouse", tmp_path / "conf"
    warehouse.mkdir()
    server = start_metalake(METALAKE_FILE_LOCATIONS=f"{warehouse},{hms.warehouse}")
    for variable, value in {"URL": server.url, "METALAKE": "demo", "USER": "admin"}.items():
        monkeypatch.setenv(f"METALAKE_{variable}", value)
    monkeypatch.setenv("METALAKE_PASSWORD", server.admin_password)
    for name, provider, properties in (
        ("my-lake", "lakehouse-iceberg", f"warehouse={warehouse.as_uri()}"),
        ("hive", "hive", f"metastore.uris={hms.uri}"),
    ):
        gcli.ok("catalog", "create", "--name", name, "--provider", provider, "--properties", properties)
    token, database = gcli.json("token", "create", "--name", own_name("spark"))["secret"], hms.create_database()
    asked = ("--folder", str(folder), "--spark-version", version, "--hive-catalog", "hive")
    gcli.ok("engine", "config", "spark", *asked)
    assert token not in (folder / "spark-defaults.conf").read_text()
    own = Path(tempfile.mkdtemp(prefix="metalake-spark-"))
    ivy = {"spark.jars.ivySettings": str(repository(own, version)), "spark.jars.ivy": str(own / "ivy")}
    given = json.dumps(SETTINGS | ivy)
    environment = {"SPARK_CONF_DIR": str(folder), "METALAKE_TOKEN": token}
    with spark_process(PROGRAM, given, own, [warehouse, hms.warehouse], packages, **environment) as spark:
        assert spark.version.startswith(version)
        *_, ours, texts, ice, settings = spark.sql(
            "create namespace `my-lake`.sales",
            "create namespace `my-lake`.sales.emea",
            "create table `my-lake`.sales.emea.orders (id int) using iceberg",
            "insert into `my-lake`.sales.emea.orders values (1)",
            f"create table spark_catalog.{database}.texts (id int) using hive",
            f"insert into spark_catalog.{database}.texts values (2)",
            f"create table spark_catalog.{database}.ice (id int) using iceberg",
            f"insert into spark_catalog.{database}.ice values (3)",
            "select * from `my-lake`.sales.emea.orders",
            f"select * from {database}.texts",
            f"select * from hive.{database}.ice",
            "set -v",
            timeout=300,
        )
    assert [ours, texts, ice] == [[{"id": 1}], [{"id": 2}], [{"id": 3}]]
    assert token not in json.dumps(settings)
