"""Definitions of a database's schemas, tables and views, as JSON.

A schema has its `comment`. A table has `comment`, `columns`, `indexes` (as the native wire has them) and `properties`,
which are facts of the database that nobody can set here. Of each column `spelling` is its type in the database's words,
`restated` what an alteration that spells the whole column must repeat. A view has `sql` (None where the account may not
read it), `security` and `materialized` instead of indexes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from providers.remote_objects import digest

Json = dict[str, Any]
PRIMARY, UNIQUE = "PRIMARY_KEY", "UNIQUE_KEY"
NO_LAYOUT: Json = {
    "partitioning": [],
    "sortOrders": [],
    "distribution": {"strategy": "none", "number": 0, "funcArgs": []},
}
OWN = ("spelling", "restated")  # of a column, not on the wire
NOT_COMPARED = ("created",)  # of a table, not in its version


def shown_column(column: Mapping[str, Any]) -> Json:
    """The native wire's JSON of a column."""
    return {name: value for name, value in column.items() if name not in OWN and value is not None}


def shown_table(definition: Json) -> Json:
    """The native wire's JSON of a table, without its name and audit information."""
    return {
        "comment": definition["comment"],
        "columns": [shown_column(column) for column in definition["columns"]],
        "properties": dict(definition["properties"]),
        "indexes": [dict(index) for index in definition["indexes"]],
        **NO_LAYOUT,
    }


def version_of(definition: Json) -> str:
    return digest({name: value for name, value in definition.items() if name not in NOT_COMPARED})


def essence(definition: Json) -> Json:
    """What was asked for, without what a database makes of it: names of keys, spellings, the form of defaults."""
    columns = [
        [column["name"], column["type"], column["nullable"], column["autoIncrement"], column.get("comment") or None]
        for column in definition["columns"]
    ]
    indexes = sorted([index["indexType"], index["fieldNames"]] for index in definition["indexes"])
    return {"comment": definition["comment"] or None, "columns": columns, "indexes": indexes}
