"""guardian's writers: they go through the grant services as an explicit actor, or are rejected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.contrib.auth.models import Group as RoleGroup
from django.contrib.auth.models import Permission

from authz.actor import Actor
from authz.managers import RAW, TO_ROLES, refuse
from authz.models import Grant, Role
from authz.objects import by_ids
from authz.services import grants
from metalake.errors import Invalid
from metalake.models import Securable
from metalake.privileges import Privilege, parse_privilege

_acting: ContextVar[Actor | None] = ContextVar("acting", default=None)


@contextmanager
def acting_as(actor: Actor) -> Iterator[None]:
    """A context in which guardian's assign_perm and remove_perm are authorized and audited as this actor."""
    before = _acting.set(actor)
    try:
        yield
    finally:
        _acting.reset(before)


def give(perm: Any, groups: Iterable[Any], objects: Iterable[Any]) -> list[Grant]:
    """ALLOW a privilege on each object to the roles of these groups, all or nothing; returns the grants."""
    asked = _read(perm, groups, objects)
    if asked is None:
        return []
    actor, metalake, privilege, roles, ids = asked
    grants.allow_each(actor, metalake, privilege, roles, ids)
    return _allows(privilege, roles, ids)


def take(perm: Any, groups: Iterable[Any], objects: Iterable[Any]) -> tuple[int, dict[str, int]]:
    """Revoke that ALLOW; returns the counts in the format of Django's delete()."""
    asked = _read(perm, groups, objects)
    if asked is None:
        return 0, {}
    actor, metalake, privilege, roles, ids = asked
    before = len(_allows(privilege, roles, ids))
    grants.take_each(actor, metalake, privilege, roles, ids)
    count = before - len(_allows(privilege, roles, ids))
    return count, {Grant._meta.label: count} if count else {}


def _allows(privilege: Privilege, roles: Iterable[int], ids: Iterable[int]) -> list[Grant]:
    rows = Grant.objects.filter(group__role__in=roles, content_object__in=ids, effect="allow")
    return list(rows.filter(permission__codename=privilege.value).order_by("pk"))


def _read(
    perm: Any, groups: Iterable[Any], objects: Iterable[Any]
) -> tuple[Actor, str, Privilege, list[int], list[int]] | None:
    """The actor, metalake, privilege, role ids and object ids of a call; None if no group or no object is named."""
    named, on = list(groups), list(objects)
    if not named or not on:
        return None
    if not all(isinstance(obj, Securable) for obj in on) or not all(isinstance(who, RoleGroup) for who in named):
        refuse(TO_ROLES)
    actor = _acting.get()
    if actor is None:
        refuse(RAW)
    privilege = parse_privilege(str(perm.codename if isinstance(perm, Permission) else perm).rpartition(".")[2])
    if privilege is None:
        raise Invalid(f"{perm} is no privilege of Metalake.", kind="privilege")
    roles = list(Role.objects.filter(group__in=[who.pk for who in named]).values_list("pk", flat=True))
    if len(roles) < len({who.pk for who in named}):
        refuse(TO_ROLES)
    located = by_ids(obj.pk for obj in on)
    if not located:
        raise Invalid("The objects are gone.", kind="object")
    metalake = next(iter(located.values())).nodes[0].name
    return actor, metalake, privilege, roles, [obj.pk for obj in on]
