"""guardian's readers for securables: the privileges in effect according to the policy evaluator.

For a user: what their roles currently ALLOW on the object or above it and no role DENYs; for a role's group, the same
for that role alone. Neither ownership nor superuser status counts as a privilege.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import and_, or_
from typing import Any

from django.contrib.auth.models import Group as RoleGroup
from django.contrib.contenttypes.models import ContentType
from django.db.models import F, Model, Q, QuerySet
from django.db.models.expressions import RawSQL
from django.utils import timezone

from authz import snapshot
from authz.actor import Actor
from authz.callers.identity import actor_of
from authz.models import Grant, Role, User, in_force
from authz.policy import Rights
from authz.snapshot import Snapshot
from metalake.models import Securable
from metalake.privileges import Effect, Privilege


def content_type_of(obj: Model | type[Model]) -> ContentType:
    """For guardian's setting GET_CONTENT_TYPE: all securables share the content type of their base model."""
    model = obj if isinstance(obj, type) else type(obj)
    return ContentType.objects.get_for_model(Securable if issubclass(model, Securable) else obj)


def privileges_of(holder: Any, on: Securable) -> list[str]:
    """The sorted names of privileges in effect for a user or a role's group; none for other holders."""
    lineage = on.lineage_ids
    if isinstance(holder, User):
        return sorted(_effective(actor_of(holder), lineage)) if holder.is_active else []
    if isinstance(holder, RoleGroup):
        role = Role.objects.filter(group=holder).values_list("pk", flat=True)
        return sorted(_effective_alone(snapshot.latest(), role, lineage))
    return []


def _effective(actor: Actor, lineage: Sequence[int]) -> list[Privilege]:
    """The privileges in effect for the actor on the object with this lineage; none for a non-member."""
    mask = actor.mask(lineage) if actor.is_member(lineage[0]) else 0
    return Rights(member=True, mask=mask, owned=frozenset()).effective()


def _effective_alone(of: Snapshot, roles: Iterable[int], lineage: Sequence[int]) -> list[Privilege]:
    """The same for a member with these roles alone, now."""
    return Rights(member=True, mask=of.mask(roles, lineage, time.time()), owned=frozenset()).effective()


def objects_of(holder: Any, names: Sequence[str], rows: QuerySet, *, any_of: bool = False) -> QuerySet:
    """The securables among `rows` on which all of these privileges are in effect for the holder, or any of them."""
    roles = _roles_of(holder)
    if not roles or not names:
        return rows.none()
    wanted = [_in_effect(roles, Privilege(name)) if name in set(Privilege) else Q(pk__in=[]) for name in names]
    return rows.filter(reduce(or_ if any_of else and_, wanted))


def users_with(on: Securable, names: Sequence[str] | None = None) -> dict[int, list[str]]:
    """The enabled users with any privilege in effect, or any of `names`: user id -> all privileges in effect."""
    now = snapshot.latest()
    members = now.members.get(on.lineage_ids[0], frozenset())
    active = User.objects.filter(memberships__metalake_id=on.lineage_ids[0], is_active=True)
    privileges: dict[int, list[str]] = {
        id: sorted(_effective(Actor(id, name, now), on.lineage_ids))
        for id, name in active.values_list("pk", "username")
        if id in members
    }
    return _with_any(privileges, names)


def roles_with(on: Securable, names: Sequence[str] | None = None) -> dict[int, list[str]]:
    """The roles with any privilege in effect, or any of `names`: id of the role's group -> all privileges in effect."""
    now = snapshot.latest()
    roles = Role.objects.filter(parent_id=on.lineage_ids[0]).values_list("group_id", "pk")
    privileges: dict[int, list[str]] = {
        group: sorted(_effective_alone(now, [role], on.lineage_ids)) for group, role in roles
    }
    return _with_any(privileges, names)


def _with_any(privileges: dict[int, list[str]], names: Sequence[str] | None) -> dict[int, list[str]]:
    return {
        id: names_there
        for id, names_there in privileges.items()
        if names_there and (names is None or set(names) & set(names_there))
    }


def _roles_of(holder: Any) -> list[int]:
    """The roles that count for the holder: for a user, those in metalakes of which they are a member."""
    if isinstance(holder, RoleGroup):
        return list(Role.objects.filter(group=holder).values_list("pk", flat=True))
    if not isinstance(holder, User) or not holder.is_active:
        return []
    actor = actor_of(holder)
    roles = Role.objects.filter(pk__in=actor.roles).values_list("pk", "parent_id")
    return [role for role, metalake in roles if actor.is_member(metalake or 0)]


def _in_effect(roles: Sequence[int], privilege: Privilege) -> Q:
    return Q(pk__in=_reached(roles, privilege, Effect.ALLOW)) & ~Q(pk__in=_reached(roles, privilege, Effect.DENY))


def _reached(roles: Sequence[int], privilege: Privilege, effect: Effect) -> RawSQL:
    """The ids of objects with such a grant and of all below them: one lineage index range per grant."""
    granted = Grant.objects.filter(
        in_force(timezone.now()), group__role__in=roles, permission__codename=privilege.value, effect=effect.value
    )
    sql, params = granted.values(scope=F("content_object__lineage")).query.sql_with_params()
    return RawSQL(  # noqa: S611 (Django's own SQL within)
        f"SELECT s.id FROM metalake_securable s JOIN ({sql}) g ON s.lineage >= g.scope AND s.lineage < g.scope || '0'",  # noqa: S608
        params,
    )
