"""A user, a group or a role of a metalake by id, each with what belongs to it, a page at a time.

What the caller may see is up to each service (people, roles, owners); this only collects it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import NamedTuple, TypeVar

from django.db.models import Model, Q, QuerySet
from django.utils import timezone

from access.explain.regions import seen_by
from authz import operations, policy
from authz.actor import Actor
from authz.models import Group, Member, Role, Token, Use, UseCaller, UseObject, User
from authz.objects import by_ids
from authz.services import invitations, people, roles
from authz.services.change import enter
from authz.services.directory import EVERY, PAGE, Listing, Narrowed, bounded, narrowed, page_of
from authz.services.people import Person
from authz.services.roles import RoleRecord
from authz.usage_counter import HOUR
from metalake.errors import NotFound
from metalake.full_names import dotted
from metalake.kinds import Kind
from metalake.lineage import Located
from metalake.models import Securable, below

M = TypeVar("M", bound=Model)

LARGEST_ID = 2**63 - 1
MOST_OWNED = 500  # objects examined
USE_SHOWN = timedelta(days=30)


class Known(NamedTuple):
    """A user, group or role by id and name; `is_linked`: the caller may look at it."""

    id: int
    name: str
    is_linked: bool = True
    sort: str = "user"


class Owned(NamedTuple):
    """An object that somebody owns, `group` if through that group."""

    on: Located
    group: str = ""

    @property
    def path(self) -> str:
        """Its full name, as in the APIs."""
        return dotted(self.on.full_name)


class Account(NamedTuple):
    """When somebody last signed in with a browser, and last asked something here within USE_SHOWN, and how many
    tokens of theirs are valid in the metalake; a token's own last use is not recorded."""

    last_sign_in: datetime | None
    last_request: datetime | None
    tokens: int


@dataclass(frozen=True)
class UserPage:
    """A user with their groups and roles; `is_waiting`: they set no password yet, and the actor may make a link.

    `account` is for themselves and those who manage users.
    """

    person: Person
    groups: Listing[Known]
    roles: Listing[Known]
    owned: list[Owned]
    owns_more: bool
    is_waiting: bool
    account: Account | None


@dataclass(frozen=True)
class GroupPage:
    """A group with its roles; `users` is None for those who do not manage groups."""

    person: Person
    users: Listing[Known] | None
    roles: Listing[Known]
    size: int


@dataclass(frozen=True)
class RolePage:
    """A role with its grants; `holders`, groups first, are for those who assign roles."""

    record: RoleRecord
    holders: Listing[Known] | None
    may_drop: bool


def user_page(
    actor: Actor, metalake: str, user_id: int, groups: Narrowed = EVERY, of_roles: Narrowed = EVERY
) -> UserPage:
    """A user with a page of their groups and one of the roles that they hold. Raises NotFound as get_user does."""
    top = enter(actor, metalake)
    row = _by_id(Member.objects.filter(metalake_id=top.id).select_related("user"), "user_id", user_id)
    person = people.get_user(actor, metalake, _name(row.user.username if row else None, "user"))
    theirs = people.listed_groups(actor, top).filter(users=user_id)
    may_invite = all(policy.permits(actor, each, top) for each in (operations.MANAGE_USERS, operations.ASSIGN_ROLES))
    is_waiting = may_invite and invitations.may_have_link(actor, top, person.name)
    listed = page_of(theirs, "name", groups).of(lambda row: Known(row.pk, row.name, sort="group"))
    owned = list(islice(owned_by(actor, top, user_id, dict(theirs.values_list("pk", "name"))), PAGE + 1))
    is_for_them = person.name == actor.name or policy.permits(actor, operations.MANAGE_USERS, top)
    account = _account(top, user_id) if is_for_them else None
    some = _roles(actor, top, person, of_roles)
    return UserPage(person, listed, some, owned[:PAGE], len(owned) > PAGE, is_waiting, account)


def _account(top: Located, user_id: int) -> Account:
    now = timezone.now()
    began = (now - USE_SHOWN).timestamp() // HOUR
    here = UseObject.objects.filter(metalake_id=top.id).values("id")
    callers = UseCaller.objects.filter(user_id=user_id).values("id")
    used = Use.objects.filter(caller__in=callers, hour__gte=began, about__in=here).order_by("-hour", "-last")
    last = used.values_list("hour", "last").first()
    good = Q(expires_at__isnull=True) | Q(expires_at__gt=now)
    good &= Q(within__isnull=True) | Q(within_id=top.id)
    return Account(
        User.objects.filter(pk=user_id).values_list("last_login", flat=True).first(),
        last and datetime.fromtimestamp(last[0] * HOUR + last[1], UTC),
        Token.objects.filter(good, user_id=user_id, revoked_at__isnull=True).count(),
    )


