"""Columns of the native wire for people."""

from __future__ import annotations

from typing import Any

import pytest

from formats.native.outlines import native_type_text, outline_native, rows_of

STRUCT = {"type": "struct", "fields": [{"name": "zip", "type": "string", "nullable": False, "comment": "five digits"}]}


@pytest.mark.parametrize(
    "type_, text",
    [
        ("decimal(10,2)", "decimal(10,2)"),
        (STRUCT, "struct"),
        ({"type": "list", "elementType": STRUCT}, "list<struct>"),
        ({"type": "map", "keyType": "string", "valueType": {"type": "list", "elementType": "long"}},
         "map<string, list<long>>"),
        ({"type": "union", "types": ["long", "string"]}, "union<long, string>"),
        ({"type": "external", "catalogString": "interval"}, "interval"),
        ({"type": "unparsed", "unparsedType": "colour"}, "colour"),
    ],
)  # fmt: skip
def test_types_are_read_in_one_line(type_: Any, text: str) -> None:
    assert native_type_text(type_) == text


def test_columns_are_listed_with_what_is_nested_in_them() -> None:
    column = {"name": "homes", "type": {"type": "map", "keyType": "string", "valueType": STRUCT}}
    whole, nested = rows_of(outline_native([column]))
    assert (whole.column.required, whole.column.id, whole.depth) == (False, None, 0)
    assert (nested.path, nested.depth) == (("homes", "zip"), 1)
    assert (nested.column.required, nested.column.comment) == (True, "five digits")
