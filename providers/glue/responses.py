"""Glue's responses as Remotes, checks that an object is still the same, and reading and updating a table's entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from formats.hive.partitions import partition_name
from formats.hive.tables import VIEW_TYPES, HiveTable
from metalake.errors import Conflict, NotFound, OutcomeUnknown, ProviderUnavailable
from metalake.kinds import Kind
from providers.glue import resource_links
from providers.glue.client import GlueClient
from providers.glue.mapping import database_definition, hive_table, merged, moment, table_input
from providers.hive_like.parameters import formats_in
from providers.remote_objects import PARTITION, Levels, Remote, digest


def page_after(page: str | None) -> dict[str, str]:
    return {"NextToken": page} if page else {}


def database_of(database: Mapping[str, Any]) -> Remote:
    definition = database_definition(database)
    return Remote(
        database["Name"], definition, moment(database.get("CreateTime")), digest(definition), kind=Kind.SCHEMA
    )


def table_of(table: Mapping[str, Any]) -> Remote:
    """A table or view; for an unread resource link only the name, without a version."""
    is_link = resource_links.is_link(table)
    if resource_links.is_unread(table):
        return Remote(table["Name"], {}, moment(table.get("CreateTime")), "", Kind.TABLE)
    if is_link:
        table = {resource_links.LINK: "", **table}
    described = hive_table(table)
    definition = described.as_json()
    version = table.get("VersionId") or digest(definition)
    kind = Kind.VIEW if table.get("TableType") in VIEW_TYPES and not is_link else Kind.TABLE
    formats = "" if resource_links.dead(definition) else formats_in(described)
    return Remote(table["Name"], definition, moment(table.get("CreateTime")), version, kind, formats)


def partition_of(of: HiveTable, partition: Mapping[str, Any]) -> Remote:
    values = partition["Values"]
    definition = {
        "name": partition_name(of.partition_keys, values),
        "values": values,
        "location": (partition.get("StorageDescriptor") or {}).get("Location"),
        "parameters": dict(partition.get("Parameters") or {}),
    }
    identity = moment(partition.get("CreationTime"))
    return Remote(definition["name"], definition, identity, digest(definition), PARTITION)


def require_same(remote: Remote, identity: str) -> None:
    """Raise NotFound if another object has the name now."""
    if identity and remote.identity and remote.identity != identity:
        raise NotFound(f"{remote.kind.capitalize()} {remote.name} was made anew in AWS Glue.", kind=remote.kind)


def changed(schema: Levels, table: str) -> Conflict:
    return Conflict(f"Table {schema[0]}.{table} was changed meanwhile; load it and try again.", kind=Kind.TABLE)


def after_write(read: Callable[[], Remote]) -> Remote:
    """Read back the object after a write. Raises OutcomeUnknown if that fails, as the write succeeded."""
    try:
        return read()
    except ProviderUnavailable as failure:
        raise OutcomeUnknown(f"{failure.message} What was written is not read back.", kind="catalog") from None


def writable(glue: GlueClient, fields: Mapping[str, Any], shape: str) -> dict[str, Any]:
    """The fields that a request's structure accepts."""
    accepted = glue.writable(shape) - {"ViewDefinition"}  # its write format differs from its read format
    return {name: value for name, value in fields.items() if name in accepted}


def read_table(glue: GlueClient, schema: Levels, table: str) -> dict[str, Any]:
    """Glue's entry of a table or view; a resource link has its own names, not its target's. Raises NotFound."""
    entry: dict[str, Any] = glue.call("GetTable", [*schema, table], DatabaseName=schema[0], Name=table)["Table"]
    return entry | {"DatabaseName": schema[0], "Name": table} if resource_links.is_link(entry) else entry


def update(glue: GlueClient, schema: Levels, entry: dict[str, Any], wanted: HiveTable) -> Remote:
    """Change only what differs between the entry and `wanted`. Raises Conflict on a concurrent change."""
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
