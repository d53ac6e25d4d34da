"""Diff of two versions of a view: their SQL side by side, and a text of what else differs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, NamedTuple

from django.utils.safestring import SafeString

from formats.native.outlines import native_type_text
from frontend.highlighting import marked, spelled
from views_mgmt.services.history import Difference

LONGEST = 64 * 1024  # characters of a text whose lines are compared
MOST_LINES = 1000
AROUND = 3  # lines of context
SQL = "representations."
LABELS = {"comment": "Comment", "securityMode": "Security mode", "columnOrder": "Order of columns"}


class Side(NamedTuple):
    """A line of one text: its 1-based number and its HTML; no number for no line."""

    number: int | None = None
    html: SafeString = SafeString()
    differs: bool = False


class Line(NamedTuple):
    """A line before and after; `skipped` counts equal lines omitted here."""

    before: Side = Side()
    after: Side = Side()
    skipped: int = 0


@dataclass(frozen=True)
class SqlDifference:
    """The change of a dialect; `lines` is None where the texts are too long for a line diff."""

    dialect: str
    change: str
    lines: list[Line] | None
    whole: tuple[SafeString, SafeString] | None
    defaults: list[tuple[str, str, str]]


class PartDifference(NamedTuple):
    """Another part as text, "" where it is missing."""

    label: str
    before: str
    after: str


def in_sql(differences: Iterable[Difference]) -> list[SqlDifference]:
    """The dialects that differ."""
    return [_in_dialect(each.before, each.after) for each in differences if each.part.startswith(SQL)]


def in_other_parts(differences: Iterable[Difference]) -> list[PartDifference]:
    """What differs besides SQL."""
    return [
        PartDifference(_label(each.part), _in_words(each.before), _in_words(each.after))
        for each in differences
        if not each.part.startswith(SQL)
    ]


def summary(differences: Sequence[Difference]) -> str:
    """A summary of the differences: "trino added, columns"."""
    return ", ".join(dict.fromkeys(map(_few_words, differences)))


def _few_words(each: Difference) -> str:
    if not each.part.startswith(SQL):
        return _word(each.part)
    change = _change(each.before, each.after)
    return each.part.removeprefix(SQL) + ("" if change == "changed" else f" {change}")


def _change(before: Any, after: Any) -> str:
    return "added" if before is None else "removed" if after is None else "changed"


def _word(part: str) -> str:
    return {"columnOrder": "columns", "securityMode": "mode"}.get(part, part.partition(".")[0])


def _label(part: str) -> str:
    group, _, name = part.partition(".")
    if not name:
        return LABELS.get(part, part)
    return f"{'Column' if group == 'columns' else 'Property'} {name}"


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        required = "" if value.get("nullable", True) else " required"
        return f"{native_type_text(value.get('type'))}{required} {value.get('comment') or ''}".strip()
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def _in_dialect(before: dict[str, Any] | None, after: dict[str, Any] | None) -> SqlDifference:
    was, now = before or {}, after or {}
    texts = was.get("sql", ""), now.get("sql", "")
    are_short = all(len(text) <= LONGEST and text.count("\n") < MOST_LINES for text in texts)
    return SqlDifference(
        dialect=now.get("dialect") or was["dialect"],
        change=_change(before, after),
        lines=lines_of(*texts) if are_short else None,
        whole=None if are_short else (spelled(texts[0]), spelled(texts[1])),
        defaults=[
            (label, was.get(name) or "", now.get(name) or "")
            for name, label in (("default_catalog", "Default catalog"), ("default_schema", "Default schema"))
            if was.get(name) != now.get(name)
        ],
    )


def lines_of(before: str, after: str) -> list[Line]:
    """The lines that differ, with AROUND equal ones around them, and counts of those between."""
    was, now = (text.split("\n") if text else [] for text in (before, after))
    lines, shown_to = list[Line](), 0
    for group in SequenceMatcher(None, was, now).get_grouped_opcodes(AROUND):
        if skipped := group[0][1] - shown_to:
            lines.append(Line(skipped=skipped))
        for tag, *span in group:
            lines += _lines(tag != "equal", was, now, *span)
        shown_to = group[-1][2]
    if lines and (skipped := len(was) - shown_to):
        lines.append(Line(skipped=skipped))
    return lines


def _lines(
    differs: bool, was: Sequence[str], now: Sequence[str], start: int, end: int, new_start: int, new_end: int
) -> Iterator[Line]:
    for old, new in zip_longest(range(start, end), range(new_start, new_end)):
        yield Line(_side(was, old, differs), _side(now, new, differs))


def _side(lines: Sequence[str], place: int | None, differs: bool) -> Side:
    return Side() if place is None else Side(place + 1, marked(lines[place]), differs)
