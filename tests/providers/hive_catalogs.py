"""Hive catalogs of the tests, and tables that somebody else made in their metastores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlparse

import pytest
from hive_metastore.ttypes import (
    EnvironmentContext,
    FieldSchema,
    Order,
    PrincipalType,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
    Table,
)

from formats.native.tables import SetProperty
from providers.hive.provider import HiveProvider
from providers.remote_objects import Levels
from tests.hms import HiveMetastore

TEXT = "org.apache.hadoop.mapred.TextInputFormat"


def provider_on(hms: HiveMetastore, **settings: str) -> HiveProvider:
    return HiveProvider(1, {"metastore.uris": hms.uri, **settings})


def set_property(name: str, value: str) -> SetProperty:
    return SetProperty.model_validate({"@type": "setProperty", "property": name, "value": value})


def put_table(hms: HiveMetastore, database: str, name: str, kind: str = "MANAGED_TABLE", **parameters: str) -> Table:
    """Made by somebody else, with everything that a table can say."""
    storage = StorageDescriptor(
        cols=[FieldSchema("carrier", "string", "two letters"), FieldSchema("delay", "int", None)],
        location=None if kind == "MANAGED_TABLE" else (hms.warehouse / f"{database}.{name}").as_uri(),
        inputFormat=TEXT,
        numBuckets=4,
        bucketCols=["carrier"],
        sortCols=[Order("delay", 0)],
        serdeInfo=SerDeInfo("plain", "LazySimpleSerDe", {"field.delim": ","}),
        parameters={"of": "storage"},
        skewedInfo=SkewedInfo(["carrier"], [["UA"]], {}),
    )
    table = Table(
        dbName=database,
        tableName=name,
        owner="crew",
        ownerType=PrincipalType.USER,
        retention=7,
        tableType=kind,
        sd=storage,
        partitionKeys=[FieldSchema("year", "int", "of departure")],
        parameters={"comment": "how late", "numRows": "336776", "my.own": "kept", **parameters},
    )
    if kind == "EXTERNAL_TABLE":
        table.parameters["EXTERNAL"] = "TRUE"
    with hms.client() as client:
        context = EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"})
        client.create_table_with_environment_context(table, context)
        return client.get_table(database, name)


def files(place: str) -> list[str]:
    folder = Path(urlparse(place).path)
    return sorted(each.name for each in folder.iterdir()) if folder.exists() else []


def put_file(place: str) -> None:
    (Path(urlparse(place).path) / "part-0").write_text("UA,12\n")


@pytest.fixture
def provider(any_hms: HiveMetastore) -> HiveProvider:
    return provider_on(any_hms)


@pytest.fixture
def schema(any_hms: HiveMetastore) -> Iterator[Levels]:
    name = any_hms.create_database()
    yield [name]
    with any_hms.client() as client:
        client.drop_database(name, True, True)
