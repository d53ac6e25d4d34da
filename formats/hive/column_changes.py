"""Column updates, applied in order to a draft of a Hive table's columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from formats.hive.columns import column_name, new_column, top_level
from formats.hive.spark import PLACEHOLDER, is_spark_table, require_spark_type, spark_columns, with_spark_columns
from formats.hive.tables import HiveColumn, HiveTable, SortColumn, formats_of
from formats.hive.types import hive_type
from formats.native import tables as wire
from metalake.errors import Invalid, Unsupported
from metalake.wire import quote


@dataclass
class ColumnsDraft:
    """A table's columns and partition keys by lower-case name, their order, and its bucket and sort columns.

    `by_spark` means that Spark reads the table by its own schema. Such a table allows only new columns and comments,
    which is all that Spark itself would change.
    """

    columns: dict[str, HiveColumn]
    order: list[str]
    keys: dict[str, HiveColumn]
    bucket_columns: list[str]
    sort_columns: list[SortColumn]
    by_spark: bool

    @classmethod
    def of(cls, table: HiveTable, where: str) -> ColumnsDraft:
        """Raises Unsupported if the columns are stored elsewhere or two have the same name."""
        kind = ", ".join(formats_of(table))
        if "hive" not in formats_of(table):
            raise Unsupported(f"{where}: the columns of a table of format {kind} are changed by engines", kind="column")
        keys = {key.name.lower(): key for key in table.partition_keys}
        by_spark = is_spark_table(table)
        shown = list(spark_columns(table) if by_spark else table.columns)
        seen = {column.name.lower(): column for column in shown}
        if len(seen) < len(shown) or (by_spark and not shown):
            raise Unsupported(f"{where}: the columns of this table cannot be told apart by their names", kind="column")
        if by_spark:
            keys = {
                name: replace(key, comment=seen[name].comment) if name in seen else key for name, key in keys.items()
            }
        columns = {name: column for name, column in seen.items() if not (by_spark and name in keys)}
        return cls(columns, list(columns), keys, list(table.bucket_columns), list(table.sort_columns), by_spark)

    def applied(self, table: HiveTable) -> HiveTable:
        """The table with these columns."""
        columns, keys = [self.columns[name] for name in self.order], tuple(self.keys.values())
        if not self.by_spark:
            return replace(
                table,
                columns=tuple(columns),
                partition_keys=keys,
                bucket_columns=tuple(self.bucket_columns),
                sort_columns=tuple(self.sort_columns),
            )
        table = replace(table, parameters=with_spark_columns(table.parameters, [*columns, *keys]), partition_keys=keys)
        if table.columns == (PLACEHOLDER,):
            return table
        stored = {column.name.lower(): column for column in table.columns}
        copies = (
            replace(stored.get(name, self.columns[name]), comment=self.columns[name].comment) for name in self.order
        )
        return replace(table, columns=tuple(copies))

    def require_hive(self, where: str) -> None:
        """Raises Unsupported for a table with a schema managed by Spark."""
        if self.by_spark:
            raise Unsupported(
                f"{where}: this table is kept by Spark, which adds columns at the end and changes comments, no more",
                kind="column",
            )

    def changeable(self, path: list[str], where: str) -> str:
        """The lower-case name of a column. Raises Invalid if it does not exist or is a partition key."""
        name = top_level(path, where)
        if name in self.keys:
            raise Invalid(f"{where}: the table is partitioned by {quote(name)}, and that never changes", kind="column")
        if name not in self.columns:
            raise Invalid(f"{where}: no column {quote(name)}", kind="column")
        return name

    def require_free(self, name: str, where: str) -> None:
        if name in self.columns or name in self.keys:
            raise Invalid(f"{where}: {quote(name)} is there already", kind="column")

    def place(self, name: str, position: wire.After | str, where: str) -> None:
        """Insert a new name into the order. Raises Invalid for an unknown position."""
        if not isinstance(position, wire.After):
            self.order.insert(0 if position == "first" else len(self.order), name)
            return
        before = position.after.lower()
        if before in self.keys:
            raise Invalid(f"{where}: no column comes after the partition column {quote(before)}", kind="column")
        if before not in self.columns or before == name:
            raise Invalid(f"{where}: no other column {quote(before)} beside {quote(name)}", kind="column")
        self.order.insert(self.order.index(before) + 1, name)


def add_column(draft: ColumnsDraft, change: wire.AddColumn, where: str) -> None:
    """Add a column, by default the last before the partition keys."""
    top_level(change.field_name, f"{where}.fieldName")
    name = column_name(change.field_name[0], f"{where}.fieldName")
    draft.require_free(name, f"{where}.fieldName")
    column = new_column(name, change, where)
    if change.position != "default":
        draft.require_hive(f"{where}.position")
    if draft.by_spark:
        require_spark_type(column, f"{where}.type")
    draft.place(name, change.position, f"{where}.position")
    draft.columns[name] = column


def delete_column(draft: ColumnsDraft, change: wire.DeleteColumn, where: str) -> None:
    """Drop a column. Raises Invalid if the table is bucketed or sorted by it, or has no other column or key."""
    draft.require_hive(where)
    where = f"{where}.fieldName"
    name = top_level(change.field_name, where)
    if change.if_exists and name not in draft.columns and name not in draft.keys:
        return
    name = draft.changeable(change.field_name, where)
    if name in map(str.lower, draft.bucket_columns):
        raise Invalid(f"{where}: {quote(name)} is what the table is bucketed by", kind="column")
    if any(column.name.lower() == name for column in draft.sort_columns):
        raise Invalid(f"{where}: {quote(name)} is what the table is sorted by", kind="column")
    if len(draft.order) == 1 and not draft.keys:
        raise Invalid(f"{where}: {quote(name)} is the table's last column", kind="column")
    draft.order.remove(name)
    del draft.columns[name]


def rename_column(draft: ColumnsDraft, change: wire.RenameColumn, where: str) -> None:
    """Rename a column, also among the bucket and sort columns."""
    draft.require_hive(where)
    old = draft.changeable(change.old_field_name, f"{where}.oldFieldName")
    new = column_name(change.new_field_name, f"{where}.newFieldName")
    if new != old:
        draft.require_free(new, f"{where}.newFieldName")
    draft.columns[new] = replace(draft.columns.pop(old), name=new)
    draft.order[draft.order.index(old)] = new
    draft.bucket_columns = [new if name.lower() == old else name for name in draft.bucket_columns]
    draft.sort_columns = [
        replace(column, name=new) if column.name.lower() == old else column for column in draft.sort_columns
    ]


def update_type(draft: ColumnsDraft, change: wire.UpdateColumnType, where: str) -> None:
    """Change a column's type; the caller makes sure that the files are readable as that type."""
    draft.require_hive(where)
    name = draft.changeable(change.field_name, f"{where}.fieldName")
    draft.columns[name] = replace(draft.columns[name], type=hive_type(change.new_type, f"{where}.newType"))


