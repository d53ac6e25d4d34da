"""Columns of the native wire for people."""

from __future__ import annotations

from typing import Any

import pytest

from formats.native.outlines import expression_text, native_type_text, outline_keys, outline_native, rows_of

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


@pytest.mark.parametrize(
    "expression, text",
    [
        ({"type": "literal", "dataType": "varchar(9)", "value": "it's"}, "'it''s'"),
        ({"type": "literal", "dataType": "string", "value": ""}, "''"),
        ({"type": "literal", "dataType": {"type": "external", "catalogString": "mood"}, "value": "calm"}, "'calm'"),
        ({"type": "literal", "dataType": "decimal(5,2)", "value": "0.00"}, "0.00"),
        ({"type": "literal", "dataType": "long unsigned", "value": "7"}, "7"),
        ({"type": "literal", "dataType": "null", "value": "NULL"}, "NULL"),
        ({"type": "function", "funcName": "lower", "funcArgs": [{"type": "field", "fieldName": ["a", "b"]}]},
         "lower(a.b)"),
        ({"type": "unparsed", "unparsedExpression": "gen_random_uuid()"}, "gen_random_uuid()"),
    ],
)  # fmt: skip
def test_defaults_are_read_in_one_line(expression: Any, text: str) -> None:
    (column,) = outline_native([{"name": "a", "type": "string", "defaultValue": expression}])
    assert column.default == text == expression_text(expression)


def test_keys_are_named_by_their_type() -> None:
    primary = {"indexType": "PRIMARY_KEY", "name": "PRIMARY", "fieldNames": [["id"], ["home", "zip"]]}
    index = {"indexType": "UNIQUE_KEY", "fieldNames": [["id"]], "properties": {"constraint": "false"}}
    keys = [(key.name, key.type, key.columns) for key in outline_keys([primary, index])]
    assert keys == [("PRIMARY", "Primary key", ("id", "home.zip")), ("", "Unique index", ("id",))]
