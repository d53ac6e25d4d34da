"""Converts Flink's type strings, from its views' parameters, to native types and back.

Flink's documentation, "Data Types": ``ROW<`from` VARCHAR(3) NOT NULL 'an airport', `legs` ARRAY<TIMESTAMP(3)>>``.
"""

from __future__ import annotations

import re
from typing import Any

from formats.hive.type_parser import MAX_NESTING, NestedReader, NotAType, Typed, TypeReader, decimal
from formats.hive.types import is_well_formed
from formats.native.columns import (
    DataType,
    ExternalType,
    ListType,
    MapType,
    StructField,
    StructType,
    UnparsedType,
    parse_primitive,
)
from metalake.errors import Invalid, Unsupported
from metalake.wire import quote

UNLIMITED = 2**31 - 1  # the length of a STRING and of BYTES
LONGEST_NATIVE = 999_999_999
FINEST = 9  # fractional digits of a second
NATIVE_NAMES = {
    "BOOLEAN": "boolean", "TINYINT": "byte", "SMALLINT": "short", "INT": "integer", "INTEGER": "integer",
    "BIGINT": "long", "FLOAT": "float", "DOUBLE": "double", "DATE": "date", "STRING": "string", "BYTES": "binary",
    "NULL": "null",
}  # fmt: skip
FLINK_NAMES = {
    "boolean": "BOOLEAN", "byte": "TINYINT", "short": "SMALLINT", "integer": "INT", "long": "BIGINT", "float": "FLOAT",
    "double": "DOUBLE", "date": "DATE", "string": f"VARCHAR({UNLIMITED})", "binary": f"VARBINARY({UNLIMITED})",
    "null": "NULL", "time": "TIME(0)", "timestamp": "TIMESTAMP(6)", "timestamp_tz": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "interval_year": "INTERVAL YEAR(2) TO MONTH", "interval_day": "INTERVAL DAY(2) TO SECOND(6)",
}  # fmt: skip
DEFAULT_PRECISIONS = {"TIME": 0, "TIMESTAMP": 6, "TIMESTAMP_LTZ": 6}

_WORD = re.compile(r"\s*([A-Za-z_]\w*)", re.ASCII)
_NOT_NULL = re.compile(r"\s*NOT\s+NULL(?!\w)", re.IGNORECASE | re.ASCII)
_OTHERS_NOT_NULL = re.compile(r"(.*\S)\s+NOT\s+NULL\s*", re.IGNORECASE | re.ASCII | re.DOTALL)
_LOCAL_ZONE = re.compile(r"\s*WITH\s+LOCAL\s+TIME\s+ZONE(?!\w)", re.IGNORECASE | re.ASCII)
_INTERVAL = re.compile(
    r"\s*(YEAR|MONTH|DAY|HOUR|MINUTE|SECOND)(?:\([0-9]{1,2}\))?(?:\s+TO\s+(?:MONTH|HOUR|MINUTE|SECOND)(?:\([0-9]\))?)?",
    re.IGNORECASE | re.ASCII,
)


class _Reader(NestedReader):
    opening, closing = (re.compile(rf"\s*{mark}", re.ASCII) for mark in "<>")
    quote, quoted_name, plain_name = "`", re.compile(r"\s*`((?:[^`]|``)*)`"), _WORD
    comment = re.compile(r"\s*'((?:[^']|'')*)'")

    def typed(self, level: int) -> Typed:
        native: str | dict[str, Any]
        match self.need(_WORD)[1].upper():
            case "ARRAY" | "MAP" | "ROW" as word:
                native = self.container(word.lower(), level)
            case "TIME" | "TIMESTAMP" | "TIMESTAMP_LTZ" as word:
                native = _time(self, word)
            case "INTERVAL":
                native = "interval_year" if self.need(_INTERVAL)[1].upper() in ("YEAR", "MONTH") else "interval_day"
            case word:
                native = _primitive(word, self.numbers())
        return Typed(native, self.take(_NOT_NULL) is None)


