"""An explanation as paths to draw: person, group, role, a grant and its object, the object in question."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from access.explain.cases import NamedGrant, Reason
from access.explain.explanations import Explanation
from access.explain.permissions import HIDDEN
from frontend.svg import Stop
from metalake.lineage import Located
from metalake.privileges import Effect

OK, BAD, MISSING = "ok", "bad", "missing"


class Path(NamedTuple):
    """The boxes of one path, and the same as text, without what its part says already."""

    stops: tuple[Stop, ...]
    says: tuple[str, ...] = ()


class Part(NamedTuple):
    """One reason of an answer, with the paths that lead to it; `more` says how many are left out."""

    says: str
    is_given: bool
    paths: tuple[Path, ...] = ()
    more: str = ""


class Way(NamedTuple):
    """Parts that are all required; `says` that they suffice, if they are one of several alternatives."""

    says: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Drawing:
    """Draws one explanation."""

    explanation: Explanation

    def ways(self) -> tuple[Way, ...]:
        """What is always required first, then each sufficient alternative."""
        of_all, ways = list[Part](), list[Way]()
        for reason in self.explanation.because:
            if reason.because and reason.because[0].grant is None:
                ways.append(Way(reason.says, tuple(map(self._part, reason.because))))
            else:
                of_all.append(self._part(reason))
        return (Way("", tuple(of_all)), *ways)

    def _part(self, reason: Reason) -> Part:
        more = [below.says for below in reason.because if below.grant is None]
        return Part(reason.says, self.explanation.allowed, tuple(self._paths(reason)), " ".join(more))

    def _paths(self, reason: Reason) -> Iterator[Path]:
        if reason.owner is not None:
            yield Path((*self._person(reason.group), *self._down_from("owner of", reason.on, OK)))
        if reason.lacks is not None and not reason.because:
            yield Path((*self._person(), *self._down_from(f"no {reason.lacks} on", reason.on, MISSING)))
        for below in reason.because:
            if below.grant is not None:
                yield from self._through(below, below.grant)

    def _through(self, reason: Reason, grant: NamedGrant) -> Iterator[Path]:
        """A path for each way in which the person holds the role of this grant."""
        says = f"{grant.effect} {grant.privilege} on"
        for holding in reason.because or (Reason(""),):
            stops = (*self._person(holding.group), Stop("role", grant.role, OK))
            stops += self._down_from(says, grant.on, self._state(grant))
            yield Path(stops, tuple(filter(None, (holding.says, reason.says))))

    def _state(self, grant: NamedGrant) -> str:
        if grant.effect is Effect.DENY:
            return BAD
        # For a no it starts later, or the request omits its role: the sentence says which.
        return OK if self.explanation.allowed else MISSING

    def _person(self, group: str | None = None) -> tuple[Stop, ...]:
        person = Stop("person", self.explanation.user, OK)
        return (person, Stop("group", group, OK)) if group else (person,)

    def _down_from(self, says: str, on: Located | None, state: str) -> tuple[Stop, ...]:
        """The box of what is granted, owned or lacking on an object, and that of the object asked about, if another."""
        target = self.explanation.on
        here = Stop(f"{says} {on.kind}", on.name, state) if on else Stop(says, HIDDEN, state)
        if on is not None and on.id == target.id:
            return (here,)
        return (here, Stop(target.kind.value, target.name, OK if state == OK else BAD))
