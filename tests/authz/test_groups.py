"""Stored groups: who may change whose membership, and what removing one or leaving one takes and gives."""

from __future__ import annotations

import pytest

from authz.services import grants, owners, people, roles
from metalake.errors import AlreadyExists, Forbidden, Invalid, NotFound
from metalake.kinds import Kind
from tests.authz.small_world import Wire, World

pytestmark = pytest.mark.store

USE = [("use_catalog", "allow")]


def test_a_group_is_added_once(world: World) -> None:
    added = people.add_group(world.olga, "acme", "team", external_id="x")
    assert (added.name, added.roles, added.users, added.row.external_id) == ("team", [], [], "x")
    with pytest.raises(AlreadyExists) as taken:
        people.add_group(world.olga, "acme", "team")
    assert taken.value.kind == "group"
    assert [entry.full_name for entry in world.events("group.added")] == ["team"]


@pytest.mark.parametrize("name", ["", " team", "a\nb", "g" * 129])
def test_names_that_no_group_can_have(world: World, name: str) -> None:
    with pytest.raises(Invalid):
        people.add_group(world.olga, "acme", name)


def test_groups_are_managed_by_the_owner_and_by_holders_of_manage_groups(world: World) -> None:
    for act in (
        lambda: people.add_group(world.mia, "acme", "team"),
        lambda: people.remove_group(world.mia, "acme", "team"),
        lambda: people.set_group_users(world.mia, "acme", "team", add=["mia"]),
    ):
        with pytest.raises(Forbidden):
            act()
    world.give("mia", "manage_groups@acme")
    people.add_group(world.mia, "acme", "team")
    people.set_group_users(world.mia, "acme", "team", add=["mia"])
    assert people.remove_group(world.mia, "acme", "team")


def test_a_role_of_a_group_works_for_its_users_from_the_next_request(world: World) -> None:
    world.group("team", "mia")
    roles.create_role(world.olga, "acme", "reader")
    assert roles.assign_roles(world.olga, "acme", "group", "team", ["reader"]).roles == ["reader"]
    assert len(world.mia.roles) == 1
    people.set_group_users(world.olga, "acme", "team", remove=["mia"])
    assert not world.mia.roles


def test_users_enter_and_leave_in_one_request(world: World) -> None:
    world.group("team", "mia")
    shown = people.set_group_users(world.olga, "acme", "team", add=["nils", "nils"], remove=["mia", "olga"])
    assert shown.users == ["nils"]
    assert world.events("group.users_changed")[-1].details == {"added": ["nils"], "removed": ["mia"]}
    before = len(world.events("group.users_changed"))
    assert people.set_group_users(world.olga, "acme", "team", add=["nils"], remove=["mia"]).users == ["nils"]
    assert len(world.events("group.users_changed")) == before


def test_only_users_of_the_metalake_enter(world: World) -> None:
    world.group("team")
    for name in ("sam", "nobody"):
        with pytest.raises(NotFound) as miss:
            people.set_group_users(world.olga, "acme", "team", add=["mia", name])
        assert (miss.value.kind, miss.value.message) == ("user", f"User {name} does not exist.")
    assert people.get_group(world.olga, "acme", "team").users == []
    with pytest.raises(Invalid):
        people.set_group_users(world.olga, "acme", "team", add=["mia"], remove=["mia"])
    with pytest.raises(NotFound):
        people.set_group_users(world.olga, "acme", "nothing", add=["mia"])


def test_a_group_with_roles_is_changed_by_those_who_assign_roles(world: World) -> None:
    world.give("mia", "manage_groups@acme")
    world.give("nils", "manage_grants@acme")
    world.group("team", "olga")
    roles.create_role(world.olga, "acme", "strong")
    roles.assign_roles(world.olga, "acme", "group", "team", ["strong"])
    with pytest.raises(Forbidden):
        people.set_group_users(world.mia, "acme", "team", add=["mia"])
    assert people.set_group_users(world.actor("nils"), "acme", "team", add=["mia"]).users == ["mia", "olga"]


def test_a_group_that_owns_something_is_changed_by_those_who_assign_roles(world: World) -> None:
    world.give("mia", "manage_groups@acme")
    world.group("team", "olga")
    owners.set_owner(world.olga, "acme", Kind.CATALOG, "lake", "team", "group")
    with pytest.raises(Forbidden):
        people.set_group_users(world.mia, "acme", "team", add=["mia"])
    assert people.set_group_users(world.olga, "acme", "team", add=["mia"]).users == ["mia", "olga"]


def test_manage_grants_is_no_way_to_own_the_metalake(world: World) -> None:
    world.give("mia", "manage_grants@acme")
    world.group("board", "olga")
    owners.set_owner(world.olga, "acme", Kind.METALAKE, "acme", "board", "group")
    with pytest.raises(Forbidden):
        people.set_group_users(world.mia, "acme", "board", add=["mia"])
    people.set_group_users(world.olga, "acme", "board", add=["nils"])
    people.set_group_users(world.actor("nils"), "acme", "board", remove=["olga"])
    with pytest.raises(Invalid):
        people.set_group_users(world.actor("nils"), "acme", "board", remove=["nils"])


