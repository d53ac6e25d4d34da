"""Renders a blast radius: who gains and who loses what, on how many objects, as lines and as a sentence."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from metalake.kinds import CONTAINERS, LEAVES, Kind
from metalake.privileges import Privilege

SHOWN = 5
MOST_PEOPLE = 50
Row = TypeVar("Row")


MEANS = {
    Privilege.MANAGE_GRANTS: "can give all of this to others",
    Privilege.MANAGE_USERS: "can add and remove people",
    Privilege.MANAGE_GROUPS: "can say who is in which group",
    Privilege.CREATE_ROLE: "can make roles",
}
"""What gaining a managing privilege allows."""
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

    @property
    def means(self) -> str:
        """What gaining a managing privilege means, as text; "" for other privileges."""
        return MEANS.get(self.privilege, "") if self.gain.users else ""

    @property
    def people(self) -> tuple[Any, ...]:
        """The key by which lines of one privilege are merged: the same people."""
        return self.privilege, self.gain.users, *self.gain.names, None, self.lose.users, *self.lose.names


class Refused(NamedTuple):
    """Privileges that stay unusable on an object, and below it if it is a container, since a role DENYs them.

    `says` is the object and the DENY: "table lake.A.t: role no_pii denies select_table". `names`: the first users.
    """

    object_id: int
    kind: Kind
    full_name: str
    privileges: tuple[Privilege, ...]
    role: str
    says: str
    users: int
    names: tuple[str, ...]


class PersonLine(NamedTuple):
    """What one user gains and loses, on whatever kind of object."""

    name: str
    gain: tuple[Privilege, ...]
    lose: tuple[Privilege, ...]


@dataclass(frozen=True)
class BlastRadius:
    """`is_cut`: the figures are lower bounds, since the budget ran out. `scheduled`: grants that start later.

    `refused` are the first few of `refused_total` places where a DENY overrides what the changes allow; `people` the
    first by name of `people_total` who gain or lose something: MOST_PEOPLE, or SHOWN if the caller reads less.
    """

    lines: list[Line]
    is_cut: bool = False
    scheduled: int = 0
    refused: list[Refused] = field(default_factory=list)
    refused_total: int = 0
    people: list[PersonLine] = field(default_factory=list)
    people_total: int = 0

    @property
    def summary(self) -> str:
        """One sentence per privilege, managing ones first, then what stays denied."""
        runs = sorted(together(self.lines, lambda line: line.people), key=lambda run: not run[0].means)
        some = list(map(_sentence, runs[:3]))
        rest = len({run[0].privilege for run in runs} - {run[0].privilege for run in runs[:3]})
        more = [f"{rest} more {'privilege changes' if rest == 1 else 'privileges change'} hands"] if rest > 0 else []
        text = "; ".join(some[:3] + more)
        if self.is_cut:
            text = f"at least: {text}" if text else "more than could be counted in time"
        text = text or "nobody gains or loses anything now"
        text = f"{text}; {self.scheduled} grants begin later" if self.scheduled else text
        stays = "; ".join(f"{' and '.join(one.privileges)} on {one.says}" for one in self.refused[:3])
        more_stays = f" and {self.refused_total - 3} more" if self.refused_total > 3 else ""
        return f"{text}; refused still: {stays}{more_stays}" if stays else text


def together(rows: Iterable[Row], key: Callable[[Row], Hashable]) -> list[list[Row]]:
    """Group rows by key, in order of first occurrence."""
    runs: dict[Hashable, list[Row]] = {}
    for row in rows:
        runs.setdefault(key(row), []).append(row)
    return list(runs.values())


def on_objects(sides: Iterable[tuple[Side, Kind]]) -> str:
    """ "1,200 tables, 2 schemas and 1 catalog"."""
    counts = [_many(side.objects, kind.replace("_", " ")) for side, kind in sides if side.objects]
    return " and ".join([", ".join(counts[:-1]), counts[-1]]) if len(counts) > 1 else "".join(counts)


def _sentence(run: list[Line]) -> str:
    """ "2 users gain select_table on 6 tables and 1 schema, 1 loses it"; of lines about the same people."""
    first = run[0]
    gains, loses = (on_objects((getattr(line, way), line.kind) for line in run) for way in ("gain", "lose"))
    gain, lose = first.gain.users, first.lose.users
    if not gain:
        return f"{_many(lose, 'user')} {_s('lose', lose)} {first.privilege} on {loses}"
    text = f"{_many(gain, 'user')} {_s('gain', gain)} {first.privilege} on {gains}"
    if lose:
        text += f", {lose} {_s('lose', lose)} it" + ("" if loses == gains else f" on {loses}")
    return f"{text}, and {first.means}" if first.means else text


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _s(verb: str, count: int) -> str:
    return verb + ("s" if count == 1 else "")


def rank(kind: Kind) -> int:
    return _ORDER.index(kind) if kind in _ORDER else 0
