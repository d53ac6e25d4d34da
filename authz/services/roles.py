"""Roles: named sets of grants, and who holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from django.contrib.auth.models import Group as RoleGroup
from django.db.models import Q
from django.utils import timezone

from authz import operations, policy, snapshot
from authz.actor import Actor
from authz.callers.accounts import account_of
from authz.callers.enumeration import misses_counted
from authz.models import Grant, Member, Role, unended
from authz.name_rules import check_properties, check_role_name
from authz.objects import by_ids, discover, find_asked, find_objects, ids_at
from authz.services import grant_entries as entries
from authz.services import snapshot_changes
from authz.services.authority import require, require_give, require_lift_of_roles, require_seen
from authz.services.change import change, enter, event, publish_events
from authz.services.grant_entries import Ask, Entries
from authz.services.people import Person, find_group, find_user, group_record, user_record
from authz.services.removed_members import former_holder
from authz.services.snapshot_changes import GroupRole, UserRole
from metalake.errors import AlreadyExists, Invalid, NotFound
from metalake.events import gone, stands
from metalake.full_names import dotted
from metalake.kinds import Kind
from metalake.lineage import Address, Located, Node


class GrantedOn(NamedTuple):
    """What a role holds on one object."""

    kind: Kind
    full_name: str
    entries: Entries


@dataclass(frozen=True)
class RoleRecord:
    """A role as doors show it; for an actor who may not read it `row` is None, with only what they just granted."""

    name: str
    row: Role | None
    grants: list[GrantedOn]


def list_roles(actor: Actor, metalake: str) -> list[str]:
    """All roles, for those who assign roles; only those they hold or own, for others."""
    top = enter(actor, metalake)
    policy.require(actor, operations.LIST_ROLES, top)
    return list(
        Role.objects.filter(readable(actor, top), parent_id=top.id).order_by("name").values_list("name", flat=True)
    )


def load_role(actor: Actor, metalake: str, name: str) -> RoleRecord:
    top = enter(actor, metalake)
    return role_record(find_readable(actor, top, name))


@misses_counted("role")
def create_role(
    actor: Actor,
    metalake: str,
    name: str,
    properties: Mapping[str, str] | None = None,
    securables: Sequence[Ask] = (),
) -> RoleRecord:
    """Takes CREATE_ROLE, and the right to grant every entry. The actor becomes the owner, not a holder."""
    properties = dict(properties or {})
    check_role_name(name)
    check_properties(properties)
    asked = entries.read_asks(actor, metalake, securables)
    discover(actor, metalake, list(asked))
    on = partial(ids_at, metalake, list(asked))
    return change(actor, metalake, _create_role, name, properties, asked, kind="role", on=on)


def _create_role(
    actor: Actor, top: Located, name: str, properties: dict[str, str], asked: Mapping[Address, Entries]
) -> RoleRecord:
    policy.require(actor, operations.CREATE_ROLE, top)
    wanted = []
    for target, privileges in zip(find_objects(top, list(asked)), asked.values(), strict=True):
        require_give(actor, target, privileges)
        entries.check_spans(privileges, actor.moment)
        wanted.append((target, privileges))
    entries.check_families(wanted)
    if Role.objects.filter(parent_id=top.id, name=name).exists():
        raise AlreadyExists(f"Role {name} already exists.", kind="role")
    row = insert_role(actor, top, name, properties)
    on = {target.id: privileges for target, privileges in wanted}
    entries.insert(row, on, actor)
    given = [
        f"{spelled} on {target.kind} {dotted(target.full_name)}"
        for target, privileges in wanted
        for spelled in entries.spelled(privileges)
    ]
    facts = [stands(row), *snapshot_changes.grants_of(row, on)]
    publish_events(event(actor, top, "role.created", Kind.ROLE, row.pk, [name], facts, privileges=given))
    return RoleRecord(name, row, _sorted(wanted))


def drop_role(actor: Actor, metalake: str, name: str) -> bool:
    """Drop a role; False if the actor sees none. Takes ownership, and the right to lift every DENY that it carries."""
    return change(actor, metalake, _drop_role, name, kind="role")


def _drop_role(actor: Actor, top: Located, name: str) -> bool:
    row = Role.objects.filter(parent_id=top.id, name=name).first()
    if row is None or not policy.sees(actor, located(top, row)):
        return False
    role_id, facts = row.pk, delete_role(actor, top, row)
    publish_events(event(actor, top, "role.dropped", Kind.ROLE, role_id, [name], facts))
    return True


def delete_role(actor: Actor, top: Located, row: Role) -> snapshot_changes.Changes:
    """Delete a role that the actor may drop, and return the facts. Raises Forbidden."""
    policy.require(actor, operations.DROP_ROLE, located(top, row))
    require_lift_of_roles(actor, [row.pk])
    role_id, group_id = row.pk, row.group_id
    users = set(UserRole.objects.filter(group_id=group_id).values_list("user_id", flat=True))
    groups = set(GroupRole.objects.filter(role_id=role_id).values_list("group_id", flat=True))
    row.delete()
    RoleGroup.objects.filter(pk=group_id).delete()
    return [
        gone(role_id),
        snapshot.role_gone(role_id),
        *snapshot_changes.roles_of_users(users),
        *snapshot_changes.roles_of_groups(groups),
    ]


def roles_of_object(actor: Actor, metalake: str, kind: Kind, full_name: str) -> list[str]:
    """The roles with grants on the object itself that have not ended: all for those who may grant there, else those
    that the actor may read.
    """
    top = enter(actor, metalake)
    target = find_asked(metalake, kind, full_name, actor)
    if target.kind is Kind.ROLE:
        require_seen(actor, target)
        return []
    not_ended = Grant.objects.filter(unended(actor.moment), content_object_id=target.id)
    rows = Role.objects.filter(parent_id=top.id, group__in=not_ended.values("group"))
    if not policy.uses(actor, operations.grant_on(target.kind), target):
        require(actor, operations.load_of(target.kind), target)
        rows = rows.filter(readable(actor, top))
    return list(rows.order_by("name").values_list("name", flat=True))


@misses_counted("user", "group")
def assign_roles(actor: Actor, metalake: str, holder: str, name: str, roles: Sequence[str]) -> Person:
    """Give roles to a user or group; `holder` is "user" or "group". Roles that it holds already stay."""
    return change(actor, metalake, _assign, holder, name, roles, kind="role")


def _assign(actor: Actor, top: Located, holder: str, name: str, roles: Sequence[str]) -> Person:
    policy.require(actor, operations.ASSIGN_ROLES, top)
    to = _Holder(top, holder, name)
    fresh = [row for row in _named(top, roles) if row.pk not in to.role_ids]
    to.add(fresh)
    return _assigned(actor, top, to, "role.assigned", fresh)


@misses_counted("user", "group")
def unassign_roles(actor: Actor, metalake: str, holder: str, name: str, roles: Sequence[str]) -> Person:
    """Take roles from a user or group; takes the right to lift every DENY in those that it holds.

    It works on a former member who still holds a role too.
    """
    return change(actor, metalake, _unassign, holder, name, roles, kind="role")


def _unassign(actor: Actor, top: Located, holder: str, name: str, roles: Sequence[str]) -> Person:
    policy.require(actor, operations.ASSIGN_ROLES, top)
    of = _Holder(top, holder, name, former_holder(top, name) if holder == "user" else None)
    rows = [row for row in _named(top, roles) if row.pk in of.role_ids]
    require_lift_of_roles(actor, [row.pk for row in rows])
    of.remove(rows)
    return _assigned(actor, top, of, "role.unassigned", rows)


def _assigned(actor: Actor, top: Located, holder: _Holder, name: str, rows: list[Role]) -> Person:
    shown = holder.shown()
    events = [event(actor, top, name, Kind.ROLE, row.pk, [row.name], **{holder.kind: holder.name}) for row in rows]  # type: ignore[arg-type]
    if events:
        publish_events(*events[:-1], replace(events[-1], facts=holder.changes()))
    return shown


class _Holder:
    """A user or a group with the roles of one metalake that it holds itself. Raises NotFound if there is none."""

    def __init__(self, top: Located, kind: str, name: str, former: Member | None = None) -> None:
        self.top, self.kind, self.name = top, kind, name
        self.member = former or find_user(top, name) if kind == "user" else None
        self.group = find_group(top, name) if kind == "group" else None
        roles = Role.objects.filter(parent_id=top.id)
        roles = roles.filter(group__user=self.member.user_id) if self.member else roles.filter(groups=self.group)
        self.role_ids = set(roles.values_list("pk", flat=True))

    def add(self, rows: list[Role]) -> None:
        if self.member:
            self.member.user.groups.add(*(row.group_id for row in rows))
        elif self.group:
            self.group.roles.add(*(row.pk for row in rows))

    def remove(self, rows: list[Role]) -> None:
        if self.member:
            self.member.user.groups.remove(*(row.group_id for row in rows))
        elif self.group:
            self.group.roles.remove(*(row.pk for row in rows))

    def shown(self) -> Person:
        return (
            user_record(self.top, self.member)
            if self.member
            else group_record(self.top, find_group(self.top, self.name))
        )

    def changes(self) -> snapshot_changes.Changes:
        if self.member:
            return snapshot_changes.roles_of_users([self.member.user_id])
        return snapshot_changes.roles_of_groups([self.group.pk] if self.group else [])


def _named(top: Located, names: Sequence[str]) -> list[Role]:
    """Raises Invalid of kind "role" for a role that does not exist (upstream's IllegalRoleException)."""
    if not names:
        raise Invalid("Name at least one role.", kind="role")
    rows = {row.name: row for row in Role.objects.filter(parent_id=top.id, name__in=set(names))}
    for name in names:
        if name not in rows:
            raise Invalid(f"Role {name} does not exist.", kind="role")
    return list(rows.values())


def located(top: Located, row: Role) -> Located:
    return top.below(Node(row.pk, Kind.ROLE, row.name, row.owner_user_id, row.owner_group_id))


def find_role_row(top: Located, name: str) -> Role:
    row = Role.objects.filter(parent_id=top.id, name=name).first()
    if row is None:
        raise _no_role(name)
    return row


def find_readable(actor: Actor, top: Located, name: str) -> Role:
    """Raises NotFound if there is no role of that name that the actor may read."""
    row = find_role_row(top, name)
    if not policy.sees(actor, located(top, row)):
        raise _no_role(name)
    return row


def role_record(row: Role) -> RoleRecord:
    """The whole role, in three statements; an object dropped between them is left out, since its grants went too."""
    on = entries.by_object(entries.not_ended(entries.role_grants(row), timezone.now()))
    objects = by_ids(on)
    return RoleRecord(
        row.name, row, _sorted([(objects[id], privileges) for id, privileges in on.items() if id in objects])
    )


def _sorted(grants: Sequence[tuple[Located, Entries]]) -> list[GrantedOn]:
    return sorted(
        (GrantedOn(on.kind, dotted(on.full_name), privileges) for on, privileges in grants),
        key=lambda granted: (granted.kind != Kind.METALAKE, granted.full_name, granted.kind),
    )


def readable(actor: Actor, top: Located) -> Q:
    """A filter for the roles that the actor may read: all, for those who assign roles, else held and owned ones."""
    if policy.uses(actor, operations.READ_ROLES, top):
        return Q()
    return Q(pk__in=actor.roles) | Q(owner_user_id=actor.id) | Q(owner_group_id__in=actor.groups)


def _no_role(name: str) -> NotFound:
    return NotFound(f"Role {name} does not exist.", kind="role")


def insert_role(actor: Actor, top: Located, name: str, properties: dict[str, str]) -> Role:
    row = Role.made(
        Kind.ROLE,
        name,
        top,
        properties=properties,
        owner_user_id=account_of(actor),
        creator=actor.name,
        group=RoleGroup.objects.create(name=f"{top.id}:{name}"),
    )
    row.save(force_insert=True)
    return row
