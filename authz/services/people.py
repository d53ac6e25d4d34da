"""Users and groups of a metalake: who is a member, and who is in which group.

Accounts are global; a membership makes a user belong to a metalake, and removing it leaves the account as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import Group as RoleGroup
from django.db.models import QuerySet

from authz import operations, policy, snapshot
from authz.actor import Actor
from authz.callers.accounts import account_to_add
from authz.callers.enumeration import misses_counted
from authz.models import Group, Invitation, Member, Role, User
from authz.name_rules import check_name, check_user_name
from authz.services import snapshot_changes
from authz.services.authority import require_lift_of_roles
from authz.services.change import change, enter, event, publish_events
from authz.services.owners import hand_over, require_owner
from authz.services.ownership_rules import require_change_of, require_joining
from authz.services.removed_members import end_free_links, former_users
from authz.services.snapshot_changes import GroupRole, GroupUser, UserRole
from metalake.errors import AlreadyExists, Invalid, NotFound
from metalake.lineage import Located

SHOWN_UNKNOWN = 20


@dataclass(frozen=True)
class Person:
    """A user or a group as doors show it: its row, its name and the roles it holds itself.

    A group's `users` are members; `former` are former members who stay in it because it carries a DENY.
    """

    row: Member | Group
    name: str
    roles: list[str]
    users: list[str] | None = None
    former: list[str] | None = None


# Users


def list_users(actor: Actor, metalake: str) -> list[Person]:
    """All users, for those who manage users; only the actor themselves, for others."""
    top = enter(actor, metalake)
    policy.require(actor, operations.LIST_MEMBERS, top)
    rows = listed_users(actor, top)
    roles = _names(
        UserRole.objects.filter(group__role__parent_id=top.id, user_id__in=rows.values("user_id")),
        ("user_id", "group__role__name"),
    )
    return [Person(row, row.user.username, roles.get(row.user_id, [])) for row in rows.order_by("user__username")]


def listed_users(actor: Actor, top: Located) -> QuerySet[Member]:
    """The members whom the actor may list."""
    rows = _members(top)
    return rows if policy.uses(actor, operations.MANAGE_USERS, top) else rows.filter(user__username=actor.name)


def get_user(actor: Actor, metalake: str, name: str) -> Person:
    top = enter(actor, metalake)
    if name != actor.name and not policy.uses(actor, operations.MANAGE_USERS, top):
        raise _no_user(name)
    return user_record(top, find_user(top, name))


def add_user(actor: Actor, metalake: str, name: str, external_id: str | None = None, enabled: bool = True) -> Person:
    """Add a member; an account is made if there is none, and cannot sign in until it is given a password.

    A former member has again the roles and groups that carry a DENY to them.
    """
    check_user_name(name)
    return change(actor, metalake, add_member, name, external_id, enabled, kind="user")


def add_member(actor: Actor, top: Located, name: str, external_id: str | None = None, enabled: bool = True) -> Person:
    """What add_user does with a checked name, in the transaction of a change of rights.

    Raises Invalid for an account that another metalake invited and that nobody has vouched for.
    """
    policy.require(actor, operations.MANAGE_USERS, top)
    user = account_to_add(name, top.id)
    if Member.objects.filter(metalake_id=top.id, user=user).exists():
        raise AlreadyExists(f"User {name} already exists.", kind="user")
    row = Member.objects.create(
        metalake_id=top.id, user=user, external_id=external_id, enabled=enabled, creator=actor.name
    )
    remaining = end_free_links(top, user.pk, actor.moment)
    facts = [snapshot.member_change(top.id, user.pk, enabled), *_links_of(user.pk)]
    publish_events(event(actor, top, "user.added", "user", user.pk, [name], facts, enabled=enabled, **remaining))
    return Person(row, name, remaining.get("roles", []))


def remove_user(actor: Actor, metalake: str, name: str) -> bool:
    """Remove a member; False if there is none. What they own goes to the metalake's owner, who cannot be removed.

    Roles and groups that carry a DENY to the user stay linked to them, in case they are added again (see
    authz.services.removed_members).
    """
    return change(actor, metalake, _remove_user, name, kind="user")


def _remove_user(actor: Actor, top: Located, name: str) -> bool:
    policy.require(actor, operations.MANAGE_USERS, top)
    member = _members(top).filter(user__username=name).first()
    if member is None:
        return False
    user_id = member.user_id
    owns_metalake = _owns(top, user_id)
    was = {"enabled": member.enabled, "external_id": member.external_id}
    # Wait for objects that the user is creating right now, so that they are handed over too.
    User.objects.select_for_update().get(pk=user_id)
    remaining = end_free_links(top, user_id, actor.moment)
    member.delete()
    Invitation.objects.filter(user_id=user_id, metalake_id=top.id).delete()
    if owns_metalake:
        require_owner(top.id)
    handed = hand_over(top, user_id=user_id)
    facts = [*handed, snapshot.member_change(top.id, user_id, False), *_links_of(user_id)]
    details = {"objects_handed_over": len(handed), **was, **remaining}
    publish_events(event(actor, top, "user.removed", "user", user_id, [name], facts, **details))
    return True


def require_removable(top: Located, row: Member | Group) -> None:
    """Raise Invalid if the metalake would be left without an owner who can act."""
    if isinstance(row, Member):
        if _owns(top, row.user_id):
            require_owner(top.id, without=row.user_id)
    elif row.pk == top.metalake.owner_group_id:
        raise Invalid(f"Group {row.name} owns the metalake; hand it to another owner first.", kind="group")


def _links_of(user_id: int) -> snapshot_changes.Changes:
    return [*snapshot_changes.roles_of_users([user_id]), *snapshot_changes.groups_of_users([user_id])]


def find_user(top: Located, name: str) -> Member:
    member = _members(top).filter(user__username=name).first()
    if member is None:
        raise _no_user(name)
    return member


def user_record(top: Located, member: Member) -> Person:
    roles = Role.objects.filter(parent_id=top.id, group__user=member.user_id)
    return Person(member, member.user.username, list(roles.order_by("name").values_list("name", flat=True)))


def _owns(top: Located, user_id: int) -> bool:
    """Whether the user owns the metalake, alone or through a group."""
    owner = top.metalake
    return owner.owner_user_id == user_id or (
        owner.owner_group_id is not None
        and GroupUser.objects.filter(group_id=owner.owner_group_id, user_id=user_id).exists()
    )


def _members(top: Located) -> QuerySet[Member]:
    return Member.objects.filter(metalake_id=top.id).select_related("user")


def _no_user(name: str) -> NotFound:
    return NotFound(f"User {name} does not exist.", kind="user")


# Groups


def list_groups(actor: Actor, metalake: str) -> list[Person]:
    """All groups, for those who manage groups; only the actor's own, for others."""
    top = enter(actor, metalake)
    policy.require(actor, operations.LIST_MEMBERS, top)
    rows = listed_groups(actor, top)
    roles = _names(GroupRole.objects.filter(group_id__in=rows.values("id")), ("group_id", "role__name"))
    return [Person(row, row.name, roles.get(row.pk, [])) for row in rows.order_by("name")]


