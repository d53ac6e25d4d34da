"""The error for views of engines that we cannot read, and the limits for reading them."""

from __future__ import annotations

from typing import Any

from metalake.errors import Unsupported
from metalake.kinds import Kind

LONGEST_TEXT = 16 * 1024 * 1024  # characters of a view's text: ample for 1 MiB of SQL as JSON in base64
LONGEST_TYPE = 64 * 1024  # characters of a column's type
MOST_COLUMNS = 10_000


class Unreadable(Unsupported):
    """The view is not in the form that its engine writes; `reason` is a sentence."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The view cannot be read. {reason}", kind=Kind.VIEW)
        self.reason = reason


def checked_text(value: Any, what: str) -> str:
    """A string that our database can store. Raises Unreadable, naming `what`, for anything else."""
    if not isinstance(value, str):
        raise Unreadable(f"Its {what} is not a text.")
    if "\0" in value:
        raise Unreadable(f"Its {what} has a NUL character.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Unreadable(f"Its {what} has half of a surrogate pair, which is no character.") from None
    return value


def optional_text(value: Any, what: str) -> str | None:
    """`checked_text`, but None for None. Raises Unreadable."""
    return None if value is None else checked_text(value, what)


def checked_sql(*candidates: Any) -> str:
    """The first string that is not blank. Raises Unreadable if there is none."""
    for candidate in candidates:
        if candidate is not None and (sql := checked_text(candidate, "SQL")).strip():
            return sql
    raise Unreadable("It has no SQL.")
