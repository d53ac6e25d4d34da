"""Views as engines leave them in a metastore or in Glue; docs/decisions/hive-views.md says where that is known from."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from formats.hive.formats import STORAGE_FORMATS
from formats.hive.tables import HiveColumn, HiveTable

SEQUENCE_FILES = STORAGE_FORMATS["SEQUENCEFILE"]._asdict()
SPARK_SQL = "select id, name as n from h1 where id > 1"
# What a metastore holds after Spark 4.1.4 ran, in database db:
# create view v1 (the_id comment 'vid', nm) comment 'view comment' tblproperties ('owner_team'='x') as <SPARK_SQL>
SPARK_PARAMETERS = {
    "owner_team": "x",
    "spark.sql.create.version": "4.1.4",
    "spark.sql.sources.schema": '{"type":"struct","fields":[{"name":"the_id","type":"long","nullable":true,"metadata":'
    '{"comment":"vid"}},{"name":"nm","type":"string","nullable":true,"metadata":{}}]}',
    "transient_lastDdlTime": "1795246733",
    "view.catalogAndNamespace.numParts": "2",
    "view.catalogAndNamespace.part.0": "spark_catalog",
    "view.catalogAndNamespace.part.1": "db",
    "view.query.out.numCols": "2",
    "view.query.out.col.0": "id",
    "view.query.out.col.1": "n",
    "view.referredTempFunctionsNames": "[]",
    "view.referredTempVariablesNames": "[]",
    "view.referredTempViewNames": "[]",
    "view.schemaMode": "COMPENSATION",
    "view.sqlConfig.spark.sql.ansi.enabled": "true",
    "view.sqlConfig.spark.sql.session.timeZone": "Etc/UTC",
}
# What Trino's ConnectorViewDefinition is as JSON, with fields that no version of it has.
TRINO_JSON: dict[str, Any] = {
    "originalSql": "SELECT id, 'it''s' word FROM flights",
    "catalog": "hive",
    "schema": "db",
    "columns": [
        {"name": "id", "type": "bigint", "comment": "who"},
        {"name": "at", "type": "timestamp(3) with time zone", "unknown": True},
        {"name": "legs", "type": 'array(row("from" varchar(3), "to" varchar))'},
        {"name": "word", "type": "json"},
    ],
    "comment": "flights of today",
    "owner": "anna",
    "runAsInvoker": False,
    "path": [{"catalogName": "hive", "schemaName": "functions"}],
    "unknown": {"kept": [1, 2.5, None]},
}
# The same of Flink's CatalogPropertiesUtil, as HiveTableUtil puts it among the parameters.
FLINK_PARAMETERS = {
    "is_generic": "true",
    "flink.comment": "delays",
    "flink.owner_team": "ops",
    "flink.schema.0.name": "id",
    "flink.schema.0.data-type": "BIGINT NOT NULL",
    "flink.schema.0.comment": "who",
    "flink.schema.1.name": "at",
    "flink.schema.1.data-type": "TIMESTAMP(3) WITH LOCAL TIME ZONE",
    "flink.schema.2.name": "legs",
    "flink.schema.2.data-type": "ARRAY<ROW<`from` VARCHAR(3), `to` VARCHAR(2147483647) NOT NULL 'airport'>>",
    "flink.schema.3.name": "took",
    "flink.schema.3.data-type": "INTERVAL DAY(3) TO SECOND(6)",
    "flink.schema.3.expr": "`landed` - `started`",
    "transient_lastDdlTime": "1795246733",
}
# What AWS Glue's API answers for a view that two engines can run; `hive_table` puts it into `rest`.
VIEW_DEFINITION: dict[str, Any] = {
    "IsProtected": True,
    "Definer": "arn:aws:iam::123456789012:role/definer",
    "SubObjects": ["arn:aws:glue:us-east-1:123456789012:table/db/flights"],
    "Representations": [
        {
            "Dialect": "REDSHIFT",
            "DialectVersion": "1.0",
            "ViewOriginalText": "select id from db.flights",
            "IsStale": True,
        },
        {
            "Dialect": "ATHENA",
            "DialectVersion": "3",
            "ViewOriginalText": "select id from flights",
            "ViewExpandedText": "select id from db.flights",
            "IsStale": False,
        },
    ],
}


def presto_view(data: Any, prefix: str = "/* Presto View: ") -> str:
    """The text of one of Trino's views; bytes go into the base64 as they are."""
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return f"{prefix}{base64.b64encode(raw).decode()} */"


def a_view(**parts: Any) -> HiveTable:
    return HiveTable(**{"name": "v1", "table_type": "VIRTUAL_VIEW", "owner": "anna", **parts})


