"""The metalake `demo` with the catalog `lake`, both `admin`'s: where the tests of services, wires and pages begin.

They share these people: `mia` is a member with nothing, `otto` has an account and is no member. What a folder of tests
needs beside them stands in its conftest. The rules of rights have a smaller world of rows: tests/authz/small_world.py.
"""

from __future__ import annotations

from itertools import count

from authz import snapshot
from authz.actor import Actor
from authz.callers.identity import actor_of
from authz.models import User
from authz.services import people, roles
from authz.services.grant_entries import Ask
from catalogs.services import catalogs, metalakes
from metalake.kinds import Kind
from tests.replaying import replayed

PASSWORD = "correct horse battery"
_numbers = count()


def actor(name: str) -> Actor:
    """This account, on the policy as of now."""
    return actor_of(User.objects.get(username=name))


@replayed
def add_user(name: str) -> User:
    """An account that belongs to no metalake."""
    return User.objects.create_user(name, PASSWORD)


@replayed
def add_member(name: str) -> User:
    """An account in `demo`, without any role."""
    account = add_user(name)
    people.add_user(actor("admin"), "demo", name)
    return account


def make_demo(
    about_demo: str | None = None, about_lake: str | None = None, lake: dict[str, str] | None = None
) -> Actor:
    """Make the metalake and its catalog, with these comments and properties, and return the owner of both."""
    _make_demo(about_demo, about_lake, tuple((lake or {}).items()))
    return actor("admin")


@replayed
def _make_demo(about_demo: str | None, about_lake: str | None, lake: tuple[tuple[str, str], ...]) -> None:
    snapshot.forget()
    User.objects.create_superuser("admin", PASSWORD)
    owner = actor("admin")
    metalakes.create_metalake(owner, "demo", about_demo, {})
    owner = actor("admin")
    catalogs.create_catalog(owner, "demo", "lake", "relational", "lakehouse-iceberg", about_lake, dict(lake))


def give(user: str | None, kind: Kind, full_name: str, *grants: str, role: str | None = None) -> None:
    """Give a user, or nobody, privileges ("use_schema", "deny use_schema") on one object, by a role of their own."""
    pairs = [(grant.removeprefix("deny "), "deny" if grant.startswith("deny ") else "allow") for grant in grants]
    name = role or f"role-{next(_numbers)}"
    roles.create_role(actor("admin"), "demo", name, securables=[Ask(kind, full_name, pairs)])
    if user:
        roles.assign_roles(actor("admin"), "demo", "user", user, [name])
