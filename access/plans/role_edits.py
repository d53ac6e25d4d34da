"""What an edit of a role means: the changes of grants that lead from what it holds to what was chosen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from access.explain.queries import Place
from access.plans.desired import Change
from authz.services.grant_entries import Given
from authz.services.roles import RoleRecord
from metalake.privileges import Privilege


class Edit(NamedTuple):
    """How a privilege is to be given on an object; None: not at all."""

    on: Place
    privilege: Privilege
    given: Given | None


def changes_of_edits(role: RoleRecord, edits: Iterable[Edit]) -> list[Change]:
    """The changes that make the edits; what was not edited stays. What is so already is no change."""
    standing = {(on.kind, on.full_name): on.entries for on in role.grants}
    changes = []
    for on, privilege, given in edits:
        there = standing.get((on.kind, on.full_name), {}).get(privilege)
        if there == given:
            continue
        if there is not None:
            changes.append(Change("revoke", role.name, privilege, there, on=(on.kind, on.full_name)))
        if given is not None:
            changes.append(Change("grant", role.name, privilege, given, on=(on.kind, on.full_name)))
    return changes
