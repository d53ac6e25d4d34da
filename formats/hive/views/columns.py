"""A view's columns as native JSON, and preserving the type strings of unchanged columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from formats.hive.tables import HiveColumn
from formats.hive.types import native_type
from formats.hive.views.unreadable import LONGEST_TYPE, MOST_COLUMNS, Unreadable, checked_text, optional_text
from formats.native.columns import Column, is_null
from metalake.errors import Invalid, Unsupported
from metalake.wire import quote, read

Json = dict[str, Any]


def native_column(name: Any, type: Any, comment: Any = None, nullable: bool = True) -> Json:
    """A column as native JSON, with `type` already as JSON. Raises Unreadable for an invalid name or comment."""
    column = {"name": checked_text(name, "column's name"), "type": type, "nullable": nullable, "autoIncrement": False}
    text = optional_text(comment, "column's comment")
    return column if text is None else column | {"comment": text}


def checked_type(text: Any) -> str:
    """A type string of at most LONGEST_TYPE characters. Raises Unreadable."""
    if len(checked := checked_text(text, "column's type")) > LONGEST_TYPE:
        raise Unreadable(f"The type of a column has {len(checked)} characters; at most {LONGEST_TYPE} are read.")
    return checked


def from_hive_columns(columns: Sequence[HiveColumn]) -> tuple[Json, ...]:
    """Raises Unreadable."""
    check_count(len(columns))
    return tuple(native_column(one.name, native_type(checked_type(one.type)), one.comment) for one in columns)


def check_count(count: int) -> None:
    """Raises Unreadable for more than MOST_COLUMNS."""
    if count > MOST_COLUMNS:
        raise Unreadable(f"It has {count} columns; at most {MOST_COLUMNS} are read.")


def type_texts(
    before: Iterable[tuple[Json, str]], after: Sequence[Json], write: Callable[[Column, str], str]
) -> list[str]:
    """The type string of each wanted column: the stored one if name and type are unchanged, else a new one.

    `write` creates a new one from a column and its path, and raises Invalid and Unsupported.
    """
    stored = {(column["name"], column["nullable"]): (column["type"], text) for column, text in before}
    texts = []
    for number, column in enumerate(after):
        type, text = stored.get((column["name"], column["nullable"]), (None, ""))
        texts.append(
            text if type == column["type"] else write(_plain(column, f"columns[{number}]"), f"columns[{number}]")
        )
    return texts


def _plain(column: Json, where: str) -> Column:
    """Parse a column. Raises Invalid, and Unsupported for anything that no view can have."""
    wanted = read(Column, column, kind="column")
    if wanted.auto_increment:
        raise Unsupported(f"{where}.autoIncrement: a view does not count rows", kind="column")
    if wanted.default_value is not None and not is_null(wanted.default_value):
        raise Unsupported(f"{where}.defaultValue: the columns of a view have no defaults", kind="column")
    return wanted


def require_different_names(columns: Iterable[Json]) -> None:
    """Raises Invalid for names that differ only by case: engines and metastores are case-insensitive."""
    seen = set[str]()
    for number, column in enumerate(columns):
        if (name := column["name"].lower()) in seen:
            again = f"{quote(column['name'])} is there already, perhaps in another case"
            raise Invalid(f"columns[{number}].name: {again}", kind="column")
        seen.add(name)
