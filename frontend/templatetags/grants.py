"""Formats a preview's figures as text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from django import template

from access.plans.apply import DiffLine, Preview, diff_changes, diff_lines
from access.plans.blast_report import Line, Refused, Side, on_objects, together
from access.plans.desired import Change
from access.plans.plan import Planned
from metalake.privileges import Privilege

register = template.Library()


@register.filter
def thousands(number: int) -> str:
    """`12345` is "12,345"."""
    return f"{number:,}"


@register.filter
def others(side: Side | Refused) -> int:
    """How many users gain or lose it in addition to those named."""
    return side.users - len(side.names)


class LineGroup(NamedTuple):
    """Privileges that the same people gain and lose on the same objects, with a line for each kind of these."""

    privileges: list[Privilege]
    lines: list[DiffLine[Line]]


@register.filter
def lines(planned: Planned | None, before: Preview | None = None) -> list[DiffLine[Line]]:
    """What somebody gains or loses, marked where it differs from before."""
    return diff_lines(planned.blast if planned else None, before or None)


@register.filter
def grouped(rows: Sequence[DiffLine[Line]]) -> list[LineGroup]:
    """The lines of one privilege and the same people as one, then privileges for which all else is the same."""
    runs = together(rows, lambda each: (each.mark, *each.line.people, each.was and each.was.people))
    alike = together(runs, lambda run: tuple(str((each.line.means, *_but_for_the_privilege(each))) for each in run))
    return [LineGroup([run[0].line.privilege for run in some], some[0]) for some in alike]


@register.filter
def objects(rows: Sequence[DiffLine[Line]], way: str) -> str:
    """What is gained or lost on, in words; `way` is "line.gain", "was.lose" and the like."""
    line, side = map(attrgetter, way.split("."))
    return on_objects((side(line(each)), line(each).kind) for each in rows if line(each))


@register.filter
def changed(planned: Planned | None, before: Preview | None = None) -> list[DiffLine[Change]]:
    """The changes of a plan, marked in the same way."""
    return diff_changes(planned.changes if planned else [], before or None)


@register.filter
def joined(rows: Sequence[DiffLine[Change]]) -> list[tuple[DiffLine[Change], list[Privilege]]]:
    """Neighbours that differ in their privilege alone as one: the first of them, with the privileges of all."""
    runs = [list(run) for _, run in groupby(rows, _but_for_the_privilege)]
    return [(run[0], [each.line.privilege for each in run if each.line.privilege]) for run in runs]


def _but_for_the_privilege(row: DiffLine[Any]) -> tuple[str, dict[str, Any], dict[str, Any]]:
    line, was = (each._asdict() | {"privilege": None} if each else {} for each in (row.line, row.was))
    return row.mark, line, was


MOST_LINES = 300  # of a plan, shown by object


@register.filter
def by_object(rows: Sequence[DiffLine[Change]]) -> list[tuple[tuple[str, str] | None, list[DiffLine[Change]]]]:
    """The first lines of a plan by kind and name of what they are on; those about roles themselves (None) first."""
    ordered = sorted(rows[:MOST_LINES], key=lambda each: (each.line.on or ("", ""))[::-1])
    return [(on, list(some)) for on, some in groupby(ordered, lambda each: each.line.on)]


@register.filter
def unlisted(rows: Sequence[DiffLine[Change]]) -> int:
    """How many lines `by_object` leaves out."""
    return max(len(rows) - MOST_LINES, 0)


@register.filter
def gain_something(rows: list[DiffLine[Line]]) -> bool:
    return any(each.line.gain.users for each in rows)


@register.filter
def lose_something(rows: list[DiffLine[Line]]) -> bool:
    return any(each.line.lose.users for each in rows)
