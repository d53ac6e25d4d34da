"""Converts Trino's type strings, from its views' JSON, to native types and back.

Trino's documentation, "Data types": `row("from" varchar(3),"legs" array(timestamp(3) with time zone))`.
"""

from __future__ import annotations

import re
from typing import Any

from formats.hive.type_parser import MAX_NESTING, NestedReader, NotAType, Typed, TypeReader, decimal
from formats.hive.types import is_well_formed
from formats.native.columns import (
    MAX_DECIMAL_PRECISION,
    MAX_TIME_PRECISION,
    DataType,
    ExternalType,
    ListType,
    MapType,
    StructType,
    UnparsedType,
    parse_primitive,
)
from metalake.errors import Invalid, Unsupported
from metalake.wire import quote

NATIVE_NAMES = {
    "boolean": "boolean", "tinyint": "byte", "smallint": "short", "integer": "integer", "int": "integer",
    "bigint": "long", "real": "float", "double": "double", "varchar": "string", "varbinary": "binary", "date": "date",
    "uuid": "uuid", "unknown": "null",
}  # fmt: skip
TRINO_NAMES = {
    **{native: trino for trino, native in NATIVE_NAMES.items() if trino != "int"},
    "time": "time(3)", "timestamp": "timestamp(3)", "timestamp_tz": "timestamp(3) with time zone",
    "interval_year": "interval year to month", "interval_day": "interval day to second",
}  # fmt: skip
DEFAULT_PRECISION = 3  # of times and timestamps
LONGEST_NATIVE = 999_999_999  # a longer varchar counts as unlimited

_WORD = re.compile(r"\s*([A-Za-z_][\w$]*)", re.ASCII)
_WITH_TIME_ZONE = re.compile(r"\s+with\s+time\s+zone(?!\w)", re.IGNORECASE | re.ASCII)
_INTERVAL = re.compile(r"\s+(?:(year\s+to\s+month)|day\s+to\s+second)(?!\w)", re.IGNORECASE | re.ASCII)


class _Reader(NestedReader):
    opening, closing = (re.compile(rf"\s*{mark}", re.ASCII) for mark in (r"\(", r"\)"))
    quote, quoted_name = '"', re.compile(r'\s*"((?:[^"]|"")*)"')
    plain_name = re.compile(r"\s*([A-Za-z_]\w*)\s+(?=[A-Za-z_])", re.ASCII)

    def typed(self, level: int) -> Typed:
        match self.need(_WORD)[1].lower():
            case "array" | "map" | "row" as word:
                return Typed(self.container(word, level))
            case "time" | "timestamp" as word:
                return Typed(_time(self, word))
            case "interval":
                return Typed("interval_year" if self.need(_INTERVAL)[1] else "interval_day")
            case word:
                return Typed(_primitive(word, self.numbers()))


def native_type(text: str) -> str | dict[str, Any]:
    """The native JSON of a Trino type; one without a native equivalent becomes external, unchanged."""
    try:
        return _Reader(text).whole().native
    except NotAType:
        return {"type": "external", "catalogString": text}


def _time(reader: TypeReader, word: str) -> str:
    precision, *more = reader.numbers() or [DEFAULT_PRECISION]
    has_zone = reader.take(_WITH_TIME_ZONE) is not None
    if more or precision > MAX_TIME_PRECISION or (has_zone and word == "time"):
        raise NotAType
    return f"{word}{'_tz' if has_zone else ''}({precision})"


def _primitive(word: str, arguments: list[int]) -> str:
    match word, arguments:
        case "decimal", _:
            return decimal(arguments, MAX_DECIMAL_PRECISION)
        case "varchar" | "char", [length]:
            if word == "varchar" and length > LONGEST_NATIVE:
                return "string"
            if 1 <= length <= LONGEST_NATIVE:
                return f"{word}({length})"
        case "char", []:
            return "char(1)"
        case _, [] if word in NATIVE_NAMES:
            return NATIVE_NAMES[word]
    raise NotAType


def trino_type(native: DataType, where: str, level: int = 1) -> str:
    """The Trino type string of a native type; `where` is the path.

    Raises Unsupported if Trino has no such type, Invalid if it nests too deep.
    """
    if level > MAX_NESTING:
        raise Invalid(f"{where}: nests deeper than {MAX_NESTING} levels", kind="column")
    match native:
        case str():
            return _write_primitive(native, where)
        case ListType(element_type=element, contains_null=True):
            return f"array({trino_type(element, f'{where}.elementType', level + 1)})"
        case MapType(key_type=key, value_type=value, value_contains_null=True):
            written_key = trino_type(key, f"{where}.keyType", level + 1)
            return f"map({written_key},{trino_type(value, f'{where}.valueType', level + 1)})"
        case StructType(fields=[_, *_]):
            return f"row({','.join(_write_fields(native, f'{where}.fields', level + 1))})"
        case ExternalType(catalog_string=text) if is_well_formed(text):
            return text
        case ListType() | MapType():
            raise Unsupported(f"{where}: everything in one of Trino's types may be null", kind="column")
        case UnparsedType(unparsed_type=text):
            raise Unsupported(f"{where}: Trino has no type {quote(text)}", kind="column")
    raise Unsupported(f"{where}: Trino has no such type", kind="column")


def _write_fields(struct: StructType, where: str, level: int) -> list[str]:
    written = []
    for number, field in enumerate(struct.fields):
        place = f"{where}[{number}]"
        if field.comment is not None or not field.nullable:
            raise Unsupported(f"{place}: a field in Trino has no comment and may be null", kind="column")
        name = field.name.replace('"', '""')
        written.append(f'"{name}" {trino_type(field.type, f"{place}.type", level)}')
    return written


def _write_primitive(native: str, where: str) -> str:
    if native in TRINO_NAMES:
        return TRINO_NAMES[native]
    match parse_primitive(native):
        case ("decimal" | "varchar" | "char" | "time" | "timestamp", _):
            return native
        case ("timestamp_tz", (precision,)):
            return f"timestamp({precision}) with time zone"
    raise Unsupported(f"{where}: Trino has no type {quote(native)}", kind="column")
