"""Adds or removes many users or groups; each succeeds or fails by itself, in a transaction of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from authz import operations, policy
from authz.actor import Actor
from authz.operations import Operation
from authz.services import people
from authz.services.change import enter
from authz.services.people import Person
from metalake.errors import MetalakeError, NotFound, ProviderUnavailable

T = TypeVar("T")
MAX_ENTRIES = 100


class NewUser(NamedTuple):
    name: str
    external_id: str | None = None
    enabled: bool = True


class NewGroup(NamedTuple):
    name: str
    external_id: str | None = None


@dataclass(frozen=True)
class Failure:
    """The entry at `index` of the request that failed, and why."""

    index: int
    name: str
    error: MetalakeError


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """The results that succeeded and the failures, both in the order of the request."""

    done: list[T]
    failures: list[Failure]


def add_users(actor: Actor, metalake: str, users: Sequence[NewUser]) -> Outcome[Person]:
    """Raises what people.add_user raises about the metalake or the caller's right to manage users."""
    asked = [(user.name, lambda user=user: people.add_user(actor, metalake, *user)) for user in users]
    return _each(actor, metalake, operations.MANAGE_USERS, asked)


def add_groups(actor: Actor, metalake: str, groups: Sequence[NewGroup]) -> Outcome[Person]:
    """Add groups; raises as add_users does."""
    asked = [(group.name, lambda group=group: people.add_group(actor, metalake, *group)) for group in groups]
    return _each(actor, metalake, operations.MANAGE_GROUPS, asked)


def remove_users(actor: Actor, metalake: str, names: Sequence[str]) -> Outcome[str]:
    """Remove these users; a name that does not exist is a failure."""
    asked = [(name, lambda name=name: _gone(people.remove_user(actor, metalake, name), "user", name)) for name in names]
    return _each(actor, metalake, operations.MANAGE_USERS, asked)


def remove_groups(actor: Actor, metalake: str, names: Sequence[str]) -> Outcome[str]:
    """Remove these groups; a name that does not exist is a failure."""
    asked = [
        (name, lambda name=name: _gone(people.remove_group(actor, metalake, name), "group", name)) for name in names
    ]
    return _each(actor, metalake, operations.MANAGE_GROUPS, asked)


def _gone(removed: bool, kind: str, name: str) -> str:
    if not removed:
        raise NotFound(f"{kind.capitalize()} {name} does not exist.", kind=kind)
    return name


def _each(
    actor: Actor, metalake: str, operation: Operation, asked: Sequence[tuple[str, Callable[[], T]]]
) -> Outcome[T]:
    policy.require(actor, operation, enter(actor, metalake))
    done: list[T] = []
    failures: list[Failure] = []
    down: ProviderUnavailable | None = None
    for index, (name, act) in enumerate(asked):
        try:
            if down:
                raise down
            done.append(act())
        except MetalakeError as error:
            # If the database is down, the other entries fail at once instead of waiting for it again.
            down = error if isinstance(error, ProviderUnavailable) else None
            failures.append(Failure(index, name, error))
    return Outcome(done, failures)
