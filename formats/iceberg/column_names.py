"""Rules for column names: they must not clash with each other or with the table's partition fields.

Metadata may come from other writers: malformed parts are refused elsewhere, or by readers. A change is only refused for
clashes that it adds, so that a table that already has some can still be written to, and fixed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from formats.iceberg import partitioning, schemas
from formats.iceberg.defaults import fill_in
from formats.iceberg.outlines import current_columns, outline_struct
from formats.iceberg.parsing import get_objects
from formats.iceberg.views.versions import current_version, schema_of
from formats.native.outlines import ColumnOutline, rows_of
from metalake.errors import Invalid
from metalake.wire import quote

CASE_TWINS = "allow-case-distinct-columns"
LAYOUT = ("schemas", "current-schema-id", "partition-specs", "current-version-id")

Json = Mapping[str, Any]
Columns = tuple[ColumnOutline, ...]


def check_column_names(metadata: Json, base: Json | None = None, *, case_twins: bool = False) -> None:
    """Check the current columns of new metadata, compared with those of its `base`, if it has one.

    Raises Invalid for names that differ only in case, unless `case_twins`, and for a column with the name of another
    column's partition field, which no Java engine can read.
    """
    if base is not None and all(metadata.get(key) == base.get(key) for key in LAYOUT):
        return
    if not case_twins:
        require_no_twins(columns_of(metadata), () if base is None else columns_of(base))
    refusal = _partition_name_refusal(metadata)
    if refusal and (base is None or not _partition_name_refusal(base)):
        raise refusal


def columns_of(metadata: Json) -> Columns:
    """The current columns of a table or view."""
    if "current-version-id" in metadata:
        return outline_struct(schema_of(metadata, current_version(metadata)))
    return current_columns(dict(metadata))


def require_no_twins(columns: Columns, before: Columns = ()) -> None:
    """Raise Invalid for sibling columns whose names differ only in case, unless they did so before."""
    had, seen = Counter(map(_folded, rows_of(before))), dict[tuple[Any, ...], list[str]]()
    for row in rows_of(columns):
        names = seen.setdefault(_folded(row), [])
        names.append(row.column.name)
        if len(names) > max(1, had[_folded(row)]):
            pair = " and ".join(quote(".".join((*row.above, name))) for name in names[-2:])
            raise Invalid(
                f"Columns {pair} differ only in case, which Trino and others cannot read: rename one, or set the "
                f"catalog's property {CASE_TWINS} to true",
                kind="column",
            )


def _folded(row: Any) -> tuple[Any, ...]:
    return row.above, row.column.name.lower()


def _partition_name_refusal(metadata: Json) -> Invalid | None:
    """Why Java cannot bind the table's partition specs to its columns, which it does for all specs when loading."""
    if "current-version-id" in metadata:
        return None
    filled = fill_in(dict(metadata))
    current = [each for each in filled["schemas"] if each.get("schema-id") == filled["current-schema-id"]]
    try:
        index = schemas.index_schema(current[0])
    except (Invalid, IndexError):
        return None
    try:
        for spec in filled["partition-specs"]:
            partitioning.check_names(get_objects(spec, "fields", "a partition spec"), index)
    except Invalid as refusal:
        return refusal
    return None
