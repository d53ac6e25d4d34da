"""The metalake `demo` with the catalog `lake`: its owner, a reader by role, a member with nothing, an outsider."""

from __future__ import annotations

from itertools import count

import pytest

from authz import snapshot
from authz.callers.identity import actor_of
from authz.models import User
from authz.services import people, roles
from authz.services.entries import Ask
from catalogs.services import catalogs, metalakes
from metalake.kinds import Kind
from tests.iceberg_rest.world import PASSWORD, Caller

_numbers = count()
READS = [("use_catalog", "allow"), ("use_schema", "allow"), ("select_table", "allow")]


@pytest.fixture
def owner(db: None) -> Caller:
    """Owns everything that the fixture makes; service administrators are named admin."""
    snapshot.forget()
    account = User.objects.create_superuser("admin", PASSWORD)
    metalakes.create_metalake(actor_of(account), "demo", None, {})
    catalogs.create_catalog(actor_of(account), "demo", "lake", "relational", "lakehouse-iceberg", None, {})
    return Caller("admin")


@pytest.fixture
def member(owner: Caller) -> Caller:
    """In the metalake, without any role."""
    return _member("mia")


@pytest.fixture
def reader(owner: Caller) -> Caller:
    """May load every table of the catalog and change none."""
    admin = actor_of(User.objects.get(username="admin"))
    roles.create_role(admin, "demo", "readers", securables=[Ask(Kind.CATALOG, "lake", READS)])
    caller = _member("rita")
    roles.assign_roles(admin, "demo", "user", "rita", ["readers"])
    return caller


@pytest.fixture
def outsider(owner: Caller) -> Caller:
    """An account that belongs to no metalake."""
    User.objects.create_user("otto", PASSWORD)
    return Caller("otto")


def grant(caller: Caller, kind: Kind, full_name: str, *privileges: str, effect: str = "allow") -> None:
    """Give one user these privileges on one object, through a role of the user's own."""
    admin = actor_of(User.objects.get(username="admin"))
    role = f"role-{next(_numbers)}"
    pairs = [(privilege, effect) for privilege in privileges]
    roles.create_role(admin, "demo", role, securables=[Ask(kind, full_name, pairs)])
    roles.assign_roles(admin, "demo", "user", caller.name, [role])


def _member(name: str) -> Caller:
    account = User.objects.create_user(name, PASSWORD)
    people.add_user(actor_of(User.objects.get(username="admin")), "demo", account.username)
    return Caller(name)
