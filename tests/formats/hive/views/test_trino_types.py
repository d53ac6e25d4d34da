"""Trino's type strings to native types and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from formats.hive.types import MAX_NESTING
from formats.hive.views.trino_types import native_type, trino_type
from formats.native.columns import DataType
from metalake.errors import Invalid, Unsupported
from tests.cases import each

NATIVE = TypeAdapter(DataType)
BOTH_WAYS = {
    "boolean": "boolean", "tinyint": "byte", "smallint": "short", "integer": "integer", "bigint": "long",
    "real": "float", "double": "double", "decimal(38,2)": "decimal(38,2)", "varchar": "string",
    "varchar(10)": "varchar(10)", "char(3)": "char(3)", "varbinary": "binary", "date": "date", "uuid": "uuid",
    "unknown": "null", "time(0)": "time(0)", "timestamp(6)": "timestamp(6)", "timestamp(12)": "timestamp(12)",
    "timestamp(3) with time zone": "timestamp_tz(3)", "interval year to month": "interval_year",
    "interval day to second": "interval_day",
}  # fmt: skip
ONE_WAY = {
    "VARCHAR ( 10 )": "varchar(10)", "varchar(2147483646)": "string", "timestamp": "timestamp(3)", "char": "char(1)",
    "timestamp with time zone": "timestamp_tz(3)", "time": "time(3)", "decimal": "decimal(38,0)",
    "decimal(5)": "decimal(5,0)", "int": "integer", "Timestamp(3)  WITH time\tZONE": "timestamp_tz(3)",
}  # fmt: skip
EXTERNAL = [
    *("json", "ipaddress", "HyperLogLog", "Geometry", "qdigest(bigint)", "time(3) with time zone", "row(bigint)"),
    *("decimal(39,0)", "decimal(3,4)", "timestamp(13)", "varchar(0)", "varchar(", "array(bigint", "map(bigint)", ""),
    *("row()", 'row("" bigint)', "bigint bigint", "timestamp(3,3)", "interval day", "array<bigint>"),
]  # fmt: skip


@each("trino, native", BOTH_WAYS.items())
def test_a_type_comes_back(trino: str, native: str) -> None:
    assert native_type(trino) == native and trino_type(NATIVE.validate_python(native), "t") == trino


@each("trino, native", ONE_WAY.items())
def test_other_spellings_are_understood(trino: str, native: str) -> None:
    assert native_type(trino) == native


@each("text", EXTERNAL)
def test_what_has_no_native_counterpart_is_shown_as_it_stands(text: str) -> None:
    assert native_type(text) == {"type": "external", "catalogString": text}


def test_containers_come_back() -> None:
    text = 'row("a" array(bigint),"b""c" map(varchar(3),row("timestamp" timestamp(3) with time zone)))'
    native = native_type(text)
    assert isinstance(native, dict) and [field["name"] for field in native["fields"]] == ["a", 'b"c']
    assert trino_type(NATIVE.validate_python(native), "t") == text
    assert native_type("row(a bigint, b map(varchar, double))") == native_type(
        'row("a" bigint, "b" map(varchar,double))'
    )


@pytest.mark.parametrize(
    ("native", "text"),
    [("time", "time(3)"), ("timestamp", "timestamp(3)"), ("timestamp_tz", "timestamp(3) with time zone")],
)
def test_a_type_without_precision_gets_trino_s_own(native: str, text: str) -> None:
    assert trino_type(native, "t") == text


@each(
    "native",
    [
        "fixed(3)",
        "byte unsigned",
        "variant",
        {"type": "union", "types": ["integer"]},
        {"type": "struct", "fields": []},
        {"type": "list", "elementType": "integer", "containsNull": False},
        {"type": "struct", "fields": [{"name": "a", "type": "integer", "nullable": False}]},
        {"type": "struct", "fields": [{"name": "a", "type": "integer", "comment": "c"}]},
        {"type": "external", "catalogString": "json); drop"},
    ],
)
def test_what_trino_has_no_type_for_is_refused(native: object) -> None:
    with pytest.raises(Unsupported, match=r"^columns\[0\]\.type"):
        trino_type(NATIVE.validate_python(native), "columns[0].type")


def test_a_type_that_nobody_knows_is_named() -> None:
    with pytest.raises(Unsupported, match="Trino has no type 'int'"):
        trino_type(NATIVE.validate_python("int"), "columns[0].type")


def test_deep_types_are_external_and_not_written() -> None:
    text = "array(" * MAX_NESTING + "bigint" + ")" * MAX_NESTING
    assert native_type(text) == {"type": "external", "catalogString": text}
    native: object = "long"
    for _ in range(MAX_NESTING):
        native = {"type": "list", "elementType": native}
    with pytest.raises(Invalid, match="nests deeper"):
        trino_type(NATIVE.validate_python(native), "t")


@given(st.text(alphabet='rowaymp(),"<> 0123456789tinte\tz\n', max_size=60) | st.text(max_size=20))
def test_any_text_is_a_type_or_external(text: str) -> None:
    native = native_type(text)
    assert NATIVE.validate_python(native) is not None
    if not isinstance(native, dict) or native["type"] != "external":
        assert native_type(trino_type(NATIVE.validate_python(native), "t")) == native
