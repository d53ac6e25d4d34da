"""Read and change a table's entry in Glue."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from formats.hive.tables import HiveTable
from providers.glue.client import GlueClient
from providers.glue.mapping import hive_table, merged, table_input
from providers.glue.resource_links import is_link
from providers.glue.responses import after_write, table_of, writable
from providers.remote_objects import Levels, Remote


def read_table(glue: GlueClient, schema: Levels, table: str) -> dict[str, Any]:
    entry: dict[str, Any] = glue.call("GetTable", [*schema, table], DatabaseName=schema[0], Name=table)["Table"]
    return entry | {"DatabaseName": schema[0], "Name": table} if is_link(entry) else entry


def update(glue: GlueClient, schema: Levels, entry: dict[str, Any], wanted: HiveTable) -> Remote:
    """Change in the entry only what differs from `wanted`. Raises Conflict if the table changes meanwhile."""
    name = entry["Name"]
    before, after = table_input(hive_table(entry)), table_input(replace(wanted, name=name))
    glue.call(
        "UpdateTable",
        [*schema, name],
        DatabaseName=schema[0],
        TableInput=writable(glue, merged(entry, before, after), "TableInput"),
        SkipArchive=True,
        **({"VersionId": entry["VersionId"]} if entry.get("VersionId") else {}),
    )
    return after_write(lambda: table_of(read_table(glue, schema, name)))
