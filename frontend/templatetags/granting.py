"""Figures of a preview in words."""

from __future__ import annotations

from django import template

from authz.plans.blast_lines import Line, Side
from authz.plans.planning import Planned
from metalake.privileges import Privilege

register = template.Library()


@register.filter
def thousands(number: int) -> str:
    """`12345` is "12,345"."""
    return f"{number:,}"


@register.filter
def others(side: Side) -> int:
    """How many users gain or lose it beside those who are named."""
    return side.users - len(side.names)


@register.filter
def foremost(planned: Planned) -> list[Line]:
    """One line for each privilege that somebody gains or loses, about the most numerous kind."""
    lines: dict[Privilege, Line] = {}
    for line in planned.blast.lines:
        lines.setdefault(line.privilege, line)
    return list(lines.values())


@register.filter
def gain_something(lines: list[Line]) -> bool:
    return any(line.gain.users for line in lines)


@register.filter
def lose_something(lines: list[Line]) -> bool:
    return any(line.lose.users for line in lines)
