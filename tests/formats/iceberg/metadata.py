"""Iceberg table metadata for tests, made from native create bodies."""

from __future__ import annotations

from typing import Any

import pytest

from formats.iceberg.fields import ids_within, read_struct
from formats.iceberg.translate import format_version, to_iceberg
from formats.native.columns import Column
from formats.native.tables import CreateTableRequest
from metalake.errors import MetalakeError
from metalake.wire import read
from tests.catalogs.native import table

UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"


def translated(**parts: Any) -> tuple[dict[str, Any], dict[str, Any] | None, dict[str, Any] | None, dict[str, str]]:
    return to_iceberg(read(CreateTableRequest, table(**parts)))


def metadata_of(**parts: Any) -> dict[str, Any]:
    """The metadata of a table as a catalog would hold it right after creation."""
    schema, spec, order, properties = translated(**parts)
    version = format_version(properties)
    properties.pop("format-version", None)
    return {
        "format-version": version,
        "table-uuid": UUID,
        "location": properties.pop("location", "file:///warehouse/orders"),
        "last-column-id": max(id for field in read_struct(schema).fields for id in ids_within(field)),
        "current-schema-id": 0,
        "schemas": [schema],
        "default-spec-id": 0,
        "partition-specs": [spec or {"spec-id": 0, "fields": []}],
        "default-sort-order-id": order["order-id"] if order else 0,
        "sort-orders": [order or {"order-id": 0, "fields": []}],
        "properties": properties,
    }


def as_wire(columns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Columns with every default of the wire spelled out."""
    return [read(Column, column).to_wire() for column in columns]


def refused(error: type[MetalakeError], **parts: Any) -> str:
    """The message with which creating such a table is refused."""
    with pytest.raises(MetalakeError) as caught:
        translated(**parts)
    assert type(caught.value) is error, caught.value
    return caught.value.message
