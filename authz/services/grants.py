"""Granting privileges to roles, and revoking them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import partial

from django.db.models import Q

from authz import operations, policy, snapshot
from authz.actor import Actor
from authz.callers.enumeration import misses_counted
from authz.models import Grant, Role
from authz.objects import by_ids, discover, find_object, find_objects, id_of, ids_at
from authz.services import grant_entries, snapshot_changes
from authz.services.authority import may_lift, require_give, require_lift
from authz.services.change import change, event, publish_events
from authz.services.grant_entries import Ask, Entries, Pairs, RoleGrant
from authz.services.roles import GrantedOn, RoleRecord, find_role_row, located, role_record
from metalake.errors import Forbidden, Invalid
from metalake.full_names import dotted
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from metalake.models import below
from metalake.privileges import BEYOND_GRAVITINO, Effect, Privilege


@misses_counted("role")
def grant_privileges(
    actor: Actor, metalake: str, role: str, kind: Kind, full_name: str, privileges: Pairs
) -> RoleRecord:
    """Allow or deny a role privileges on one object; those that it holds already stay as they are.

    Raises Invalid if the role holds the opposite, which has to be revoked first.
    """
    wanted = grant_entries.read_entries(kind, privileges)
    on = partial(id_of, metalake, kind, full_name, actor)
    return change(actor, metalake, _grant, role, kind, full_name, wanted, kind="object", on=on)


def _grant(actor: Actor, top: Located, role: str, kind: Kind, full_name: str, wanted: Entries) -> RoleRecord:
    target = find_object(top.name, kind, full_name, viewer=actor)
    require_give(actor, target, wanted)
    grant_entries.check_families([(target, wanted)])
    row = find_role_row(top, role)
    made = _give(actor, row, target, wanted)
    shown = _shown(actor, top, row, [GrantedOn(target.kind, dotted(target.full_name), wanted)])
    _record(actor, target, row, "privileges.granted", *made)
    return shown


@misses_counted("role")
def revoke_privileges(
    actor: Actor, metalake: str, role: str, kind: Kind, full_name: str, privileges: Pairs
) -> RoleRecord:
    """Revoke privileges that a role holds with the same effect, now or later; those that it lacks are ignored."""
    wanted = grant_entries.read_entries(kind, privileges)
    if any(given.starts or given.ends for given in wanted.values()):
        raise Invalid("A revoke takes a privilege back at once and whole: name no times.", kind="privilege")
    on = partial(id_of, metalake, kind, full_name, actor)
    return change(actor, metalake, _revoke, role, kind, full_name, wanted, kind="object", on=on)


def _revoke(actor: Actor, top: Located, role: str, kind: Kind, full_name: str, wanted: Entries) -> RoleRecord:
    target = find_object(top.name, kind, full_name, viewer=actor)
    allowed = [privilege for privilege, given in wanted.items() if given.effect == Effect.ALLOW]
    if allowed:
        require_give(actor, target, allowed)
    if len(allowed) < len(wanted):
        require_lift(actor, target)
    row = find_role_row(top, role)
    made = _take(actor, row, target, wanted)
    shown = _shown(actor, top, row, [])
    _record(actor, target, row, "privileges.revoked", *made)
    return shown


def allow_each(
    actor: Actor, metalake: str, privilege: Privilege, role_ids: Collection[int], object_ids: Collection[int]
) -> None:
    """Allow each role a privilege on each object of the metalake, all or none. Raises as grant_privileges does."""
    change(actor, metalake, _change_each, _give, privilege, role_ids, object_ids, kind="object", on=lambda: object_ids)


def take_each(
    actor: Actor, metalake: str, privilege: Privilege, role_ids: Collection[int], object_ids: Collection[int]
) -> None:
    """Revoke that ALLOW from each role that has it; a DENY stays. Raises as revoke_privileges does."""
    change(actor, metalake, _change_each, _take, privilege, role_ids, object_ids, kind="object", on=lambda: object_ids)


Made = tuple[Entries, snapshot_changes.Changes]


def _change_each(
    actor: Actor,
    top: Located,
    make: Callable[[Actor, Role, Located, Entries], Made],
    privilege: Privilege,
    role_ids: Collection[int],
    object_ids: Collection[int],
) -> None:
    """Give each role an ALLOW on each object, or take it, as `make` does: all of them or none."""
    event_name = "privileges.granted" if make is _give else "privileges.revoked"
    on = by_ids(object_ids)
    rows = Role.objects.filter(parent_id=top.id, pk__in=role_ids).order_by("pk")
    if len(rows) < len(set(role_ids)) or any(id not in on or on[id].nodes[0].id != top.id for id in object_ids):
        raise Invalid(f"Name roles and objects that metalake {top.name} has.", kind="object")
    for target in on.values():
        wanted = grant_entries.read_entries(target.kind, [(privilege.value, Effect.ALLOW.value)])
        require_give(actor, target, wanted)
        grant_entries.check_families([(target, wanted)])
        for row in rows:
            _record(actor, target, row, event_name, *make(actor, row, target, wanted))


def _give(actor: Actor, row: Role, target: Located, wanted: Entries) -> Made:
    """Give the role what it does not hold on the target yet; returns what was given, and what it holds now."""
    grants = grant_entries.role_grants(row, target.id)
    standing = grant_entries.by_object(grant_entries.not_ended(grants, actor.moment)).get(target.id, {})
    for privilege, given in wanted.items():
        if (there := standing.get(privilege, given)).effect != given.effect:
            raise Invalid(
                f"Role {row.name} holds {there.effect} {privilege} there: revoke it before you {given.effect} it.",
                kind="privilege",
            )
    fresh = _beyond(wanted, standing)
    return fresh, rewrite(actor, row, [(target, fresh)], [grant for grant in grants if grant.privilege in fresh])


def _take(actor: Actor, row: Role, target: Located, wanted: Entries) -> Made:
    """Take what the role holds on the target with the same effect; returns what was taken, and what it holds now."""
    gone = [
        grant
        for grant in grant_entries.not_ended(grant_entries.role_grants(row, target.id), actor.moment)
        if grant.privilege in wanted and wanted[grant.privilege].effect == grant.given.effect
    ]
    return {grant.privilege: grant.given for grant in gone}, rewrite(actor, row, [(target, {})], gone)


def override_role(
    actor: Actor, metalake: str, role: str, overrides: Sequence[Ask], *, in_part: bool = False
) -> RoleRecord:
    """Replace everything that a role holds; grants that stay the same are not written again.

    With `in_part` the caller knows neither times nor the privileges BEYOND_GRAVITINO, so these stay as they are.
    The actor needs the right to assign roles, to grant what is added, and to lift each DENY that is removed.
    """
    asked = grant_entries.read_asks(actor, metalake, overrides)
    discover(actor, metalake, list(asked))
    on = partial(ids_at, metalake, list(asked))
    return change(actor, metalake, _override, role, asked, in_part, kind="role", on=on)


def _override(actor: Actor, top: Located, role: str, asked: Mapping[Address, Entries], in_part: bool) -> RoleRecord:
    policy.require(actor, operations.ASSIGN_ROLES, top)
    row = find_role_row(top, role)
    grants = grant_entries.role_grants(row)
    before = grant_entries.by_object(grant_entries.not_ended(grants, actor.moment))
    after, fresh = {}, []
    for target, privileges in zip(find_objects(top, list(asked)), asked.values(), strict=True):
        present = before.get(target.id, {})
        if in_part:
            privileges = _completed(privileges, present)
        more = _beyond(privileges, present)
        if more:
            require_give(actor, target, more)
        after[target.id] = privileges
        fresh.append((target, more))
    grant_entries.check_families(fresh)
    known = [grant for grant in grants if not (in_part and grant.privilege in BEYOND_GRAVITINO)]
    gone = [grant for grant in known if after.get(grant.object_id, {}).get(grant.privilege) != grant.given]
    changes = rewrite(actor, row, fresh, gone)
    shown = role_record(row)
    added = {target.id: privileges for target, privileges in fresh if privileges}
    removed = grant_entries.by_object(grant_entries.not_ended(gone, actor.moment))
    if added or removed:
        details = {"granted": _spelled(added), "revoked": _spelled(removed)}
        publish_events(event(actor, top, "role.overridden", Kind.ROLE, row.pk, [role], facts=changes, **details))
    return shown


def _completed(wanted: Entries, present: Entries) -> Entries:
    """What a caller wrote that read only a part: with what it did not see, and the times of what it named without."""
    unseen = {privilege: given for privilege, given in present.items() if privilege in BEYOND_GRAVITINO}
    timed = {
        privilege: present[privilege]
        for privilege, given in wanted.items()
        if privilege in present and given == present[privilege]._replace(starts=None, ends=None)
    }
    return {**unseen, **wanted, **timed}


def rewrite(
    actor: Actor, row: Role, fresh: Sequence[tuple[Located, Entries]], gone: Sequence[RoleGrant]
) -> snapshot_changes.Changes:
    """Give a role the `fresh` entries and take the grants `gone`; returns what it holds now on the objects changed.

    The actor needs the right to lift each DENY that ends or is shortened; the caller has checked the right to give.
    Raises Invalid for spans in the past.
    """
    given = {target.id: privileges for target, privileges in fresh if privileges}
    for privileges in given.values():
        grant_entries.check_spans(privileges, actor.moment)
    lifted = {
        grant.object_id
        for grant in grant_entries.not_ended(gone, actor.moment)
        if grant.given.effect == Effect.DENY and not stays(grant, given, actor.moment)
    }
    if not all(may_lift(actor, on) for on in by_ids(lifted).values()):
        raise Forbidden(f"{actor.name} may not lift a DENY that role {row.name} carries.", kind="role")
    if gone:
        Grant.rows.filter(pk__in=[grant.id for grant in gone]).delete()
    grant_entries.insert(row, given, actor)
    changed = given.keys() | {grant.object_id for grant in gone}
    return snapshot_changes.grants_of(row, changed) if changed else []


def stays(denied: RoleGrant, given: dict[int, Entries], now: datetime) -> bool:
    """Whether one of the entries given continues a DENY without a gap and for at least as long."""
    instead = given.get(denied.object_id, {}).get(denied.privilege)
    began = denied.given.starts is None or denied.given.starts <= now
    return instead is not None and instead.covers(denied.given._replace(starts=None) if began else denied.given)


def forget_grants_under(lineage: str) -> None:
    """Delete the grants on the object of this lineage and on all below it, in the caller's transaction."""
    on = "content_object__lineage"
    grants = Grant.rows.filter(Q(**{on: lineage}) | below(lineage, on))
    pairs = set(grants.values_list("group__role", "content_object_id"))
    if pairs:
        grants.delete()
        snapshot.publish([snapshot.grants_change(role_id, object_id, []) for role_id, object_id in sorted(pairs)])


def _shown(actor: Actor, top: Located, row: Role, granted: list[GrantedOn]) -> RoleRecord:
    """The whole role if the actor may read it, else only what they just granted."""
    if policy.sees(actor, located(top, row)):
        return role_record(row)
    return RoleRecord(row.name, None, granted)


def _record(
    actor: Actor, target: Located, row: Role, event_name: str, changed: Entries, changes: snapshot_changes.Changes
) -> None:
    if changed:
        details = {"role": row.name, "privileges": grant_entries.spelled(changed)}
        publish_events(
            event(actor, target.top, event_name, target.kind, target.id, target.full_name, facts=changes, **details)
        )


def _beyond(wanted: Entries, present: Entries) -> Entries:
    return {privilege: given for privilege, given in wanted.items() if present.get(privilege) != given}


def _spelled(on: dict[int, Entries]) -> dict[str, list[str]]:
    return {str(object_id): grant_entries.spelled(privileges) for object_id, privileges in on.items()}
