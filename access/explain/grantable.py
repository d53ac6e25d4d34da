"""What the caller may grant on an object: scopes (the object and its ancestors), levels, and privileges."""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from access.explain.queries import Place, Whom, ids_of
from access.explain.reach import fits, type_of
from authz import operations, policy
from authz.actor import Actor
from authz.callers.enumeration import count_misses, misses_counted
from authz.objects import address_of, find_object, finder, locate_all, locate_anywhere
from authz.services import people
from authz.services.authority import may_give, may_pass_on, require
from authz.services.change import enter
from authz.services.directory import in_another_case
from metalake.errors import Invalid, ProviderUnavailable, StoreUnavailable, TooLarge
from metalake.full_names import dotted
from metalake.kinds import CONTAINERS, IN_CATALOGS, KINDS, STORED_KINDS, Kind, family, grantable_on
from metalake.levels import Level, privileges_of
from metalake.lineage import Located, missing
from metalake.models import Securable, below
from metalake.privileges import Privilege

MOST_COUNTED = 10_000
MOST_NAMES = 200
NOT_THERE = "You may not grant there."


@dataclass(frozen=True)
class Scope:
    """An object that a grant may be made on, and how many objects it covers there, including itself.

    `objects` is None where the caller may not grant, and a lower bound if `is_cut`.
    """

    on: Located
    objects: int | None
    is_cut: bool = False


class GrantablePrivilege(NamedTuple):
    """A privilege, the kind that it is about (None: granting itself), and why the caller may not grant it here."""

    privilege: Privilege
    about: Kind | None
    why_not: str


@dataclass(frozen=True)
class Grantable:
    """What the caller may grant on `on`; `scopes` are the metalake first and the object itself last."""

    on: Located
    scopes: tuple[Scope, ...]
    privileges: tuple[GrantablePrivilege, ...]
    levels: dict[Level, tuple[Privilege, ...]]


class GrantableObject(NamedTuple):
    """An object by its exact name, the type of its catalog, and its kind's privileges with why not each."""

    on: Place
    catalog_type: str | None
    privileges: tuple[GrantablePrivilege, ...]


class Named(NamedTuple):
    """Looked-up names: those of a user or a group, of neither, and of both.

    Among those the caller may list, `meant` suggests names that differ only in case, by unknown name, and `begun` is
    the last unknown name if others begin with it.
    """

    people: tuple[Whom, ...]
    unknown: tuple[str, ...] = ()
    ambiguous: tuple[str, ...] = ()
    meant: tuple[tuple[str, str], ...] = ()
    begun: str = ""


def grantable_by(actor: Actor, metalake: str, on: Place) -> Grantable:
    """What the caller may grant on an object. Raises NotFound, and Forbidden if they may grant nothing there."""
    enter(actor, metalake)
    target = _locate(actor, metalake, on)
    lineage = [Located(nodes=target.nodes[: depth + 1]) for depth in range(len(target.nodes))]
    return _grantable(actor, target, tuple(_scope(actor, each) for each in lineage))


def grantable_above(actor: Actor, may: Grantable, scope: Scope) -> Grantable:
    """The same for one of its scopes where the caller may grant, without repeating lookups and counts."""
    return _grantable(actor, scope.on, may.scopes[: len(scope.on.nodes)])


def grantable_on_each(
    actor: Actor, metalake: str, places: Collection[Place], known: Container[Place] = ()
) -> tuple[dict[Place, GrantableObject], dict[Place, str]]:
    """What the caller may grant on each of these objects, and a sentence for each that they cannot choose.

    A hidden object is like a missing one, unless it is in `known`: those that the caller was shown by name. The
    failure of an outside system is the sentence of those that only it may have.
    """
    top = enter(actor, metalake)
    addresses, wrong = {}, {}
    for place in places:
        try:
            if place.kind not in operations.FAMILIES["grant_on"]:
                raise Invalid(f"Nothing is granted on a {place.kind}.")
            addresses[place] = address_of(metalake, *place)
        except Invalid as mistake:
            wrong[place] = mistake.message
    located, unknown = locate_all(top, addresses.values()), ""
    try:
        if any(address not in located for address in addresses.values()):
            located = locate_anywhere(actor, top, list(dict.fromkeys(addresses.values())))
    except StoreUnavailable:
        raise
    except ProviderUnavailable as failure:
        unknown = failure.message
    catalogs = {on.nodes[1].id for on in located.values() if len(on.nodes) > 1}
    types = finder().catalog_types(catalogs) if catalogs else {}
    objects: dict[Place, GrantableObject] = {}
    takes: dict[tuple[Kind, str | None], list[tuple[Privilege, Kind | None]]] = {}
    for place, address in addresses.items():
        target = located.get(address)
        exact = Place(address.kind, dotted(target.full_name)) if target else place
        if target is None or not (exact in known or policy.sees(actor, target)):
            wrong[place] = unknown or missing(address.kind, address.names).message
            continue
        catalog_type = types.get(target.nodes[1].id) if len(target.nodes) > 1 else None
        sort = Kind(target.kind), catalog_type
        if sort not in takes:
            takes[sort] = [each for each in _about_each(*sort) if _takes(*sort, each[0]) == ""]
        may = policy.permits(actor, operations.grant_on(target.kind), target)
        privileges = tuple(
            GrantablePrivilege(each, about, _may_not_pass_on(actor, target, each) if may else NOT_THERE)
            for each, about in takes[sort]
        )
        objects[place] = GrantableObject(exact, catalog_type, privileges)
    return objects, wrong


