"""Search: objects by name or path, roles, users and groups, among what the caller may see.

Objects are those that the evaluator shows (access.explain.regions). Roles and people are those that the caller may
list; whoever may grant somewhere is shown the roles that carry grants there too, and roles and people by their exact
name, which the API tells them as well and counts (docs/authorization.md, "What one sees").

Names are compared without regard to the case of ASCII letters. A region of up to SMALL objects is read, so that words
inside names are looked up there too; in larger ones the index of names gives those that begin with the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from string import ascii_lowercase, ascii_uppercase
from typing import NamedTuple

from django.db.models import Q, QuerySet, Value
from django.db.models.functions import Concat, Lower

from access.explain.phrases import LONGEST, Act, Phrase
from access.explain.regions import Region, Seen, seen_by
from authz import operations, policy
from authz.actor import Actor
from authz.callers.enumeration import misses_counted
from authz.models import Grant, Group, Member, Role, unended
from authz.objects import batches, by_ids, finder
from authz.services import people
from authz.services.change import enter
from authz.services.directory import word_begins
from authz.services.roles import readable
from metalake.errors import Invalid, NotFound
from metalake.full_names import undotted
from metalake.kinds import CONTAINERS, LEAVES, Kind, slot_of
from metalake.levels import telling_privilege
from metalake.lineage import Located
from metalake.models import Securable
from metalake.privileges import Privilege

SMALL = 5000
READ_REGIONS = 50  # read one by one
MOST_PARENTS = 5  # containers of the same name searched for a path

_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
_LAST = chr(0x10FFFF)


class Matches(NamedTuple):
    """Objects, the best first. `is_cut`: there may be more. `beginnings_only`: words inside names were not searched
    everywhere.
    """

    objects: list[Located]
    is_cut: bool = False
    beginnings_only: bool = False


def fold(text: str) -> str:
    """The text as in the database's name index: ASCII letters in lower case."""
    return text.translate(_LOWER)


def starts_word(name: str, text: str) -> bool:
    """Whether a word of the name begins with the folded text; words are divided by all but letters and digits."""
    return re.search(r"(?<![^\W_])" + re.escape(text), fold(name)) is not None


def by_name(actor: Actor, seen: Seen, text: str, limit: int) -> Matches:
    """The objects of a metalake in whose name a word begins with the text; `seen` is what the actor sees of it."""
    wanted = fold(text)
    return _matching(actor, seen, limit, wanted, lambda name: starts_word(name, wanted), f"{wanted}{_LAST}")


def by_path(actor: Actor, seen: Seen, text: str, limit: int) -> Matches:
    """The objects at the end of a path, or of its last part, whose last name may be cut: `lake.travel:n`, `travel:n`.

    Everything but a leaf may stand at its beginning. No object for a text that is no path.
    """
    first, *middle = steps = [fold(step) for step in _steps(text)]
    if len(steps) < 2:
        return Matches([])
    first_ones = _matching(actor, seen, MOST_PARENTS, first, lambda name: fold(name) == first, first)
    parents = [each for each in first_ones.objects if each.kind in CONTAINERS]
    for step in middle[:-1]:
        parents = _children(actor, parents, Q(folded=step), MOST_PARENTS)
    last = Q(folded__gte=middle[-1], folded__lte=f"{middle[-1]}{_LAST}")
    objects = _children(actor, parents, last, limit + 1)
    return Matches(objects[:limit], first_ones.is_cut or len(objects) > limit)


def _steps(text: str) -> list[str]:
    """The names in a path: divided by dots, and within the second one by the separator of levels."""
    return [level for part in text.split(".") for name in undotted(part) for level in finder().levels(name)]


def _matching(actor: Actor, seen: Seen, limit: int, first: str, matches: Callable[[str], bool], last: str) -> Matches:
    """The objects whose name matches; in large regions those whose folded name lies between `first` and `last`."""
    # Including the ancestors of heads, which the actor may see as the path to them.
    ids = [node.id for head in seen.heads for node in head.nodes if matches(node.name)]
    small, large = _by_size(seen)
    for region in small:
        rows = Securable.objects.filter(region.rows()).values_list("id", "name")
        ids += [id for id, name in rows if matches(name)]
    if large:
        ids += _in_index(large, Q(folded__gte=first, folded__lte=last))[: limit + 1]
    ordered = sorted(_seen(actor, ids), key=lambda each: rank(each, first))
    return Matches(ordered[:limit], seen.is_cut or len(ordered) > limit, bool(large))


