"""Translate native partitioning and sort orders to Iceberg's partition specs and sort orders, and back.

Iceberg spec, "Partitioning" and "Sorting": a field of either is a transform of one source column.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from formats.iceberg.fields import Place
from formats.native import tables as wire
from formats.native.columns import FieldReference, FunctionCall, LiteralValue
from metalake.errors import Invalid, Unsupported
from metalake.wire import quote

FIRST_PARTITION_FIELD_ID = 1000
NAME_SUFFIXES = {
    "identity": "", "bucket": "_bucket", "truncate": "_trunc", "year": "_year", "month": "_month", "day": "_day",
    "hour": "_hour",
}  # fmt: skip
WITH_WIDTH = ("bucket", "truncate")
TIME_TRANSFORMS = ("year", "month", "day", "hour")
TIMESTAMPS = {"timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"}
SOURCE_TYPES = {
    "bucket": {"int", "long", "decimal", "date", "time", "string", "uuid", "fixed", "binary"} | TIMESTAMPS,
    "truncate": {"int", "long", "decimal", "string", "binary"},
    "year": {"date"} | TIMESTAMPS,
    "month": {"date"} | TIMESTAMPS,
    "day": {"date"} | TIMESTAMPS,
    "hour": TIMESTAMPS,
}
NOT_COMPARABLE = {"variant", "geometry", "geography", "unknown"}
MAX_WIDTH = 2**31 - 1
_WIDTH = re.compile(r"(bucket|truncate)\[([0-9]+)\]")


class Transform(NamedTuple):
    """A partition or sort transform of a column; only bucket and truncate have a `width`."""

    name: str
    source: Sequence[str]
    width: int | None = None

    def __str__(self) -> str:
        return self.name if self.width is None else f"{self.name}[{self.width}]"


def partition_spec(partitioning: Sequence[wire.Partitioning], named: Mapping[str, Place]) -> dict[str, Any] | None:
    """The Iceberg partition spec, or None if unpartitioned; `named` has the columns by full name.

    Raises Unsupported for a strategy that Iceberg lacks, Invalid for an invalid or repeated source column.
    """
    fields: list[dict[str, Any]] = []
    seen: set[tuple[int, str]] = set()
    for position, item in enumerate(partitioning):
        where = f"partitioning[{position}]"
        transform = _partition_transform(item, where)
        source = _source(transform, named, where)
        same = (source.field.id, "time" if transform.name in TIME_TRANSFORMS else str(transform))
        if same in seen:
            raise Invalid(f"{where}: {quote('.'.join(source.path))} is partitioned that way already", kind="table")
        seen.add(same)
        name = ".".join(source.path) + NAME_SUFFIXES[transform.name]
        if (transform.name != "identity" and name in named) or any(field["name"] == name for field in fields):
            raise Invalid(f"{where}: the partition field would be called {quote(name)}, which is taken", kind="table")
        fields.append(
            {
                "source-id": source.field.id,
                "field-id": FIRST_PARTITION_FIELD_ID + position,
                "name": name,
                "transform": str(transform),
            }
        )
    return {"spec-id": 0, "fields": fields} if fields else None


def sort_order(orders: Sequence[wire.SortOrder], named: Mapping[str, Place]) -> dict[str, Any] | None:
    """The Iceberg sort order, or None if unsorted; `named` has the columns by full name.

    Raises Unsupported for a sort term that Iceberg lacks, Invalid for an invalid source column.
    """
    fields: list[dict[str, Any]] = []
    for position, order in enumerate(orders):
        where = f"sortOrders[{position}].sortTerm"
        match order.sort_term:
            case FieldReference(field_name=path):
                transform = Transform("identity", path)
            case FunctionCall(func_name=name, func_args=arguments):
                transform = _called(name, arguments, where)
            case _:
                raise Unsupported(f"{where}: Iceberg sorts by a column or a function of one", kind="table")
        fields.append(
            {
                "transform": str(transform),
                "source-id": _source(transform, named, where).field.id,
                "direction": order.direction,
                "null-order": order.nulls.replace("_", "-"),
            }
        )
    return {"order-id": 1, "fields": fields} if fields else None


def _partition_transform(item: wire.Partitioning, where: str) -> Transform:
    match item:
        case wire.BucketPartitioning():
            if len(item.field_names) > 1:
                raise Unsupported(f"{where}: an Iceberg bucket takes one column", kind="table")
            return Transform("bucket", item.field_names[0], item.num_buckets)
        case wire.TruncatePartitioning():
            return Transform("truncate", item.field_name, item.width)
        case wire.ListPartitioning() | wire.RangePartitioning():
            raise Unsupported(f"{where}: Iceberg has no {item.strategy} partitioning", kind="table")
        case wire.FunctionPartitioning():
            return _called(item.func_name, item.func_args, where)
        case _:
            return Transform(item.strategy, item.field_name)


def _called(function: str, arguments: Sequence[Any], where: str) -> Transform:
    name = function.lower()
    if name not in NAME_SUFFIXES:
        raise Unsupported(f"{where}: Iceberg has no transform {quote(function)}", kind="table")
    match list(arguments):
        case [FieldReference(field_name=path)] if name not in WITH_WIDTH:
            return Transform(name, path)
        case [LiteralValue() as literal, FieldReference(field_name=path)] if name in WITH_WIDTH and _is_width(literal):
            return Transform(name, path, int(literal.value))
    expected = "a positive integer literal and a column" if name in WITH_WIDTH else "one column"
    raise Invalid(f"{where}: {name} takes {expected}", kind="table")


def _is_width(literal: LiteralValue) -> bool:
    whole = literal.data_type in ("integer", "long") and re.fullmatch("[0-9]{1,10}", literal.value)
    return bool(whole) and 0 < int(literal.value) <= MAX_WIDTH


def _source(transform: Transform, named: Mapping[str, Place], where: str) -> Place:
    name = ".".join(transform.source)
    place = named.get(name)
    if place is None:
        raise Invalid(f"{where}: no column {quote(name)}", kind="column")
    if place.in_collection:
        raise Invalid(f"{where}: {quote(name)} lies in a list or map", kind="column")
    type = place.field.type
    base = re.split(r"[(\[]", type)[0] if isinstance(type, str) else "nested"
    allowed = SOURCE_TYPES.get(transform.name)
    if not isinstance(type, str) or base in NOT_COMPARABLE or (allowed is not None and base not in allowed):
        raise Invalid(f"{where}: {transform.name} cannot be applied to {quote(name)}, which is {base}", kind="column")
    return place


def native_partitioning(spec: Mapping[str, Any], paths: Mapping[int, Sequence[str]]) -> list[dict[str, Any]]:
    """The native form of a partition spec; `paths` has the path of each column by id.

    Void transforms and fields of dropped columns are left out; an unknown transform becomes a function of that name.
    """
    return [
        _native_partition(item["transform"], sources)
        for item in spec.get("fields", ())
        if item["transform"] != "void" and (sources := _source_paths(item, paths))
    ]


def _native_partition(transform: str, sources: list[list[str]]) -> dict[str, Any]:
    if (width := _WIDTH.fullmatch(transform)) and width[1] == "bucket":
        return {"strategy": "bucket", "numBuckets": int(width[2]), "fieldNames": sources}
    if width and len(sources) == 1:
        return {"strategy": "truncate", "width": int(width[2]), "fieldName": sources[0]}
    if transform in ("identity", *TIME_TRANSFORMS) and len(sources) == 1:
        return {"strategy": transform, "fieldName": sources[0]}
    arguments = [{"type": "field", "fieldName": source} for source in sources]
    return {"strategy": "function", "funcName": transform, "funcArgs": arguments}


def native_sort_orders(order: Mapping[str, Any], paths: Mapping[int, Sequence[str]]) -> list[dict[str, Any]]:
    """The native form of a sort order, with the rules and `paths` of `native_partitioning`."""
    return [
        {
            "sortTerm": _native_term(item["transform"], sources),
            "direction": item["direction"],
            "nullOrdering": item["null-order"].replace("-", "_"),
        }
        for item in order.get("fields", ())
        if item["transform"] != "void" and (sources := _source_paths(item, paths))
    ]


def _native_term(transform: str, sources: list[list[str]]) -> dict[str, Any]:
    columns: list[dict[str, Any]] = [{"type": "field", "fieldName": source} for source in sources]
    if transform == "identity":
        return columns[0]
    if width := _WIDTH.fullmatch(transform):
        literal = {"type": "literal", "dataType": "integer", "value": width[2]}
        return {"type": "function", "funcName": width[1], "funcArgs": [literal, *columns]}
    return {"type": "function", "funcName": transform, "funcArgs": columns}


def describe_sort_order(order: Mapping[str, Any], paths: Mapping[int, Sequence[str]]) -> str:
    """A sort order as one line of SQL-like text, as engines show it in table properties."""
    terms = []
    for item in order.get("fields", ()):
        sources = _source_paths(item, paths)
        if sources:
            term = _describe_term(item["transform"], ".".join(sources[0]))
            terms.append(f"{term} {item['direction'].upper()} {item['null-order'].replace('-', ' ').upper()}")
    return ", ".join(terms)


def _describe_term(transform: str, column: str) -> str:
    if transform == "identity":
        return column
    if width := _WIDTH.fullmatch(transform):
        arguments = f"{width[2]}, {column}" if width[1] == "bucket" else f"{column}, {width[2]}"
        return f"{width[1]}({arguments})"
    return f"{transform}s({column})" if transform in TIME_TRANSFORMS else f"{transform}({column})"


def source_ids(fields: Sequence[Mapping[str, Any]]) -> set[int]:
    """The source column ids of partition or sort fields, except void ones."""
    return {id for item in fields if item["transform"] != "void" for id in _ids(item)}


def _ids(item: Mapping[str, Any]) -> list[int]:
    """The source column ids of a field; format version 3 allows several, in `source-ids`."""
    return item.get("source-ids") or [item["source-id"]]


def _source_paths(item: Mapping[str, Any], paths: Mapping[int, Sequence[str]]) -> list[list[str]]:
    known_paths = [list(paths[id]) for id in _ids(item) if id in paths]
    return known_paths if len(known_paths) == len(_ids(item)) else []
