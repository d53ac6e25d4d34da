"""What stays of a removed member (docs/authorization.md, rule 9): the roles and groups by which a DENY reaches them.

They stay stored where they are. Whoever is no member has nothing by them, and has them again when added, so that no
DENY is shed by leaving and coming back; taking such a link away asks authority to lift what it carries.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from django.db.models import Exists, OuterRef, QuerySet

from authz import operations, policy
from authz.actor import Actor
from authz.models import Grant, Member, unended
from authz.services.changing import enter
from authz.services.publishing import GroupRole, GroupUser, UserRole
from metalake.lineage import Located
from metalake.privileges import Effect


class Kept(NamedTuple):
    """A former member by name, the roles held directly and the groups that they are in, in order."""

    name: str
    roles: list[str]
    groups: list[str]


def end_free_links(top: Located, user_id: int, now: datetime) -> dict[str, list[str]]:
    """End the links of a user in the metalake that carry no DENY, now or later; returns those that stay, by name."""
    roles, groups = _roles(top).filter(user_id=user_id), _groups(top).filter(user_id=user_id)
    roles.filter(~_role_denies(now)).delete()
    groups.filter(~_group_denies(now)).delete()
    left = {
        "roles": sorted(roles.values_list("group__role__name", flat=True)),
        "groups": sorted(groups.values_list("group__name", flat=True)),
    }
    return {sort: names for sort, names in left.items() if names}


def list_former_members(actor: Actor, metalake: str) -> list[Kept]:
    """Former members and what is kept of them, by name; for those who may lift it: who may grant on the metalake."""
    top = enter(actor, metalake)
    policy.require(actor, operations.READ_ROLES, top)
    roles = _of_former(top, _roles(top)).filter(_role_denies(actor.moment))
    groups = _of_former(top, _groups(top)).filter(_group_denies(actor.moment))
    found: dict[str, Kept] = {}
    for name, role in sorted(roles.values_list("user__username", "group__role__name")):
        found.setdefault(name, Kept(name, [], [])).roles.append(role)
    for name, group in sorted(groups.values_list("user__username", "group__name")):
        found.setdefault(name, Kept(name, [], [])).groups.append(group)
    return sorted(found.values())


def former_users(top: Located, group_id: int) -> list[str]:
    """The former members who are kept in a group, by name."""
    rows = _of_former(top, _groups(top)).filter(group_id=group_id)
    return sorted(rows.values_list("user__username", flat=True))


def former_holder(top: Located, name: str) -> Member | None:
    """A former member of that name who still holds a role directly, as a member who is disabled: it is no row."""
    link = _of_former(top, _roles(top)).filter(user__username=name).select_related("user").first()
    return link and Member(metalake_id=top.id, user=link.user, enabled=False)


def _roles(top: Located) -> QuerySet:
    return UserRole.objects.filter(group__role__parent_id=top.id)


def _groups(top: Located) -> QuerySet:
    return GroupUser.objects.filter(group__metalake_id=top.id)


def _of_former(top: Located, links: QuerySet) -> QuerySet:
    return links.filter(~Exists(Member.objects.filter(metalake_id=top.id, user_id=OuterRef("user_id"))))


def _role_denies(now: datetime, role: str = "group_id") -> Exists:
    """Whether the role of a row carries a DENY; `role` is the guardian group of it."""
    return Exists(Grant.objects.filter(unended(now), effect=Effect.DENY.value, group_id=OuterRef(role)))


def _group_denies(now: datetime) -> Exists:
    held = GroupRole.objects.filter(group_id=OuterRef("group_id"))
    return Exists(held.filter(_role_denies(now, "role__group_id")))
