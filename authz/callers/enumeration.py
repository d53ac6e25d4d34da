"""Limits enumeration of user, group and role names by callers who may not list them.

A call that names one of them, such as a new owner, a role to grant to or a user to look up, reveals whether it exists.
After MISSES wrong names in a window, such a caller's further calls are rejected until the window ends.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from authz import operations, policy, throttling
from authz.actor import Actor
from authz.objects import find_metalake
from metalake.errors import AlreadyExists, Forbidden, NotFound

P = ParamSpec("P")
T = TypeVar("T")
Service = Callable[Concatenate[Actor, str, P], T]

MISSES = 100
LISTING = {
    "user": operations.MANAGE_USERS,
    "group": operations.MANAGE_GROUPS,
    "role": operations.READ_ROLES,
}
_TOO_MANY = "Too many users, groups or roles were asked for that do not exist; who may list them need not guess."


def misses_counted(*sorts: str) -> Callable[[Service[P, T]], Service[P, T]]:
    """Decorate a service that takes names of these sorts to count its misses; it may raise TooManyRequests.

    A miss is a NotFound, AlreadyExists or Forbidden about one of these sorts.
    """

    def declare(service: Service[P, T]) -> Service[P, T]:
        @wraps(service)
        def asked(actor: Actor, metalake: str, *args: P.args, **kwargs: P.kwargs) -> T:
            _require_few(actor, metalake, sorts)
            try:
                return service(actor, metalake, *args, **kwargs)
            except (NotFound, AlreadyExists, Forbidden) as refusal:
                if refusal.kind in sorts:
                    count_misses(actor, metalake, refusal.kind)
                raise

        return asked

    return declare


def count_misses(actor: Actor, metalake: str, sort: str, times: int = 1) -> None:
    """Count misses unless the actor may list that sort; call it outside a transaction that is rolled back.

    Raises TooManyRequests if there are more than MISSES.
    """
    if times and not _may_list(actor, metalake, sort):
        throttling.add([_count_of(actor)], _TOO_MANY, times)


def _require_few(actor: Actor, metalake: str, sorts: tuple[str, ...]) -> None:
    count = _count_of(actor)
    rows = throttling.read(count.digest)
    if rows and not all(_may_list(actor, metalake, sort) for sort in sorts):
        throttling.require([count], rows, _TOO_MANY)


def _may_list(actor: Actor, metalake: str, sort: str) -> bool:
    top = find_metalake(metalake)
    return top is not None and policy.permits(actor, LISTING[sort], top)


def _count_of(actor: Actor) -> throttling.Count:
    return throttling.count_of(MISSES, "misses", str(actor.id), "" if actor.id else actor.name)
