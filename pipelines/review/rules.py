"""The authorization rules, as exported by the server, and their evaluation.

A client's own evaluator: it shares no code with the server's, so that each finds the other's faults.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

METALAKE, CATALOG, SCHEMA, SELF = "metalake", "catalog", "schema", "self"
CONTAINERS = (METALAKE, CATALOG, SCHEMA)


@dataclass(frozen=True)
class Rule:
    """What using one privilege on an object of one kind takes.

    `owners` may use it anyway: of the metalake, catalog, schema or of the object itself. `traversal` names the
    containers whose use it takes. Any one set of `sufficient` is enough; a DENY of `blocked_by` blocks all but owners.
    """

    privilege: str
    kind: str
    owners: frozenset[str]
    traversal: tuple[str, ...]
    sufficient: tuple[frozenset[str], ...]
    blocked_by: frozenset[str]
    family: str | None = None  # the only type of catalog that the privilege applies in


@dataclass(frozen=True)
class Standing:
    """What one principal has on an object: allowed and denied on its lineage, and the kinds that they own on it."""

    allowed: frozenset[str] = frozenset()
    denied: frozenset[str] = frozenset()
    owned: frozenset[str] = frozenset()

    def holds(self, privilege: str) -> bool:
        return privilege in self.allowed and privilege not in self.denied


def rules_in(answer: Iterable[Mapping[str, Any]]) -> list[Rule]:
    """The rules as the server's endpoint tells them."""
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
    """Whether the standing suffices, by the order in which ownership, traversal and privileges are asked."""
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