def rank(located: Located, wanted: str) -> tuple:
    """Sort key of matches: full name, prefix, word; containers first; by name and place."""
    name = fold(located.name)
    place = 0 if name == wanted else 1 if name.startswith(wanted) else 2
    return place, len(located.nodes), name, [node.name for node in located.nodes]


def _by_size(seen: Seen) -> tuple[list[Region], list[Region]]:
    """The regions that are read whole, SMALL objects altogether, and those that the index is asked about."""
    room = SMALL
    small: list[Region] = []
    large: list[Region] = list(seen.regions[READ_REGIONS:])
    for region in seen.regions[:READ_REGIONS]:
        # Counts only what the actor sees, so the figure does not leak the rest.
        size = Securable.objects.filter(region.rows()).order_by("lineage")[: room + 1].count()
        if size > room:
            large.append(region)
        else:
            room -= size
            small.append(region)
    return small, large


def _in_index(regions: Iterable[Region], names: Q) -> QuerySet[Securable, int]:
    """The ids of the rows in these regions with such names, by name.

    The lineage is compared as an expression, so that the database reads the index of names in its order.
    """
    inside = Q()
    for region in regions:
        inside |= region.rows("place")
    rows = Securable.objects.annotate(folded=Lower("name"), place=Concat("lineage", Value("")))
    return rows.filter(names, inside).order_by("folded", "id").values_list("id", flat=True)


def _seen(actor: Actor, ids: Iterable[int]) -> list[Located]:
    """These objects, without those that the evaluator hides."""
    return [each for each in by_ids(ids).values() if policy.sees(actor, each)]


def _children(actor: Actor, parents: Iterable[Located], names: Q, limit: int) -> list[Located]:
    """The children that the actor sees, at most `limit` of each kind in each parent; the best first."""
    ids: list[int] = []
    for parent in parents:
        rows = Securable.objects.filter(parent_id=parent.id).annotate(folded=Lower("name")).filter(names)
        for visible in _visible_children(actor, parent, rows):
            ids += visible.order_by("name").values_list("id", flat=True)[:limit]
    return sorted(_seen(actor, ids), key=lambda each: rank(each, ""))[:limit]


def _visible_children(actor: Actor, parent: Located, rows: QuerySet[Securable]) -> list[QuerySet]:
    if parent.kind == Kind.METALAKE:
        return [policy.visible_catalogs(actor, parent, rows.filter(kind=Kind.CATALOG))]
    schemas = policy.visible_schemas(actor, parent, rows.filter(slot=slot_of(Kind.SCHEMA)))
    if parent.kind == Kind.CATALOG:
        return [schemas]
    return [schemas, *(policy.visible_leaves(actor, parent, rows.filter(kind=kind), kind) for kind in LEAVES)]


AT_ONCE = 200  # comments that are read at once
SHORTEST = 3  # characters of a text that is looked for in comments
MOST_METALAKES = 20  # searched at once
MOST_GRANTS = 500  # of roles, that are looked at for whoever may grant somewhere


class Result(NamedTuple):
    """One thing by its id; `kind` is a kind of object, "role", "user" or "group", `path` the names above it."""

    kind: str
    id: int
    name: str
    path: tuple[str, ...]
    metalake_id: int
    comment: str = ""  # where that is what matched


@dataclass
class Results:
    """What matches, the best first. `is_cut`: there may be more of it.

    `beginnings_only`: in what is larger than SMALL objects only the beginnings of names were searched.
    """

    objects: list[Result] = field(default_factory=list)
    roles: list[Result] = field(default_factory=list)
    users: list[Result] = field(default_factory=list)
    groups: list[Result] = field(default_factory=list)
    commented: list[Result] = field(default_factory=list)
    is_cut: bool = False
    beginnings_only: bool = False

    def __bool__(self) -> bool:
        return any((self.objects, self.roles, self.users, self.groups, self.commented))


def search(
    actor: Actor, metalake: str | None, text: str, limit: int = 20, *, exact: bool = False, comments: bool = False
) -> Results:
    """At most `limit` of each sort in a metalake, or in all of the caller's (None).

    With `comments`, also objects by a word of their comment. With `exact`, callers who may grant somewhere also get
    roles and people of exactly this name; misses are counted.
    Raises NotFound, NotInUse, TooManyRequests, and Invalid for a text that is too long.
    """
    text = text.strip()
    if len(text) > LONGEST or "\x00" in text:
        raise Invalid(f"Search for {LONGEST} characters at most, without NUL.")
    results = Results()
    if text:
        for name in [metalake] if metalake is not None else _metalakes(actor, results):
            seen = _search_one(actor, name, text, limit, exact, results)
            if comments and len(text) >= SHORTEST:
                known = {result.id for result in results.objects}
                more = by_comment(actor, seen, text, limit)
                results.commented += [result for result in more if result.id not in known]
        results.commented = results.commented[:limit]
    return results


