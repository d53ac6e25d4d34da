"""Who may give a privilege and who may lift a DENY (docs/authorization.md, rule 8)."""

from __future__ import annotations

from collections.abc import Iterable

from authz import operations, policy
from authz.actor import Actor
from authz.models import Grant, unended
from authz.objects import by_ids
from authz.operations import Operation
from metalake.errors import Forbidden, NotFound
from metalake.kinds import Kind
from metalake.lineage import Located, missing
from metalake.privileges import Effect, Privilege


def require(actor: Actor, operation: Operation, target: Located) -> None:
    """policy.require, with a hidden object reported like a missing one of any kind."""
    try:
        policy.require(actor, operation, target)
    except NotFound:
        raise missing(target.kind, target.full_name, error_kind="object") from None


def require_seen(actor: Actor, target: Located) -> None:
    if not policy.sees(actor, target):
        raise missing(target.kind, target.full_name, error_kind="object")


def require_give(actor: Actor, target: Located, privileges: Iterable[Privilege]) -> None:
    """Raise NotFound or Forbidden unless the actor may grant, and so revoke, these privileges on the target."""
    require(actor, operations.grant_on(target.kind), target)
    for privilege in privileges:
        if not may_pass_on(actor, target, privilege):
            raise Forbidden(f"{actor.name} may not grant {privilege} on {policy.describe(target)}.", kind=target.kind)


def may_give(actor: Actor, target: Located, privilege: Privilege) -> bool:
    """Whether the actor may grant this privilege on this object."""
    return policy.permits(actor, operations.grant_on(target.kind), target) and may_pass_on(actor, target, privilege)


def may_pass_on(actor: Actor, target: Located, privilege: Privilege) -> bool:
    """Whether whoever may grant on the target may grant this, too: MANAGE_GRANTS does not cover two privileges."""
    if privilege not in (Privilege.MANAGE_GRANTS, Privilege.BOOTSTRAP_NAMESPACE):
        return True
    if policy.permits(actor, operations.own(target.kind), target):
        return True
    return privilege is Privilege.MANAGE_GRANTS and policy.permits(actor, operations.GRANT_ON_METALAKE, target.top)


def may_lift(actor: Actor, target: Located) -> bool:
    """Whether the actor may lift a DENY that this object carries: whoever may grant on its parent.

    A metalake has no parent, so its owner lifts a DENY on it.
    """
    if target.kind is Kind.METALAKE:
        return policy.permits(actor, operations.OWN_METALAKE, target)
    above = target.above()
    return policy.permits(actor, operations.grant_on(above.kind), above)


def require_lift(actor: Actor, target: Located) -> None:
    if may_lift(actor, target):
        if target.kind is not Kind.METALAKE:  # there it takes ownership, which no grant gives
            policy.uses(actor, operations.grant_on(target.above().kind), target.above())
        return
    require_seen(actor, target)
    raise Forbidden(f"{actor.name} may not lift a DENY on {policy.describe(target)}.", kind=target.kind)


def require_lift_of_roles(actor: Actor, role_ids: Iterable[int]) -> None:
    """Raise Forbidden unless the actor may lift every DENY in these roles; the error does not name the objects."""
    denied = Grant.objects.filter(unended(actor.moment), group__role__in=list(role_ids), effect=Effect.DENY.value)
    ids = set(denied.values_list("content_object_id", flat=True))
    if ids and not all(may_lift(actor, on) for on in by_ids(ids).values()):
        raise Forbidden(f"{actor.name} may not lift a DENY that the role carries.", kind="role")