def listed_groups(actor: Actor, top: Located) -> QuerySet[Group]:
    """The groups that the actor may list."""
    rows = Group.objects.filter(metalake_id=top.id)
    return rows if policy.uses(actor, operations.MANAGE_GROUPS, top) else rows.filter(pk__in=actor.groups)


def get_group(actor: Actor, metalake: str, name: str) -> Person:
    """The group, with its users for those who manage groups."""
    top = enter(actor, metalake)
    row = find_group(top, name)
    if policy.uses(actor, operations.MANAGE_GROUPS, top):
        return group_record(top, row, with_users=True)
    if row.pk not in actor.groups:
        raise _no_group(name)
    return group_record(top, row)


def add_group(actor: Actor, metalake: str, name: str, external_id: str | None = None) -> Person:
    check_name(name, "group")
    return change(actor, metalake, insert_group, name, external_id, kind="group")


def insert_group(actor: Actor, top: Located, name: str, external_id: str | None) -> Person:
    """What add_group does with a checked name, in the transaction of a change of rights."""
    policy.require(actor, operations.MANAGE_GROUPS, top)
    if Group.objects.filter(metalake_id=top.id, name=name).exists():
        raise AlreadyExists(f"Group {name} already exists.", kind="group")
    row = Group.objects.create(metalake_id=top.id, name=name, external_id=external_id, creator=actor.name)
    publish_events(event(actor, top, "group.added", "group", row.pk, [name], [["group", top.id, row.pk, name]]))
    return Person(row, name, [], [])


def remove_group(actor: Actor, metalake: str, name: str) -> bool:
    """Remove a group; False if there is none. Its objects go to the metalake's owner; DENYs of its roles are lifted."""
    return change(actor, metalake, _remove_group, name, kind="group")


def _remove_group(actor: Actor, top: Located, name: str) -> bool:
    policy.require(actor, operations.MANAGE_GROUPS, top)
    row = Group.objects.filter(metalake_id=top.id, name=name).first()
    if row is None:
        return False
    require_removable(top, row)
    group_id = row.pk
    require_lift_of_roles(actor, GroupRole.objects.filter(group_id=group_id).values_list("role_id", flat=True))
    users = set(GroupUser.objects.filter(group_id=group_id).values_list("user_id", flat=True))
    handed = hand_over(top, group_id=group_id)
    row.delete()
    facts = [
        *handed,
        ["group", top.id, group_id],
        *snapshot_changes.roles_of_groups([group_id]),
        *snapshot_changes.groups_of_users(users),
    ]
    publish_events(
        event(
            actor, top, "group.removed", "group", group_id, [name], facts,
            objects_handed_over=len(handed), external_id=row.external_id,
        )
    )  # fmt: skip
    return True