def group_page(
    actor: Actor, metalake: str, group_id: int, users: Narrowed = EVERY, of_roles: Narrowed = EVERY
) -> GroupPage:
    """A group with a page of its people and one of the roles that it holds. Raises NotFound as get_group does."""
    top = enter(actor, metalake)
    row = _by_id(Group.objects.filter(metalake_id=top.id), "pk", group_id)
    person = people.get_group(actor, metalake, _name(row.name if row else None, "group"))
    listed = None
    if person.users is not None:
        linked = policy.permits(actor, operations.MANAGE_USERS, top)
        members = Member.objects.filter(metalake_id=top.id, user__metalake_groups=group_id).select_related("user")
        listed = page_of(members, "user__username", users).of(
            lambda row: Known(row.user_id, row.user.username, linked or row.user.username == actor.name)
        )
    return GroupPage(person, listed, _roles(actor, top, person, of_roles), len(person.users or ()))


def role_page(actor: Actor, metalake: str, role_id: int, holders: Narrowed = EVERY) -> RolePage:
    """A role with a page of those who hold it. Raises NotFound as load_role does."""
    top = enter(actor, metalake)
    row = _by_id(Role.objects.filter(parent_id=top.id), "pk", role_id)
    record = roles.load_role(actor, metalake, _name(row.name if row else None, "role"))
    assert row is not None, "the name was read from it"
    may_drop = policy.permits(actor, operations.DROP_ROLE, roles.located(top, row))
    may_read = policy.permits(actor, operations.READ_ROLES, top)
    return RolePage(record, _holders(actor, top, row, holders) if may_read else None, may_drop)


def _holders(actor: Actor, top: Located, row: Role, asked: Narrowed) -> Listing[Known]:
    """The groups and then the users that hold a role; `after` is "group:sales" or "user:mia"."""
    groups = narrowed(Group.objects.filter(metalake_id=top.id, roles=row), "name", asked.text)
    members = Member.objects.filter(metalake_id=top.id, user__groups=row.group_id)
    users = narrowed(members.select_related("user"), "user__username", asked.text)
    sort, _, name = asked.after.partition(":")
    holders: list[Known] = []
    if sort != "user":
        linked = policy.permits(actor, operations.MANAGE_GROUPS, top)
        some = groups.filter(name__gt=name).order_by("name")[: PAGE + 1]
        holders += [Known(each.pk, each.name, linked, "group") for each in some]
    if len(holders) <= PAGE:
        linked = policy.permits(actor, operations.MANAGE_USERS, top)
        rows = users.filter(user__username__gt=name if sort == "user" else "").order_by("user__username")
        more = rows[: PAGE + 1 - len(holders)]
        holders += [Known(each.user_id, each.user.username, linked) for each in more]
    last = holders[PAGE - 1] if len(holders) > PAGE else None
    return Listing(holders[:PAGE], last and f"{last.sort}:{last.name}", bounded(groups) + bounded(users), asked)


def _roles(actor: Actor, top: Located, person: Person, asked: Narrowed) -> Listing[Known]:
    """The roles that a user or group holds itself, by name."""
    rows = Role.objects.filter(parent_id=top.id, name__in=person.roles)
    some = page_of(rows, "name", asked)
    readable = Role.objects.filter(roles.readable(actor, top), pk__in=[row.pk for row in some.rows])
    linked = set(readable.values_list("pk", flat=True))
    return some.of(lambda row: Known(row.pk, row.name, row.pk in linked, "role"))


def owned_by(actor: Actor, top: Located, user_id: int, groups: dict[int, str]) -> Iterator[Owned]:
    """What a user owns, directly or by these groups, of all that the actor may load, in the order of the tree.

    `user_id` is NOBODY for what the groups own alone. Only visible objects are searched, so nothing reveals how many
    others there are.
    """
    seen = seen_by(actor, top)
    above = {node.id for head in seen.heads for node in head.nodes}
    readable = Role.objects.filter(roles.readable(actor, top), parent_id=top.id)
    visible = Q(pk__in=[each.id for each in by_ids(above).values() if policy.sees(actor, each)])
    visible |= Q(pk__in=readable.values("pk"))
    for region in seen.regions:
        visible |= region.rows()
    # Each query reads an index of owners; one for both would sort everything that is owned.
    for owner in (Q(owner_user_id=user_id), Q(owner_group_id__in=list(groups))):
        rows = Securable.objects.filter(Q(pk=top.id) | below(top.lineage), owner, visible).order_by("lineage")
        ids = list(rows.values_list("pk", flat=True)[:MOST_OWNED])
        objects = by_ids(ids)
        for on in (objects[id] for id in ids if id in objects):
            if on.kind is Kind.ROLE or policy.permits(actor, operations.load_of(on.kind), on):
                yield Owned(on, groups.get(on.nodes[-1].owner_group_id or 0, ""))


def _by_id(rows: QuerySet[M], name: str, id: int) -> M | None:
    return rows.filter(**{name: id}).first() if id <= LARGEST_ID else None


def _name(name: str | None, sort: str) -> str:
    if name is None:
        raise NotFound(f"There is no such {sort}.", kind=sort)
    return name
