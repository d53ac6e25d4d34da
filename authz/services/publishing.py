"""What snapshots must hear after a change: each function reads what is true now, in one statement."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from authz import snapshot
from authz.models import Group, User
from metalake.privileges import Effect, Privilege

Changes = list[list[Any]]

UserRole = User.groups.through
GroupUser = Group.users.through
GroupRole = Group.roles.through


def roles_of_users(user_ids: Collection[int]) -> Changes:
    """The roles that these users hold directly, in all metalakes."""
    held = UserRole.objects.filter(user_id__in=user_ids, group__role__isnull=False)
    lists = _lists(user_ids, held.values_list("user_id", "group__role"))
    return [snapshot.roles_change("user", user_id, roles) for user_id, roles in lists.items()]


def roles_of_groups(group_ids: Collection[int]) -> Changes:
    lists = _lists(group_ids, GroupRole.objects.filter(group_id__in=group_ids).values_list("group_id", "role_id"))
    return [snapshot.roles_change("group", group_id, roles) for group_id, roles in lists.items()]


def groups_of_users(user_ids: Collection[int]) -> Changes:
    lists = _lists(user_ids, GroupUser.objects.filter(user_id__in=user_ids).values_list("user_id", "group_id"))
    return [snapshot.groups_change(user_id, groups) for user_id, groups in lists.items()]


def grants_of(role_id: int, on: Mapping[int, Mapping[Privilege, Effect]]) -> Changes:
    """What a role's grants are now on each of these securables."""
    return [snapshot.grants_change(role_id, id, _mask(entries)) for id, entries in on.items()]


def _mask(entries: Mapping[Privilege, Effect]) -> int:
    mask = 0
    for privilege, effect in entries.items():
        mask |= snapshot.mask_of(privilege, effect)
    return mask


def _lists(ids: Collection[int], pairs: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
    lists: dict[int, list[int]] = {id: [] for id in ids}
    for left, right in pairs:
        lists[left].append(right)
    return lists
