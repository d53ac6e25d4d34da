"""Fills in fields that older writers omit, so that all other code reads one shape of metadata.

Source: Iceberg spec, "Table Metadata Fields" and "Appendix E: Format version changes".
"""

from __future__ import annotations

from formats.iceberg.parsing import Json
from formats.iceberg.partitioning import last_field_id, number_from_start
from formats.iceberg.sorting import UNSORTED
from metalake.errors import Invalid

NO_SNAPSHOT = -1
MAIN = "main"
V1_ONLY = ("schema", "partition-spec")

_ALWAYS = (
    "schemas", "current-schema-id", "partition-specs", "default-spec-id", "last-partition-id", "sort-orders",
    "default-sort-order-id", "properties", "snapshots", "snapshot-log", "metadata-log",
)  # fmt: skip


def fill_in(metadata: Json) -> Json:
    """The metadata with every field that the builder reads; the object itself if nothing is missing."""
    missing = {key: _default(metadata, key) for key in _ALWAYS if metadata.get(key) is None}
    version = metadata["format-version"]
    if version >= 2 and metadata.get("last-sequence-number") is None:
        missing["last-sequence-number"] = 0
    if version >= 3 and metadata.get("next-row-id") is None:
        missing["next-row-id"] = 0
    refs = metadata.get("refs")
    current = metadata.get("current-snapshot-id")
    if current not in (None, NO_SNAPSHOT) and MAIN not in (refs or {}):
        refs = {**(refs or {}), MAIN: {"snapshot-id": current, "type": "branch"}}
        missing["refs"] = refs
    elif refs is None:
        missing["refs"] = {}
    return {**metadata, **missing} if missing else metadata


def mirror_v1_fields(metadata: Json) -> None:
    """Write `schema` and `partition-spec`, which v1 readers need: the current schema and the default spec's fields."""
    metadata["schema"] = _find(metadata["schemas"], "schema-id", metadata["current-schema-id"])
    spec = _find(metadata["partition-specs"], "spec-id", metadata["default-spec-id"])
    metadata["partition-spec"] = spec["fields"]


def _default(metadata: Json, key: str) -> object:
    if key == "schemas":
        schema = metadata["schema"]
        return [schema if schema.get("schema-id") is not None else {**schema, "schema-id": 0}]
    if key == "current-schema-id":
        return (metadata.get("schema") or {}).get("schema-id") or 0
    if key == "partition-specs":
        return [{"spec-id": 0, "fields": _v1_partition_fields(metadata)}]
    if key == "last-partition-id":
        specs = metadata.get("partition-specs")
        return last_field_id(specs if specs is not None else [{"fields": _v1_partition_fields(metadata)}])
    if key == "sort-orders":
        return [UNSORTED]
    if key in ("default-spec-id", "default-sort-order-id"):
        return 0
    return {} if key == "properties" else []


def _v1_partition_fields(metadata: Json) -> list[Json]:
    fields = metadata.get("partition-spec") or []
    if all(field.get("field-id") is not None for field in fields):
        return list(fields)
    return number_from_start(fields)


def _find(among: list[Json], key: str, id: int) -> Json:
    for each in among:
        if (each.get(key) or 0) == id:
            return each
    raise Invalid(f"The metadata has no element with {key} {id}, although it is the current one")
