"""What Iceberg's own Hive catalog writes to a table's entry, beside the location of the metadata file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from formats.hive.tables import HiveColumn, HiveTable
from formats.hive.types import type_of_iceberg
from formats.iceberg.translate import current_schema
from providers.hive_like.pointers import comment_of

Json = dict[str, Any]

INPUT_FORMAT, OUTPUT_FORMAT = (f"org.apache.hadoop.mapred.File{way}Format" for way in ("Input", "Output"))
SERDE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
# Parts of the metadata that Iceberg may repeat; readers take missing ones from the metadata.
REPEATED = frozenset(
    {
        *("current-schema", "default-partition-spec", "default-sort-order", "snapshot-count"),
        *("current-snapshot-id", "current-snapshot-timestamp-ms", "current-snapshot-summary"),
    }
)
STATISTICS = {"numFiles": "total-data-files", "numRows": "total-records", "totalSize": "total-files-size"}


def described(entry: HiveTable, metadata: Json) -> HiveTable:
    """The entry with the metadata's columns and statistics; a storage descriptor that engines have set stays."""
    old = {*REPEATED, *STATISTICS}
    parameters = {name: value for name, value in entry.parameters.items() if name not in old}
    summary = _summary(metadata)
    return replace(
        entry,
        columns=tuple(
            HiveColumn(field["name"], type_of_iceberg(field["type"]), comment_of(field))
            for field in current_schema(metadata)["fields"]
        ),
        input_format=entry.input_format or INPUT_FORMAT,
        output_format=entry.output_format or OUTPUT_FORMAT,
        serde_lib=entry.serde_lib or SERDE,
        parameters=parameters
        | {"EXTERNAL": "TRUE"}
        | ({"uuid": metadata["table-uuid"]} if metadata.get("table-uuid") else {})
        | {name: summary[key] for name, key in STATISTICS.items() if key in summary},
    )


def _summary(metadata: Json) -> dict[str, str]:
    """The summary of the current snapshot; empty if there is none."""
    current = metadata.get("current-snapshot-id")
    snapshots = metadata.get("snapshots") or ()
    return next((each.get("summary") or {} for each in snapshots if each["snapshot-id"] == current), {})
