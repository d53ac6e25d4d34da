"""Native tables for tests: valid bodies to start from, and hypothesis strategies for the types Iceberg can hold."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

NAMES = st.text("abcdefgh_é", min_size=1, max_size=6)

ICEBERG_2_PRIMITIVES = [
    "boolean", "integer", "long", "float", "double", "date", "time(6)", "timestamp(6)", "timestamp_tz(6)", "string",
    "binary", "uuid", "decimal(1,0)", "decimal(10,2)", "decimal(38,38)", "fixed(1)", "fixed(16)",
]  # fmt: skip
ICEBERG_3_PRIMITIVES = [
    "timestamp(9)", "timestamp_tz(9)", "variant", "null", "geometry", "geometry(srid:3857)", "geography",
    "geography(OGC:CRS84)", "geography(EPSG:4326,karney)",
]  # fmt: skip
NOT_IN_ICEBERG = [
    "byte", "byte unsigned", "short", "short unsigned", "integer unsigned", "long unsigned", "char(3)", "varchar(3)",
    "interval_year", "interval_day", "time(3)", "time(9)", "timestamp(3)", "timestamp_tz(0)",
]  # fmt: skip
ALL_PRIMITIVES = [*ICEBERG_2_PRIMITIVES, *ICEBERG_3_PRIMITIVES, *NOT_IN_ICEBERG, "time", "timestamp", "timestamp_tz"]


def _struct(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    member = st.fixed_dictionaries(
        {"name": NAMES, "type": inner, "nullable": st.booleans()}, optional={"comment": st.text(max_size=5)}
    )
    return st.lists(member, min_size=1, max_size=3, unique_by=lambda item: item["name"]).map(
        lambda members: {"type": "struct", "fields": members}
    )


def _list(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({"type": st.just("list"), "elementType": inner, "containsNull": st.booleans()})


def _map(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {"type": st.just("map"), "keyType": inner, "valueType": inner, "valueContainsNull": st.booleans()}
    )


def types_of(primitives: list[str]) -> st.SearchStrategy[Any]:
    """Primitive and nested types made of the given primitives."""
    return st.recursive(
        st.sampled_from(primitives), lambda inner: st.one_of(_struct(inner), _list(inner), _map(inner)), max_leaves=6
    )


def columns_of(primitives: list[str]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Lists of columns with distinct names."""
    column = st.fixed_dictionaries(
        {"name": NAMES, "type": types_of(primitives), "nullable": st.booleans(), "autoIncrement": st.just(False)},
        optional={"comment": st.text(max_size=5)},
    )
    return st.lists(column, min_size=1, max_size=4, unique_by=lambda item: item["name"])


def field(*path: str) -> dict[str, Any]:
    return {"type": "field", "fieldName": list(path)}


def literal(value: Any, data_type: Any = "integer") -> dict[str, Any]:
    return {"type": "literal", "dataType": data_type, "value": value}


def call(name: str, *arguments: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "funcName": name, "funcArgs": list(arguments)}


def columns() -> list[dict[str, Any]]:
    """Columns of most shapes, all within Iceberg format version 2."""
    return [
        {"name": "id", "type": "long", "nullable": False, "comment": "who"},
        {"name": "count", "type": "integer"},
        {"name": "ratio", "type": "float"},
        {"name": "price", "type": "decimal(10,2)"},
        {"name": "name", "type": "string"},
        {"name": "day", "type": "date"},
        {"name": "at", "type": "timestamp_tz(6)"},
        {
            "name": "place",
            "type": {
                "type": "struct",
                "fields": [
                    {"name": "city", "type": "string", "nullable": False},
                    {"name": "lat", "type": "double", "comment": "degrees"},
                ],
            },
        },
        {
            "name": "points",
            "type": {
                "type": "list",
                "elementType": {"type": "struct", "fields": [{"name": "x", "type": "integer"}]},
                "containsNull": False,
            },
        },
        {
            "name": "tags",
            "type": {
                "type": "map",
                "keyType": {"type": "struct", "fields": [{"name": "k", "type": "string"}]},
                "valueType": "integer",
            },
        },
    ]


def table(**changes: Any) -> dict[str, Any]:
    """A create body over `columns`, with the given fields put in."""
    return {"name": "orders", "columns": columns(), **changes}


# Native partitioning over `columns`, the Iceberg transform it is, and the partition field's name.
PARTITIONING = [
    ({"strategy": "identity", "fieldName": ["name"]}, "identity", "name"),
    ({"strategy": "identity", "fieldName": ["place", "city"]}, "identity", "place.city"),
    ({"strategy": "year", "fieldName": ["at"]}, "year", "at_year"),
    ({"strategy": "month", "fieldName": ["day"]}, "month", "day_month"),
    ({"strategy": "day", "fieldName": ["at"]}, "day", "at_day"),
    ({"strategy": "hour", "fieldName": ["at"]}, "hour", "at_hour"),
    ({"strategy": "bucket", "numBuckets": 16, "fieldNames": [["id"]]}, "bucket[16]", "id_bucket"),
    ({"strategy": "truncate", "width": 4, "fieldName": ["name"]}, "truncate[4]", "name_trunc"),
]

SORT_TERMS = [
    (field("id"), "identity"),
    (field("place", "city"), "identity"),
    (call("year", field("at")), "year"),
    (call("month", field("day")), "month"),
    (call("day", field("at")), "day"),
    (call("hour", field("at")), "hour"),
    (call("bucket", literal("16"), field("id")), "bucket[16]"),
    (call("truncate", literal("4"), field("name")), "truncate[4]"),
]