def _metalakes(actor: Actor, results: Results) -> list[str]:
    rows = policy.metalakes_of(actor).filter(enabled=True).order_by("name")
    names = list(rows.values_list("name", flat=True)[: MOST_METALAKES + 1])
    results.is_cut |= len(names) > MOST_METALAKES
    return names[:MOST_METALAKES]


def _search_one(actor: Actor, metalake: str, text: str, limit: int, exact: bool, results: Results) -> Seen:
    """Add what matches in one metalake; what the actor sees of it."""
    top = enter(actor, metalake)
    seen = seen_by(actor, top)
    for matches in (by_path(actor, seen, text, limit), by_name(actor, seen, text, limit)):
        known = {result.id for result in results.objects}
        results.objects += [_object(each) for each in matches.objects if each.id not in known]
        results.is_cut |= matches.is_cut
        results.beginnings_only |= matches.beginnings_only
    results.users += _rows(
        "user", top, people.listed_users(actor, top).filter(word_begins("user__username", text)), limit
    )
    results.groups += _rows("group", top, people.listed_groups(actor, top).filter(word_begins("name", text)), limit)
    roles = Role.objects.filter(readable(actor, top), word_begins("name", text), parent_id=top.id)
    results.roles += _rows("role", top, roles, limit)
    granting = _granting(actor, seen)
    if granting:
        results.roles += _carried(actor, top, granting, word_begins("group__role__name", text), limit)
        if exact:
            _add_exact(actor, metalake, text, results)
    for sort in ("objects", "roles", "users", "groups"):
        every = list(dict.fromkeys(getattr(results, sort)))
        setattr(results, sort, every[:limit])
        results.is_cut |= len(every) > limit
    return seen


def _object(located: Located) -> Result:
    path = tuple(node.name for node in located.nodes[:-1])
    return Result(located.kind.value, located.id, located.name, path, located.metalake.id)


def by_comment(actor: Actor, seen: Seen, text: str, limit: int) -> list[Result]:
    """The objects that the actor may load and in whose comment a word begins with the text, where regions are read.

    Columns are not searched: they stand in the tables' metadata files, not in our store.
    """
    inside = Q(pk__in=[head.id for head in seen.heads])
    for region in _by_size(seen)[0]:
        inside |= region.rows()
    rows = Securable.objects.filter(inside, comment__icontains=text).order_by("name", "id")
    results: list[Result] = []
    # All of them are looked at: with a bound before the rights, what is hidden would push out what is seen.
    for some in batches(rows.values_list("id", flat=True), AT_ONCE):
        comments = dict(Securable.objects.filter(pk__in=some).values_list("id", "comment"))
        objects = by_ids(id for id in some if starts_word(comments.get(id) or "", fold(text)))
        named = (objects[id] for id in some if id in objects)
        loaded = [each for each in named if policy.permits(actor, operations.load_of(each.kind), each)]
        results += [_object(each)._replace(comment=comments[each.id] or "") for each in loaded]
        if len(results) >= limit:
            break
    return results[:limit]


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


# Phrases


class Meant(NamedTuple):
    """An object that a phrase may mean; `privilege` is what the phrase is about there, None for any."""

    phrase: Phrase
    on: Result
    privilege: Privilege | None


def objects_meant(actor: Actor, phrase: Phrase, limit: int = 5) -> list[Meant]:
    """The objects that a phrase may mean, the best first; for a grant, of those that the caller may grant on.

    The person's name is not looked up; the page that it leads to does that.
    """
    objects = search(actor, None, phrase.what, 4 * limit).objects
    located = by_ids([one.id for one in objects])
    may = [one for one in objects if one.id in located and _may_ask(actor, phrase, located[one.id])]
    return [Meant(phrase, one, _privilege(phrase, one)) for one in may[:limit]]


def _privilege(phrase: Phrase, on: Result) -> Privilege | None:
    return telling_privilege(phrase.level, Kind(on.kind)) if phrase.level else phrase.privilege


def _may_ask(actor: Actor, phrase: Phrase, on: Located) -> bool:
    if on.kind not in operations.FAMILIES["read_access"]:
        return False
    return phrase.act is not Act.GRANT or policy.permits(actor, operations.grant_on(on.kind), on)
