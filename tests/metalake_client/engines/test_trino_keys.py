"""Every key of Trino's files is one that real Trinos know: its name stands in their classes."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from metalake_client.engines import trino
from metalake_client.engines.catalogs import MASK
from tests.jars import JarsMissing, jars
from tests.metalake_client.engines.catalogs import ALL, METALAKE, URL, glue, lake
from tests.trino import unpacked

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]  # with what it fetches

KEYS = {f"aws_{name}": MASK for name in ("access_key_id", "secret_access_key", "external_id")}
PLACES = {"aws_glue_endpoint": "http://glue", "aws_sts_endpoint": "http://sts", "warehouse": "s3://b/w"}
FULL = KEYS | PLACES | {"aws_glue_catalog_id": "123456789012", "aws_role_arn": "arn:aws:iam::1:role/r"}
UNKNOWABLE = {"connector.name", "lakehouse.table-type"}  # the server's own, and of a connector that no package has


def trino_476() -> list[Path]:
    return [jar for jar in (unpacked() / "plugin").rglob("*.jar") if "trino" in jar.name]


def trino_483() -> list[Path]:
    return [jar for jar in jars("trino-483") if jar.name.startswith("trino-")]


def classes_of_settings(archives: Iterable[Path]) -> bytes:
    found = []
    for archive in archives:
        with zipfile.ZipFile(archive) as jar:
            found += [jar.read(name) for name in jar.namelist() if "Config" in name or name.endswith("Module.class")]
    return b"".join(found)


@pytest.mark.parametrize(("version", "archives"), [(476, trino_476), (483, trino_483)])
def test_trino_knows_every_key(version: int, archives: object) -> None:
    try:
        known = classes_of_settings(archives())  # type: ignore[operator]
    except JarsMissing as missing:
        pytest.skip(f"needs Trino {version}: {missing}")
    hdfs = lake("hdfs", warehouse="hdfs://name/lake")
    full = [*ALL, hdfs, glue("full", **FULL), glue("old", table_type_filter="hive", **FULL)]
    files = trino.render(URL, METALAKE, full, version=version).files
    keys = {line.split("=", 1)[0] for text in files.values() for line in text.splitlines()[1:]} - UNKNOWABLE
    assert {"iceberg.rest-catalog.oauth2.token", "hive.metastore.glue.iam-role", "s3.external-id"} <= keys
    assert [key for key in sorted(keys) if key.encode() not in known] == []
    assert b"hive.metastore.glue.no-such-key" not in known
