"""Altering a table in tests: short ways to say a change, and the metadata it leads to."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from pydantic import TypeAdapter
from pyiceberg.schema import Schema
from pyiceberg.table.update import TableRequirement, TableUpdate

from formats.iceberg.alterations import updates_for
from formats.iceberg.translate import current_schema, from_iceberg
from formats.native.tables import TableUpdatesRequest
from metalake.errors import MetalakeError
from metalake.wire import read
from tests.formats.iceberg.metadata import metadata_of

PYICEBERG_UPDATES = TypeAdapter(list[TableUpdate])
PYICEBERG_REQUIREMENTS = TypeAdapter(list[TableRequirement])
VERSION_3 = {"format-version": "3"}
LAST_ID = 17  # ten columns, and seven fields nested in them


def plan(metadata: dict[str, Any], *changes: dict[str, Any], **how: Any) -> Any:
    return updates_for(read(TableUpdatesRequest, {"updates": list(changes)}).updates, metadata, **how)


def altered(metadata: dict[str, Any], *changes: dict[str, Any], **how: Any) -> dict[str, Any]:
    """The metadata after the commit, made the way the Iceberg spec says for the updates used here."""
    before = copy.deepcopy(metadata)
    requirements, updates, rename = plan(metadata, *changes, **how)
    assert metadata == before, "planning changes nothing"
    assert rename is None
    PYICEBERG_UPDATES.validate_python(updates)
    PYICEBERG_REQUIREMENTS.validate_python(requirements)
    after = copy.deepcopy(metadata)
    for update in updates:
        match update["action"]:
            case "add-schema":
                after["schemas"].append(update["schema"])
                after["last-column-id"] = update["last-column-id"]
            case "set-current-schema":
                last = after["schemas"][-1]["schema-id"]
                after["current-schema-id"] = last if update["schema-id"] == -1 else update["schema-id"]
            case "set-properties":
                after["properties"].update(update["updates"])
            case "remove-properties":
                for name in update["removals"]:
                    del after["properties"][name]
            case "set-location":
                after["location"] = update["location"]
            case unknown:
                raise AssertionError(unknown)
    return after


def refused(error: type[MetalakeError], *changes: dict[str, Any], metadata: dict[str, Any] | None = None) -> str:
    with pytest.raises(MetalakeError) as caught:
        plan(metadata or metadata_of(), *changes)
    assert type(caught.value) is error, caught.value
    return caught.value.message


def named(metadata: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The native columns of a table by name, in order."""
    return {column["name"]: column for column in from_iceberg(metadata)["columns"]}


def ids(metadata: dict[str, Any]) -> dict[str, int]:
    """Full column name to field id, as pyiceberg reads the schema."""
    schema = Schema.model_validate(current_schema(metadata))
    return {str(schema.find_column_name(id)): id for id in schema.field_ids}


def add(*path: str, type: Any = "long", **more: Any) -> dict[str, Any]:
    return {"@type": "addColumn", "fieldName": list(path), "type": type, **more}


def delete(*path: str, if_exists: bool = False) -> dict[str, Any]:
    return {"@type": "deleteColumn", "fieldName": list(path), "ifExists": if_exists}


def rename(*path: str, to: str) -> dict[str, Any]:
    return {"@type": "renameColumn", "oldFieldName": list(path), "newFieldName": to}


def retype(*path: str, to: Any) -> dict[str, Any]:
    return {"@type": "updateColumnType", "fieldName": list(path), "newType": to}


def move(*path: str, to: Any) -> dict[str, Any]:
    return {"@type": "updateColumnPosition", "fieldName": list(path), "newPosition": to}


def nullable(*path: str, yes: bool = True) -> dict[str, Any]:
    return {"@type": "updateColumnNullability", "fieldName": list(path), "nullable": yes}


def comment(*path: str, to: str | None) -> dict[str, Any]:
    return {"@type": "updateColumnComment", "fieldName": list(path), "newComment": to}


def put(name: str, value: str) -> dict[str, Any]:
    return {"@type": "setProperty", "property": name, "value": value}


def drop(name: str) -> dict[str, Any]:
    return {"@type": "removeProperty", "property": name}
