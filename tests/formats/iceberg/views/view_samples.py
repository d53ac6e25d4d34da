"""Small views that the tests of view metadata start from."""

from __future__ import annotations

from typing import Any

from pyiceberg.view.metadata import ViewMetadata

from formats.iceberg.views.builder import apply_view_updates, new_view_metadata
from tests.formats.iceberg.table_samples import NOW, UUID, Json, column, schema

SCHEMA = schema(column(3, "id", "int", required=True, doc="unique ID"), column(4, "data", "string"), **{"schema-id": 5})
OTHER_SCHEMA = schema(column(1, "some_id", "int", required=True), **{"schema-id": 7})
LATER = NOW + 1_000

# As Spark 3.5.8 with Iceberg 1.10.2 sends it for
# create view rc.n1.v1 (a comment 'c1') comment 'vc' tblproperties('k'='v') as select 1 as x
SPARK_CREATE: Json = {
    "name": "v1",
    "view-version": {
        "version-id": 1,
        "timestamp-ms": 1795246747755,
        "schema-id": 0,
        "summary": {
            "engine-version": "3.5.8",
            "app-id": "local-1795246733679",
            "engine-name": "spark",
            "iceberg-version": "Apache Iceberg 1.10.2 (commit 57396d628cb9f92e121f9c2919398475393f0a3a)",
        },
        "default-catalog": "spark_catalog",
        "default-namespace": ["default"],
        "representations": [{"type": "sql", "sql": "select 1 as x", "dialect": "spark"}],
    },
    "schema": {
        "type": "struct",
        "schema-id": 0,
        "fields": [{"id": 0, "name": "a", "required": True, "type": "int", "doc": "c1"}],
    },
    "properties": {
        "comment": "vc",
        "k": "v",
        "engine_version": "Spark 3.5.8",
        "create_engine_version": "Spark 3.5.8",
        "spark.query-column-names": "x",
    },
}


def query(sql: Any = "select * from ns.tbl", dialect: Any = "spark", **more: Any) -> Json:
    return {"type": "sql", "sql": sql, "dialect": dialect, **more}


def version(*queries: Json, **more: Any) -> Json:
    """A version as a client sends it; with no queries, one in Spark's dialect."""
    return {
        "version-id": 1,
        "timestamp-ms": NOW,
        "schema-id": 0,
        "summary": {"engine-name": "test"},
        "default-namespace": ["ns"],
        "representations": list(queries or (query(),)),
        **more,
    }


def view(*queries: Json, properties: Any = None, **more: Any) -> Json:
    """A new view of `SCHEMA` with a version of these queries; `more` are other fields of the version."""
    return new_view_metadata(
        view_uuid=UUID,
        location="s3://lake/v",
        schema=SCHEMA,
        version=version(*queries, **more),
        properties=properties or {},
        now_ms=NOW,
    )


def add_version(*queries: Json, **more: Any) -> Json:
    return {"action": "add-view-version", "view-version": version(*queries, **{"version-id": 2, **more})}


def make_current(version_id: Any = -1) -> Json:
    return {"action": "set-current-view-version", "view-version-id": version_id}


def add_schema(wanted: Any) -> Json:
    return {"action": "add-schema", "schema": wanted, "last-column-id": 4}


def put(**properties: Any) -> Json:
    return {"action": "set-properties", "updates": {key.replace("_", "."): value for key, value in properties.items()}}


def commit(base: Json, *updates: Any, now: int = LATER, **more: Any) -> Json:
    """The view after these updates, which a reader of PyIceberg accepts too."""
    after = apply_view_updates(base, list(updates), now_ms=now, **more)
    ViewMetadata.model_validate(after)
    return after


def replaced(base: Json, *queries: Json, now: int = LATER, **more: Any) -> Json:
    """The view with a new current version."""
    return commit(base, add_version(*queries, **{"timestamp-ms": now, **more}), make_current(), now=now)


def ids(metadata: Json) -> list[int]:
    return [each["version-id"] for each in metadata["versions"]]


def logged(metadata: Json) -> list[tuple[int, int]]:
    """The version log, each entry as id and time."""
    return [(each["version-id"], each["timestamp-ms"]) for each in metadata["version-log"]]