def of_hive(**parts: Any) -> HiveTable:
    columns = (HiveColumn("id", "bigint", "who", {"unit": "n"}), HiveColumn("legs", "array<struct<from:string>>"))
    original, expanded = "select id, legs from flights", "select `flights`.`id`, `flights`.`legs` from `db`.`flights`"
    texts = {"view_original_text": original, "view_expanded_text": expanded, **SEQUENCE_FILES}
    return a_view(**{"columns": columns, "comment": "c", "parameters": {"owner_team": "x"}, **texts, **parts})


def of_spark(**parts: Any) -> HiveTable:
    columns = (HiveColumn("the_id", "bigint", "vid"), HiveColumn("nm", "string"))
    texts = {"view_original_text": SPARK_SQL, "view_expanded_text": SPARK_SQL, **SEQUENCE_FILES}
    whole = {"columns": columns, "comment": "view comment", "parameters": SPARK_PARAMETERS, **texts}
    return a_view(**{**whole, "serde_parameters": {"serialization.format": "1"}, **parts})


def of_trino(data: Any = None, **parts: Any) -> HiveTable:
    text = presto_view(TRINO_JSON if data is None else data)
    query = {"trino_version": "476", "trino_query_id": "20261122_1"}
    parameters = {"presto_view": "true", "trino_created_by": "Trino Hive connector", "owner_team": "x", **query}
    whole = {"comment": "Presto View", "view_original_text": text, "view_expanded_text": "/* Presto View */"}
    return a_view(**{**whole, "parameters": parameters, "columns": (HiveColumn("dummy", "string"),), **parts})


def of_trino_materialized(**parts: Any) -> HiveTable:
    data = {name: value for name, value in TRINO_JSON.items() if name not in ("owner", "runAsInvoker")}
    text = presto_view(data | {"gracePeriod": "10.00m"}, "/* Presto Materialized View: ")
    parameters = {"presto_view": "true", "trino_version": "476", "storage_table": "st_1", "storage_schema": "db"}
    whole = {"comment": "Presto Materialized View", "view_original_text": text, "parameters": parameters}
    return a_view(**{**whole, "view_expanded_text": "/* Presto Materialized View */", **parts})


def of_athena(**parts: Any) -> HiveTable:
    """In Glue the parameter `comment` stays among the others; Athena writes real columns and less JSON."""
    columns = [{"name": "id", "type": "bigint"}, {"name": "n", "type": "varchar(3)"}]
    data = {"originalSql": "SELECT id, n FROM flights", "catalog": "awsdatacatalog", "schema": "db", "columns": columns}
    whole = {"view_original_text": presto_view(data), "view_expanded_text": "/* Presto View */", "comment": None}
    entry = (HiveColumn("id", "bigint"), HiveColumn("n", "varchar(3)"))
    return a_view(
        **{**whole, "parameters": {"presto_view": "true", "comment": "Presto View"}, "columns": entry, **parts}
    )


def of_flink(**parts: Any) -> HiveTable:
    texts = {"view_original_text": "SELECT * FROM flights", "view_expanded_text": "SELECT `id` FROM `c`.`db`.`flights`"}
    return a_view(**{**texts, "parameters": FLINK_PARAMETERS, **STORAGE_FORMATS["TEXTFILE"]._asdict(), **parts})


def of_glue(**parts: Any) -> HiveTable:
    rest = {"IsMultiDialectView": True, "ViewDefinition": VIEW_DEFINITION}
    return a_view(**{"rest": rest, "columns": (HiveColumn("id", "bigint"),), "comment": "c", **parts})


def of_iceberg(**parts: Any) -> HiveTable:
    """As Spark 3.5.8 with Iceberg 1.10.2 writes it."""
    parameters = {
        "table_type": "ICEBERG-VIEW",
        "metadata_location": "file:/lake/v1/metadata/00000-1.gz.metadata.json",
        "uuid": "1",
        "engine_version": "Spark 3.5.8",
        "create_engine_version": "Spark 3.5.8",
        "spark.query-column-names": "id,name",
    }
    sql = "select id, name from t"
    return a_view(**{"parameters": parameters, "view_original_text": sql, "view_expanded_text": sql, **parts})


def trino_476(name: str) -> HiveTable:
    """An entry that Trino 476 wrote, as tests/engines/test_trino_views.py asks for it, and a metastore answered."""
    return _recorded("trino_476", name)


def flink_1_20(name: str) -> HiveTable:
    """An entry that Flink 1.20.1 wrote into the database flights, as tests/engines/test_flink_views.py asks for it."""
    return _recorded("flink_1_20", name)


def _recorded(file: str, name: str) -> HiveTable:
    recorded = json.loads(Path(__file__).with_name(f"{file}.json").read_text(encoding="utf-8"))
    return HiveTable.from_json(recorded[name])


WRITABLE = {"hive": of_hive, "spark": of_spark, "trino": of_trino, "athena": of_athena, "flink": of_flink}
