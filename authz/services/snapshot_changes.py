"""The changes that snapshots need after a write; each function reads the present state in one statement."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from django.utils import timezone

from authz import snapshot
from authz.models import Grant, Group, Role, User, unended

Changes = list[list[Any]]

UserRole = User.groups.through
GroupUser = Group.users.through
GroupRole = Group.roles.through


def roles_of_users(user_ids: Collection[int]) -> Changes:
    """The roles that these users hold directly, in all metalakes."""
    links = UserRole.objects.filter(user_id__in=user_ids, group__role__isnull=False)
    lists = _lists(user_ids, links.values_list("user_id", "group__role"))
    return [snapshot.roles_change("user", user_id, roles) for user_id, roles in lists.items()]


def roles_of_groups(group_ids: Collection[int]) -> Changes:
    lists = _lists(group_ids, GroupRole.objects.filter(group_id__in=group_ids).values_list("group_id", "role_id"))
    return [snapshot.roles_change("group", group_id, roles) for group_id, roles in lists.items()]


def groups_of_users(user_ids: Collection[int]) -> Changes:
    lists = _lists(user_ids, GroupUser.objects.filter(user_id__in=user_ids).values_list("user_id", "group_id"))
    return [snapshot.groups_change(user_id, groups) for user_id, groups in lists.items()]


def grants_of(role: Role, object_ids: Collection[int]) -> Changes:
    """All that a role holds now on each of these securables, with who granted it."""
    on: dict[int, list[dict[str, Any]]] = {id: [] for id in object_ids}
    rows = Grant.objects.filter(unended(timezone.now()), group_id=role.group_id, content_object__in=object_ids)
    for object_id, *entry in rows.values_list("content_object_id", *_ENTRY).order_by("permission__codename"):
        on[object_id].append(_entry(*entry))
    return [snapshot.grants_change(role.pk, id, entries) for id, entries in on.items()]


_ENTRY = ("permission__codename", "effect", "grantor", "granted_at", "starts_at", "ends_at")


def _entry(
    privilege: str, effect: str, grantor: str, granted: datetime, starts: datetime | None, ends: datetime | None
) -> dict[str, Any]:
    entry = {"privilege": privilege, "effect": effect, "grantor": grantor, "granted": granted.isoformat()}
    if starts:
        entry["starts"] = starts.isoformat()
    if ends:
        entry["ends"] = ends.isoformat()
    return entry


def _lists(ids: Collection[int], pairs: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
    lists: dict[int, list[int]] = {id: [] for id in ids}
    for left, right in pairs:
        lists[left].append(right)
    return lists
