"""The one place that monkeypatches guardian (docs/decisions/guardian.md).

Its readers query one object's rows in SQL, with no setting to change that, so for securables
authz.guardian_adapter.permissions replaces them; other models keep guardian's own. Its writers are managers:
`Grant.objects` is one of ours, and those of its two generic models reject writes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from django.contrib.auth.models import Group, Permission
from django.db.models import Model, QuerySet
from django.db.models.signals import m2m_changed
from django.shortcuts import _get_queryset  # type: ignore[attr-defined]
from guardian import shortcuts
from guardian.core import ObjectPermissionChecker
from guardian.models import GroupObjectPermission, UserObjectPermission

from authz.guardian_adapter import permissions, writers
from authz.managers import TO_ROLES, ClosedManager, GrantManager, refuse
from authz.models import User
from metalake.models import Securable
from metalake.privileges import Privilege


def replace_guardian() -> None:
    """Replace guardian's readers and managers; call it once, at startup."""
    GrantManager.writer = writers
    for model in (UserObjectPermission, GroupObjectPermission):
        model.add_to_class("objects", ClosedManager())
        setattr(model, "save", _refused)  # noqa: B010
    for through in (User.user_permissions.through, Group.permissions.through):
        m2m_changed.connect(_no_privilege_on_nothing, sender=through, dispatch_uid=f"closed {through.__name__}")
    for method in (_has_perm, _get_perms, _get_user_perms, _get_group_perms, _prefetch_perms):
        _replace_method(method.__name__[1:], method)
    for shortcut in (_get_objects_for_user, _get_objects_for_group, _get_users_with_perms, _get_groups_with_perms):
        _replace_function(shortcut.__name__[1:], shortcut)


def _refused(*args: Any, **kwargs: Any) -> None:
    refuse(TO_ROLES)


def _no_privilege_on_nothing(action: str, instance: Any, pk_set: set[int] | None, **more: Any) -> None:
    """Reject a permission without an object: it would apply in every metalake."""
    if action != "pre_add":
        return
    named = [instance] if isinstance(instance, Permission) else Permission.objects.filter(pk__in=pk_set or ())
    own = permissions.content_type_of(Securable).pk
    if any(permission.content_type_id == own for permission in named):
        refuse(TO_ROLES)


def _replace_method(name: str, answer: Callable) -> None:
    """Patch a method of guardian's checker; `answer` gets the original method, the checker and the arguments."""
    own = getattr(ObjectPermissionChecker, name)

    @wraps(own)
    def replaced(self: ObjectPermissionChecker, *asked: Any, **how: Any) -> Any:
        return answer(own, self, *asked, **how)

    setattr(ObjectPermissionChecker, name, replaced)


def _replace_function(name: str, answer: Callable) -> None:
    """Patch a function in each of guardian's modules that imports it."""
    own = getattr(shortcuts, name)

    @wraps(own)
    def replaced(*asked: Any, **how: Any) -> Any:
        return answer(own, *asked, **how)

    for place, module in list(sys.modules.items()):
        if place.partition(".")[0] == "guardian" and getattr(module, name, None) is own:
            setattr(module, name, replaced)


# The checker, called by get_perms, get_user_perms, get_group_perms and the template tag


def _has_perm(own: Callable, self: ObjectPermissionChecker, perm: str, obj: Any) -> bool:
    if not isinstance(obj, Securable):
        return own(self, perm, obj)
    return perm.rpartition(".")[2] in self.get_perms(obj)


def _get_perms(own: Callable, self: ObjectPermissionChecker, obj: Any) -> list[str]:
    return permissions.privileges_of(self.user or self.group, obj) if isinstance(obj, Securable) else own(self, obj)


def _get_user_perms(own: Callable, self: ObjectPermissionChecker, obj: Any) -> QuerySet:
    """Nothing on a securable: privileges are granted to roles only."""
    return _codenames([]) if isinstance(obj, Securable) else own(self, obj)


def _get_group_perms(own: Callable, self: ObjectPermissionChecker, obj: Any) -> QuerySet:
    return _codenames(self.get_perms(obj)) if isinstance(obj, Securable) else own(self, obj)


def _prefetch_perms(own: Callable, self: ObjectPermissionChecker, objects: Any) -> Any:
    """Nothing to prefetch for securables: the policy is in memory."""
    model = objects.model if isinstance(objects, QuerySet) else type(next(iter(objects), None))
    return True if issubclass(model, Securable) else own(self, objects)


def _codenames(names: Sequence[str]) -> QuerySet:
    own = permissions.content_type_of(Securable)
    return Permission.objects.filter(content_type=own, codename__in=names).values_list("codename", flat=True)


# The shortcuts


def _get_objects_for_user(
    own: Callable,
    user: Any,
    perms: Any,
    klass: Any = None,
    use_groups: bool = True,
    any_perm: bool = False,
    with_superuser: bool = True,
    accept_global_perms: bool = True,
) -> QuerySet:
    names, rows = _asked(perms, klass)
    if rows is None:
        return own(user, perms, klass, use_groups, any_perm, with_superuser, accept_global_perms)
    return permissions.objects_of(user if use_groups else None, names, rows, any_of=any_perm)


def _get_objects_for_group(
    own: Callable, group: Any, perms: Any, klass: Any = None, any_perm: bool = False, accept_global_perms: bool = True
) -> QuerySet:
    names, rows = _asked(perms, klass)
    if rows is None:
        return own(group, perms, klass, any_perm, accept_global_perms)
    return permissions.objects_of(group, names, rows, any_of=any_perm)


def _asked(perms: Any, klass: Any) -> tuple[list[str], QuerySet | None]:
    """The permission names without their app, and the rows to filter; None if these are not securables."""
    given = [perms] if isinstance(perms, str) else list(perms)
    names = [name.rpartition(".")[2] for name in given]
    if klass is not None:
        rows = _get_queryset(klass)
        return names, rows if issubclass(rows.model, Securable) else None
    ours = bool(given) and all(name.removeprefix("metalake.") in set(Privilege) for name in given)
    return names, Securable.objects.all() if ours else None


def _get_users_with_perms(
    own: Callable,
    obj: Model,
    attach_perms: bool = False,
    with_superusers: bool = False,
    with_group_users: bool = True,
    only_with_perms_in: list[str] | None = None,
) -> Any:
    if not isinstance(obj, Securable):
        return own(obj, attach_perms, with_superusers, with_group_users, only_with_perms_in)
    privileges = permissions.users_with(obj, only_with_perms_in) if with_group_users else {}
    return _people(User.objects.filter(pk__in=privileges), privileges, attach_perms)


def _get_groups_with_perms(
    own: Callable, obj: Model, attach_perms: bool = False, only_with_perms_in: list[str] | None = None
) -> Any:
    if not isinstance(obj, Securable):
        return own(obj, attach_perms, only_with_perms_in)
    privileges = permissions.roles_with(obj, only_with_perms_in)
    return _people(Group.objects.filter(pk__in=privileges), privileges, attach_perms)


def _people(rows: QuerySet, privileges: dict[int, list[str]], attach: bool) -> QuerySet | dict[Any, list[str]]:
    return {row: privileges[row.pk] for row in rows} if attach else rows
