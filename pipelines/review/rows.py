"""The rows of a review about grants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pipelines.review.grants import ALLOW, Finding, Given, idle
from pipelines.review.state import Grant, World
from pipelines.review.usage import Need

Row = tuple[Any, ...]


def grant_rows(
    world: World, grants: Sequence[Grant], in_force: Collection[Grant], last: Mapping[Given, float], cutoff: float
) -> list[Row]:
    """A row for each grant. Unused: an ALLOW in force, granted before `cutoff` and not used since."""
    findings = {finding.grant: finding for finding in idle(each.given for each in grants)}
    by_given = {each.given: each for each in grants}
    holders = Counter(role for user in world.members for role in world.roles_of(user))
    return [
        (
            world.objects[given.role].name,
            given.role,
            grant.on.lineage[-1],
            grant.on.kind,
            grant.on.name,
            given.privilege,
            given.effect,
            grant.grantor,
            *map(_moment, (grant.granted, given.starts, given.ends)),
            holders[given.role],
            _moment(last.get(given)),
            given.effect == ALLOW
            and grant in in_force
            and max(grant.granted, given.starts or 0.0) <= cutoff
            and last.get(given, 0.0) < cutoff,
            *_verdict(findings.get(given), by_given),
        )
        for grant in grants
        for given in [grant.given]
    ]


def _verdict(finding: Finding | None, by_given: Mapping[Given, Grant]) -> Row:
    if finding is None:
        return None, None, None, None
    on = by_given[finding.by].on
    return "shadowed" if finding.is_shadowed else "redundant", on.lineage[-1], on.kind, on.name


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def need_rows(world: World, needs: Mapping[Given, Need]) -> list[Row]:
    rows = []
    for given, need in needs.items():
        on, narrowest = world.named(given.on[-1]), world.named(need.narrowest[-1])
        if on is not None and narrowest is not None:
            places = (on.lineage[-1], on.kind, on.name, narrowest.lineage[-1], narrowest.kind, narrowest.name)
            rows.append((world.objects[given.role].name, given.role, given.privilege, *places, need.uses))
    return rows
