"""Compares the columns that Spark infers with those that a view declares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pipelines.analysis.results import Column, Json

MOST = 20
# By name in Spark's JSON; lengths and precisions are ignored, except of decimals.
_NATIVE = {"timestamp": "timestamp_tz", "timestamp_ntz": "timestamp", "array": "list"}
_SAME = {"varchar": "string", "char": "string", "fixed": "binary", "uuid": "string"}
_UNTOLD = frozenset({"unparsed", "external", "null", "void", "time", "variant", "interval_year", "interval_day"})


def differences(declared: Sequence[Json], columns: Sequence[Column], *, with_names: bool) -> list[Json]:
    """The differences, each with the column's position from 1; none if the view declares no columns.

    `with_names` compares names too; some engines rename the SQL's columns afterwards.
    """
    return list(_differences(declared, columns, with_names=with_names))[:MOST] if declared else []


def _differences(declared: Sequence[Json], columns: Sequence[Column], *, with_names: bool) -> Iterator[Json]:
    if len(declared) != len(columns):
        count = "1 column" if len(columns) == 1 else f"{len(columns)} columns"
        yield {"text": f"It yields {count} instead of {len(declared)}.", "position": None}
        return
    for position, (one, other) in enumerate(zip(declared, columns, strict=True), 1):
        if with_names and one["name"].casefold() != other.name.casefold():
            yield {"text": f"It yields `{other.name}` instead of `{one['name']}`."[:1000], "position": position}
        expected, is_now = plain(one.get("type")), plain(other.type)
        if None not in (expected, is_now) and expected != is_now:
            text = f"`{one['name']}` is {is_now} instead of {expected}."
            yield {"text": text[:1000], "position": position}


def plain(type_: Any) -> str | None:
    """The normalised name of a native or Spark JSON type; None for types without an equivalent in the other."""
    if isinstance(type_, dict):
        return _with_parts(type_)
    if not isinstance(type_, str):
        return None
    name = type_.strip().lower().replace(" ", "")
    if not name.startswith("decimal"):
        name = name.partition("(")[0]
    return None if name in _UNTOLD or name.startswith("interval") else _SAME.get(name, name)


def _with_parts(type_: Json) -> str | None:
    kind = str(type_.get("type"))
    match _NATIVE.get(kind, kind):
        case "list":
            parts = [plain(type_.get("elementType"))]
        case "map":
            parts = [plain(type_.get("keyType")), plain(type_.get("valueType"))]
        case "struct":
            parts = [_field(each) for each in type_.get("fields") or ()]
        case _:
            return None
    return None if None in parts else f"{_NATIVE.get(kind, kind)}<{', '.join(map(str, parts))}>"


def _field(field: Json) -> str | None:
    of = plain(field.get("type"))
    return None if of is None else f"{str(field.get('name')).casefold()}: {of}"


def native_of(sparks: Any) -> Any:
    """Spark's JSON type with native names, one level deep, for display."""
    if isinstance(sparks, dict):
        return _with_parts(sparks) or str(sparks.get("type"))
    return _NATIVE.get(sparks, sparks)
