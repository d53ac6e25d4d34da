"""A blast radius as it is shown: who gains and who loses what, on how many objects, as lines and as a sentence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from metalake.kinds import CONTAINERS, LEAVES, Kind
from metalake.privileges import Privilege

SHOWN = 5


_ORDER = (*LEAVES, *reversed(CONTAINERS))
"""The most numerous kinds come first."""


@dataclass
class Side:
    """How many users gain or lose something, on how many objects, and the first of the users by name."""

    users: int = 0
    objects: int = 0
    names: list[str] = field(default_factory=list)


class Line(NamedTuple):
    """One privilege on objects of one kind."""

    privilege: Privilege
    kind: Kind
    gain: Side
    lose: Side


@dataclass(frozen=True)
class Blast:
    """`is_cut`: the figures are lower bounds, since counting took too long. `scheduled`: grants that begin later."""

    lines: list[Line]
    is_cut: bool = False
    scheduled: int = 0

    @property
    def foremost(self) -> list[Line]:
        """One line for each privilege, about the most numerous kind."""
        lines: dict[Privilege, Line] = {}
        for line in self.lines:
            lines.setdefault(line.privilege, line)
        return list(lines.values())

    @property
    def summary(self) -> str:
        """The lines in words: one sentence for each privilege, about the most numerous kind."""
        some = list(map(_sentence, self.foremost))
        rest = len(some) - 3
        more = [f"{rest} more {'privilege changes' if rest == 1 else 'privileges change'} hands"] if rest > 0 else []
        text = "; ".join(some[:3] + more)
        if self.is_cut:
            text = f"at least: {text}" if text else "more than could be counted in time"
        text = text or "nobody gains or loses anything now"
        return f"{text}; {self.scheduled} grants begin later" if self.scheduled else text


def _sentence(line: Line) -> str:
    gain, lose, kind = line.gain, line.lose, line.kind
    if not gain.users:
        return f"{_many(lose.users, 'user')} {_s('lose', lose.users)} {line.privilege} on {_many(lose.objects, kind)}"
    text = f"{_many(gain.users, 'user')} {_s('gain', gain.users)} {line.privilege} on {_many(gain.objects, kind)}"
    if lose.users:
        text += f", {lose.users} {_s('lose', lose.users)} it"
        text += "" if lose.objects == gain.objects else f" on {lose.objects}"
    return text


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def _s(verb: str, count: int) -> str:
    return verb + ("s" if count == 1 else "")


def rank(kind: Kind) -> int:
    return _ORDER.index(kind) if kind in _ORDER else 0
