"""Formats figures and verbs as text."""

from __future__ import annotations

from django import template

register = template.Library()
UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60))


@register.filter
def duration(seconds: float | None) -> str:
    """`90` is "2 minutes": the largest unit that there is at least one of."""
    if seconds is None:
        return ""
    for unit, size in UNITS:
        if seconds >= size:
            count = round(seconds / size)
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{round(seconds)} s"


@register.filter
def spaced(verb: str) -> str:
    """`create_table` is "create table"."""
    return verb.replace("_", " ")


@register.filter
def grouped(number: int | None) -> str:
    """`1234567` is "1,234,567"; None is nothing."""
    return "" if number is None else f"{number:,}"
