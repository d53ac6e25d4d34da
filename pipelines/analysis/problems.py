"""Spark's errors, reworded to reveal no more than the SQL itself.

Spark's messages suggest columns of tables and quote the SQL of other views, which a reader of this view may not see.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pipelines.analysis.results import Problem

LONGEST = 200  # characters of a quote
_NAMES = {"TABLE_OR_VIEW_NOT_FOUND": "relationName", "SCHEMA_NOT_FOUND": "schemaName"}
_PLACE = re.compile(r"line (\d+),? pos (\d+)")


def problem_of(error: Any, sql: str) -> Problem:
    """The problem behind a Spark exception raised while analysing this SQL."""
    condition = str(_asked(error, "getCondition") or "")
    parameters: Mapping[str, str] = _asked(error, "getMessageParameters") or {}
    line, column = _place_of(error, sql)
    if condition == "PARSE_SYNTAX_ERROR":
        return Problem(f"Spark cannot read it at {_shortened(parameters.get('error', 'its end'))}.", line, column)
    if condition.startswith("UNRESOLVED_COLUMN"):
        return _about(parameters.get("objectName", ""), sql, "There is no column {}.", line, column)
    if condition in _NAMES:
        return _about(parameters.get(_NAMES[condition], ""), sql, "Spark finds no {}.", line, column)
    fragment = next((text for text in _fragments(error) if text and text in sql), "")
    about = f" in {_shortened(fragment)}" if fragment else ""
    return Problem(f"Spark refuses it: {condition or 'it cannot be analysed'}{about}.", line, column)


def _about(name: str, sql: str, words: str, line: int | None, column: int | None) -> Problem:
    """A problem with a name, which is revealed only if it occurs in the SQL: others belong to underlying views."""
    last = name.rpartition(".")[2].strip("`")
    if not last or last.casefold() not in sql.casefold():
        return Problem("What it reads is wrong itself, or is not there.")
    return Problem(words.format(_shortened(name)), line, column)


def _place_of(error: Any, sql: str) -> tuple[int | None, int | None]:
    for context in _asked(error, "getQueryContext") or ():
        if context.fragment() in sql:
            before = sql[: max(0, context.startIndex())]
            return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    place = _PLACE.search(str(error))
    if place is None or int(place[1]) > sql.count("\n") + 1:
        return None, None
    return int(place[1]), int(place[2]) + 1


def _fragments(error: Any) -> list[str]:
    return [context.fragment() for context in _asked(error, "getQueryContext") or ()]


def _asked(error: Any, name: str) -> Any:
    method = getattr(error, name, None)
    return method() if method else None


def _shortened(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= LONGEST else f"{plain[:LONGEST]}..."
