"""Lists, paths and moves at their edges: what is shown, what leads on, and which DENYs stay behind."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from authz import policy, snapshot
from authz.actor import Actor
from authz.models import Grant, Group
from authz.objects import find_object
from authz.services import ownership_rules, roles
from metalake.errors import Forbidden
from metalake.kinds import Kind
from metalake.models import Securable
from tests.authz.small_world import World, kind_at
from tests.authz.test_policy_edges import MIA, Line, node

pytestmark = pytest.mark.store

HOUR = timedelta(hours=1)
VISIBLE: dict[Kind, Any] = {Kind.CATALOG: policy.visible_catalogs, Kind.SCHEMA: policy.visible_schemas}
VISIBLE |= {kind: partial(policy.visible_leaves, kind=kind) for kind in (Kind.TABLE, Kind.VIEW)}
NAMED = pytest.mark.parametrize("named", [0, 1_000])  # grants that lists name one by one; more are asked for


def shown(actor: Actor, full_name: str, kind: Kind) -> list[str]:
    line = find_object("acme", kind_at(full_name), full_name)
    rows = Securable.objects.filter(parent_id=line.nodes[-1].id, kind=kind)
    return sorted(VISIBLE[kind](actor, line, rows).values_list("name", flat=True))


def view(world: World, name: str) -> None:
    row = Securable(kind=Kind.VIEW, name=name, creator="olga", owner_user=world.users["olga"])
    row.place_under(world.ab)
    row.save(force_insert=True)


def test_the_owner_of_a_schema_is_shown_all_below_it(world: World) -> None:
    world.schema("C", world.ab)
    view(world, "v")
    for row, name, below in ((world.a, "lake.A", "B"), (world.ab, "lake.A:B", "C")):
        world.own("mia", row)
        assert shown(world.mia, name, Kind.SCHEMA) == []
        role = world.give("mia", "use_catalog@lake")
        assert shown(world.mia, name, Kind.SCHEMA) == [below]
        roles.drop_role(world.olga, "acme", role)
        world.own("olga", row)
    world.own("mia", world.ab)
    world.give("mia", "use_catalog@lake")
    assert shown(world.mia, "lake.A:B", Kind.TABLE) == ["t"]
    assert shown(world.mia, "lake.A:B", Kind.VIEW) == ["v"]


def test_outside_the_catalog_no_list_shows_anything(world: World) -> None:
    view(world, "v")
    world.give("mia", "use_schema@acme", "select_table@acme", "select_view@acme")
    world.own("mia", world.t)
    for kind in (Kind.SCHEMA, Kind.TABLE, Kind.VIEW):
        assert shown(world.mia, "lake.A:B" if kind is not Kind.SCHEMA else "lake.A", kind) == []
    world.give("mia", "use_catalog@lake")
    assert shown(world.mia, "lake.A", Kind.SCHEMA) == ["B"]
    assert shown(world.mia, "lake.A:B", Kind.TABLE) == ["t"]
    assert shown(world.mia, "lake.A:B", Kind.VIEW) == ["v"]


@NAMED
def test_lists_follow_what_rows_carry_however_many_they_are(
    world: World, monkeypatch: pytest.MonkeyPatch, named: int
) -> None:
    monkeypatch.setattr(snapshot, "MOST_NAMED", named)
    for name in ("u", "w", "x", "y"):
        world.table(name)
    world.give("nils", "select_table@lake.A:B.x")
    world.give("mia", "use_catalog@lake", "use_schema@lake.A:B", "select_table@lake.A:B.t", "modify_table@lake.A:B.u")
    assert shown(world.mia, "lake.A:B", Kind.TABLE) == ["t", "u"]
    assert shown(world.mia, "acme", Kind.CATALOG) == ["lake"]
    assert shown(replace(world.mia, active=()), "acme", Kind.CATALOG) == []
    careful = world.give("mia", "deny select_table@lake.A:B.t", "select_table@lake.A:B.w")
    assert shown(world.mia, "lake.A:B", Kind.TABLE) == ["u", "w"]
    active = tuple(role for role in world.mia.roles if role != Securable.objects.get(name=careful).pk)
    assert shown(replace(world.mia, active=active), "lake.A:B", Kind.TABLE) == ["u"]
    world.give("mia", "select_table@lake")
    assert shown(world.mia, "lake.A:B", Kind.TABLE) == ["u", "w", "x", "y"]
    world.give("mia", "deny modify_table@lake.A:B.u", "deny select_table@lake.A:B.u")
    assert shown(world.mia, "lake.A:B", Kind.TABLE) == ["w", "x", "y"]


def test_one_privilege_is_enough_whatever_is_denied_of_the_other(world: World) -> None:
    world.table("u")
    world.give("mia", "use_catalog@lake", "use_schema@lake", "select_table@lake.A:B.t", "modify_table@lake")
    world.give("mia", "deny modify_table@lake.A:B.t", "deny modify_table@lake.A:B.u")
    assert shown(world.mia, "lake.A:B", Kind.TABLE) == ["t"]
    world.give("nils", "use_catalog@lake", "use_schema@lake", "deny select_table@lake", "modify_table@lake.A:B.t")
    assert shown(world.actor("nils"), "lake.A:B", Kind.TABLE) == ["t"]


def test_what_a_group_owns_is_its_own(world: World) -> None:
    world.table("u")
    world.table("w")
    world.give("mia", "use_catalog@lake", "use_schema@lake")
    world.group("sailors", "mia")
    world.group("pilots", "nils")
    for table, group in (("t", "sailors"), ("u", "pilots")):
        owner = Group.objects.get(name=group)
        Securable.objects.filter(name=table, kind=Kind.TABLE).update(owner_user=None, owner_group=owner)
    Securable.objects.filter(name="w").update(owner_user=world.users["mia"])
    assert shown(world.mia, "lake.A:B", Kind.TABLE) == ["t", "w"]


def test_few_grants_are_not_asked_for_again(world: World) -> None:
    world.give("mia", "use_catalog@lake", "use_schema@lake", "select_table@lake.A:B.t")
    line = find_object("acme", Kind.SCHEMA, "lake.A:B")
    assert "authz_grant" not in str(policy.visible_leaves(world.mia, line, Securable.objects.all(), Kind.TABLE).query)


@NAMED
def test_a_list_shows_what_is_granted_at_that_moment(world: World, monkeypatch: pytest.MonkeyPatch, named: int) -> None:
    monkeypatch.setattr(snapshot, "MOST_NAMED", named)
    world.give("mia", "use_catalog@lake", "use_schema@lake.A:B", "select_table@lake.A:B.t")
    now = datetime.now(UTC)
    Grant.rows.filter(content_object=world.t.pk).update(starts_at=now + HOUR, ends_at=now + 2 * HOUR)
    Grant.rows.filter(content_object=world.ab.pk).update(starts_at=now - HOUR, ends_at=now + 2 * HOUR)
    snapshot.forget()
    mia = world.mia
    for later, tables, schemas in ((0, [], ["A"]), (1, ["t"], ["A"]), (2, [], [])):
        then = replace(mia, at=(now + later * HOUR).timestamp())
        assert shown(then, "lake.A:B", Kind.TABLE) == tables, later
        assert shown(then, "lake", Kind.SCHEMA) == schemas, later


def test_an_id_that_begins_like_another_is_not_below_it(world: World) -> None:
    world.give("mia", "use_catalog@lake")
    owner = {"olga": world.users["olga"], "mia": world.users["mia"]}
    for id, name, of in ((77, "near", "olga"), (770, "far", "mia"), (78, "next", "mia"), (80, "last", "olga")):
        row = Securable(id=id, kind=Kind.SCHEMA, name=name, creator="olga", owner_user=owner[of])
        row.place_under(world.lake)
        row.save(force_insert=True)
    assert shown(world.mia, "lake", Kind.SCHEMA) == ["far", "next"], "nor what comes after one that is hers"
    lake = find_object("acme", Kind.CATALOG, "lake")
    near = Line([*lake.nodes, node(77, Kind.SCHEMA, "near")], ["lake", "near"])
    assert not policy.is_path(world.mia, near)
    row = Securable(id=79, kind=Kind.SCHEMA, name="deep", creator="olga", owner_user=owner["mia"])
    row.place_under(Securable.objects.get(pk=77))
    row.save(force_insert=True)
    assert shown(world.mia, "lake", Kind.SCHEMA) == ["far", "near", "next"]
    assert policy.is_path(world.mia, near)
    assert not policy.is_path(world.mia, Line([*lake.nodes, node(78, Kind.SCHEMA, "next", MIA)], ["lake", "next"]))


def test_only_schemas_that_can_be_loaded_make_a_path(world: World) -> None:
    world.own("mia", world.t)
    world.give("mia", "use_catalog@lake", "select_table@lake.A:B.t")
    a = find_object("acme", Kind.SCHEMA, "lake.A")
    assert not policy.is_path(world.mia, a)
    assert shown(world.mia, "lake", Kind.SCHEMA) == []
    opened = world.give("mia", "use_schema@lake.A:B")
    assert policy.is_path(world.mia, a)
    assert not policy.is_path(world.mia, find_object("acme", Kind.SCHEMA, "lake.A:B"))
    assert shown(world.mia, "lake", Kind.SCHEMA) == ["A"]
    active = tuple(role for role in world.mia.roles if role != Securable.objects.get(name=opened).pk)
    assert not policy.is_path(replace(world.mia, active=active), a)
    for place in ("acme", "lake", "lake.A", "lake.A:B"):
        closed = world.give("mia", f"deny use_schema@{place}")
        assert not policy.is_path(world.mia, a), place
        assert shown(world.mia, "lake", Kind.SCHEMA) == [], place
        roles.drop_role(world.olga, "acme", closed)
    world.group("sailors", "mia")
    assert policy.is_path(world.mia, a)
    roles.drop_role(world.olga, "acme", opened)
    assert not policy.is_path(world.mia, a)
    Securable.objects.filter(pk=world.ab.pk).update(owner_user=None, owner_group=Group.objects.get(name="sailors"))
    assert policy.is_path(world.mia, a)
    assert shown(world.mia, "lake", Kind.SCHEMA) == ["A"]
    assert not policy.is_path(world.actor("nils"), a)


# Moves: nils owns A:B and may create tables in A; the DENYs are the readers'.


@pytest.fixture
def mover(world: World) -> World:
    world.own("nils", world.ab)
    world.give("nils", "use_catalog@lake", "use_schema@lake", "create_table@lake")
    return world


def escape(world: World, to: str = "lake.A") -> None:
    """As nils."""
    found = find_object("acme", Kind.TABLE, "lake.A:B.t")
    ownership_rules.require_no_escape(world.actor("nils"), found, find_object("acme", kind_at(to), to))


REFUSED = r"^Moving table lake\.A:B\.t would shed a DENY that nils may not lift\.$"


def test_a_move_sheds_no_deny(mover: World) -> None:
    escape(mover)
    mover.give("mia", "select_table@lake.A:B")
    escape(mover)
    mover.give("mia", "deny select_table@lake.A:B")
    with pytest.raises(Forbidden, match=REFUSED) as refused:
        escape(mover)
    assert refused.value.kind == "table"
    mover.give("nils", "manage_grants@lake.A:B")
    with pytest.raises(Forbidden, match=REFUSED):
        escape(mover)
    mover.give("nils", "manage_grants@lake.A")
    escape(mover)


@pytest.mark.parametrize("place", ["acme", "lake", "lake.A", "lake.A:B.t"])
def test_a_deny_that_goes_along_is_not_shed(mover: World, place: str) -> None:
    mover.give("mia", f"deny select_table@{place}")
    escape(mover)


def test_a_move_below_another_owner_sheds_no_deny_against_them(mover: World) -> None:
    c = mover.schema("C")
    mover.give("mia", "deny select_table@lake")
    escape(mover, "lake.C")
    mover.own("mia", c)
    with pytest.raises(Forbidden, match=REFUSED):
        escape(mover, "lake.C")
    mover.give("nils", "manage_grants@acme")
    escape(mover, "lake.C")


def test_each_deny_that_is_left_behind_must_be_one_to_lift(mover: World) -> None:
    mover.schema("C")
    mover.give("mia", "deny select_table@lake.A:B", "deny modify_table@lake.A:B", "deny select_table@lake")
    with pytest.raises(Forbidden, match=REFUSED):
        escape(mover, "lake.C")
    mover.give("nils", "manage_grants@lake.A")
    escape(mover, "lake.C")
    mover.give("mia", "deny select_table@lake.A")
    with pytest.raises(Forbidden, match=REFUSED):
        escape(mover, "lake.C")
    mover.give("nils", "manage_grants@lake")
    escape(mover, "lake.C")


def test_a_deny_to_come_is_shed_too_and_one_that_has_ended_is_none(mover: World) -> None:
    mover.give("mia", "deny select_table@lake.A:B")
    now = datetime.now(UTC)
    held = Grant.rows.filter(content_object=mover.ab.pk)
    held.update(starts_at=now + HOUR)
    with pytest.raises(Forbidden, match=REFUSED):
        escape(mover)
    held.update(starts_at=None, ends_at=now - HOUR)
    snapshot.forget()
    escape(mover)
