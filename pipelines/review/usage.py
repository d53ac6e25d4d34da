"""Least privilege: the fewest grants that cover what a role's holders did, and how far each could be narrowed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from pipelines.review.grants import ALLOW, Given, Needs, Used
from pipelines.review.regions import Lineage


class Need(NamedTuple):
    """The lowest common ancestor of all objects that a grant was used for, and the number of uses."""

    narrowest: Lineage
    uses: int

    def and_(self, other: Need) -> Need:
        return Need(common(self.narrowest, other.narrowest), self.uses + other.uses)


def common(one: Lineage, other: Lineage) -> Lineage:
    """The common ancestors of both."""
    length = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return one[:length]


def needs(
    grants: Collection[Given],
    uses: Iterable[Used],
    roles: Mapping[str, Collection[int]],
    operations: Mapping[str, Needs],
) -> dict[Given, Need]:
    """The grants that cover the uses of their roles' holders; `roles` has the roles of each user.

    Of several grants of a privilege that cover an object, the topmost is chosen: it covers the others' objects too, so
    the set is minimal. A use allowed by other roles counts for the grants that this role has.
    """
    by_place: dict[tuple[int, int, str], Given] = {}
    for grant in grants:
        if grant.effect == ALLOW:
            by_place[grant.role, grant.on[-1], grant.privilege] = grant
    needed: dict[Given, Need] = {}
    for use in uses:
        operation = operations.get(use.operation)
        for role in roles.get(use.user, ()) if operation else ():
            assert operation is not None
            for grant in _covering(by_place, role, use.on, operation):
                need = Need(use.on, 1)
                needed[grant] = needed[grant].and_(need) if grant in needed else need
    return needed


def _covering(by_place: Mapping[tuple[int, int, str], Given], role: int, on: Lineage, operation: Needs) -> list[Given]:
    """The grants of a role that allow an operation, or contribute to it."""
    has: dict[str, Given] = {}
    for privilege in operation.privileges:
        grant = next((by_place[role, id, privilege] for id in on if (role, id, privilege) in by_place), None)
        if grant is not None:
            has[privilege] = grant
    whole = next((some for some in operation.sufficient if some and some <= has.keys()), None)
    wanted = operation.traversal | (whole if whole is not None else has.keys())
    return [grant for privilege, grant in has.items() if privilege in wanted]
