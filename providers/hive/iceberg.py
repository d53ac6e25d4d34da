"""What Iceberg's HiveCatalog writes to a table's or view's entry besides the metadata location."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from formats.hive.tables import HiveColumn, HiveTable
from formats.hive.types import type_of_iceberg
from formats.iceberg.translate import current_schema
from formats.iceberg.views.versions import current_version, schema_of, sql_representations
from providers.hive_like.iceberg_entries import comment_of

Json = dict[str, Any]

INPUT_FORMAT, OUTPUT_FORMAT = (f"org.apache.hadoop.mapred.File{way}Format" for way in ("Input", "Output"))
SERDE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
LONGEST_SQL = 32_000  # characters; a metastore on Derby stores 32,700, and retries longer ones until the timeout
# Metadata that Iceberg may repeat in the entry; readers get missing values from the metadata file.
REPEATED = frozenset(
    {
        *("current-schema", "default-partition-spec", "default-sort-order", "snapshot-count"),
        *("current-snapshot-id", "current-snapshot-timestamp-ms", "current-snapshot-summary"),
    }
)
STATISTICS = {"numFiles": "total-data-files", "numRows": "total-records", "totalSize": "total-files-size"}


def described(entry: HiveTable, metadata: Json) -> HiveTable:
    """The entry with the metadata's columns and statistics."""
    entry, summary = with_columns(entry, current_schema(metadata)["fields"]), _summary(metadata)
    return replace(
        entry,
        parameters={name: value for name, value in entry.parameters.items() if name not in STATISTICS}
        | {"EXTERNAL": "TRUE"}
        | ({"uuid": metadata["table-uuid"]} if metadata.get("table-uuid") else {})
        | {name: summary[key] for name, key in STATISTICS.items() if key in summary},
    )


def described_view(entry: HiveTable, metadata: Json) -> HiveTable:
    """The entry with the view's columns and, for readers without dialect support, its SQL, preferably Hive's.

    SQL that is too long for some metastores is only in the metadata file.
    """
    version = current_version(metadata)
    queries = {each["dialect"].lower(): each["sql"] for each in reversed(sql_representations(version))}
    sql = queries.get("hive", [*queries.values()][-1] if queries else None)
    sql = sql if len(sql or "") <= LONGEST_SQL else None
    entry = with_columns(entry, view_fields(metadata))
    return replace(
        entry,
        view_original_text=sql,
        view_expanded_text=sql,
        parameters=entry.parameters | {"uuid": metadata["view-uuid"]},
    )


def view_fields(metadata: Json) -> Sequence[Json]:
    """The columns of the view's current version. Raises Invalid if the metadata lacks that version."""
    fields: Sequence[Json] = schema_of(metadata, current_version(metadata))["fields"]
    return fields


def with_columns(entry: HiveTable, fields: Iterable[Json]) -> HiveTable:
    """The entry with these columns and without REPEATED; a storage descriptor set by an engine stays."""
    return replace(
        entry,
        columns=tuple(HiveColumn(field["name"], type_of_iceberg(field["type"]), comment_of(field)) for field in fields),
        input_format=entry.input_format or INPUT_FORMAT,
        output_format=entry.output_format or OUTPUT_FORMAT,
        serde_lib=entry.serde_lib or SERDE,
        parameters={name: value for name, value in entry.parameters.items() if name not in REPEATED},
    )


def _summary(metadata: Json) -> dict[str, str]:
    """The summary of the current snapshot; empty if there is none."""
    current = metadata.get("current-snapshot-id")
    snapshots = metadata.get("snapshots") or ()
    return next((each.get("summary") or {} for each in snapshots if each["snapshot-id"] == current), {})
