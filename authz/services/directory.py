"""The people of a metalake by pages: users, groups and roles in lists, and each by id with what belongs to it.

Who is told what is decided by the services of each (people, roles); here it is only gathered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from django.db.models import Count, Model, Q, QuerySet

from authz import operations, policy
from authz.actor import Actor
from authz.callers.guessing import misses_counted
from authz.models import Group, Member, Role
from authz.services import invitations, people, roles
from authz.services.changing import enter
from authz.services.people import Person
from authz.services.publishing import GroupRole, UserRole
from authz.services.roles import RoleRecord
from metalake.errors import NotFound
from metalake.lineage import Located

M = TypeVar("M", bound=Model)

PAGE = 50
LARGEST_ID = 2**63 - 1
MOST_HOLDERS = 500  # of a role that its page shows
_DIVIDERS = (" ", "_", "-", ".", "/", "=", "@")


class Known(NamedTuple):
    """A user, group or role by id and name; `is_linked`: the caller may look at it."""

    id: int
    name: str
    is_linked: bool = True


class Row(NamedTuple):
    """One line of a list; `roles` are those that a user or group holds itself, `size` counts who is in a group."""

    id: int
    name: str
    roles: list[str] | None = None
    size: int | None = None
    enabled: bool = True


class Listing(NamedTuple):
    """A page of a list, and the name that the next page comes after."""

    rows: list[Row]
    next: str | None


def word_begins(name: str, text: str) -> Q:
    """A filter for the rows in whose field `name` a word begins with the text, whatever the case."""
    wanted = Q(**{f"{name}__istartswith": text})
    for divider in _DIVIDERS:
        wanted |= Q(**{f"{name}__icontains": divider + text})
    return wanted


def list_users(actor: Actor, metalake: str, text: str = "", after: str = "") -> Listing:
    """The users whom the caller may list and whose name has a word that begins with the text, PAGE at a time."""
    top = enter(actor, metalake)
    policy.require(actor, operations.LIST_MEMBERS, top)
    some, next_ = _page(people.listed_users(actor, top), "user__username", text, after)
    links = UserRole.objects.filter(group__role__parent_id=top.id, user_id__in=[row.user_id for row in some])
    names = _by_holder(links.values_list("user_id", "group__role__name"))
    rows = [Row(row.user_id, row.user.username, names.get(row.user_id, []), None, row.enabled) for row in some]
    return Listing(rows, next_ and next_.user.username)


def list_groups(actor: Actor, metalake: str, text: str = "", after: str = "") -> Listing:
    """The groups that the caller may list; only those who manage groups are told how many are in them."""
    top = enter(actor, metalake)
    policy.require(actor, operations.LIST_MEMBERS, top)
    listed = people.listed_groups(actor, top).annotate(
        size=Count("users", filter=Q(users__memberships__metalake_id=top.id), distinct=True)
    )
    some, next_ = _page(listed, "name", text, after)
    links = GroupRole.objects.filter(group_id__in=[row.pk for row in some])
    names = _by_holder(links.values_list("group_id", "role__name"))
    tells = policy.permits(actor, operations.MANAGE_GROUPS, top)
    rows = [Row(row.pk, row.name, names.get(row.pk, []), row.size if tells else None) for row in some]
    return Listing(rows, next_ and next_.name)


def list_roles(actor: Actor, metalake: str, text: str = "", after: str = "") -> Listing:
    """The roles that the caller may read."""
    top = enter(actor, metalake)
    policy.require(actor, operations.LIST_ROLES, top)
    some, next_ = _page(Role.objects.filter(roles.readable(actor, top), parent_id=top.id), "name", text, after)
    return Listing([Row(row.pk, row.name) for row in some], next_ and next_.name)


def _page(rows: QuerySet, name: str, text: str, after: str) -> tuple[list, Any]:
    """The rows of a page, and the last one if there are more."""
    if text:
        rows = rows.filter(word_begins(name, text))
    some = list(rows.filter(**{f"{name}__gt": after}).order_by(name)[: PAGE + 1])
    return some[:PAGE], some[PAGE - 1] if len(some) > PAGE else None


def _by_holder(pairs: Iterable[tuple[int, str]]) -> dict[int, list[str]]:
    names: dict[int, list[str]] = {}
    for holder, role in sorted(pairs):
        names.setdefault(holder, []).append(role)
    return names


# One of them


@dataclass(frozen=True)
class UserPage:
    """A user with their groups and roles; `is_waiting`: the link by which they set a password was not used yet."""

    person: Person
    groups: list[Known]
    roles: list[Known]
    is_waiting: bool


@dataclass(frozen=True)
class GroupPage:
    """A group with its roles; `users` is None for those who do not manage groups."""

    person: Person
    users: list[Known] | None
    roles: list[Known]


@dataclass(frozen=True)
class RolePage:
    """A role with its grants; the first MOST_HOLDERS users and groups that hold it are for those who assign roles."""

    record: RoleRecord
    users: list[Known] | None
    groups: list[Known] | None
    may_drop: bool


def user_page(actor: Actor, metalake: str, user_id: int) -> UserPage:
    """Raises NotFound as get_user does."""
    top = enter(actor, metalake)
    row = _by_id(Member.objects.filter(metalake_id=top.id).select_related("user"), "user_id", user_id)
    person = people.get_user(actor, metalake, _name(row.user.username if row else None, "user"))
    groups = people.listed_groups(actor, top).filter(users=user_id).order_by("name").values_list("pk", "name")
    is_waiting = policy.permits(actor, operations.MANAGE_USERS, top) and invitations.is_waiting(top.id, person.name)
    return UserPage(person, [Known(*each) for each in groups], _roles(actor, top, person), is_waiting)


def group_page(actor: Actor, metalake: str, group_id: int) -> GroupPage:
    """Raises NotFound as get_group does."""
    top = enter(actor, metalake)
    row = _by_id(Group.objects.filter(metalake_id=top.id), "pk", group_id)
    person = people.get_group(actor, metalake, _name(row.name if row else None, "group"))
    users = None
    if person.users is not None:
        linked = policy.permits(actor, operations.MANAGE_USERS, top)
        members = Member.objects.filter(metalake_id=top.id, user__metalake_groups=group_id)
        pairs = members.order_by("user__username").values_list("user_id", "user__username")
        users = [Known(id, name, linked or name == actor.name) for id, name in pairs]
    return GroupPage(person, users, _roles(actor, top, person))


def role_page(actor: Actor, metalake: str, role_id: int) -> RolePage:
    """Raises NotFound as load_role does."""
    top = enter(actor, metalake)
    row = _by_id(Role.objects.filter(parent_id=top.id), "pk", role_id)
    record = roles.load_role(actor, metalake, _name(row.name if row else None, "role"))
    assert row is not None, "the name was read from it"
    may_drop = policy.permits(actor, operations.DROP_ROLE, roles.located(top, row))
    if not policy.permits(actor, operations.READ_ROLES, top):
        return RolePage(record, None, None, may_drop)
    members = Member.objects.filter(metalake_id=top.id, user__groups=row.group_id)
    groups = Group.objects.filter(metalake_id=top.id, roles=row)
    users = members.order_by("user__username").values_list("user_id", "user__username")[:MOST_HOLDERS]
    may_users = policy.permits(actor, operations.MANAGE_USERS, top)
    may_groups = policy.permits(actor, operations.MANAGE_GROUPS, top)
    return RolePage(
        record,
        [Known(id, name, may_users) for id, name in users],
        [Known(id, name, may_groups) for id, name in groups.order_by("name").values_list("pk", "name")[:MOST_HOLDERS]],
        may_drop,
    )


def _roles(actor: Actor, top: Located, person: Person) -> list[Known]:
    """The roles that a user or group holds itself, by name."""
    rows = Role.objects.filter(parent_id=top.id, name__in=person.roles).order_by("name").values_list("pk", "name")
    linked = set(rows.filter(roles.readable(actor, top)).values_list("pk", flat=True))
    return [Known(id, name, id in linked) for id, name in rows]


def _by_id(rows: QuerySet[M], name: str, id: int) -> M | None:
    return rows.filter(**{name: id}).first() if id <= LARGEST_ID else None


def _name(name: str | None, sort: str) -> str:
    if name is None:
        raise NotFound(f"There is no such {sort}.", kind=sort)
    return name


@misses_counted("user")
def require_users(actor: Actor, metalake: str, names: Sequence[str]) -> None:
    """Raise NotFound unless all of these are users, as putting them into a group does, for those who may do that."""
    top = enter(actor, metalake)
    if not policy.permits(actor, operations.ASSIGN_ROLES, top):
        policy.require(actor, operations.MANAGE_GROUPS, top)
    people.member_ids(actor, top, names)
