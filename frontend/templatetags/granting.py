"""Figures of a preview in words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, TypeVar

from django import template

from authz.plans.blast_lines import Line, Side
from authz.plans.marking import Marked, Shown, marked_changes, marked_lines
from authz.plans.planning import Planned
from authz.plans.wanted import Change
from metalake.privileges import Privilege

register = template.Library()
Row = TypeVar("Row", Line, Change)


@register.filter
def thousands(number: int) -> str:
    """`12345` is "12,345"."""
    return f"{number:,}"


@register.filter
def others(side: Side) -> int:
    """How many users gain or lose it beside those who are named."""
    return side.users - len(side.names)


@register.filter
def foremost(planned: Planned | None, before: Shown | None = None) -> list[Marked[Line]]:
    """One line for each privilege that somebody gains or loses, marked where it was shown otherwise before."""
    return marked_lines(planned.blast if planned else None, before or None)


@register.filter
def changed(planned: Planned | None, before: Shown | None = None) -> list[Marked[Change]]:
    """The changes of a plan, marked in the same way."""
    return marked_changes(planned.changes if planned else [], before or None)


@register.filter
def joined(rows: Sequence[Marked[Row]]) -> list[tuple[Marked[Row], list[Privilege]]]:
    """Neighbours that differ in their privilege alone as one: the first of them, with the privileges of all."""
    runs = [list(run) for _, run in groupby(rows, _but_for_the_privilege)]
    return [(run[0], [each.line.privilege for each in run if each.line.privilege]) for run in runs]


def _but_for_the_privilege(row: Marked[Any]) -> tuple[str, dict[str, Any], dict[str, Any]]:
    line, was = (each._asdict() | {"privilege": None} if each else {} for each in (row.line, row.was))
    return row.mark, line, was


@register.filter
def gain_something(lines: list[Marked[Line]]) -> bool:
    return any(each.line.gain.users for each in lines)


@register.filter
def lose_something(lines: list[Marked[Line]]) -> bool:
    return any(each.line.lose.users for each in lines)