def update_comment(draft: ColumnsDraft, change: wire.UpdateColumnComment, where: str) -> None:
    """Replace the comment of a column or partition key; None removes it."""
    name = top_level(change.field_name, f"{where}.fieldName")
    holders = [columns for columns in (draft.columns, draft.keys) if name in columns]
    if not holders:
        raise Invalid(f"{where}.fieldName: no column {quote(name)}", kind="column")
    for columns in holders:
        columns[name] = replace(columns[name], comment=change.new_comment)


def update_position(draft: ColumnsDraft, change: wire.UpdateColumnPosition, where: str) -> None:
    """Move a column, never after the partition keys."""
    draft.require_hive(where)
    if change.new_position == "default":
        raise Unsupported(f"{where}.newPosition: Hive has no default position to move a column to", kind="column")
    name = draft.changeable(change.field_name, f"{where}.fieldName")
    draft.order.remove(name)
    draft.place(name, change.new_position, f"{where}.newPosition")


COLUMN_CHANGES: dict[type, Callable[[ColumnsDraft, Any, str], None]] = {
    wire.AddColumn: add_column,
    wire.DeleteColumn: delete_column,
    wire.RenameColumn: rename_column,
    wire.UpdateColumnType: update_type,
    wire.UpdateColumnComment: update_comment,
    wire.UpdateColumnPosition: update_position,
}
