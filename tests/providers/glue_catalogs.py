"""Glue catalogs on the stand-in, and tables in it as engines leave them behind."""

from __future__ import annotations

from typing import Any

import pytest

from providers.glue.provider import GlueProvider
from tests.glue import Glue

FLIGHTS = ["flights"]
PARQUET = "org.apache.hadoop.hive.ql.io.parquet"


def settings(glue: Glue, **more: str) -> dict[str, str]:
    """The properties of a catalog that writes to the bucket `lake`; `default_table_format` is default-table-format."""
    given = {
        "aws-region": glue.region,
        "aws-glue-endpoint": glue.endpoint,
        "aws-access-key-id": glue.access_key,
        "aws-secret-access-key": glue.secret_key,
        "s3.endpoint": glue.endpoint,
        "warehouse": "s3://lake/warehouse",
    }
    return given | {name.replace("_", "-"): value for name, value in more.items()}


def files(glue: Glue) -> set[str]:
    """The URLs of all files in the lake; Arrow leaves a folder's empty object behind when it deletes a file."""
    listed = glue.client("s3").list_objects_v2(Bucket="lake").get("Contents", [])
    return {f"s3://lake/{one['Key']}" for one in listed if not one["Key"].endswith("/")}


def provider_on(glue: Glue, **more: str) -> GlueProvider:
    properties = settings(glue, **more)
    GlueProvider.check(properties)
    return GlueProvider(1, properties)


@pytest.fixture
def provider(glue: Glue) -> GlueProvider:
    """A catalog whose one database `flights` has no location of its own."""
    glue.create_bucket("lake")
    made = provider_on(glue)
    made.schemas.create(FLIGHTS, made.schemas.draft(None, {}))
    return made


def entry(glue: Glue, name: str) -> dict[str, Any]:
    """A table as Glue has it."""
    found: dict[str, Any] = glue.client().get_table(DatabaseName="flights", Name=name)["Table"]
    return found


def storage(location: str, *columns: tuple[str, str], serde: str = "", **more: Any) -> dict[str, Any]:
    return {
        "Location": location,
        "Columns": [{"Name": name, "Type": type} for name, type in columns],
        "SerdeInfo": {"SerializationLibrary": serde} if serde else {},
        **more,
    }


def tables_of_engines() -> list[dict[str, Any]]:
    """TableInputs by name: what Hive, Athena, Spark, Delta Lake, Iceberg and crawlers put into one database."""
    hive2 = "org.apache.hadoop.hive.serde2"
    text = {"InputFormat": "org.apache.hadoop.mapred.TextInputFormat"}
    return [
        {
            "Name": "airlines",
            "TableType": "EXTERNAL_TABLE",
            "Parameters": {"classification": "csv", "skip.header.line.count": "1", "delimiter": ","},
            "StorageDescriptor": storage(
                "s3://lake/airlines", ("carrier", "string"), ("name", "string"), serde=f"{hive2}.OpenCSVSerde", **text
            ),
        },
        {
            "Name": "airports",
            "TableType": "EXTERNAL_TABLE",
            "Parameters": {"table_type": "ICEBERG", "metadata_location": "s3://lake/airports/metadata/00000-a.json"},
        },
        {
            "Name": "delays",
            "TableType": "EXTERNAL_TABLE",
            "Description": "minutes late",
            "Owner": "ops",
            "Parameters": {"EXTERNAL": "TRUE", "parquet.compression": "ZSTD", "transient_lastDdlTime": "1700000000"},
            "PartitionKeys": [{"Name": "day", "Type": "date"}],
            "StorageDescriptor": storage(
                "s3://lake/delays",
                ("carrier", "varchar(2)"),
                ("delay", "int"),
                ("route", "struct<origin:string,stops:array<string>>"),
                serde=f"{PARQUET}.serde.ParquetHiveSerDe",
                InputFormat=f"{PARQUET}.MapredParquetInputFormat",
                OutputFormat=f"{PARQUET}.MapredParquetOutputFormat",
            ),
        },
        {
            "Name": "late_flights",
            "TableType": "VIRTUAL_VIEW",
            "ViewOriginalText": "/* Presto View: eyJ9 */",
            "ViewExpandedText": "/* Presto View */",
            "Parameters": {"presto_view": "true", "comment": "Presto View"},
            "StorageDescriptor": storage("", ("carrier", "varchar")),
        },
        {
            "Name": "planes",
            "TableType": "EXTERNAL_TABLE",
            "Parameters": {"spark.sql.sources.provider": "delta", "spark.sql.partitionProvider": "catalog"},
            "StorageDescriptor": storage("s3://lake/planes-__PLACEHOLDER__", ("col", "array<string>")),
        },
        {
            "Name": "weather",
            "TableType": "MANAGED_TABLE",
            "Parameters": {},
            "StorageDescriptor": storage(
                "s3://lake/weather",
                ("wind", "float"),
                ("raw", "sparkline<int>"),
                serde=f"{hive2}.lazy.LazySimpleSerDe",
                **text,
            ),
        },
    ]
