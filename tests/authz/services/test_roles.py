"""Roles: made with what their maker may grant, assigned by those who may, dropped without lifting a DENY unduly."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group as RoleGroup
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from authz import snapshot
from authz.models import Grant
from authz.services import grants, owners, people, roles
from authz.services.grant_entries import spelled
from metalake.errors import AlreadyExists, Forbidden, Invalid, NotFound
from metalake.kinds import Kind
from metalake.models import Securable
from tests.authz.small_world import Wire, World, ask

pytestmark = pytest.mark.store


def test_a_role_is_made_with_its_first_grants(world: World) -> None:
    made = roles.create_role(
        world.olga,
        "acme",
        "analyst",
        {"team": "data"},
        [
            ask("acme", "allow use_catalog"),
            ask("lake.A", "allow use_schema", "deny create_table"),
            ask("lake.A:B.t", "allow select_table"),
        ],
    )
    assert made.row is not None and made.row.properties == {"team": "data"} and made.row.creator == "olga"
    held = {
        "acme": ["allow use_catalog"],
        "lake.A": ["allow use_schema", "deny create_table"],
        "lake.A:B.t": ["allow select_table"],
    }
    assert world.role("analyst") == held
    assert {on.full_name: spelled(on.entries) for on in made.grants} == held
    assert [on.kind for on in made.grants] == [Kind.METALAKE, Kind.SCHEMA, Kind.TABLE]
    assert {grant.grantor for grant in Grant.objects.all()} == {"olga"}
    assert owners.get_owner(world.olga, "acme", Kind.ROLE, "analyst") == ("olga", "user")
    assert world.olga.roles == ()
    assert world.events("role.created")[0].details["privileges"] == [
        "allow use_catalog on metalake acme",
        "allow use_schema on schema lake.A",
        "deny create_table on schema lake.A",
        "allow select_table on table lake.A:B.t",
    ]


def test_a_role_is_made_once(world: World) -> None:
    roles.create_role(world.olga, "acme", "analyst")
    with pytest.raises(AlreadyExists) as taken:
        roles.create_role(world.olga, "acme", "analyst")
    assert taken.value.kind == "role"


@pytest.mark.parametrize("name", ["", "a b", "a.b", "a:b", "-a", "r" * 65, "a\n"])
def test_names_that_no_role_can_have(world: World, name: str) -> None:
    with pytest.raises(Invalid):
        roles.create_role(world.olga, "acme", name)


@pytest.mark.parametrize(
    "securables",
    [
        [ask("lake", "allow use_catalog"), ask("lake", "allow create_schema")],
        [ask("lake", "allow use_catalog", "deny use_catalog")],
        [ask("lake", "allow create_role")],
        [ask("lake")],
        [ask("files", "allow select_table")],
    ],
)
def test_a_role_with_a_wrong_entry_is_not_made(world: World, securables: list[Any]) -> None:
    with pytest.raises(Invalid):
        roles.create_role(world.olga, "acme", "analyst", {}, securables)
    assert roles.list_roles(world.olga, "acme") == []


def test_making_a_role_asks_create_role_and_the_authority_to_grant_each_entry(world: World) -> None:
    with pytest.raises(Forbidden):
        roles.create_role(world.mia, "acme", "mine")
    world.give("mia", "create_role@acme", "use_catalog@lake", "use_schema@lake.A", "manage_grants@lake.A:B")
    roles.create_role(world.mia, "acme", "mine", {}, [ask("lake.A:B.t", "allow select_table")])
    with pytest.raises(Forbidden):
        roles.create_role(world.mia, "acme", "more", {}, [ask("lake", "allow use_catalog")])
    with pytest.raises(NotFound) as hidden:
        roles.create_role(world.mia, "acme", "more", {}, [ask("files", "allow use_catalog")])
    with pytest.raises(NotFound) as missing:
        roles.create_role(world.mia, "acme", "more", {}, [ask("nothing", "allow use_catalog")])
    assert hidden.value.kind == missing.value.kind == "object"
    assert hidden.value.message == missing.value.message.replace("nothing", "files")


def test_owning_a_role_is_no_authority_to_add_to_it(world: World) -> None:
    world.give("mia", "create_role@acme", "use_catalog@lake")
    roles.create_role(world.mia, "acme", "mine")
    with pytest.raises(Forbidden):
        grants.grant_privileges(world.mia, "acme", "mine", Kind.CATALOG, "lake", [("create_schema", "allow")])
    with pytest.raises(Forbidden):
        roles.assign_roles(world.mia, "acme", "user", "mia", ["mine"])
    assert roles.drop_role(world.mia, "acme", "mine")


def test_roles_are_shown_to_holders_and_owners_and_to_those_who_assign_them(world: World) -> None:
    held = world.give("mia", "create_role@acme")
    world.give("nils", "use_catalog@lake")
    roles.create_role(world.mia, "acme", "owned")
    assert roles.list_roles(world.mia, "acme") == ["owned", held]
    assert roles.list_roles(world.olga, "acme") == ["owned", "r1", "r2"]
    assert roles.load_role(world.mia, "acme", held).name == held
    assert roles.load_role(world.mia, "acme", "owned").name == "owned"
    for name in ("r2", "nothing"):
        with pytest.raises(NotFound) as miss:
            roles.load_role(world.mia, "acme", name)
        assert (miss.value.kind, miss.value.message) == ("role", f"Role {name} does not exist.")


def test_dropping_a_role_ends_what_it_gave_and_leaves_no_row_behind(world: World) -> None:
    role = world.give("mia", "use_catalog@lake")
    world.group("team", "mia")
    roles.assign_roles(world.olga, "acme", "group", "team", [role])
    assert roles.drop_role(world.olga, "acme", role) is True
    assert world.mia.roles == ()
    assert not Grant.objects.exists() and not RoleGroup.objects.exists()
    assert not Securable.objects.filter(kind=Kind.ROLE).exists()
    assert roles.drop_role(world.olga, "acme", role) is False
    again = world.give("nils")
    assert world.role(again) == {}


def test_a_role_is_dropped_by_its_owner_or_the_metalakes(world: World) -> None:
    held = world.give("mia", "manage_grants@acme")
    hidden = world.give("nils")
    with pytest.raises(Forbidden):
        roles.drop_role(world.mia, "acme", held)
    assert roles.drop_role(world.actor("nils"), "acme", held) is False
    owners.set_owner(world.olga, "acme", Kind.ROLE, hidden, "mia", "user")
    assert roles.drop_role(world.mia, "acme", hidden)


def test_dropping_a_role_lifts_a_deny_only_with_authority_above_it(world: World) -> None:
    role = world.give("nils", "deny use_schema@lake.A")
    owners.set_owner(world.olga, "acme", Kind.ROLE, role, "mia", "user")
    with pytest.raises(Forbidden):
        roles.drop_role(world.mia, "acme", role)
    world.give("mia", "manage_grants@lake")
    assert roles.drop_role(world.mia, "acme", role)


def test_assigning_and_taking_away(world: World) -> None:
    roles.create_role(world.olga, "acme", "a")
    roles.create_role(world.olga, "acme", "b")
    assert roles.assign_roles(world.olga, "acme", "user", "mia", ["b", "a", "a"]).roles == ["a", "b"]
    assert roles.assign_roles(world.olga, "acme", "user", "mia", ["a"]).roles == ["a", "b"]
    assert len(world.mia.roles) == 2
    assert sorted(entry.full_name for entry in world.events("role.assigned")) == ["a", "b"]
    assert roles.unassign_roles(world.olga, "acme", "user", "mia", ["a"]).roles == ["b"]
    assert roles.unassign_roles(world.olga, "acme", "user", "mia", ["a"]).roles == ["b"]
    assert [entry.details for entry in world.events("role.unassigned")] == [{"user": "mia"}]


def test_an_unknown_role_is_invalid_and_an_unknown_user_not_found(world: World) -> None:
    roles.create_role(world.olga, "acme", "a")
    for act in (roles.assign_roles, roles.unassign_roles):
        with pytest.raises(Invalid) as illegal:
            act(world.olga, "acme", "user", "mia", ["a", "nothing"])
        assert illegal.value.kind == "role"
        with pytest.raises(NotFound) as nobody:
            act(world.olga, "acme", "user", "sam", ["a"])
        assert nobody.value.kind == "user"
        with pytest.raises(NotFound) as nogroup:
            act(world.olga, "acme", "group", "team", ["a"])
        assert nogroup.value.kind == "group"
    assert world.mia.roles == ()


def test_assigning_asks_manage_grants_on_the_metalake(world: World) -> None:
    roles.create_role(world.olga, "acme", "a")
    world.give("mia", "manage_grants@lake", "manage_users@acme", "create_role@acme")
    with pytest.raises(Forbidden):
        roles.assign_roles(world.mia, "acme", "user", "mia", ["a"])
    world.give("mia", "manage_grants@acme")
    roles.assign_roles(world.mia, "acme", "user", "mia", ["a"])


def test_taking_a_role_away_lifts_a_deny_only_with_authority_above_it(world: World) -> None:
    role = world.give("mia", "deny create_table@lake.A:B")
    world.give("nils", "manage_grants@acme", "deny manage_grants@lake.A")
    nils = world.actor("nils")
    with pytest.raises(Forbidden) as refused:
        roles.unassign_roles(nils, "acme", "user", "mia", [role])
    assert "lake" not in refused.value.message
    assert roles.unassign_roles(nils, "acme", "user", "olga", [role]).roles == []
    assert roles.unassign_roles(world.olga, "acme", "user", "mia", [role]).roles == []


def test_a_deny_on_the_metalake_is_lifted_by_its_owner_alone(world: World) -> None:
    role = world.give("mia", "deny use_catalog@acme")
    world.give("nils", "manage_grants@acme")
    with pytest.raises(Forbidden):
        roles.unassign_roles(world.actor("nils"), "acme", "user", "mia", [role])
    assert roles.unassign_roles(world.olga, "acme", "user", "mia", [role]).roles == []


def test_the_roles_of_an_object(world: World) -> None:
    first = world.give("mia", "use_catalog@lake")
    second = world.give("nils", "deny use_catalog@lake", "use_schema@lake.A")
    assert roles.roles_of_object(world.olga, "acme", Kind.CATALOG, "lake") == [first, second]
    assert roles.roles_of_object(world.mia, "acme", Kind.CATALOG, "lake") == [first]
    assert roles.roles_of_object(world.olga, "acme", Kind.METALAKE, "acme") == []
    with pytest.raises(NotFound) as hidden:
        roles.roles_of_object(world.mia, "acme", Kind.SCHEMA, "lake.A")
    assert (hidden.value.kind, hidden.value.message) == ("object", "Schema lake.A does not exist.")


def test_a_role_whose_grants_ended_is_no_role_of_the_object(world: World) -> None:
    role = world.give("mia", "use_catalog@lake", "use_schema@lake")
    held = Grant.rows.filter(group__role__name=role)
    held.filter(permission__codename="use_schema").update(ends_at=timezone.now() - timedelta(seconds=1))
    assert roles.roles_of_object(world.olga, "acme", Kind.CATALOG, "lake") == [role]
    held.update(ends_at=timezone.now() - timedelta(seconds=1))
    assert roles.roles_of_object(world.olga, "acme", Kind.CATALOG, "lake") == []
    held.update(ends_at=None, starts_at=timezone.now() + timedelta(days=1))
    assert roles.roles_of_object(world.olga, "acme", Kind.CATALOG, "lake") == [role], "it will be in force"
    snapshot.forget()


def test_roles_of_another_metalake_are_nothing_here(world: World) -> None:
    other = world.metalake("other", "mia")
    roles.create_role(world.mia, "other", "foreign")
    for name in ("foreign",):
        with pytest.raises(Invalid):
            roles.assign_roles(world.olga, "acme", "user", "mia", [name])
        with pytest.raises(NotFound):
            grants.grant_privileges(world.olga, "acme", name, Kind.CATALOG, "lake", [("use_catalog", "allow")])
    assert people.get_user(world.mia, "other", "mia").roles == []
    assert other.name == "other"


def test_many_entries_take_as_many_statements_as_few(world: World) -> None:
    tables = [f"lake.A:B.t{number}" for number in range(25)]
    for name in tables:
        world.table(name.rpartition(".")[2])

    def statements(role: str, count: int) -> tuple[int, int, int, int]:
        entries = [ask(name, "allow select_table", "deny modify_table") for name in tables[:count]]
        olga = world.olga
        with CaptureQueriesContext(connection) as made:
            roles.create_role(olga, "acme", role, {}, entries)
        with CaptureQueriesContext(connection) as loaded:
            assert len(roles.load_role(olga, "acme", role).grants) == count
        with CaptureQueriesContext(connection) as overridden:
            grants.override_role(olga, "acme", role, [ask(n, "deny select_table") for n in tables[:count]])
        with CaptureQueriesContext(connection) as dropped:
            roles.drop_role(olga, "acme", role)
        return len(made), len(loaded), len(overridden), len(dropped)

    assert statements("few", 2) == statements("many", 25)


def test_on_the_wire(world: World, wire: Wire) -> None:
    at = "metalakes/acme"
    body = {
        "name": "analyst",
        "properties": None,
        "securableObjects": [
            {
                "fullName": "lake.A:B.t",
                "type": "TABLE",
                "privileges": [{"name": "SELECT_TABLE", "condition": "ALLOW"}],
            }
        ],
    }
    status, answer = wire("POST", f"{at}/roles", body)
    assert status == 200
    role = answer["role"]
    assert role["name"] == "analyst" and role["properties"] == {} and role["audit"]["creator"] == "olga"
    table = {"fullName": "lake.A:B.t", "type": "table", "privileges": [{"name": "select_table", "condition": "allow"}]}
    assert role["securableObjects"] == [table]
    assert wire("GET", f"{at}/roles/analyst") == (200, {"code": 0, "role": role})
    assert wire("GET", f"{at}/roles") == (200, {"code": 0, "names": ["analyst"]})
    assert wire("GET", f"{at}/objects/table/lake.A%3AB.t/roles") == (200, {"code": 0, "names": ["analyst"]})
    status, answer = wire("PUT", f"{at}/permissions/users/mia/grant", {"roleNames": ["analyst"]})
    assert status == 200 and answer["user"]["roles"] == ["analyst"]
    status, answer = wire("PUT", f"{at}/permissions/users/mia/revoke/", {"roleNames": ["analyst"]})
    assert status == 200 and answer["user"]["roles"] == []
    wire("POST", f"{at}/groups", {"name": "team"})
    status, answer = wire("PUT", f"{at}/permissions/groups/team/grant", {"roleNames": ["analyst"]})
    assert status == 200 and answer["group"]["roles"] == ["analyst"]
    status, answer = wire("PUT", f"{at}/permissions/groups/team/revoke", {"roleNames": ["analyst"]})
    assert status == 200 and answer["group"]["roles"] == []
    assert wire("DELETE", f"{at}/roles/analyst") == (200, {"code": 0, "dropped": True})
    assert wire("DELETE", f"{at}/roles/analyst") == (200, {"code": 0, "dropped": False})


def test_failures_on_the_wire(world: World, wire: Wire) -> None:
    def failure(method: str, path: str, body: Any = None) -> tuple[int, int, str]:
        status, answer = wire(method, f"metalakes/acme/{path}", body)
        return status, answer["code"], answer["type"]

    roles.create_role(world.olga, "acme", "a")
    assert failure("POST", "roles", {"name": "a"}) == (409, 1004, "RoleAlreadyExistsException")
    assert failure("GET", "roles/b") == (404, 1003, "NoSuchRoleException")
    grant = "permissions/users/mia/grant"
    assert failure("PUT", grant, {"roleNames": ["b"]}) == (400, 1001, "IllegalRoleException")
    assert failure("PUT", grant, {"roleNames": []})[:2] == (400, 1001)
    assert failure("PUT", "permissions/users/sam/grant", {"roleNames": ["a"]}) == (404, 1003, "NoSuchUserException")
    missing = {"fullName": "lake.X", "type": "schema", "privileges": [{"name": "use_schema", "condition": "allow"}]}
    wanted = {"name": "c", "securableObjects": [missing]}
    assert failure("POST", "roles", wanted) == (404, 1003, "NoSuchMetadataObjectException")
    missing["type"] = "planet"
    assert failure("POST", "roles", wanted) == (400, 1001, "IllegalMetadataObjectException")
