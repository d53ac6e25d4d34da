"""Translate native types and default values to Iceberg's and back.

Source: Iceberg spec, "Primitive Types", and appendix C for the JSON of types and single values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from formats.iceberg.fields import Field, ListOf, MapOf, Struct, Type, element_field, map_of
from formats.native.columns import (
    DataType,
    ExternalType,
    ListType,
    LiteralValue,
    MapType,
    StructType,
    UnionType,
    UnparsedType,
    is_null,
    parse_primitive,
)
from metalake.errors import Invalid, Unsupported
from metalake.wire import quote

DEFAULTS_SINCE = 3
NATIVE_NAMES = {
    "boolean": "boolean", "int": "integer", "long": "long", "float": "float", "double": "double", "date": "date",
    "time": "time(6)", "timestamp": "timestamp(6)", "timestamptz": "timestamp_tz(6)", "timestamp_ns": "timestamp(9)",
    "timestamptz_ns": "timestamp_tz(9)", "string": "string", "uuid": "uuid", "binary": "binary", "variant": "variant",
    "unknown": "null",
}  # fmt: skip
ICEBERG_NAMES = {native: iceberg for iceberg, native in NATIVE_NAMES.items()} | {
    "time": "time", "timestamp": "timestamp", "timestamp_tz": "timestamptz",
}  # fmt: skip
SINCE_VERSION_3 = ("timestamp_ns", "timestamptz_ns", "variant", "unknown", "geometry", "geography")
WIDER = {
    "byte": "integer", "byte unsigned": "integer", "short": "integer", "short unsigned": "integer",
    "integer unsigned": "long", "long unsigned": "decimal(20,0)", "char": "string", "varchar": "string",
}  # fmt: skip


def iceberg_type(native: DataType, ids: Iterator[int], where: str, version: int) -> Type:
    """The Iceberg type of a native type; nested fields take their ids from `ids`.

    Raises Unsupported if format `version` has no such type; `where` is the path in the request, for the message.
    """
    match native:
        case str():
            return _iceberg_primitive(native, where, version)
        case StructType(fields=members):
            numbered = [(next(ids), member) for member in members]
            return Struct(
                [
                    Field(
                        id,
                        member.name,
                        iceberg_type(member.type, ids, f"{where}.fields[{position}].type", version),
                        not member.nullable,
                        member.comment,
                    )
                    for position, (id, member) in enumerate(numbered)
                ]
            )
        case ListType():
            id = next(ids)
            element = iceberg_type(native.element_type, ids, f"{where}.elementType", version)
            return ListOf(element_field(id, element, not native.contains_null))
        case MapType():
            key_id, value_id = next(ids), next(ids)
            key = iceberg_type(native.key_type, ids, f"{where}.keyType", version)
            value = iceberg_type(native.value_type, ids, f"{where}.valueType", version)
            return map_of(key_id, key, value_id, value, not native.value_contains_null)
        case UnionType():
            raise Unsupported(f"{where}: Iceberg has no union type", kind="column")
        case UnparsedType():
            raise Unsupported(f"{where}: unknown type {quote(native.unparsed_type)}", kind="column")
        case _:
            assert isinstance(native, ExternalType)
            raise Unsupported(f"{where}: Iceberg has no type {quote(native.catalog_string)}", kind="column")


def _iceberg_primitive(native: str, where: str, version: int) -> str:
    name = _iceberg_name(native)
    if name is None:
        base = native.partition("(")[0]
        if base in ("time", "timestamp", "timestamp_tz"):
            advice = "; its precision is 6" if base == "time" else "; its precision is 6, or 9 from format version 3 on"
        else:
            advice = f"; use {WIDER[base]}" if base in WIDER else ""
        raise Unsupported(f"{where}: Iceberg has no type {native}{advice}", kind="column")
    if version < 3 and name.partition("(")[0] in SINCE_VERSION_3:
        raise Unsupported(f"{where}: {native} needs format version 3, and the table has {version}", kind="column")
    return name


def _iceberg_name(native: str) -> str | None:
    """The Iceberg spelling of a native primitive type; None if Iceberg has no such type."""
    if native in ICEBERG_NAMES:
        return ICEBERG_NAMES[native]
    primitive = parse_primitive(native)
    assert primitive is not None, "a native type was parsed, so it is a known one"
    match primitive:
        case ("decimal", (precision, scale)):
            return f"decimal({precision}, {scale})"
        case ("fixed", (length,)):
            return f"fixed[{length}]"
        case ("geometry" | "geography" as name, arguments):
            return f"{name}({', '.join(map(str, arguments))})" if arguments else name
    return None


def native_type(type: Type) -> str | dict[str, Any]:
    """The native API's JSON of an Iceberg type; an unknown type becomes an external one."""
    match type:
        case Struct(fields):
            return {"type": "struct", "fields": [_native_member(child) for child in fields]}
        case ListOf(element):
            return {"type": "list", "elementType": native_type(element.type), "containsNull": not element.required}
        case MapOf(key, value):
            return {
                "type": "map",
                "keyType": native_type(key.type),
                "valueType": native_type(value.type),
                "valueContainsNull": not value.required,
            }
        case _:
            return _native_primitive(type)


