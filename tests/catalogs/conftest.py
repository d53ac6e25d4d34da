"""The metalake `demo`: `admin` owns it and its catalog `lake`, `mia` is a member with nothing, `otto` no member."""

from __future__ import annotations

import pytest

from authz import snapshot
from authz.callers.identity import actor_of
from authz.models import User
from authz.services import people, roles
from authz.services.entries import Ask
from catalogs.services import catalogs, metalakes
from metalake.kinds import Kind
from tests.catalogs.callers import PASSWORD, Caller


@pytest.fixture
def admin(db: None) -> Caller:
    """A service administrator, who owns what the fixtures make."""
    snapshot.forget()
    account = User.objects.create_superuser("admin", PASSWORD)
    metalakes.create_metalake(actor_of(account), "demo", None, {})
    catalogs.create_catalog(actor_of(account), "demo", "lake", "relational", "lakehouse-iceberg", None, {})
    return Caller("admin")


@pytest.fixture
def mia(admin: Caller) -> Caller:
    User.objects.create_user("mia", PASSWORD)
    people.add_user(actor_of(User.objects.get(username="admin")), "demo", "mia")
    return Caller("mia")


@pytest.fixture
def otto(admin: Caller) -> Caller:
    User.objects.create_user("otto", PASSWORD)
    return Caller("otto")


def give(user: str, kind: Kind, full_name: str, *privileges: str, effect: str = "allow") -> None:
    """These privileges on one object, through a role of its own."""
    owner = actor_of(User.objects.get(username="admin"))
    role = f"{user}-{kind}-{'-'.join(privileges)}-{effect}"[:64]
    roles.create_role(owner, "demo", role, securables=[Ask(kind, full_name, [(name, effect) for name in privileges])])
    roles.assign_roles(owner, "demo", "user", user, [role])
