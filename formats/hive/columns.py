"""New columns of a Hive table: their names, and Hive's restrictions."""

from __future__ import annotations

import re

from formats.hive.tables import HiveColumn
from formats.hive.types import hive_type
from formats.native.columns import Column, is_null
from formats.native.tables import AddColumn
from metalake.errors import Invalid, Unsupported
from metalake.wire import quote

# Hive joins column names with commas and addresses nested fields with dots and colons (Hive language manual, "DDL").
_NOT_IN_NAMES = re.compile(r"[.,:`\x00-\x1f\x7f]")


def column_name(name: str, where: str) -> str:
    """The name in lower case, as Hive stores it. Raises Invalid for a name that Hive cannot store."""
    if bad := _NOT_IN_NAMES.search(name):
        raise Invalid(f"{where}: Hive cannot keep {bad[0]!r} in the name of a column", kind="column")
    return name.lower()


def new_column(name: str, asked: Column | AddColumn, where: str) -> HiveColumn:
    """The requested column, under a name from `column_name`.

    Raises Unsupported for anything that Hive columns lack, with the path under `where`.
    """
    if not asked.nullable:
        raise Unsupported(f"{where}.nullable: {quote(name)} may hold nulls in Hive; leave it out", kind="column")
    if asked.auto_increment:
        raise Unsupported(f"{where}.autoIncrement: Hive does not count rows by itself", kind="column")
    if asked.default_value is not None and not is_null(asked.default_value):
        raise Unsupported(f"{where}.defaultValue: Hive columns have no default but null", kind="column")
    return HiveColumn(name, hive_type(asked.type, f"{where}.type"), asked.comment)


def top_level(path: list[str], where: str) -> str:
    """The single name of a path, in lower case. Raises Unsupported for a path into a struct."""
    if len(path) > 1:
        raise Unsupported(f"{where}: {quote('.'.join(path))} lies inside a column; name a whole column", kind="column")
    return path[0].lower()
