"""Our managers in place of guardian's: they read rows the same way, and write only through the services.

Only services may use `Grant.rows`, to write grants.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, NoReturn, Protocol

from django.db import models
from guardian.managers import BaseObjectPermissionManager, GroupObjectPermissionManager

from metalake.errors import Unsupported

RAW = (
    "A grant is written by a service, which asks who grants and keeps audit, history and the policy's epoch: "
    "use authz.services.grants, or guardian's assign_perm and remove_perm within "
    "authz.guardian_adapter.writers.acting_as."
)
TO_ROLES = (
    "Privileges are granted to roles on the objects of a metalake, and to nobody and on nothing else: "
    "grant one to a role's group, and assign the role to a user with authz.services.roles.assign_roles."
)


def refuse(why: str) -> NoReturn:
    raise Unsupported(why, kind="privilege")


class ReadRows(models.QuerySet):
    """A read-only query set: every write method raises Unsupported, including the async ones."""

    why = RAW

    def create(self, *args: Any, **kwargs: Any) -> NoReturn:
        refuse(self.why)

    get_or_create = update_or_create = bulk_create = bulk_update = update = delete = create


class ClosedRows(ReadRows):
    why = TO_ROLES


class Writer(Protocol):
    """Grants and revokes an ALLOW for each role's group on each object, in place of guardian's writers."""

    def give(self, perm: Any, groups: Iterable[Any], objects: Iterable[Any]) -> list[Any]: ...

    def take(self, perm: Any, groups: Iterable[Any], objects: Iterable[Any]) -> tuple[int, dict[str, int]]: ...


class GrantManager(GroupObjectPermissionManager.from_queryset(ReadRows)):  # type: ignore[misc]
    """The manager of group permissions; `writer` is set at startup (authz.guardian_adapter.patches)."""

    writer: ClassVar[Writer]

    def assign_perm(self, perm: Any, user_or_group: Any, obj: Any) -> Any:
        return self.writer.give(perm, [user_or_group], [obj])[0]

    def bulk_assign_perm(self, perm: Any, user_or_group: Any, queryset: Any, ignore_conflicts: bool = False) -> list:
        return self.writer.give(perm, [user_or_group], queryset)

    def assign_perm_to_many(self, perm: Any, users_or_groups: Any, obj: Any, ignore_conflicts: bool = False) -> list:
        return self.writer.give(perm, users_or_groups, [obj])

    def remove_perm(self, perm: Any, user_or_group: Any, obj: Any) -> tuple[int, dict]:
        return self.writer.take(perm, [user_or_group], [obj])

    def bulk_remove_perm(self, perm: Any, user_or_group: Any, queryset: Any) -> tuple[int, dict]:
        return self.writer.take(perm, [user_or_group], queryset)

    def remove_perm_from_many(self, perm: Any, users_or_groups: Any, obj: Any) -> tuple[int, dict]:
        return self.writer.take(perm, users_or_groups, [obj])


class ClosedManager(BaseObjectPermissionManager.from_queryset(ClosedRows)):  # type: ignore[misc]
    """The manager of permissions that Metalake does not support: to users, or on objects other than securables."""

    def assign_perm(self, *args: Any, **kwargs: Any) -> NoReturn:
        refuse(TO_ROLES)

    bulk_assign_perm = assign_perm_to_many = remove_perm = bulk_remove_perm = remove_perm_from_many = assign_perm