def _grantable(actor: Actor, target: Located, scopes: tuple[Scope, ...]) -> Grantable:
    catalog_type = type_of(target)
    levels = {level: privileges_of(level, target.kind, catalog_type) for level in Level}
    return Grantable(target, scopes, tuple(_privileges(actor, target, catalog_type)), levels)


@misses_counted("user", "group")
def name_people(actor: Actor, metalake: str, on: Place, names: Sequence[str]) -> Named:
    """Look up users and groups by name, for those who may grant on the object.

    "user:mia" and "group:sales" resolve ambiguous names. Raises TooLarge for more than MOST_NAMES names, and
    TooManyRequests for too many wrong guesses by a caller who may not list them.
    """
    top = enter(actor, metalake)
    _locate(actor, metalake, on)
    if len(names) > MOST_NAMES:
        raise TooLarge(
            f"{len(names):,} names are too many: up to {MOST_NAMES} may be granted to at once. Make a group of them, "
            "and grant to the group."
        )
    named = _look_up(top, list(dict.fromkeys(names)))
    count_misses(actor, metalake, "user", len(named.unknown))
    users, groups = people.listed_users(actor, top), people.listed_groups(actor, top)
    meant = in_another_case(groups, "name", named.unknown) | in_another_case(users, "user__username", named.unknown)
    last = named.unknown[-1] if named.unknown else ""
    begins = last and (
        users.filter(user__username__istartswith=last).exists() or groups.filter(name__istartswith=last).exists()
    )
    return named._replace(meant=tuple(meant.items()), begun=last if begins and last not in meant else "")


def _locate(actor: Actor, metalake: str, on: Place) -> Located:
    if on.kind not in operations.FAMILIES["grant_on"]:
        raise Invalid(f"Nothing is granted on a {on.kind}.", kind="object")
    target = find_object(metalake, *on, actor)
    require(actor, operations.grant_on(target.kind), target)
    return target


def _scope(actor: Actor, on: Located) -> Scope:
    if not policy.permits(actor, operations.grant_on(on.kind), on):
        return Scope(on, None)
    if on.kind not in CONTAINERS:
        return Scope(on, 1)
    covered = Securable.objects.filter(below(on.lineage), kind__in=(Kind.CATALOG, *IN_CATALOGS))
    count = covered.order_by()[:MOST_COUNTED].count()
    return Scope(on, 1 + count, is_cut=count == MOST_COUNTED)


def _privileges(actor: Actor, target: Located, catalog_type: str | None) -> list[GrantablePrivilege]:
    """The privileges of all kinds of which at least one can be granted on the target, kind by kind."""
    return [
        GrantablePrivilege(privilege, about, _why_not(actor, target, privilege, catalog_type))
        for privilege, about in _about_each(Kind(target.kind), catalog_type)
    ]


def _about_each(kind: Kind, catalog_type: str | None) -> list[tuple[Privilege, Kind | None]]:
    """Those privileges, each with the kind that it is about."""
    groups: dict[Kind | None, list[Privilege]] = {}
    for about in (*STORED_KINDS, None):
        groups[about] = [privilege for privilege in Privilege if _about(privilege) is about]
    return [
        (privilege, about)
        for about, privileges in groups.items()
        if not all(_takes(kind, catalog_type, privilege) for privilege in privileges)
        for privilege in privileges
    ]


def _about(privilege: Privilege) -> Kind | None:
    """The kind whose declaration has the privilege; None for the right to grant, which all kinds have."""
    if privilege is Privilege.MANAGE_GRANTS:
        return None
    return next(kind for kind, declared in KINDS.items() if privilege in (*declared.creating, *declared.privileges))


def _why_not(actor: Actor, target: Located, privilege: Privilege, catalog_type: str | None) -> str:
    if sentence := _takes(Kind(target.kind), catalog_type, privilege):
        return sentence
    return "" if may_give(actor, target, privilege) else _only_owners(privilege)


def _takes(kind: Kind, catalog_type: str | None, privilege: Privilege) -> str:
    """Why objects of this kind, in such a catalog, do not take a privilege; "" if they do."""
    if kind not in grantable_on(privilege):
        kinds = " or a ".join(each for each in CONTAINERS if each in grantable_on(privilege))
        return f"It is granted on a {kinds}."
    return "" if fits(privilege, catalog_type) else f"It is for {family(privilege)} catalogs."


def _may_not_pass_on(actor: Actor, target: Located, privilege: Privilege) -> str:
    """Why the actor, who may grant on the target, may not grant this; "" if they may."""
    return "" if may_pass_on(actor, target, privilege) else _only_owners(privilege)


def _only_owners(privilege: Privilege) -> str:
    if privilege is Privilege.MANAGE_GRANTS:
        return "Only owners give it, or who may grant on the metalake."
    return "Only owners give it."


def _look_up(top: Located, names: Sequence[str]) -> Named:
    bare = {_bare(name)[1] for name in names} | set(names)
    known = {sort: ids_of(top, sort, bare).keys() for sort in ("user", "group")}
    persons: dict[Whom, None] = {}
    unknown, ambiguous = [], []
    for name in names:
        wanted, rest = _bare(name)
        meant = [Whom(wanted, rest)] if rest in known.get(wanted, ()) else []
        meant = meant or [Whom(sort, name) for sort in known if name in known[sort]]
        if not meant:
            unknown.append(name)
        elif len(meant) > 1:
            ambiguous.append(name)
        else:
            persons[meant[0]] = None
    return Named(tuple(persons), tuple(unknown), tuple(ambiguous))


def _bare(name: str) -> tuple[str, str]:
    """The sort and the name of "user:mia"; no sort for a bare name."""
    sort, divides, rest = name.partition(":")
    return (sort, rest) if divides and sort in ("user", "group") else ("", name)
