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


# Edge and Opera name Chrome too, Chrome names Safari, Android names Linux, and iPhones name Mac OS X.
_BROWSERS = {"Edg": "Edge", "OPR/": "Opera", "Firefox/": "Firefox", "Chrome/": "Chrome", "Safari/": "Safari"}
_SYSTEMS = {
    "Windows": "Windows",
    "Android": "Android",
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Mac OS X": "macOS",
    "Linux": "Linux",
}


@register.filter
def browser(user_agent: str) -> str:
    """`Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0` is "Firefox on Linux"."""
    name = next((name for mark, name in _BROWSERS.items() if mark in user_agent), None)
    system = next((name for mark, name in _SYSTEMS.items() if mark in user_agent), None)
    return " on ".join(part for part in (name or "An unknown browser", system) if part)
