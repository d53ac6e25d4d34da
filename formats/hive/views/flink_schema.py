"""The schema in the parameters of a Flink view: `flink.schema.0.name`, `flink.schema.0.data-type` and so on.

Source: Flink's CatalogPropertiesUtil and HiveTableUtil; Flink 1.10 and before wrote `flink.generic.table.schema` and,
for a time, `type` for `data-type`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from formats.hive.views.columns import check_count, checked_type, native_column
from formats.hive.views.flink_types import native_type
from formats.hive.views.forms import FLINK_SCHEMAS
from formats.hive.views.unreadable import MOST_COLUMNS, Unreadable

Json = dict[str, Any]
SCHEMA = FLINK_SCHEMAS[0]
NAME, TYPE, OLD_TYPE, COMMENT = "name", "data-type", "type", "comment"

_OF_COLUMN = re.compile(rf"(?:{'|'.join(map(re.escape, FLINK_SCHEMAS))})\.([0-9]{{1,9}})\.(.+)", re.DOTALL)


def columns_of(parameters: Mapping[str, str]) -> tuple[tuple[Json, str], ...]:
    """Each column with its type string; none if Flink wrote no schema. Raises Unreadable."""
    schema = next((schema for schema in FLINK_SCHEMAS if f"{schema}.0.{NAME}" in parameters), None)
    columns: list[tuple[Json, str]] = []
    while schema and (name := parameters.get(f"{schema}.{len(columns)}.{NAME}")) is not None:
        place = f"{schema}.{len(columns)}"
        text = parameters.get(f"{place}.{TYPE}", parameters.get(f"{place}.{OLD_TYPE}"))
        if text is None:
            raise Unreadable(f"Its parameter {place}.{TYPE} is missing.")
        native, nullable = native_type(checked_type(text))
        columns.append((native_column(name, native, parameters.get(f"{place}.{COMMENT}"), nullable), text))
        check_count(len(columns))
    if any(int(match[1]) >= len(columns) for name in parameters if (match := _OF_COLUMN.fullmatch(name))):
        raise Unreadable(f"The numbers of its parameters {SCHEMA}.N.{NAME} have a gap, or more than {MOST_COLUMNS}.")
    return tuple(columns)


def with_columns(parameters: Mapping[str, str], columns: Sequence[Json], types: Sequence[str]) -> dict[str, str]:
    """The parameters with this schema; Flink's other fields of a column, such as its expression, are preserved."""
    others: dict[str, str] = {}
    stored: dict[str, dict[str, str]] = {}
    for name, value in parameters.items():
        if match := _OF_COLUMN.fullmatch(name):
            stored.setdefault(match[1], {})[match[2]] = value
        else:
            others[name] = value
    more = {parts.get(NAME): parts for parts in stored.values()}
    for number, (column, type) in enumerate(zip(columns, types, strict=True)):
        parts = {**more.get(column["name"], {}), NAME: column["name"], TYPE: type, COMMENT: column.get("comment")}
        parts.pop(OLD_TYPE, None)
        others |= {f"{SCHEMA}.{number}.{part}": value for part, value in parts.items() if value is not None}
    return others
