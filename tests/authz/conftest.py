"""The small world, its users on the wire, and what several files of tests begin with."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from authz import snapshot
from authz.actor import Actor
from authz.models import Grant
from authz.services import grants, roles
from metalake.kinds import Kind
from tests.authz.history import History
from tests.authz.refusals import hold
from tests.authz.small_world import Wire, World, held, small_world
from tests.replaying import replayed


@pytest.fixture
def world(db: None) -> Iterator[World]:
    snapshot.forget()
    yield small_world()
    # Whatever was published, the process follows it as if it had read everything anew.
    assert held(snapshot.latest()) == held(snapshot.load())
    snapshot.forget()


@pytest.fixture
def wire(settings: Any) -> Wire:
    settings.ROOT_URLCONF = "tests.authz.urlconf"
    return Wire()


@pytest.fixture
def analyst(world: World) -> None:
    """A role that a half-done override would empty."""
    add_analyst(world)


@replayed
def add_analyst(world: World) -> None:
    roles.create_role(world.olga, "acme", "analyst")
    hold(world, "allow", "use_catalog", "lake")
    hold(world, "deny", "create_table", "lake.A")


@pytest.fixture
def filled(world: World) -> World:
    """Roles of every sort: DENYs, times, one without grants, groups."""
    world.roles_given = fill(world)
    snapshot.forget()
    return world


@replayed
def fill(world: World) -> int:
    world.give("mia", "use_catalog@lake", "use_schema@lake.A", "deny modify_table@lake.A")
    world.give("nils", "select_table@lake.A:B.t", "manage_grants@lake", "create_role@acme")
    world.group("analysts", "mia", "nils")
    roles.create_role(world.olga, "acme", "empty")
    roles.create_role(world.olga, "acme", "no")
    roles.assign_roles(world.olga, "acme", "group", "analysts", ["no"])
    soon = timezone.now() + timedelta(days=2)
    span = (soon, soon + timedelta(days=1))
    grants.grant_privileges(world.olga, "acme", "no", Kind.CATALOG, "lake", [("use_catalog", "allow", *span)])
    grants.grant_privileges(world.olga, "acme", "no", Kind.SCHEMA, "lake.A", [("use_schema", "deny", None, soon)])
    started = Grant.objects.get(group__role__name="no", permission__codename="use_catalog")
    Grant.rows.filter(pk=started.pk).update(starts_at=timezone.now() - timedelta(days=1))
    ended = Grant.objects.get(group__role__name="r2", permission__codename="select_table")
    Grant.rows.filter(pk=ended.pk).update(ends_at=timezone.now() - timedelta(hours=1))
    return world.roles_given


@pytest.fixture
def past(db: None, django_user_model) -> History:
    """Made by olga, a service admin."""
    user = django_user_model.objects.create_superuser("olga", "a long enough password")
    snapshot.forget()
    return History(Actor(user.pk, "olga", snapshot.latest(), service_admin=True))
