"""A principal's effective privileges: each with the topmost object it holds on, and exceptions below."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pipelines.review.regions import Lineage, Regions
from pipelines.review.state import Grant, Named, Principal, marks


@dataclass
class Holding:
    """A privilege on objects of a kind at and below `on`, except at and below `exceptions`."""

    privilege: str
    kind: str
    on: Named
    exceptions: list[Named] = field(default_factory=list)

    def covers(self, lineage: Lineage) -> bool:
        """Whether it applies to an object of its kind."""
        return self.on.lineage[-1] in lineage and not any(each.lineage[-1] in lineage for each in self.exceptions)


def holdings(principal: Principal, by_role: Mapping[int, Sequence[Grant]], regions: Regions) -> Iterator[Holding]:
    """The effective privileges of a principal; `by_role` has the grants in force."""
    grants = [grant for role in principal.roles for grant in by_role.get(role, ())]
    places = {each.lineage[-1]: each for each in (*(grant.on for grant in grants), *principal.owned)}
    open_: dict[tuple[str, str], list[tuple[Lineage, Holding | None]]] = {}
    for change in regions.changes(marks(grants, principal.owned)):
        place = places[change.object]
        stack = open_.setdefault((change.kind, change.privilege), [])
        while stack and place.lineage[: len(stack[-1][0])] != stack[-1][0]:
            stack.pop()
        if change.holds:
            holding = Holding(change.privilege, change.kind, place)
            stack.append((place.lineage, holding))
            yield holding
        else:
            outer = stack[-1][1] if stack else None
            if outer is not None:
                outer.exceptions.append(place)
            stack.append((place.lineage, None))
