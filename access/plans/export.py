"""Exports the current grants of a metalake or a subtree as a plan file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Any

from django.db.models import Q, QuerySet

from access.plans.desired import Wanted, WantedGrant, WantedRole
from authz import operations, policy
from authz.actor import Actor
from authz.models import Grant, Role, unended
from authz.objects import by_ids, find_object
from authz.services.authority import require
from authz.services.change import enter
from authz.services.grant_entries import Entries, Given
from authz.services.snapshot_changes import GroupRole, UserRole
from metalake.errors import Forbidden, Invalid
from metalake.full_names import dotted
from metalake.kinds import Kind
from metalake.lineage import Located
from metalake.models import below
from metalake.privileges import Effect, Privilege


def export(actor: Actor, metalake: str, subtree: tuple[Kind, str] | None = None) -> Wanted:
    """The current state, sorted. Requires the right to read every role, or for a subtree the right to grant on it."""
    top = enter(actor, metalake)
    scope = scope_of(actor, top, subtree)
    present, located = present_grants(actor, top, scope)
    require_all(actor, scope, located)
    is_whole = scope is top
    users, groups = (holders_of(top, "user"), holders_of(top, "group")) if is_whole else ({}, {})
    return Wanted(
        top.name,
        None if is_whole else (scope.kind, dotted(scope.full_name)),
        [
            WantedRole(
                "",
                name,
                sorted(users.get(id, {}).values()) if is_whole else None,
                sorted(groups.get(id, {}).values()) if is_whole else None,
                _sorted(present.get(id, {}), located),
            )
            for name, id in sorted(roles_of(top).items())
            if is_whole or id in present
        ],
    )


def _sorted(on: dict[int, Entries], located: dict[int, Located]) -> list[WantedGrant]:
    return sorted(
        (WantedGrant("", located[id].kind, dotted(located[id].full_name), entries) for id, entries in on.items()),
        key=lambda grant: (grant.kind != Kind.METALAKE, grant.full_name, grant.kind),
    )


def scope_of(actor: Actor, top: Located, subtree: tuple[Kind, str] | None) -> Located:
    if subtree is None:
        policy.require(actor, operations.READ_ROLES, top)
        return top
    kind, full_name = subtree
    if kind is Kind.METALAKE or kind not in operations.FAMILIES["grant_on"]:
        *some, last = (kind for kind in operations.FAMILIES["grant_on"] if kind is not Kind.METALAKE)
        raise Invalid(f"A subtree is a {', '.join(some)} or {last}; leave it out for all.", kind="object")
    target = find_object(top.name, kind, full_name, actor)
    require(actor, operations.grant_on(target.kind), target)
    return target


def present_grants(
    actor: Actor, top: Located, scope: Located
) -> tuple[dict[int, dict[int, Entries]], dict[int, Located]]:
    """What each role holds on each object in scope, without expired grants, and the objects by id.

    An object dropped between the two queries is in neither.
    """
    rows = Grant.objects.filter(unended(actor.moment), group__role__parent_id=top.id)
    if scope is not top:
        rows = rows.filter(Q(content_object_id=scope.id) | below(scope.lineage, "content_object__lineage"))
    grants = by_role(rows)
    located = by_ids({id for on in grants.values() for id in on})
    return {role: {id: entries for id, entries in on.items() if id in located} for role, on in grants.items()}, located


def by_role(rows: QuerySet[Grant]) -> dict[int, dict[int, Entries]]:
    """The grants by the ids of their roles and objects."""
    grants: dict[int, dict[int, Entries]] = defaultdict(lambda: defaultdict(dict))
    fields = ("group__role", "content_object_id", "permission__codename", "effect", "starts_at", "ends_at")
    for role, on, codename, effect, starts, ends in rows.values_list(*fields).iterator(chunk_size=10_000):
        grants[role][on][Privilege(codename)] = Given(Effect(effect), starts, ends)
    return grants


def require_all(actor: Actor, scope: Located, located: dict[int, Located]) -> None:
    """Raise Forbidden if a DENY on an object in scope stops the caller from reading the grants there."""
    if scope.kind is Kind.METALAKE:
        return
    for target in located.values():
        if not policy.permits(actor, operations.read_access(target.kind), target):
            raise Forbidden(f"{actor.name} may not read every grant in {policy.describe(scope)}.", kind=scope.kind)


def roles_of(top: Located) -> dict[str, int]:
    return dict(Role.objects.filter(parent_id=top.id).values_list("name", "pk"))


def holders_of(
    top: Located, sort: str, roles: Collection[int] | None = None, *, with_former: bool = False
) -> dict[int, dict[int, str]]:
    """The direct holders of these roles or of all (None), as names by id; `sort` is "user" or "group".

    `with_former`: also former members who keep a role because it denies.
    """
    if sort == "user":
        links = UserRole.objects.filter(group__role__parent_id=top.id)
        links = links if with_former else links.filter(user__memberships__metalake_id=top.id)
        links = links if roles is None else links.filter(group__role__in=roles)
        rows: Any = links.values_list("group__role", "user_id", "user__username")
    else:
        of_groups = GroupRole.objects.filter(role__parent_id=top.id)
        of_groups = of_groups if roles is None else of_groups.filter(role__in=roles)
        rows = of_groups.values_list("role_id", "group_id", "group__name")
    holders: dict[int, dict[int, str]] = defaultdict(dict)
    for role, id, name in rows:
        holders[role][id] = name
    return holders