def _native_member(child: Field) -> dict[str, Any]:
    member = {"name": child.name, "type": native_type(child.type), "nullable": not child.required}
    return member if child.doc is None else member | {"comment": child.doc}


def _native_primitive(type: str) -> str | dict[str, Any]:
    if type in NATIVE_NAMES:
        return NATIVE_NAMES[type]
    if type.startswith(("decimal(", "fixed[", "geometry", "geography")):
        try:
            primitive = parse_primitive(type.replace("[", "(").replace("]", ")"))
        except ValueError:
            primitive = None
        if primitive is not None:
            return str(primitive)
    return {"type": "external", "catalogString": type}


def default_value(expression: object, type: Type, where: str, version: int) -> Any:
    """A native default value as an Iceberg JSON single value; None if there is none.

    Raises Unsupported if Iceberg cannot express it, Invalid if it is not a value of the column's type.
    """
    if expression is None or is_null(expression):
        return None
    if version < DEFAULTS_SINCE:
        raise Unsupported(
            f"{where}: default values need Iceberg format version {DEFAULTS_SINCE}, and the table has {version}",
            kind="column",
        )
    if not isinstance(expression, LiteralValue):
        raise Unsupported(f"{where}: an Iceberg default is a literal, not an expression", kind="column")
    if not isinstance(type, str) or type.partition("(")[0] not in _SINGLE_VALUES:
        raise Unsupported(f"{where}: columns of this type take no default but null", kind="column")
    if str(expression.data_type).partition("(")[0] != str(native_type(type)).partition("(")[0]:
        raise Invalid(f"{where}: the literal is not of the column's type {native_type(type)}", kind="column")
    try:
        return _SINGLE_VALUES[type.partition("(")[0]](expression.value, type)
    except (ValueError, InvalidOperation, OverflowError):
        raise Invalid(f"{where}: {quote(expression.value)} is no {native_type(type)}", kind="column") from None


def native_default(value: Any, type: Type) -> dict[str, Any]:
    """The native literal of an Iceberg default value."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return {"type": "literal", "dataType": native_type(type), "value": text}


def _boolean(text: str, _: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError
    return text.lower() == "true"


def _integer(text: str, type: str) -> int:
    bits = 31 if type == "int" else 63
    if re.fullmatch(r"[+-]?[0-9]{1,19}", text) is None or not -(2**bits) <= int(text) < 2**bits:
        raise ValueError
    return int(text)


def _number(text: str, _: str) -> float:
    if not math.isfinite(float(text)):
        raise ValueError
    return float(text)


def _decimal(text: str, type: str) -> str:
    precision, scale = (int(part) for part in re.findall(r"\d+", type))
    number = Decimal(text)
    if not number.is_finite() or number.copy_abs() >= Decimal(10) ** (precision - scale):
        raise ValueError
    rounded = number.quantize(Decimal(1).scaleb(-scale), context=Context(prec=2 * precision))
    if rounded != number:
        raise ValueError
    return f"{rounded:f}"


def _timestamp(text: str, _: str) -> str:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        raise ValueError
    return moment.isoformat(timespec="microseconds")


def _timestamp_tz(text: str, _: str) -> str:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def _time(text: str, _: str) -> str:
    moment = time.fromisoformat(text)
    if moment.tzinfo is not None:
        raise ValueError
    return moment.isoformat(timespec="microseconds")


_SINGLE_VALUES: dict[str, Any] = {
    "boolean": _boolean,
    "int": _integer,
    "long": _integer,
    "float": _number,
    "double": _number,
    "decimal": _decimal,
    "date": lambda text, _: date.fromisoformat(text).isoformat(),
    "time": _time,
    "timestamp": _timestamp,
    "timestamptz": _timestamp_tz,
    "string": lambda text, _: text,
    "uuid": lambda text, _: str(UUID(text)),
}
