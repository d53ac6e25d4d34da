"""Granting to roles, and taking back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from authz import operations, policy, snapshot
from authz.models import Grant, Role
from authz.objects import Located, by_ids, find_object, find_objects
from authz.policy import Actor
from authz.services import entries, publishing
from authz.services.authority import may_lift, require_give, require_lift
from authz.services.changing import change, event
from authz.services.entries import Ask, Entries, Held, Pairs
from authz.services.roles import GrantedOn, RoleRecord, find_role_row, located, role_record
from metalake.errors import Forbidden, Invalid
from metalake.events import record
from metalake.names import dotted
from metalake.privileges import Effect, Kind


def grant_privileges(
    actor: Actor, metalake: str, role: str, kind: Kind, full_name: str, privileges: Pairs
) -> RoleRecord:
    """Allow or deny a role privileges on one object; what it holds already stays as it is.

    Raises Invalid where the role holds the opposite: that is revoked first (decision d).
    """
    wanted = entries.read_entries(kind, privileges)

    def act(actor: Actor, top: Located) -> RoleRecord:
        found = find_object(metalake, kind, full_name)
        require_give(actor, found, wanted)
        entries.check_families([(found, wanted)])
        row = find_role_row(top, role)
        held = entries.by_object(entries.held_by(row, found.id)).get(found.id, {})
        for privilege, effect in wanted.items():
            if held.get(privilege, effect) != effect:
                raise Invalid(
                    f"Role {role} holds {held[privilege]} {privilege} there: revoke it before you {effect} it.",
                    kind="privilege",
                )
        fresh = {privilege: effect for privilege, effect in wanted.items() if privilege not in held}
        entries.insert(row, {found.id: fresh}, actor)
        shown = _shown(actor, top, row, [GrantedOn(found.kind, dotted(found.full_name), wanted)])
        _tell(actor, found, row, "privileges.granted", fresh, held | fresh)
        return shown

    return change(actor, metalake, act, kind="object")


def revoke_privileges(
    actor: Actor, metalake: str, role: str, kind: Kind, full_name: str, privileges: Pairs
) -> RoleRecord:
    """Take back what a role holds under the same condition; what it does not hold is passed over."""
    wanted = entries.read_entries(kind, privileges)

    def act(actor: Actor, top: Located) -> RoleRecord:
        found = find_object(metalake, kind, full_name)
        allowed = [privilege for privilege, effect in wanted.items() if effect == Effect.ALLOW]
        if allowed:
            require_give(actor, found, allowed)
        if len(allowed) < len(wanted):
            require_lift(actor, found)
        row = find_role_row(top, role)
        held = entries.held_by(row, found.id)
        gone = [grant for grant in held if wanted.get(grant.privilege) == grant.effect]
        _delete(gone)
        shown = _shown(actor, top, row, [])
        left = {grant.privilege: grant.effect for grant in held if grant not in gone}
        _tell(actor, found, row, "privileges.revoked", {grant.privilege: grant.effect for grant in gone}, left)
        return shown

    return change(actor, metalake, act, kind="object")


def override_role(actor: Actor, metalake: str, role: str, overrides: Sequence[Ask]) -> RoleRecord:
    """Replace everything a role holds; what it holds already stays as it is.

    Asks the right to assign roles, the authority to grant what is added, and to lift each DENY that goes.
    """
    asked = entries.read_asks(overrides)

    def act(actor: Actor, top: Located) -> RoleRecord:
        policy.require(actor, operations.ASSIGN_ROLES, top)
        row = find_role_row(top, role)
        wanted = list(zip(find_objects(top, list(asked)), asked.values(), strict=True))
        held = entries.held_by(row)
        before, after = entries.by_object(held), {found.id: privileges for found, privileges in wanted}
        fresh = [(found, _beyond(privileges, before.get(found.id, {}))) for found, privileges in wanted]
        for found, privileges in fresh:
            if privileges:
                require_give(actor, found, privileges)
        entries.check_families(fresh)
        gone = [grant for grant in held if after.get(grant.object_id, {}).get(grant.privilege) != grant.effect]
        _require_lifts(actor, role, gone)
        _delete(gone)
        entries.insert(row, {found.id: privileges for found, privileges in fresh}, actor)
        shown = role_record(row)
        added = {found.id: privileges for found, privileges in fresh if privileges}
        if added or gone:
            details = {"granted": _told(added), "revoked": _told(entries.by_object(gone))}
            record(event(actor, top, "role.overridden", Kind.ROLE, row.pk, [role], **details))
            changed = added.keys() | {grant.object_id for grant in gone}
            snapshot.publish(publishing.grants_of(row.pk, {id: after.get(id, {}) for id in changed}))
        return shown

    return change(actor, metalake, act, kind="role")


def forget_grants_under(lineage: str) -> None:
    """Every grant on the object of this lineage and on all below it, in the caller's transaction."""
    grants = Grant.objects.filter(content_object__lineage=lineage) | Grant.objects.filter(
        content_object__lineage__gt=f"{lineage}/", content_object__lineage__lt=f"{lineage}0"
    )
    pairs = set(grants.values_list("group__role", "content_object_id"))
    if pairs:
        grants.delete()
        snapshot.publish([snapshot.grants_change(role_id, object_id, 0) for role_id, object_id in sorted(pairs)])


def _shown(actor: Actor, top: Located, row: Role, granted: list[GrantedOn]) -> RoleRecord:
    """The role for who may read it; for others only what they granted (decision e)."""
    if policy.sees(actor, located(top, row)):
        return role_record(row)
    return RoleRecord(row.name, None, granted)


def _tell(actor: Actor, found: Located, row: Role, name: str, changed: Entries, now: Entries) -> None:
    if changed:
        details = {"role": row.name, "privileges": entries.spelled(changed)}
        top = Located(found.nodes[:1])
        record(event(actor, top, name, found.kind, found.id, found.full_name, **details))
        snapshot.publish(publishing.grants_of(row.pk, {found.id: now}))


def _beyond(wanted: Entries, held: Entries) -> Entries:
    return {privilege: effect for privilege, effect in wanted.items() if held.get(privilege) != effect}


def _require_lifts(actor: Actor, role: str, gone: Iterable[Held]) -> None:
    denied = by_ids({grant.object_id for grant in gone if grant.effect == Effect.DENY})
    if not all(may_lift(actor, found) for found in denied.values()):
        raise Forbidden(f"{actor.name} may not lift a DENY that role {role} carries.", kind="role")


def _delete(gone: Sequence[Held]) -> None:
    if gone:
        Grant.objects.filter(pk__in=[grant.id for grant in gone]).delete()


def _told(on: dict[int, Entries]) -> dict[str, list[str]]:
    return {str(object_id): entries.spelled(privileges) for object_id, privileges in on.items()}