def test_leaving_or_losing_a_group_lifts_a_deny_only_with_authority_above_it(world: World) -> None:
    world.group("team", "mia")
    roles.create_role(world.olga, "acme", "barred")
    grants.grant_privileges(world.olga, "acme", "barred", Kind.SCHEMA, "lake.A", [("use_schema", "deny")])
    roles.assign_roles(world.olga, "acme", "group", "team", ["barred"])
    blocker = world.give("nils", "manage_groups@acme", "manage_grants@acme", "deny manage_grants@lake")
    with pytest.raises(Forbidden):
        people.set_group_users(world.actor("nils"), "acme", "team", remove=["mia"])
    with pytest.raises(Forbidden):
        people.remove_group(world.actor("nils"), "acme", "team")
    assert people.set_group_users(world.actor("nils"), "acme", "team", add=["olga"]).users == ["mia", "olga"]
    grants.revoke_privileges(world.olga, "acme", blocker, Kind.CATALOG, "lake", [("manage_grants", "deny")])
    assert people.set_group_users(world.actor("nils"), "acme", "team", remove=["mia"]).users == ["olga"]
    assert people.remove_group(world.actor("nils"), "acme", "team")


def test_removing_a_group_hands_over_and_takes_its_roles_away(world: World) -> None:
    world.group("team", "mia")
    roles.create_role(world.olga, "acme", "reader")
    grants.grant_privileges(world.olga, "acme", "reader", Kind.CATALOG, "lake", USE)
    roles.assign_roles(world.olga, "acme", "group", "team", ["reader"])
    owners.set_owner(world.olga, "acme", Kind.SCHEMA, "lake.A", "team", "group")
    assert people.remove_group(world.olga, "acme", "team") is True
    assert (world.mia.roles, world.mia.groups) == ((), ())
    assert owners.get_owner(world.olga, "acme", Kind.SCHEMA, "lake.A") == ("olga", "user")
    assert people.remove_group(world.olga, "acme", "team") is False
    assert world.events("group.removed")[0].details["objects_handed_over"] == 1


def test_the_group_that_owns_the_metalake_cannot_be_removed(world: World) -> None:
    world.group("board", "olga")
    owners.set_owner(world.olga, "acme", Kind.METALAKE, "acme", "board", "group")
    with pytest.raises(Invalid):
        people.remove_group(world.olga, "acme", "board")


def test_others_see_their_own_groups_without_the_users(world: World) -> None:
    world.group("team", "mia", "nils")
    world.group("other")
    assert [group.name for group in people.list_groups(world.olga, "acme")] == ["other", "team"]
    assert [group.name for group in people.list_groups(world.mia, "acme")] == ["team"]
    assert people.get_group(world.mia, "acme", "team").users is None
    assert people.get_group(world.olga, "acme", "team").users == ["mia", "nils"]
    for name in ("other", "nothing"):
        with pytest.raises(NotFound) as miss:
            people.get_group(world.mia, "acme", name)
        assert (miss.value.kind, miss.value.message) == ("group", f"Group {name} does not exist.")


def test_on_the_wire(world: World, wire: Wire) -> None:
    groups = "metalakes/acme/groups"
    status, body = wire("POST", groups, {"name": "team"})
    assert status == 200 and body["group"]["name"] == "team" and body["group"]["roles"] == []
    status, body = wire("PUT", f"{groups}/team", {"usersToAdd": ["mia"], "usersToRemove": None})
    assert status == 200 and body["group"]["users"] == ["mia"]
    assert wire("GET", groups)[1] == {"code": 0, "names": ["team"]}
    assert wire("GET", f"{groups}?details=True")[1]["groups"][0]["name"] == "team"
    assert "users" not in wire("GET", f"{groups}/team", user="mia")[1]["group"]
    assert wire("POST", groups, {"name": "team"})[1]["type"] == "GroupAlreadyExistsException"
    assert wire("GET", f"{groups}/none")[1]["type"] == "NoSuchGroupException"
    assert wire("DELETE", f"{groups}/team") == (200, {"code": 0, "removed": True})


def test_joining_a_group_sheds_no_deny_on_what_it_owns(world: World) -> None:
    """Who joins owns it too."""
    world.give("mia", "manage_grants@acme", "use_catalog@lake", "use_schema@lake")
    world.give("nils", "deny select_table@acme")
    world.group("team", "mia")
    people.set_group_users(world.mia, "acme", "team", add=["nils"])
    people.set_group_users(world.mia, "acme", "team", remove=["nils"])
    owners.set_owner(world.olga, "acme", Kind.TABLE, "lake.A:B.t", "team", "group")
    with pytest.raises(Forbidden, match=r"Group team owns something, and joining it would shed a DENY that mia may"):
        people.set_group_users(world.mia, "acme", "team", add=["nils"])
    assert people.set_group_users(world.olga, "acme", "team", add=["nils"]).users == ["mia", "nils"]
