"""The grants that end soon: all where one may read access, else those of one's own roles on what one may load."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from access.explain import ending
from access.explain.ending import ending_soon
from authz.services import roles
from authz.services.grant_entries import Ask
from metalake.kinds import Kind
from tests.authz.small_world import World

pytestmark = [pytest.mark.store, pytest.mark.django_db]
SOON = timedelta(days=14)


def give_until(world: World, role: str, ends: datetime, *grants: str, kind: Kind, on: str) -> None:
    pairs = [(each, "allow", None, ends) for each in grants]
    roles.create_role(world.olga, "acme", role, securables=[Ask(kind, on, pairs)])


def endings(world: World, name: str) -> list[tuple[str, str, list[str]]]:
    return [(one.role, one.on.name, list(one.privileges)) for one in ending_soon(world.actor(name), SOON)]


def test_what_ends_within_the_time_comes_the_first_to_end_first(world: World) -> None:
    now = world.olga.moment
    give_until(world, "later", now + timedelta(days=9), "use_schema", "select_table", kind=Kind.SCHEMA, on="lake.A")
    give_until(world, "sooner", now + timedelta(days=1), "use_catalog", kind=Kind.CATALOG, on="lake")
    give_until(world, "far", now + timedelta(days=15), "use_catalog", kind=Kind.CATALOG, on="lake")
    assert endings(world, "olga") == [
        ("sooner", "lake", ["use_catalog"]),
        ("later", "A", ["use_schema", "select_table"]),
    ]
    assert endings(world, "mia") == []
    roles.assign_roles(world.olga, "acme", "user", "mia", ["later"])
    assert endings(world, "mia") == [], "she sees no object of it yet"
    roles.assign_roles(world.olga, "acme", "user", "mia", ["sooner"])
    assert endings(world, "mia") == endings(world, "olga"), "her own"
    world.give("nils", "use_catalog@lake", "manage_grants@lake.A")
    assert endings(world, "nils") == [("later", "A", ["use_schema", "select_table"])]


def test_what_ends_in_other_metalakes_pushes_nothing_out(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "MOST_EXAMINED", 1)
    world.metalake("other", "sam")
    soon = world.olga.moment + timedelta(days=1)
    there = Ask(Kind.METALAKE, "other", [("use_catalog", "allow", None, soon)])
    roles.create_role(world.actor("sam"), "other", "theirs", securables=[there])
    give_until(world, "ours", soon + timedelta(days=1), "use_catalog", kind=Kind.CATALOG, on="lake")
    assert endings(world, "olga") == [("ours", "lake", ["use_catalog"])]


def test_it_takes_three_statements_however_many_end(world: World) -> None:
    for number in range(5):
        ends = world.olga.moment + timedelta(days=1)
        give_until(world, f"r{number}", ends, "use_schema", kind=Kind.SCHEMA, on="lake.A")
    actor = world.olga
    with CaptureQueriesContext(connection) as caught:
        assert len(ending_soon(actor, SOON)) == 5
    assert len(caught) <= 3
