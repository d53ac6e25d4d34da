"""What DENYs still block although the changes allow it, and by which role, if the caller may read that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from access.explain import reach
from access.explain.permissions import Redactor, reads_access
from access.explain.reasons import mentioned
from access.history.current import Now
from access.plans.blast_report import SHOWN, Refused
from access.plans.blast_tree import Node
from authz import operations
from authz.actor import Actor
from authz.models import Role
from authz.objects import by_ids
from authz.policy import Rights
from authz.snapshot import ALLOWS, DENY_SHIFT
from metalake.full_names import dotted
from metalake.kinds import CONTAINERS
from metalake.lineage import Located
from metalake.privileges import Privilege

MOST = 1000  # objects that are looked up


class Denied(NamedTuple):
    """A DENY of a role on object `carrier`, which blocks something on object `on`, at or below it."""

    on: int
    carrier: int
    role: int
    privilege: Privilege


class Denials:
    """Collects what stays denied: `noted` are the privileges that each DENY blocks, and for which users."""

    def __init__(self) -> None:
        self.noted: dict[Denied, tuple[set[Privilege], set[str]]] = {}
        self._known: dict[tuple, frozenset[Privilege]] = {}

    def stay(self, node: Node, before: int, after: int, above: frozenset[str], is_owner: bool) -> frozenset[Privilege]:
        """The privileges that these masks would add but for DENYs."""
        key = node.kind, node.catalog_type, before, after, above, is_owner
        if key not in self._known:
            free, was = (usable(node, mask & ALLOWS, above, is_owner) for mask in (after, before))
            self._known[key] = frozenset(free - was - usable(node, after, above, is_owner))
        return self._known[key]

    def note(
        self, node: Node, privileges: Iterable[Privilege], masks: Mapping[int, Mapping[int, int]], names: list[str]
    ) -> None:
        """Note the nearest DENY that blocks each privilege on an object; `masks` are of roles, by object."""
        for privilege in privileges:
            denied = next(_denying(node, privilege, masks))
            privileges_of, users = self.noted.setdefault(denied, (set(), set()))
            privileges_of.add(privilege)
            users.update(names)


def _denying(node: Node, privilege: Privilege, masks: Mapping[int, Mapping[int, int]]) -> Iterator[Denied]:
    for denied in reversed(mentioned(operations.use_of(privilege, node.kind))):
        carrier: Node | None = node
        while carrier is not None:
            for role, on in masks.items():
                if on.get(carrier.id, 0) >> DENY_SHIFT & denied.bit:
                    yield Denied(node.id, carrier.id, role, denied)
            carrier = carrier.parent


def usable(node: Node, mask: int, above: frozenset[str], is_owner: bool) -> set[Privilege]:
    """What a member may use with this mask; `above` are the kinds of the ancestors they own."""
    owned = above | {node.kind.value, operations.SELF} if is_owner else above
    return set(reach.usable(Rights(True, mask, owned), node.kind, node.catalog_type))


def named(
    actor: Actor, top: Located, denials: Mapping[Denied, tuple[set[Privilege], set[str]]], roles: Mapping[int, str]
) -> tuple[list[Refused], int]:
    """The first few by name, and how many there are; `roles` are the names of roles that are not stored yet."""
    if not denials:
        return [], 0
    located = by_ids(sorted({denied.on for denied in denials})[:MOST])
    lineages = {id: {node.id for node in on.nodes} for id, on in located.items() if reads_access(actor, on)}
    known = [denied for denied in denials if denied.carrier in lineages.get(denied.on, ())]  # unless moved meanwhile
    known.sort(key=lambda denied: (located[denied.on].full_name, denied.privilege, denied.role))
    first = known[:SHOWN]
    names = dict(Role.objects.filter(pk__in=[denied.role for denied in first]).values_list("pk", "name")) | dict(roles)
    state = Now(top)
    some = []
    for denied in first:
        on, (privileges, users) = located[denied.on], denials[denied]
        sight = Redactor(actor, state, on)
        by = f"role {names.get(denied.role, '')} denies {denied.privilege}"
        by += "" if denied.carrier == denied.on else f" on {sight.named(sight.at(denied.carrier))}"
        some.append(
            Refused(
                denied.on,
                on.kind,
                dotted(on.full_name),
                tuple(sorted(privileges)),
                names.get(denied.role, ""),
                f"{sight.named(on)}{' and everything below it' if on.kind in CONTAINERS else ''}: {by}",
                len(users),
                tuple(sorted(users)[:SHOWN]),
            )
        )
    return some, len(known)
