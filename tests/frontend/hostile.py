"""Text that would run something if a page took it for markup."""

from __future__ import annotations

BEFORE = ("", '">', "'>", "-->", "</title>", "</textarea>", "</script>", "]]>", "`>", '\\">')
"""Ways out of where text stands."""
PAYLOADS = (
    "<script>alert({})</script>",
    "<img src=x onerror=alert({})>",
    "<svg onload=alert({})>",
    "<details open ontoggle=alert({})>",
    "<b tabindex=1 autofocus onfocus=alert({})>",
    "<div hx-post=/logout hx-trigger=load hx-on::load=alert({})>",
)
ALL = [before + payload.format(number) for number, payload in enumerate(PAYLOADS) for before in BEFORE]
SOME = [*ALL[::17], "' onfocus=alert(9) '"]
"""A few for every day, of different ways and payloads."""


def as_name(text: str) -> str:
    """The text without what divides paths."""
    return text.translate({ord(char): None for char in "/:"})
