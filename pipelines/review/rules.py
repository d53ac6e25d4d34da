"""The authorization rules, as exported by the server, and their evaluation.

An independent evaluator: it shares no code with the server's, so that each reveals the other's bugs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

METALAKE, CATALOG, SCHEMA, SELF = "metalake", "catalog", "schema", "self"
CONTAINERS = (METALAKE, CATALOG, SCHEMA)


@dataclass(frozen=True)
class Rule:
    """What is required to use a privilege on an object of one kind.

    `owners` (of the metalake, catalog, schema or object itself) may always use it. `traversal` has the containers that
    need a use privilege. Any one set of `sufficient` is enough; a DENY of `blocked_by` blocks everybody but owners.
    """

    privilege: str
    kind: str
    owners: frozenset[str]
    traversal: tuple[str, ...]
    sufficient: tuple[frozenset[str], ...]
    blocked_by: frozenset[str]
    family: str | None = None  # the only catalog type that the privilege applies to


@dataclass(frozen=True)
class Standing:
    """A principal's ALLOWs, DENYs and owned kinds on the lineage of an object."""

    allowed: frozenset[str] = frozenset()
    denied: frozenset[str] = frozenset()
    owned: frozenset[str] = frozenset()

    def holds(self, privilege: str) -> bool:
        return privilege in self.allowed and privilege not in self.denied


def rules_in(answer: Iterable[Mapping[str, Any]]) -> list[Rule]:
    """Parse the rules from the server's endpoint."""
    return [
        Rule(
            privilege=one["privilege"],
            kind=one["kind"],
            owners=frozenset(one["owners"]),
            traversal=tuple(one["traversal"]),
            sufficient=tuple(map(frozenset, one["sufficient"])),
            blocked_by=frozenset(one["blockedBy"]),
            family=one.get("family"),
        )
        for one in answer
    ]


def may_use(rule: Rule, standing: Standing) -> bool:
    """Whether the standing satisfies the rule; ownership, traversal and privileges are checked in a fixed order."""
    owned = standing.owned & rule.owners
    if METALAKE in owned or CATALOG in owned:
        return True
    if CATALOG in rule.traversal and not standing.holds("use_catalog"):
        return False
    if SCHEMA in owned:
        return True
    if SCHEMA in rule.traversal and not standing.holds("use_schema"):
        return False
    if SELF in owned:
        return True
    if rule.blocked_by & standing.denied:
        return False
    return any(all(map(standing.holds, needed)) for needed in rule.sufficient)
