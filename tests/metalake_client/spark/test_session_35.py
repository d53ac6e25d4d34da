"""metalake_session on Spark 3.5: two metastores under their names, through Kyuubi's connector."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from tests.catalogs.racing import Client
from tests.hms import HiveMetastore
from tests.jars import JarsMissing, cache, jars, needs_jars
from tests.metalake_client.spark.dispatch.mixed import jar_for
from tests.metalake_client.spark.dispatch.test_spark_35 import JARS, SPARK_354
from tests.metalake_client.spark.test_session import PROGRAM
from tests.packages import installed
from tests.servers import StartMetalake
from tests.spark import SETTINGS, needs_spark, spark_process

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]  # the first time it fetches 370 MB and installs them


def test_two_metastores_are_there_under_their_names(
    start_metalake: StartMetalake, hms: HiveMetastore, old_hms: HiveMetastore
) -> None:
    needs_spark()
    needs_jars(JARS)
    try:
        packages = installed("spark-3.5.4", SPARK_354)
    except JarsMissing as missing:
        pytest.skip(f"needs Spark 3.5: {missing}")
    runtime, kyuubi, *_ = jars(JARS)
    jar_for(packages / "pyspark" / "jars", runtime)
    server = start_metalake(METALAKE_FILE_LOCATIONS=f"{hms.warehouse},{old_hms.warehouse}")
    metastores = {"new": hms, "old": old_hms}
    for name, metastore in metastores.items():
        body = {"name": name, "type": "relational", "provider": "hive", "properties": {"metastore.uris": metastore.uri}}
        answer = Client(server.url).send("POST", "/api/metalakes/demo/catalogs", body)
        assert answer.status == 200, answer.body
    homes = {name: f"{name}.{metastore.create_database()}" for name, metastore in metastores.items()}
    folder = Path(tempfile.mkdtemp(prefix="metalake-spark-"))
    asked = {
        "url": server.url,
        "metalake": "demo",
        "user": "admin",
        "password": server.admin_password,
        "jars": [str(runtime), str(kyuubi)],
        "settings": SETTINGS | {"spark.master": "local[1]"},
    }
    (file := folder / "asked.json").write_text(json.dumps(asked))
    places, kept = [hms.warehouse, old_hms.warehouse], {"XDG_CACHE_HOME": str(cache())}
    with spark_process(PROGRAM, str(file), folder, places, packages, **kept) as spark:
        assert spark.version.startswith("3.5.")
        for name, home in homes.items():
            spark.sql(
                f"create table {home}.texts (word string) using hive",
                f"insert into {home}.texts values ('{name}')",
                f"create table {home}.ice (word string) using iceberg",
                f"insert into {home}.ice values ('{name}')",
            )
        for name, home in homes.items():
            assert spark.sql(f"select * from {home}.texts join {home}.ice using (word)") == [[{"word": name}]]
        assert "thrift://" in spark.call("describe")
