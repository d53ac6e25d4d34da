"""What somebody may grant on an object: scopes, levels, privileges with reasons, and names looked up."""

from __future__ import annotations

from typing import Any

import pytest

from access.explain import grantable
from access.explain.queries import Place, Whom
from authz.actor import Actor
from authz.callers import enumeration
from metalake.errors import Forbidden, NotFound, TooLarge, TooManyRequests
from metalake.kinds import CONTAINERS, LEAVES, STORED_KINDS, CatalogType, Kind, grantable_on
from metalake.levels import Level, privileges_of
from metalake.privileges import Privilege as P
from tests.authz.small_world import Wire, World

A, T, LAKE = Place(Kind.SCHEMA, "lake.A"), Place(Kind.TABLE, "lake.A:B.t"), Place(Kind.CATALOG, "lake")


# Levels


def test_a_reader_loads_and_changes_nothing() -> None:
    assert privileges_of(Level.READER, Kind.SCHEMA) == (P.USE_SCHEMA, P.SELECT_TABLE, P.SELECT_VIEW)
    assert privileges_of(Level.READER, Kind.CATALOG)[0] is P.USE_CATALOG
    assert privileges_of(Level.READER, Kind.TABLE) == (P.SELECT_TABLE,)
    assert privileges_of(Level.READER, Kind.SCHEMA, CatalogType.FILESET) == (P.USE_SCHEMA,)


@pytest.mark.parametrize("kind", (*CONTAINERS, *LEAVES))
def test_each_level_has_all_of_the_one_before(kind: Kind) -> None:
    reader, writer, manager = (set(privileges_of(level, kind)) for level in Level)
    assert reader < writer < manager
    assert manager - writer == {P.MANAGE_GRANTS}
    assert all(kind in grantable_on(privilege) for privilege in manager)


# What may be granted


def why_not(may: grantable.Grantable) -> dict[str, str]:
    return {each.privilege.value: each.why_not for each in may.privileges}


@pytest.mark.store
def test_the_owner_of_all_may_grant_everywhere_above(world: World) -> None:
    may = grantable.grantable_by(world.olga, "acme", T)
    assert [(scope.on.name, scope.objects) for scope in may.scopes] == [
        ("acme", 6), ("lake", 4), ("A", 3), ("B", 2), ("t", 1),
    ]  # fmt: skip
    reasons = why_not(may)
    assert reasons["select_table"] == reasons["manage_grants"] == ""
    assert reasons["create_table"] == "It is granted on a metalake or a catalog or a schema."
    assert "use_catalog" not in reasons and "select_view" not in reasons, "nothing about catalogs or views fits a table"
    assert {each.about for each in grantable.grantable_by(world.olga, "acme", A).privileges} == {
        Kind.SCHEMA, Kind.TABLE, Kind.VIEW, None,
    }  # fmt: skip
    assert {
        each.about for each in grantable.grantable_by(world.olga, "acme", Place(Kind.METALAKE, "acme")).privileges
    } > set(STORED_KINDS) - {Kind.METALAKE}


def test_who_may_grant_on_one_object_is_told_of_no_other(world: World) -> None:
    world.give("mia", "use_catalog@lake", "manage_grants@lake.A")
    may = grantable.grantable_by(world.mia, "acme", A)
    assert [scope.objects for scope in may.scopes] == [None, None, 3]
    assert why_not(may)["manage_grants"] == "Only owners give it, or who may grant on the metalake."
    assert why_not(may)["use_schema"] == ""
    world.own("mia", world.a)
    assert why_not(grantable.grantable_by(world.mia, "acme", A))["manage_grants"] == ""
    with pytest.raises(Forbidden):
        grantable.grantable_by(world.mia, "acme", LAKE)
    with pytest.raises(NotFound):
        grantable.grantable_by(world.actor("sam"), "acme", A)
    with pytest.raises(NotFound, match=r"lake\.A does not exist"):
        grantable.grantable_by(world.actor("nils"), "acme", A)


def test_many_objects_are_at_least_so_many(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grantable, "MOST_COUNTED", 2)
    scope = grantable.grantable_by(world.olga, "acme", A).scopes[0]
    assert (scope.objects, scope.is_cut) == (3, True)


# Names


def test_names_are_users_or_groups_or_nobodys(world: World) -> None:
    world.group("team", "mia")
    world.group("nils")
    named = grantable.name_people(world.olga, "acme", A, ["mia", "team", "user:nils", "nils", "sam", "mia"])
    assert named.people == (Whom("user", "mia"), Whom("group", "team"), Whom("user", "nils"))
    assert (named.unknown, named.ambiguous) == (("sam",), ("nils",)), "sam is no member"
    with pytest.raises(TooLarge, match="10,000 names are too many: up to 200"):
        grantable.name_people(world.olga, "acme", A, [f"n{n}" for n in range(10_000)])


def test_a_name_is_begun_while_others_that_one_may_list_begin_with_it(world: World) -> None:
    def begun(actor: Actor, *names: str) -> str:
        return grantable.name_people(actor, "acme", A, names).begun

    assert [begun(world.olga, *names) for names in (["Ni"], ["ni", "x"], ["nilsson"], ["MIA"])] == ["Ni", "", "", ""]
    world.give("mia", "use_catalog@lake", "manage_grants@lake.A")
    assert begun(world.mia, "ni") == "", "she may not list nils"


def test_who_may_not_list_people_cannot_try_names_out(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enumeration, "MISSES", 3)
    world.give("mia", "use_catalog@lake", "manage_grants@lake.A")
    grantable.name_people(world.mia, "acme", A, ["a", "b", "c"])
    with pytest.raises(TooManyRequests):
        grantable.name_people(world.mia, "acme", A, ["nils", "d"])
    with pytest.raises(TooManyRequests):
        grantable.name_people(world.mia, "acme", A, ["nils"])
    grantable.name_people(world.olga, "acme", A, list("abcdef"))


def test_the_wire_lists_the_same(world: World, wire: Wire) -> None:
    world.give("mia", "use_catalog@lake", "manage_grants@lake.A")
    path = "metalakes/acme/access/objects/schema/lake.A/grantable"
    status, body = wire("GET", path, user="mia")
    assert status == 200, body
    reply: dict[str, Any] = body["grantable"]
    assert reply["scopes"] == [
        {"on": {"type": "metalake", "fullName": "acme"}},
        {"on": {"type": "catalog", "fullName": "lake"}},
        {"on": {"type": "schema", "fullName": "lake.A"}, "objects": 3},
    ]
    assert {"name": "select_table", "about": "table"} in reply["privileges"]
    assert reply["levels"][0] == {"level": "reader", "privileges": ["use_schema", "select_table", "select_view"]}
    assert "names" not in reply
    assert wire("GET", path, user="nils")[0] == 404
    assert wire("GET", "metalakes/acme/access/objects/column/lake.A.t.c/grantable")[0] in (400, 404)