@misses_counted("user", "group")
def set_group_users(
    actor: Actor, metalake: str, name: str, add: Sequence[str] = (), remove: Sequence[str] = ()
) -> Person:
    """Put users into a group and take others out; those who are in or out already stay so.

    A group that holds roles or owns something is changed by those who assign roles, other groups by those who manage
    groups. DENYs against who joins, on what the group owns, above it or below it, take who may lift them. A former
    member who is still in it is taken out like everybody else. Raises NotFound for added names that are not here;
    only those who may list users are told all of these at once.
    """
    if both := set(add) & set(remove):
        raise Invalid(f"{', '.join(sorted(both))} cannot be both added and removed.", kind="group")
    return change(actor, metalake, _set_group_users, name, add, remove, kind="group")


def _set_group_users(actor: Actor, top: Located, name: str, add: Sequence[str], remove: Sequence[str]) -> Person:
    if not policy.uses(actor, operations.ASSIGN_ROLES, top):
        policy.require(actor, operations.MANAGE_GROUPS, top)
    row = find_group(top, name)
    roles = list(GroupRole.objects.filter(group_id=row.pk).values_list("role_id", flat=True))
    require_change_of(actor, top, row, roles)
    present = dict(User.objects.filter(metalake_groups=row).values_list("username", "pk"))
    fresh = {user: id for user, id in member_ids(actor, top, add).items() if user not in present}
    gone = {user: present[user] for user in remove if user in present}
    if gone:
        require_lift_of_roles(actor, roles)
    require_joining(actor, row, fresh.values())
    GroupUser.objects.bulk_create(GroupUser(group_id=row.pk, user_id=user_id) for user_id in fresh.values())
    GroupUser.objects.filter(group_id=row.pk, user_id__in=gone.values()).delete()
    if gone and row.pk == top.metalake.owner_group_id:
        require_owner(top.id)
    shown = group_record(top, row, with_users=True)
    if fresh or gone:
        details = {"added": sorted(fresh), "removed": sorted(gone)}
        facts = snapshot_changes.groups_of_users([*fresh.values(), *gone.values()])
        publish_events(event(actor, top, "group.users_changed", "group", row.pk, [name], facts, **details))
    return shown


def find_group(top: Located, name: str) -> Group:
    row = Group.objects.filter(metalake_id=top.id, name=name).first()
    if row is None:
        raise _no_group(name)
    return row


def group_record(top: Located, row: Group, *, with_users: bool = False) -> Person:
    roles = list(row.roles.order_by("name").values_list("name", flat=True))
    if not with_users:
        return Person(row, row.name, roles)
    members = row.users.filter(memberships__metalake_id=top.id).order_by("username")
    return Person(row, row.name, roles, list(members.values_list("username", flat=True)), former_users(top, row.pk))


def _no_group(name: str) -> NotFound:
    return NotFound(f"Group {name} does not exist.", kind="group")


def member_ids(actor: Actor, top: Located, names: Sequence[str]) -> dict[str, int]:
    rows = Member.objects.filter(metalake_id=top.id, user__username__in=names)
    ids = dict(rows.values_list("user__username", "user_id"))
    unknown = [name for name in dict.fromkeys(names) if name not in ids]
    if len(unknown) > 1 and policy.uses(actor, operations.MANAGE_USERS, top):
        more = f" and {len(unknown) - SHOWN_UNKNOWN:,} more" if len(unknown) > SHOWN_UNKNOWN else ""
        raise NotFound(f"Users {', '.join(unknown[:SHOWN_UNKNOWN])}{more} do not exist.", kind="user")
    if unknown:
        raise _no_user(unknown[0])
    return ids


# Both


def _names(links: QuerySet, fields: tuple[str, str]) -> dict[int, list[str]]:
    names: dict[int, list[str]] = {}
    for holder_id, role in links.order_by(fields[1]).values_list(*fields):
        names.setdefault(holder_id, []).append(role)
    return names


def drop_people_of(metalake_id: int) -> None:
    """Delete all members, groups and roles of a metalake that is being dropped, in the caller's transaction."""
    roles = dict(Role.objects.filter(parent_id=metalake_id).values_list("pk", "group_id"))
    groups = list(Group.objects.filter(metalake_id=metalake_id).values_list("pk", flat=True))
    members = list(Member.objects.filter(metalake_id=metalake_id).values_list("user_id", flat=True))
    user_roles = UserRole.objects.filter(group_id__in=roles.values())
    group_users = GroupUser.objects.filter(group_id__in=groups)
    assigned = set(user_roles.values_list("user_id", flat=True))
    grouped = set(group_users.values_list("user_id", flat=True))
    user_roles.delete()
    group_users.delete()
    GroupRole.objects.filter(group_id__in=groups).delete()
    Member.objects.filter(metalake_id=metalake_id).delete()
    # Rows that refer to these are deleted in the same transaction, which Django's own delete would not know.
    Role.objects.filter(pk__in=roles).order_by()._raw_delete("default")
    Group.objects.filter(pk__in=groups).order_by()._raw_delete("default")
    RoleGroup.objects.filter(pk__in=roles.values()).delete()
    snapshot.publish(
        [
            *(snapshot.member_change(metalake_id, user_id, False) for user_id in members),
            *(snapshot.role_gone(role_id) for role_id in roles),
            *snapshot_changes.roles_of_users(assigned),
            *snapshot_changes.groups_of_users(grouped),
            *snapshot_changes.roles_of_groups(groups),
        ]
    )
