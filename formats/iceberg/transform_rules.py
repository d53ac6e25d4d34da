"""Partition and sort transforms. Source: Iceberg spec, "Partition Transforms"."""

from __future__ import annotations

import re

from formats.iceberg.parsing import INT_MAX
from formats.iceberg.schemas import NESTED, Column
from metalake.errors import Invalid

VOID = "void"

_DATES = frozenset({"date"})
_TIMESTAMPS = frozenset({"timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"})
_APPLIES_TO = {
    "bucket": frozenset({"int", "long", "decimal", "time", "string", "uuid", "fixed", "binary"}) | _DATES | _TIMESTAMPS,
    "truncate": frozenset({"int", "long", "decimal", "string", "binary"}),
    "year": _DATES | _TIMESTAMPS,
    "month": _DATES | _TIMESTAMPS,
    "day": _DATES | _TIMESTAMPS,
    "hour": _TIMESTAMPS,
}
_NOT_IDENTITY = NESTED | {"variant", "geometry", "geography"}
_SIZED = re.compile(r"(bucket|truncate)\[([0-9]{1,10})\]")


def check_transform(text: str) -> str:
    """The transform's name without its parameter. Raises Invalid for a transform unknown to Iceberg."""
    if text in ("identity", "year", "month", "day", "hour", VOID):
        return text
    if match := _SIZED.fullmatch(text):
        if not 1 <= int(match[2]) <= INT_MAX:
            raise Invalid(f"Invalid transform {text!r}: the parameter must be 1 to {INT_MAX}")
        return match[1]
    raise Invalid(f"Unknown or malformed transform {text[:100]!r}")


def check_applies(text: str, column: Column) -> None:
    """Raises Invalid if the transform does not apply to the column's type."""
    name = check_transform(text)
    if name == "identity":
        applies = column.kind not in _NOT_IDENTITY
    else:
        applies = name == VOID or column.kind in _APPLIES_TO[name]
    if not applies:
        raise Invalid(f"Invalid source type {column.type} for transform: {text}")
