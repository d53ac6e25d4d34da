"""The people of a metalake by pages: users, groups and roles in lists.

Who is told what is decided by the services of each (people, roles); here it is only gathered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Generic, NamedTuple, TypeVar

from django.db.models import Count, Model, Q, QuerySet

from authz import operations, policy
from authz.actor import Actor
from authz.callers.enumeration import misses_counted
from authz.models import Group, Role
from authz.services import people, roles
from authz.services.change import enter
from authz.services.snapshot_changes import GroupRole, UserRole
from metalake.errors import NotFound
from metalake.lineage import Located

M = TypeVar("M", bound=Model)
R = TypeVar("R")
S = TypeVar("S")

PAGE = 50
MOST_COUNTED = 10_000  # rows of a list
ROLES_SHOWN = 5  # in a row
MOST_COMPARED = 5_000  # names that a wrong one is compared with
MOST_SPELLED = 20  # names that are looked up in another case
_DIVIDERS = (" ", "_", "-", ".", "/", "=", "@")


class Narrowed(NamedTuple):
    """Which part of a list: names with a word that begins with `text`, those that come after `after`."""

    text: str = ""
    after: str = ""


EVERY = Narrowed()


class Row(NamedTuple):
    """One line of a list; `roles` are those that a user or group holds itself, `size` counts who is in a group."""

    id: int
    name: str
    roles: list[str] | None = None
    size: int | None = None
    enabled: bool = True

    @property
    def more_roles(self) -> int:
        """How many roles there are beside the first ROLES_SHOWN."""
        return len((self.roles or [])[ROLES_SHOWN:])


@dataclass(frozen=True)
class Listing(Generic[R]):
    """A page of a list, and the name that the next page comes after; `count` is how many there are on all pages."""

    rows: list[R]
    next: str | None
    count: int
    asked: Narrowed = EVERY

    @property
    def is_cut(self) -> bool:
        """Whether there are more than were counted: then there are at least so many."""
        return self.count >= MOST_COUNTED

    def of(self, make: Callable[[R], S]) -> Listing[S]:
        """The same page with what is made of each row."""
        return Listing(list(map(make, self.rows)), self.next, self.count, self.asked)


def word_begins(name: str, text: str) -> Q:
    """A filter for the rows in whose field `name` a word begins with the text, whatever the case."""
    wanted = Q(**{f"{name}__istartswith": text})
    for divider in _DIVIDERS:
        wanted |= Q(**{f"{name}__icontains": divider + text})
    return wanted


def list_users(actor: Actor, metalake: str, text: str = "", after: str = "") -> Listing[Row]:
    """The users whom the caller may list and whose name has a word that begins with the text, PAGE at a time."""
    top = enter(actor, metalake)
    policy.require(actor, operations.LIST_MEMBERS, top)
    some = page_of(people.listed_users(actor, top), "user__username", Narrowed(text, after))
    links = UserRole.objects.filter(group__role__parent_id=top.id, user_id__in=[row.user_id for row in some.rows])
    names = _by_holder(links.values_list("user_id", "group__role__name"))
    return some.of(lambda row: Row(row.user_id, row.user.username, names.get(row.user_id, []), None, row.enabled))


def list_groups(actor: Actor, metalake: str, text: str = "", after: str = "") -> Listing[Row]:
    """The groups that the caller may list; only those who manage groups are told how many are in them."""
    top = enter(actor, metalake)
    policy.require(actor, operations.LIST_MEMBERS, top)
    some = page_of(people.listed_groups(actor, top), "name", Narrowed(text, after))
    ids = [row.pk for row in some.rows]
    names = _by_holder(GroupRole.objects.filter(group_id__in=ids).values_list("group_id", "role__name"))
    inside = Count("users", filter=Q(users__memberships__metalake_id=top.id), distinct=True)
    sizes: dict[int, int] = {}
    if policy.uses(actor, operations.MANAGE_GROUPS, top):
        sizes = dict(Group.objects.filter(pk__in=ids).annotate(size=inside).values_list("pk", "size"))
    return some.of(lambda row: Row(row.pk, row.name, names.get(row.pk, []), sizes.get(row.pk)))


def list_roles(actor: Actor, metalake: str, text: str = "", after: str = "") -> Listing[Row]:
    """The roles that the caller may read."""
    top = enter(actor, metalake)
    policy.require(actor, operations.LIST_ROLES, top)
    rows = Role.objects.filter(roles.readable(actor, top), parent_id=top.id)
    return page_of(rows, "name", Narrowed(text, after)).of(lambda row: Row(row.pk, row.name))


def narrowed(rows: QuerySet[M], name: str, text: str) -> QuerySet[M]:
    """Those of the rows in whose field `name` a word begins with the text."""
    return rows.filter(word_begins(name, text)) if text else rows


def page_of(rows: QuerySet[M], name: str, asked: Narrowed) -> Listing[M]:
    """A page of the rows by their field `name`, with how many there are."""
    rows = narrowed(rows, name, asked.text)
    some = list(rows.filter(**{f"{name}__gt": asked.after}).order_by(name)[: PAGE + 1])
    last: Any = some[PAGE - 1] if len(some) > PAGE else None
    for part in name.split("__") if last else ():
        last = getattr(last, part)
    return Listing(some[:PAGE], last, bounded(rows), asked)


def bounded(rows: QuerySet) -> int:
    """How many rows there are, counted up to MOST_COUNTED."""
    return rows.order_by()[:MOST_COUNTED].count()


def _by_holder(pairs: Iterable[tuple[int, str]]) -> dict[int, list[str]]:
    names: dict[int, list[str]] = {}
    for holder, role in sorted(pairs):
        names.setdefault(holder, []).append(role)
    return names


@misses_counted("user")
def require_users(actor: Actor, metalake: str, names: Sequence[str]) -> None:
    """Raise NotFound unless all of these are users, as putting them into a group does, for those who may do that."""
    top = enter(actor, metalake)
    if not policy.uses(actor, operations.ASSIGN_ROLES, top):
        policy.require(actor, operations.MANAGE_GROUPS, top)
    try:
        people.member_ids(actor, top, names)
    except NotFound as missing:
        users = people.listed_users(actor, top)
        known = set(users.filter(user__username__in=names).values_list("user__username", flat=True))
        strangers = [name for name in names if name not in known]
        if len(strangers) == 1:
            raise unknown(actor, top, "user", strangers[0]) from None
        meant = in_another_case(users, "user__username", strangers)
        if not meant:
            raise
        raise NotFound(f"{missing.message} {did_you_mean(meant)}", kind=missing.kind) from None


def in_another_case(rows: QuerySet, field: str, names: Sequence[str]) -> dict[str, str]:
    """Names of these rows that differ by case alone from one of the first MOST_SPELLED names asked for, by that."""
    asked = list(dict.fromkeys(names))[:MOST_SPELLED]
    either = Q()
    for name in asked:
        either |= Q(**{f"{field}__iexact": name})
    there = {name.casefold(): name for name in rows.filter(either).values_list(field, flat=True)} if asked else {}
    return {name: there[name.casefold()] for name in asked if name.casefold() in there}


def close_names(actor: Actor, metalake: str, sort: str, name: str) -> list[str]:
    """Up to three names like a user's, group's or role's ("user", "group", "role"), of those the caller may list."""
    return _close_names(actor, enter(actor, metalake), sort, name)


def _close_names(actor: Actor, top: Located, sort: str, name: str) -> list[str]:
    rows, field = {
        "user": (people.listed_users(actor, top), "user__username"),
        "group": (people.listed_groups(actor, top), "name"),
        "role": (Role.objects.filter(roles.readable(actor, top), parent_id=top.id), "name"),
    }[sort]
    names = rows.order_by(field).values_list(field, flat=True)[:MOST_COMPARED]
    folded = {each.casefold(): each for each in names}
    return [folded[each] for each in get_close_matches(name.casefold(), folded, 3)]


def unknown(actor: Actor, top: Located, sort: str, name: str) -> NotFound:
    """The error for a name that no "user" or "group" has, with names like it."""
    close = _close_names(actor, top, sort, name)
    says = f"{sort.capitalize()} {name} does not exist."
    return NotFound(f"{says} {did_you_mean({each: each for each in close})}" if close else says, kind=sort)


def did_you_mean(meant: Mapping[str, str]) -> str:
    """ "Did you mean mia, rita?" """
    return f"Did you mean {', '.join(dict.fromkeys(meant.values()))}?"
