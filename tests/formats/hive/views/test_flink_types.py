"""Flink's type strings to native types and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from formats.hive.types import MAX_NESTING
from formats.hive.views.flink_types import flink_type, native_type
from formats.native.columns import DataType
from metalake.errors import Invalid, Unsupported
from tests.cases import each

NATIVE = TypeAdapter(DataType)
BOTH_WAYS = {
    "BOOLEAN": "boolean", "TINYINT": "byte", "SMALLINT": "short", "INT": "integer", "BIGINT": "long",
    "FLOAT": "float", "DOUBLE": "double", "DECIMAL(10, 2)": "decimal(10,2)", "VARCHAR(2147483647)": "string",
    "VARCHAR(3)": "varchar(3)", "CHAR(2)": "char(2)", "VARBINARY(2147483647)": "binary", "BINARY(4)": "fixed(4)",
    "DATE": "date", "TIME(0)": "time(0)", "TIMESTAMP(9)": "timestamp(9)", "NULL": "null",
    "TIMESTAMP(3) WITH LOCAL TIME ZONE": "timestamp_tz(3)", "INTERVAL YEAR(2) TO MONTH": "interval_year",
    "INTERVAL DAY(2) TO SECOND(6)": "interval_day",
}  # fmt: skip
ONE_WAY = {
    "STRING": "string", "BYTES": "binary", "INTEGER": "integer", "CHAR": "char(1)", "DECIMAL": "decimal(10,0)",
    "NUMERIC(5)": "decimal(5,0)", "TIMESTAMP": "timestamp(6)", "TIMESTAMP_LTZ(3)": "timestamp_tz(3)",
    "TIME": "time(0)", "INTERVAL MONTH": "interval_year", "INTERVAL SECOND(3)": "interval_day",
    "timestamp ( 3 ) with local time zone": "timestamp_tz(3)",
}  # fmt: skip
EXTERNAL = [
    *("MULTISET<INT>", "TIMESTAMP(3) WITH TIME ZONE", "VARBINARY(10)", "RAW('a.B', 'x')", "`c`.`d`.`Type`", "ROW<>"),
    *("DECIMAL(39, 0)", "TIMESTAMP(10)", "VARCHAR(0)", "ARRAY<INT", "MAP<INT>", "ROW<`` INT>", "INT INT", ""),
    *("NOT NULL", "VARIANT", "INTERVAL", "array(int)"),
]  # fmt: skip


@each("flink, native", BOTH_WAYS.items())
def test_a_type_comes_back(flink: str, native: str) -> None:
    assert native_type(flink) == (native, True) and native_type(f"{flink} NOT NULL") == (native, False)
    assert flink_type(native, True, "t") == flink and flink_type(native, False, "t") == f"{flink} NOT NULL"


@each("flink, native", ONE_WAY.items())
def test_other_spellings_are_understood(flink: str, native: str) -> None:
    assert native_type(flink) == (native, True)


@each("text", EXTERNAL)
def test_what_has_no_native_counterpart_is_shown_as_it_stands(text: str) -> None:
    assert native_type(text) == ({"type": "external", "catalogString": text}, True)


def test_containers_come_back_with_their_nulls_and_comments() -> None:
    text = "ROW<`a` ARRAY<BIGINT NOT NULL>, `b``c` MAP<VARCHAR(3), ROW<`x` INT NOT NULL 'it''s'> NOT NULL> 'm'>"
    native, nullable = native_type(text)
    assert isinstance(native, dict) and native["fields"][1]["comment"] == "m" and nullable
    assert flink_type(NATIVE.validate_python(native), True, "t") == text


@pytest.mark.parametrize("native", ["uuid", "byte unsigned", "timestamp(10)", {"type": "union", "types": ["integer"]}])
def test_what_flink_has_no_type_for_is_refused(native: object) -> None:
    with pytest.raises(Unsupported, match=r"^columns\[0\]\.type"):
        flink_type(NATIVE.validate_python(native), True, "columns[0].type")


def test_a_type_that_nobody_knows_is_named() -> None:
    with pytest.raises(Unsupported, match="Flink has no type 'int'"):
        flink_type(NATIVE.validate_python("int"), True, "columns[0].type")


def test_an_unknown_type_may_be_without_null() -> None:
    external = {"type": "external", "catalogString": "MULTISET<INT NOT NULL>"}
    assert native_type("MULTISET<INT NOT NULL> NOT NULL") == (external, False)
    assert flink_type(NATIVE.validate_python(external), False, "t") == "MULTISET<INT NOT NULL> NOT NULL"


def test_deep_types_are_external_and_not_written() -> None:
    text = "ARRAY<" * MAX_NESTING + "INT" + ">" * MAX_NESTING
    assert native_type(text).native == {"type": "external", "catalogString": text}
    native: object = "long"
    for _ in range(MAX_NESTING):
        native = {"type": "list", "elementType": native}
    with pytest.raises(Invalid, match="nests deeper"):
        flink_type(NATIVE.validate_python(native), True, "t")


@given(st.text(alphabet="ROWARYMP<>,`' 0123456789INTULVCH()\n", max_size=60) | st.text(max_size=20))
def test_any_text_is_a_type_or_external(text: str) -> None:
    native, nullable = native_type(text)
    assert NATIVE.validate_python(native) is not None
    if not isinstance(native, dict) or native["type"] != "external":
        assert native_type(flink_type(NATIVE.validate_python(native), nullable, "t")) == (native, nullable)
