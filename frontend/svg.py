"""SVG drawings, rendered by the server. The same is next to each as text, so they are hidden from screen readers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from frontend.confusables import spelled

# Lengths are in units of the SVG, which are pixels unless the picture is scaled down.
HIGH, GAP, PADDING = 46, 34, 14
WIDEST = 900
LONGEST = 26  # characters of a name
LETTER = 7.4  # mean width of a character
TALL_WIDTH = 320


@dataclass(frozen=True)
class Stop:
    """One box of a path: `kind` is the small word above the name.

    `state` is "ok", "bad" or "missing", or "" for a box without a verdict; the line that leads to the box has the same.
    """

    kind: str
    name: str
    state: str = ""

    @property
    def label(self) -> str:
        text = spelled(self.name)
        return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"

    @property
    def width(self) -> float:
        return max(72.0, LETTER * max(len(self.label), len(self.kind) * 0.85) + 2 * PADDING)


_NOTHING = Stop("", "")
"""An empty place, which lines pass through."""


@dataclass(frozen=True)
class _Placed:
    stop: Stop
    x: float
    y: float
    width: float


def path(stops: Sequence[Stop]) -> SafeString:
    """A path of boxes and lines twice: side by side, and one below the other for narrow screens."""
    if not stops:
        return SafeString("")
    return _svg("wide", _side_by_side(stops)) + _svg("tall", _stacked(stops))


def flow(columns: Sequence[Sequence[Stop | None]], lines: Sequence[Sequence[tuple[int, int]]]) -> SafeString:
    """Columns of boxes with lines between them, for wide screens.

    A line is the places that it leads to, each a column and a row of it; those between its ends are empty.
    """
    placed: list[list[_Placed]] = []
    x = 1.0
    for stops in columns:
        width = max(stop.width for stop in stops if stop)
        rows = (1 + row * (HIGH + PADDING) for row in range(len(stops)))
        placed.append([_Placed(stop or _NOTHING, x, y, width) for stop, y in zip(stops, rows, strict=True)])
        x += width + 2 * GAP
    curves = ("".join(_curve(placed[a][b], placed[c][d]) for (a, b), (c, d) in pairwise(line)) for line in lines)
    return _drawn("wide", [*chain.from_iterable(placed)], [("", each) for each in curves])


def _curve(before: _Placed, after: _Placed) -> str:
    """From the left side of a place, which the line crosses straight, to the left side of the next."""
    start, end, middle = before.x + before.width, after.x, (before.x + before.width + after.x) / 2
    high, low = before.y + HIGH / 2, after.y + HIGH / 2
    passes = f"M{before.x:.0f} {high:.0f}H{start:.0f}" if before.stop is _NOTHING else f"M{start:.0f} {high:.0f}"
    return f"{passes}C{middle:.0f} {high:.0f} {middle:.0f} {low:.0f} {end:.0f} {low:.0f}"


def _side_by_side(stops: Sequence[Stop]) -> list[_Placed]:
    placed: list[_Placed] = []
    x, y = 1.0, 1.0
    for stop in stops:
        if placed and x + stop.width > WIDEST:
            x, y = 1.0, y + HIGH + GAP
        placed.append(_Placed(stop, x, y, stop.width))
        x += stop.width + GAP
    return placed


def _stacked(stops: Sequence[Stop]) -> list[_Placed]:
    return [_Placed(stop, 1.0, 1 + place * (HIGH + GAP * 0.7), TALL_WIDTH) for place, stop in enumerate(stops)]


def _svg(layout: str, placed: list[_Placed]) -> SafeString:
    return _drawn(layout, placed, [(after.stop.state, _line(before, after)) for before, after in _pairs(placed)])


def _drawn(layout: str, placed: Sequence[_Placed], lines: Sequence[tuple[str, str]]) -> SafeString:
    """The boxes, drawn over the lines, which are given as state and path."""
    width = max(each.x + each.width for each in placed) + 1
    height = max(each.y for each in placed) + HIGH + 1
    links = format_html_join("", '<path class="link {}" d="{}"/>', lines)
    boxes = format_html_join("", "{}", ((_box(each),) for each in placed if each.stop is not _NOTHING))
    return format_html(
        '<svg class="drawing {}" viewBox="0 0 {} {}" width="{}" height="{}" aria-hidden="true">{}{}</svg>',
        layout, round(width), round(height), round(width), round(height), links, boxes,
    )  # fmt: skip


def _pairs(placed: list[_Placed]) -> list[tuple[_Placed, _Placed]]:
    return list(pairwise(placed))


def _line(before: _Placed, after: _Placed) -> str:
    """From box to box: to the right on one row, else down and across."""
    if before.y == after.y:
        return f"M{before.x + before.width:.0f} {before.y + HIGH / 2:.0f}H{after.x:.0f}"
    down, start, end = before.y + HIGH, before.x + before.width / 2, after.x + after.width / 2
    return f"M{start:.0f} {down:.0f}V{(down + after.y) / 2:.0f}H{end:.0f}V{after.y:.0f}"


def _box(each: _Placed) -> SafeString:
    stop, middle = each.stop, f"{each.x + each.width / 2:.1f}"
    return format_html(
        '<g><title>{} {}</title><rect class="box {}" x="{}" y="{}" width="{}" height="{}" rx="8"/>'
        '<text class="small" text-anchor="middle" x="{}" y="{}">{}</text>'
        '<text text-anchor="middle" x="{}" y="{}">{}</text></g>',
        stop.kind, spelled(stop.name), stop.state, f"{each.x:.1f}", f"{each.y:.1f}", f"{each.width:.1f}",
        HIGH, middle, f"{each.y + 18:.1f}", stop.kind, middle, f"{each.y + 35:.1f}", stop.label,
    )  # fmt: skip
