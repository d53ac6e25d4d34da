"""Becoming an owner: DENY does not cut ownership, so it takes who may lift the DENYs against the new owner.

Source: docs/authorization.md, rule 8.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Protocol

from django.db.models import Q, QuerySet

from authz import operations, policy
from authz.actor import Actor
from authz.models import Grant, Group, unended
from authz.objects import batches, by_ids
from authz.services.authority import may_lift
from authz.services.snapshot_changes import GroupUser
from authz.snapshot import Snapshot
from metalake.errors import Forbidden
from metalake.lineage import Located
from metalake.models import Securable, below
from metalake.privileges import Effect

Party = tuple[int | None, int | None]  # a user's id or a group's


class _Owned(Protocol):
    """A node, or a row of an object or of a reservation."""

    @property
    def owner_user_id(self) -> int | None: ...
    @property
    def owner_group_id(self) -> int | None: ...


def party_of(owned: _Owned) -> Party:
    """The owner."""
    return owned.owner_user_id, owned.owner_group_id


def is_party(actor: Actor, party: Party) -> bool:
    user_id, group_id = party
    return user_id == actor.id if user_id is not None else group_id is not None and group_id in actor.groups


def roles_of(snapshot: Snapshot, party: Party) -> set[int]:
    """The roles of a user, or of a group and everybody who is stored in it; claims of tokens are not known here."""
    user_id, group_id = party
    if user_id is not None:
        return set(snapshot.roles_of(user_id))
    assert group_id is not None
    users = GroupUser.objects.filter(group_id=group_id).values_list("user_id", flat=True)
    return {role for user in users for role in snapshot.roles_of(user)}.union(snapshot.group_roles.get(group_id, ()))


def escapes_deny(actor: Actor, roles: Iterable[int], owned: QuerySet[Securable]) -> bool:
    """Whether owning these objects would free from a DENY of these roles that the actor may not lift.

    That is one on such an object, above it or below it. DENYs of a few roles are few, so it begins with them.
    """
    denied = Grant.objects.filter(unended(actor.moment), effect=Effect.DENY.value)
    for some in batches(roles):
        ids = denied.filter(group__role__in=some).values_list("content_object_id", flat=True)
        for on in by_ids(ids.distinct()).values():
            touched = Q(pk__in=[node.id for node in on.nodes]) | below(on.lineage)
            if not may_lift(actor, on) and owned.filter(touched).exists():
                return True
    return False


def require_handing(actor: Actor, target: Located, to: Party) -> None:
    """Raise Forbidden if handing the object to this owner would shed a DENY that the actor may not lift.

    Whoever owns something above it already sheds nothing.
    """
    above = {party_of(node) for node in target.nodes[:-1]}
    groups = () if to[0] is None else actor.policy.groups_of(to[0])
    if to in above or any((None, group) in above for group in groups):
        return
    if escapes_deny(actor, roles_of(actor.policy, to), Securable.objects.filter(pk=target.id)):
        raise _escaped("Handing", target, actor)


def require_change_of(actor: Actor, top: Located, group: Group, roles: Collection[int]) -> None:
    """Raise Forbidden unless the actor may say who is in a group that holds these roles and owns what it owns."""
    if group.pk == top.metalake.owner_group_id:
        # Otherwise MANAGE_GRANTS on the metalake would let somebody make themselves its owner.
        policy.require(actor, operations.OWN_METALAKE, top)
    elif roles or owns_anything(group.pk):
        policy.require(actor, operations.ASSIGN_ROLES, top)


def require_joining(actor: Actor, group: Group, users: Collection[int]) -> None:
    """Raise Forbidden if a DENY against one of these users would be shed by owning what the group owns."""
    owned = Securable.objects.filter(owner_group_id=group.pk)
    roles = {role for user in users for role in actor.policy.roles_of(user)}
    if roles and owned.exists() and escapes_deny(actor, roles, owned):
        raise Forbidden(
            f"Group {group.name} owns something, and joining it would shed a DENY that {actor.name} may not lift.",
            kind="group",
        )


def require_no_escape(actor: Actor, target: Located, home: Located) -> None:
    """Raise Forbidden if a move to `home` would shed a DENY that the actor may not lift.

    That is one of a former parent, or one against who owns `home` or a schema above it, and nothing that the object lay
    below before.
    """
    home_ids = {node.id for node in home.nodes}
    former_parents = [node.id for node in target.nodes[:-1] if node.id not in home_ids]
    denied = Grant.objects.filter(unended(actor.moment), content_object__in=former_parents, effect=Effect.DENY.value)
    carriers = set(denied.values_list("content_object_id", flat=True))
    for depth, node in enumerate(target.nodes):
        if node.id in carriers and not may_lift(actor, Located(nodes=target.nodes[: depth + 1])):
            raise _escaped("Moving", target, actor)
    former = {party_of(node) for node in target.nodes}
    for party in {party_of(node) for node in home.nodes} - former:
        if escapes_deny(actor, roles_of(actor.policy, party), Securable.objects.filter(pk=target.id)):
            raise _escaped("Moving", target, actor)


def _escaped(act: str, target: Located, actor: Actor) -> Forbidden:
    named = f"{target.kind.replace('_', ' ')} {'.'.join(target.full_name)}"
    return Forbidden(f"{act} {named} would shed a DENY that {actor.name} may not lift.", kind=target.kind)


_owning: list[Callable[[int], bool]] = []


def owns_with(owns: Callable[[int], bool]) -> None:
    """Register a function that says whether a group owns something that is no object."""
    if owns not in _owning:
        _owning.append(owns)


def owns_anything(group_id: int) -> bool:
    return Securable.objects.filter(owner_group_id=group_id).exists() or any(owns(group_id) for owns in _owning)
