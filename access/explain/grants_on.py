"""Grants on an object and its ancestors, from the policy in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from access.explain.reach import fits
from authz.snapshot import Snapshot, mask_of
from metalake.kinds import Kind, grantable_on
from metalake.lineage import Located
from metalake.privileges import Effect, Privilege

TRAVERSED = (Privilege.USE_CATALOG, Privilege.USE_SCHEMA)


class Granted(NamedTuple):
    """An unexpired grant: of which role, on which object of the lineage (0 is the metalake).

    `starts` is in seconds since 1970, 0 for a grant without a start time.
    """

    role_id: int
    depth: int
    privilege: Privilege
    effect: Effect
    starts: float = 0

    def is_ahead(self, now: float) -> bool:
        return self.starts > now


Sorted = dict[tuple[Effect, Privilege], dict[int, list[Granted]]]
"""The grants by effect and privilege, then by role; each role's nearest to the object first."""


def bearing_on(target: Located, catalog_type: str | None) -> list[Privilege]:
    """The privileges that apply to the target, and those required to reach it."""
    kinds = {Kind(node.kind) for node in target.nodes}
    return [
        privilege
        for privilege in Privilege
        if (target.kind in grantable_on(privilege) and fits(privilege, catalog_type))
        or (privilege in TRAVERSED and kinds & grantable_on(privilege))
    ]


def granted_on(target: Located, policy: Snapshot, privileges: Collection[Privilege], now: float) -> Sorted:
    """Grants of these privileges on the target and its ancestors that have not expired at that moment."""
    in_order: Sorted = defaultdict(lambda: defaultdict(list))
    for grant in sorted(_granted(target, policy, privileges, now), key=lambda grant: -grant.depth):
        in_order[grant.effect, grant.privilege][grant.role_id].append(grant)
    return in_order


def _granted(target: Located, policy: Snapshot, privileges: Collection[Privilege], now: float) -> Iterator[Granted]:
    depths = {node.id: depth for depth, node in enumerate(target.nodes)}
    ids = depths.keys()
    pairs_of: dict[int, list[tuple[Effect, Privilege]]] = {}
    for role, masks in policy.grants.items():
        if masks.keys().isdisjoint(ids):
            continue
        for id in ids & masks.keys():
            mask = masks[id]
            if mask not in pairs_of:
                pairs_of[mask] = list(_pairs(mask, privileges))
            for effect, privilege in pairs_of[mask]:
                yield Granted(role, depths[id], privilege, effect)
    for role, timed in policy.timed.items():
        for id in ids & timed.keys():
            for span in timed[id]:
                if span.ends > now:
                    for effect, privilege in _pairs(span.mask, privileges):
                        yield Granted(role, depths[id], privilege, effect, span.starts)


def _pairs(mask: int, privileges: Iterable[Privilege]) -> Iterator[tuple[Effect, Privilege]]:
    for privilege in privileges:
        for effect in Effect:
            if mask & mask_of(privilege, effect):
                yield effect, privilege
