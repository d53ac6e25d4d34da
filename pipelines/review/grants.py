"""Findings about grants: redundant, shadowed and unused ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pipelines.review.regions import Lineage

ALLOW, DENY = "allow", "deny"


class Given(NamedTuple):
    """A grant of a role on an object; start and end in seconds since 1970 (None: unbounded)."""

    role: int
    on: Lineage
    privilege: str
    effect: str
    starts: float | None = None
    ends: float | None = None

    def covers(self, other: Given) -> bool:
        """Whether this grant includes the other, in scope and time."""
        return (
            self.privilege == other.privilege
            and self.effect == other.effect
            and other.on[: len(self.on)] == self.on
            and (self.starts is None or (other.starts is not None and self.starts <= other.starts))
            and (self.ends is None or (other.ends is not None and other.ends <= self.ends))
        )


class Finding(NamedTuple):
    """A grant without effect, and the grant of the same role that causes this."""

    grant: Given
    by: Given

    @property
    def is_shadowed(self) -> bool:
        """Whether a DENY overrides it; otherwise a grant that covers it makes it redundant."""
        return self.by.effect != self.grant.effect


def idle(grants: Iterable[Given]) -> Iterator[Finding]:
    """Grants made redundant by another grant of the role, and ALLOWs shadowed by a DENY of the role."""
    of_privilege: dict[tuple[int, str], list[Given]] = defaultdict(list)
    for grant in grants:
        of_privilege[grant.role, grant.privilege].append(grant)
    for alike in of_privilege.values():
        by_place: dict[tuple[Lineage, str], list[Given]] = defaultdict(list)
        for grant in alike:
            by_place[grant.on, grant.effect].append(grant)
        for grant in alike:
            above = [place for depth in range(1, len(grant.on) + 1) for place in [grant.on[:depth]]]
            same = (other for place in above[:-1] for other in by_place[place, grant.effect])
            denied = (other for place in above for other in by_place[place, DENY]) if grant.effect == ALLOW else ()
            stronger = next((other for other in same if other.covers(grant)), None)
            shadow = next((other for other in denied if other._replace(effect=ALLOW).covers(grant)), None)
            if by := shadow or stronger:
                yield Finding(grant, by)


@dataclass(frozen=True)
class Needs:
    """The privileges that may have allowed an operation: its sufficient sets, and those for traversal."""

    privileges: frozenset[str]
    traversal: frozenset[str] = frozenset()
    sufficient: tuple[frozenset[str], ...] = ()

    @classmethod
    def of(cls, operation: Mapping[str, Any]) -> Needs:
        """Parse a row of the server's operation table."""
        used = frozenset(f"use_{container}" for container in operation["traversal"])
        return cls(used.union(*operation["sufficient"]), used, tuple(map(frozenset, operation["sufficient"])))


class Used(NamedTuple):
    """The last time that a user was allowed an operation on an object, in seconds since 1970."""

    user: str
    on: Lineage
    operation: str
    last: float


def last_use(
    grants: Collection[Given],
    uses: Iterable[Used],
    holders: Mapping[int, Collection[str]],
    operations: Mapping[str, Needs],
) -> dict[Given, float]:
    """When each ALLOW was last needed by a holder of its role; unused grants are absent.

    A use counts for every grant that may have allowed it, so that no used grant is reported as unused.
    """
    by_place: dict[tuple[int, str], list[Given]] = defaultdict(list)
    for grant in grants:
        if grant.effect == ALLOW:
            by_place[grant.on[-1], grant.privilege].append(grant)
    last: dict[Given, float] = {}
    for use in uses:
        needs = operations.get(use.operation)
        for step in use.on if needs else ():
            for privilege in needs.privileges if needs else ():
                for grant in by_place.get((step, privilege), ()):
                    if use.user in holders.get(grant.role, ()):
                        last[grant] = max(use.last, last.get(grant, use.last))
    return last