def native_type(text: str) -> Typed:
    """The native form of a Flink type; one without a native equivalent becomes external, unchanged."""
    try:
        return _Reader(text).whole()
    except NotAType:
        others = _OTHERS_NOT_NULL.fullmatch(text)
        return Typed({"type": "external", "catalogString": others[1] if others else text}, nullable=not others)


def _time(reader: TypeReader, word: str) -> str:
    precision, *more = reader.numbers() or [DEFAULT_PRECISIONS[word]]
    if more or precision > FINEST:
        raise NotAType
    if word == "TIME":
        return f"time({precision})"
    is_local = word == "TIMESTAMP_LTZ" or reader.take(_LOCAL_ZONE) is not None
    return f"timestamp_tz({precision})" if is_local else f"timestamp({precision})"


def _primitive(word: str, arguments: list[int]) -> str:
    match word, arguments:
        case "DECIMAL" | "DEC" | "NUMERIC", _:
            return decimal(arguments, 10)
        case "VARCHAR" | "VARBINARY", [length] if length == UNLIMITED:
            return "string" if word == "VARCHAR" else "binary"
        case "VARCHAR" | "CHAR" | "BINARY", _ if len(arguments) < 2:
            length = arguments[0] if arguments else 1
            if 1 <= length <= LONGEST_NATIVE:
                return f"{'fixed' if word == 'BINARY' else word.lower()}({length})"
        case _, [] if word in NATIVE_NAMES:
            return NATIVE_NAMES[word]
    raise NotAType


def flink_type(native: DataType, nullable: bool, where: str, level: int = 1) -> str:
    """The Flink type string of a native type; `where` is the path.

    Raises Unsupported if Flink has no such type, Invalid if it nests too deep.
    """
    if level > MAX_NESTING:
        raise Invalid(f"{where}: nests deeper than {MAX_NESTING} levels", kind="column")
    return _write(native, where, level) + ("" if nullable else " NOT NULL")


def _write(native: DataType, where: str, level: int) -> str:
    match native:
        case str():
            return _write_primitive(native, where)
        case ListType(element_type=element):
            return f"ARRAY<{flink_type(element, native.contains_null, f'{where}.elementType', level + 1)}>"
        case MapType(key_type=key, value_type=value):
            written_key = flink_type(key, True, f"{where}.keyType", level + 1)
            written_value = flink_type(value, native.value_contains_null, f"{where}.valueType", level + 1)
            return f"MAP<{written_key}, {written_value}>"
        case StructType(fields=[_, *_] as fields):
            written = (_field(field, f"{where}.fields[{number}]", level) for number, field in enumerate(fields))
            return f"ROW<{', '.join(written)}>"
        case ExternalType(catalog_string=text) if is_well_formed(text):
            return text
        case UnparsedType(unparsed_type=text):
            raise Unsupported(f"{where}: Flink has no type {quote(text)}", kind="column")
    raise Unsupported(f"{where}: Flink has no such type", kind="column")


def _field(field: StructField, where: str, level: int) -> str:
    name = field.name.replace("`", "``")
    comment = "" if field.comment is None else " '" + field.comment.replace("'", "''") + "'"
    return f"`{name}` {flink_type(field.type, field.nullable, f'{where}.type', level + 1)}{comment}"


def _write_primitive(native: str, where: str) -> str:
    if native in FLINK_NAMES:
        return FLINK_NAMES[native]
    match parse_primitive(native):
        case ("decimal", (precision, scale)):
            return f"DECIMAL({precision}, {scale})"
        case ("varchar" | "char" as name, (length,)):
            return f"{name.upper()}({length})"
        case ("fixed", (length,)):
            return f"BINARY({length})"
        case ("time" | "timestamp" as name, (int() as precision,)) if precision <= FINEST:
            return f"{name.upper()}({precision})"
        case ("timestamp_tz", (int() as precision,)) if precision <= FINEST:
            return f"TIMESTAMP({precision}) WITH LOCAL TIME ZONE"
    raise Unsupported(f"{where}: Flink has no type {quote(native)}", kind="column")
