"""What a user sees of an object and its direct children, for callers who may read access there."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from django.db.models import Q, QuerySet

from access.explain.permissions import Place, open_on, reads_access, subject
from access.explain.reach import type_of, usable
from access.history.current import State
from authz import policy
from authz.actor import NOBODY, Actor
from authz.callers.enumeration import misses_counted
from authz.models import Member
from metalake.errors import NotFound
from metalake.kinds import CONTAINERS, LEAVES, Kind
from metalake.lineage import Located, Node
from metalake.models import Securable
from metalake.privileges import Privilege


class Seen(NamedTuple):
    """Whether a person sees an object, and the privileges that they can use on it."""

    sees: bool
    privileges: tuple[Privilege, ...]


@misses_counted("user")
def children_seen(actor: Actor, metalake: str, user: str, on: Place, after: str, limit: int) -> list[Located]:
    """The objects directly below another that a user sees, by kind and name, from the one after `after`.

    `after` is "kind/name" of the last one of the page before. Raises the errors of `viewer`.
    """
    state, target = open_on(actor, metalake, on)
    rows = _visible(_member(actor, state, target, user), target, Securable.objects.filter(parent_id=target.id))
    if after:
        kind, _, name = after.partition("/")
        rows = rows.filter(Q(kind__gt=kind) | Q(kind=kind, name__gt=name))
    nodes = rows.order_by("kind", "name").values_list(*Node._fields)[:limit]
    return [target.below(Node(*values)) for values in nodes]


def seen_among(person: Actor, target: Located, ids: Collection[int]) -> frozenset[int]:
    """The ids of those children of an object that a person sees; one query per kind of child."""
    rows = Securable.objects.filter(parent_id=target.id, pk__in=ids)
    return frozenset(_visible(person, target, rows).values_list("pk", flat=True))


def metalakes_unseen(actor: Actor, user: str, metalakes: Iterable[Located]) -> frozenset[int]:
    """The ids of the metalakes that a user is no member of, of those where the actor may read access; one statement.

    `access/check` with `load_metalake` gives the same answers.
    """
    readable = {top.id for top in metalakes if reads_access(actor, top)}
    joined = Member.objects.filter(metalake_id__in=readable, user__username=user, enabled=True)
    return frozenset(readable.difference(joined.values_list("metalake_id", flat=True)))


def seen_of(person: Actor, target: Located) -> Seen:
    """What a person sees of an object."""
    rights = policy.rights_on(person, target)
    return Seen(policy.sees(person, target, rights), usable(rights, target.kind, type_of(target)))


@misses_counted("user")
def viewer(actor: Actor, metalake: str, target: Located, user: str) -> Actor:
    """The member of that name, to ask what they see at an object.

    Raises NotFound if the object is hidden from the caller or there is no such member, and Forbidden unless the
    caller may read access there or is that member.
    """
    state, _ = open_on(actor, metalake, target)
    return _member(actor, state, target, user)


def _member(actor: Actor, state: State, target: Located, user: str) -> Actor:
    person = subject(actor, state, target, user)
    if person.id == NOBODY:
        raise NotFound(f"User {user} does not exist.", kind="user")
    return person


def _visible(person: Actor, target: Located, rows: QuerySet[Securable]) -> QuerySet[Securable]:
    """The rows below the target that the person may load, or that are ancestors of what they may load."""
    if target.kind == Kind.METALAKE:
        is_member = person.is_member(target.id)
        return policy.visible_catalogs(person, target, rows.filter(kind=Kind.CATALOG)) if is_member else rows.none()
    if target.kind not in CONTAINERS:
        return rows.none()
    seen = Q(pk__in=policy.visible_schemas(person, target, rows.filter(kind=Kind.SCHEMA)).values("pk"))
    if target.kind == Kind.SCHEMA:
        for kind in LEAVES:
            seen |= Q(pk__in=policy.visible_leaves(person, target, rows.filter(kind=kind), kind).values("pk"))
    return rows.filter(seen)
