"""Search: objects by name or path, roles, users and groups, among what the caller may see.

Objects are those that the evaluator shows (access.explain.regions). Roles and people are those that the caller may
list; whoever may grant somewhere is shown the roles that carry grants there too, and roles and people by their exact
name, which the API tells them as well and counts (docs/authorization.md, "What one sees").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from django.db.models import Q, QuerySet

from access.explain import name_search
from access.explain.regions import Seen, seen_by
from authz import policy
from authz.actor import Actor
from authz.callers.enumeration import misses_counted
from authz.models import Grant, Group, Member, Role, unended
from authz.objects import by_ids
from authz.services import people
from authz.services.change import enter
from authz.services.directory import word_begins
from authz.services.roles import readable
from metalake.errors import Invalid, NotFound
from metalake.lineage import Located

LONGEST = 512  # characters
MOST_METALAKES = 20  # that are searched at once
MOST_GRANTS = 500  # of roles, that are looked at for whoever may grant somewhere


class Result(NamedTuple):
    """One thing by its id; `kind` is a kind of object, "role", "user" or "group", `path` the names above it."""

    kind: str
    id: int
    name: str
    path: tuple[str, ...]
    metalake_id: int


@dataclass
class Results:
    """What matches, the best first. `is_cut`: there may be more of it.

    `beginnings_only`: in what is larger than named.SMALL objects only the beginnings of names were searched.
    """

    objects: list[Result] = field(default_factory=list)
    roles: list[Result] = field(default_factory=list)
    users: list[Result] = field(default_factory=list)
    groups: list[Result] = field(default_factory=list)
    is_cut: bool = False
    beginnings_only: bool = False

    def __bool__(self) -> bool:
        return any((self.objects, self.roles, self.users, self.groups))


def search(actor: Actor, metalake: str | None, text: str, limit: int = 20, *, exact: bool = False) -> Results:
    """At most `limit` of each sort in a metalake, or in all of the caller's (None).

    With `exact`, whoever may grant somewhere is told roles and people of exactly this name, and a miss is counted.
    Raises NotFound, NotInUse, TooManyRequests, and Invalid for a text that is too long.
    """
    text = text.strip()
    if len(text) > LONGEST or "\x00" in text:
        raise Invalid(f"Search for {LONGEST} characters at most, without NUL.")
    results = Results()
    if text:
        for name in [metalake] if metalake is not None else _metalakes(actor, results):
            _search_one(actor, name, text, limit, exact, results)
    return results


def _metalakes(actor: Actor, results: Results) -> list[str]:
    rows = policy.metalakes_of(actor).filter(enabled=True).order_by("name")
    names = list(rows.values_list("name", flat=True)[: MOST_METALAKES + 1])
    results.is_cut |= len(names) > MOST_METALAKES
    return names[:MOST_METALAKES]


def _search_one(actor: Actor, metalake: str, text: str, limit: int, exact: bool, results: Results) -> None:
    top = enter(actor, metalake)
    seen = seen_by(actor, top)
    for matches in (name_search.by_path(actor, seen, text, limit), name_search.by_name(actor, seen, text, limit)):
        known = {result.id for result in results.objects}
        results.objects += [_object(each) for each in matches.objects if each.id not in known]
        results.is_cut |= matches.is_cut
        results.beginnings_only |= matches.beginnings_only
    results.users += _rows(
        "user", top, people.listed_users(actor, top).filter(word_begins("user__username", text)), limit
    )
    results.groups += _rows("group", top, people.listed_groups(actor, top).filter(word_begins("name", text)), limit)
    results.roles += _rows("role", top, _roles(actor, top).filter(word_begins("name", text)), limit)
    granting = _granting(actor, seen)
    if granting:
        results.roles += _carried(actor, top, granting, word_begins("group__role__name", text), limit)
        if exact:
            _add_exact(actor, metalake, text, results)
    for sort in ("objects", "roles", "users", "groups"):
        every = list(dict.fromkeys(getattr(results, sort)))
        setattr(results, sort, every[:limit])
        results.is_cut |= len(every) > limit


def _object(located: Located) -> Result:
    path = tuple(node.name for node in located.nodes[:-1])
    return Result(located.kind.value, located.id, located.name, path, located.metalake.id)


# Roles and people


_FIELDS = {
    "user": ("user_id", "user__username"),
    "group": ("pk", "name"),
    "role": ("pk", "name"),
}


def _rows(sort: str, top: Located, rows: QuerySet, limit: int) -> list[Result]:
    id, name = _FIELDS[sort]
    some = rows.order_by(name).values_list(id, name)[: limit + 1]
    return [Result(sort, id, name, (top.name,), top.id) for id, name in some]


def _roles(actor: Actor, top: Located) -> QuerySet:
    return Role.objects.filter(readable(actor, top), parent_id=top.id)


def _granting(actor: Actor, seen: Seen) -> list[Located]:
    """The topmost objects on which the actor may grant by what they hold or own there; roles are all told already to
    those who may on the metalake.
    """
    allowed: list[Located] = []
    for head in seen.heads:
        is_covered = allowed and head.lineage.startswith(f"{allowed[-1].lineage}/")
        if not is_covered and policy.may_grant(actor, head):
            allowed.append(head)
    return allowed


def _carried(actor: Actor, top: Located, granting: Iterable[Located], wanted: Q, limit: int) -> list[Result]:
    """The roles that carry a grant on an object that the actor may grant on."""
    inside = Q()
    for head in granting:
        inside |= Q(content_object__lineage__gte=head.lineage, content_object__lineage__lt=f"{head.lineage}0")
    rows = Grant.objects.filter(inside, wanted, unended(actor.moment), group__role__parent_id=top.id)
    triples = rows.order_by("group__role__name", "pk").values_list(
        "group__role", "group__role__name", "content_object_id"
    )
    some = list(triples[:MOST_GRANTS])
    objects = by_ids(object_id for _, _, object_id in some)
    may = {id: policy.may_grant(actor, located) for id, located in objects.items()}
    roles = dict.fromkeys((role_id, name) for role_id, name, object_id in some if may.get(object_id))
    return [Result("role", id, name, (top.name,), top.id) for id, name in roles][: limit + 1]


def _add_exact(actor: Actor, metalake: str, name: str, results: Results) -> None:
    try:
        for result in _called(actor, metalake, name):
            getattr(results, f"{result.kind}s").insert(0, result)
    except NotFound:
        pass


@misses_counted("user", "group", "role")
def _called(actor: Actor, metalake: str, name: str) -> list[Result]:
    """The user, the group and the role of exactly this name. Raises NotFound if there is none of them."""
    top = enter(actor, metalake)
    exactly = list(_exactly(top, name))
    if not exactly:
        raise NotFound(f"Nobody and no role is called {name}.", kind="user")
    return exactly


def _exactly(top: Located, name: str) -> Iterator[Result]:
    yield from _rows("user", top, Member.objects.filter(metalake_id=top.id, user__username=name), 1)
    yield from _rows("group", top, Group.objects.filter(metalake_id=top.id, name=name), 1)
    yield from _rows("role", top, Role.objects.filter(parent_id=top.id, name=name), 1)
