"""Iceberg's primitive types: syntax, first format version, and valid default values.

Source: Iceberg spec, "Primitive Types" and "Default values".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from formats.iceberg.parsing import INT_MAX, INT_MIN, LONG_MAX, as_text, as_whole, json_kind
from metalake.errors import Invalid

MAX_DECIMAL_PRECISION = 38
MAX_WIDTH = INT_MAX

PLAIN = frozenset(
    {
        "boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz", "timestamp_ns",
        "timestamptz_ns", "string", "uuid", "binary", "unknown", "variant", "geometry", "geography",
    }
)  # fmt: skip
FIRST_FORMAT_VERSION = {
    "timestamp_ns": 3,
    "timestamptz_ns": 3,
    "unknown": 3,
    "variant": 3,
    "geometry": 3,
    "geography": 3,
}
NEVER_DEFAULTED = frozenset({"unknown", "variant", "geometry", "geography"})

_DECIMAL = re.compile(r"decimal\(\s*([0-9]{1,9})\s*,\s*([0-9]{1,9})\s*\)")
_FIXED = re.compile(r"fixed\[\s*([0-9]{1,10})\s*\]")
_GEOMETRY = re.compile(r"geometry\s*\(\s*([^),]+?)\s*\)")
_GEOGRAPHY = re.compile(r"geography\s*\(\s*([^),]+?)\s*(?:,\s*(spherical|vincenty|thomas|andoyer|karney)\s*)?\)")


@dataclass(frozen=True, slots=True)
class Primitive:
    kind: str  # without parameters: "decimal"
    text: str  # as Iceberg's own writers spell it: "decimal(9, 2)"


@lru_cache(maxsize=1024)
def parse_primitive(text: str) -> Primitive:
    """The type that a string names. Raises Invalid for unknown names or parameters."""
    if text in PLAIN:
        return Primitive(text, text)
    if match := _DECIMAL.fullmatch(text):
        precision, scale = int(match[1]), int(match[2])
        if not 1 <= precision <= MAX_DECIMAL_PRECISION or scale > MAX_DECIMAL_PRECISION:
            raise Invalid(f"Invalid type {text!r}: precision must be 1 to {MAX_DECIMAL_PRECISION}")
        return Primitive("decimal", f"decimal({precision}, {scale})")
    if match := _FIXED.fullmatch(text):
        if not 1 <= int(match[1]) <= MAX_WIDTH:
            raise Invalid(f"Invalid type {text!r}: length must be 1 to {MAX_WIDTH}")
        return Primitive("fixed", f"fixed[{int(match[1])}]")
    if match := _GEOMETRY.fullmatch(text):
        return Primitive("geometry", f"geometry({match[1]})")
    if match := _GEOGRAPHY.fullmatch(text):
        parameters = f"{match[1]}, {match[2]}" if match[2] else match[1]
        return Primitive("geography", f"geography({parameters})")
    raise Invalid(f"Unknown or malformed type {text[:100]!r}")


def check_default(value: object, kind: str, what: str) -> None:
    """Refuse a default value that is not the JSON form of its type. Source: Iceberg spec, "JSON single-value
    serialization"."""
    if kind in NEVER_DEFAULTED:
        raise Invalid(f"{what} must be null: columns of type {kind} have no other default")
    if kind == "boolean":
        if not isinstance(value, bool):
            raise Invalid(f"{what} must be true or false, not {json_kind(value)}")
    elif kind == "int":
        as_whole(value, what, INT_MIN, INT_MAX)
    elif kind == "long":
        as_whole(value, what, -LONG_MAX - 1, LONG_MAX)
    elif kind in ("float", "double"):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Invalid(f"{what} must be a number, not {json_kind(value)}")
        if isinstance(value, int):
            as_whole(value, what, -LONG_MAX - 1, LONG_MAX)
        elif value != value or value in (float("inf"), float("-inf")):
            raise Invalid(f"{what} must be a finite number")
    elif kind == "struct":
        if value != {}:
            raise Invalid(f"{what} must be an empty object: the defaults of a struct are those of its columns")
    elif kind == "list":
        if value != []:
            raise Invalid(f"{what} must be null or an empty list")
    elif kind == "map":
        if value != {"keys": [], "values": []}:
            raise Invalid(f"{what} must be null or a map with empty keys and values")
    else:
        as_text(value, what)
