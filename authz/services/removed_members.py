"""The links of removed members that stay stored (docs/authorization.md, rule 9): roles and groups that carry a DENY.

A non-member has no rights by them. Whoever is added again has them again, so that nobody sheds a DENY by leaving and
coming back; removing such a link takes the right to lift its DENY.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from django.db.models import Exists, OuterRef, QuerySet

from authz import operations, policy
from authz.actor import Actor
from authz.models import Grant, Member, unended
from authz.services.change import enter
from authz.services.snapshot_changes import GroupRole, GroupUser, UserRole
from metalake.lineage import Located
from metalake.privileges import Effect


class FormerMember(NamedTuple):
    """A former member by name, with the roles still held directly and the groups they are still in, sorted."""

    name: str
    roles: list[str]
    groups: list[str]


def end_free_links(top: Located, user_id: int, now: datetime) -> dict[str, list[str]]:
    """Delete a user's links in the metalake that carry no DENY, now or later; returns the names of those that stay."""
    roles, groups = _roles(top).filter(user_id=user_id), _groups(top).filter(user_id=user_id)
    roles.filter(~_role_denies(now)).delete()
    groups.filter(~_group_denies(now)).delete()
    left = {
        "roles": sorted(roles.values_list("group__role__name", flat=True)),
        "groups": sorted(groups.values_list("group__name", flat=True)),
    }
    return {sort: names for sort, names in left.items() if names}


def list_former_members(actor: Actor, metalake: str) -> list[FormerMember]:
    """Former members with the links that stay, by name; for those who may read every role of the metalake."""
    top = enter(actor, metalake)
    policy.require(actor, operations.READ_ROLES, top)
    roles = _of_former(top, _roles(top)).filter(_role_denies(actor.moment))
    groups = _of_former(top, _groups(top)).filter(_group_denies(actor.moment))
    former: dict[str, FormerMember] = {}
    for name, role in sorted(roles.values_list("user__username", "group__role__name")):
        former.setdefault(name, FormerMember(name, [], [])).roles.append(role)
    for name, group in sorted(groups.values_list("user__username", "group__name")):
        former.setdefault(name, FormerMember(name, [], [])).groups.append(group)
    return sorted(former.values())


def former_users(top: Located, group_id: int) -> list[str]:
    """The names of the former members who are still in a group."""
    rows = _of_former(top, _groups(top)).filter(group_id=group_id)
    return sorted(rows.values_list("user__username", flat=True))


def former_holder(top: Located, name: str) -> Member | None:
    """A former member of that name who still holds a role directly, as an unsaved row of a disabled member."""
    link = _of_former(top, _roles(top)).filter(user__username=name).select_related("user").first()
    return link and Member(metalake_id=top.id, user=link.user, enabled=False)


def _roles(top: Located) -> QuerySet:
    return UserRole.objects.filter(group__role__parent_id=top.id)


def _groups(top: Located) -> QuerySet:
    return GroupUser.objects.filter(group__metalake_id=top.id)


def _of_former(top: Located, links: QuerySet) -> QuerySet:
    return links.filter(~Exists(Member.objects.filter(metalake_id=top.id, user_id=OuterRef("user_id"))))


def _role_denies(now: datetime, role: str = "group_id") -> Exists:
    """Whether the role of a row carries a DENY; `role` is the row's field with the role's guardian group."""
    return Exists(Grant.objects.filter(unended(now), effect=Effect.DENY.value, group_id=OuterRef(role)))


def _group_denies(now: datetime) -> Exists:
    links = GroupRole.objects.filter(group_id=OuterRef("group_id"))
    return Exists(links.filter(_role_denies(now, "role__group_id")))
