"""A DENY is not shed by leaving: what carries one to a removed member is kept, and theirs again when they are added."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from authz import operations, policy, snapshot
from authz.actor import Actor
from authz.models import AuditEntry, Grant, Group
from authz.objects import find_object
from authz.services import bulk, grants, people, removed_members, roles
from authz.services.bulk import NewUser
from metalake.errors import Forbidden, NotFound
from metalake.kinds import Kind
from tests.authz.history import FLIGHTS, History, now
from tests.authz.small_world import Wire, World

READS = ("use_catalog@lake", "use_schema@lake", "select_table@lake")
BARS = "deny select_table@lake.A"


def reads(actor: Actor) -> bool:
    return policy.permits(actor, operations.LOAD_TABLE, find_object("acme", Kind.TABLE, "lake.A:B.t"))


def barred_group(world: World, name: str, *users: str) -> None:
    """A group that holds a role with the DENY."""
    world.group(name, *users)
    roles.create_role(world.olga, "acme", "bars")
    grants.grant_privileges(world.olga, "acme", "bars", Kind.SCHEMA, "lake.A", [("select_table", "deny")])
    roles.assign_roles(world.olga, "acme", "group", name, ["bars"])


def leave_and_come_back(world: World, user: str, name: str = "mia") -> None:
    assert people.remove_user(world.actor(user), "acme", name)
    people.add_user(world.actor(user), "acme", name)


@pytest.fixture
def boss(world: World) -> str:
    """nils manages users and may assign roles, though not grant on schema A: he may not lift its DENYs."""
    world.give("nils", "manage_users@acme", "manage_grants@acme", "deny manage_grants@lake")
    return "nils"


def test_a_role_that_denies_is_there_again(world: World, boss: str) -> None:
    allows, bars = world.give("mia", *READS), world.give("mia", BARS)
    with pytest.raises(Forbidden):
        roles.unassign_roles(world.actor(boss), "acme", "user", "mia", [bars])
    leave_and_come_back(world, boss)
    roles.assign_roles(world.actor(boss), "acme", "user", "mia", [allows])
    assert people.get_user(world.olga, "acme", "mia").roles == [allows, bars]
    assert not reads(world.mia)


def test_a_group_that_denies_is_there_again(world: World, boss: str) -> None:
    allows = world.give("mia", *READS)
    barred_group(world, "team", "mia")
    leave_and_come_back(world, boss)
    roles.assign_roles(world.actor(boss), "acme", "user", "mia", [allows])
    assert people.get_group(world.olga, "acme", "team").users == ["mia"]
    assert not reads(world.mia)


def test_managing_users_is_not_enough_where_a_token_brings_the_groups(world: World) -> None:
    """The ALLOWs come with the token's claim, so that nobody has to give them back."""
    world.group("analysts")
    roles.assign_roles(world.olga, "acme", "group", "analysts", [world.give("olga", *READS)])
    world.give("mia", BARS)
    world.give("nils", "manage_users@acme")
    leave_and_come_back(world, "nils")
    claims = replace(world.mia, claimed=(Group.objects.get(name="analysts").pk,))
    assert claims.is_member(world.acme.id) and not reads(claims)


def test_many_at_once_keep_the_same(world: World, boss: str) -> None:
    bars = world.give("mia", *READS, BARS)
    nils = world.actor(boss)
    assert bulk.remove_users(nils, "acme", ["mia"]).done == ["mia"]
    (added,) = bulk.add_users(nils, "acme", [NewUser("mia")]).done
    assert added.roles == [bars] and not reads(world.mia)


def test_what_denies_nothing_ends_with_the_membership(world: World) -> None:
    free, bars = world.give("mia", *READS), world.give("mia", BARS)
    world.group("team", "mia")
    people.remove_user(world.olga, "acme", "mia")
    mia = world.mia
    assert not mia.is_member(world.acme.id) and len(mia.roles) == 1 and mia.groups == ()
    people.add_user(world.olga, "acme", "mia")
    assert people.get_user(world.olga, "acme", "mia").roles == [bars] != [free]


def test_a_former_member_has_nothing_by_what_is_kept(world: World, wire: Wire) -> None:
    world.give("mia", *READS, "deny modify_table@lake")
    barred_group(world, "team", "mia")
    people.remove_user(world.olga, "acme", "mia")
    assert not reads(world.mia)
    assert wire("GET", "metalakes/acme/roles", user="mia")[0] == 404
    assert people.get_group(world.olga, "acme", "team").users == []


def test_it_is_kept_in_its_own_metalake_alone(world: World) -> None:
    other = world.metalake("other", "mia")
    bars = world.give("mia", BARS)
    people.remove_user(world.olga, "acme", "mia")
    assert people.get_user(world.mia, "other", "mia").roles == []
    assert world.mia.is_member(other.id)
    people.add_user(world.olga, "acme", "mia")
    assert people.get_user(world.mia, "acme", "mia").roles == [bars]


@pytest.mark.store
def test_a_deny_that_ended_keeps_nothing_and_one_ahead_does(world: World) -> None:
    today = timezone.now()
    ended, ahead, ends = (world.give("mia", BARS) for _ in range(3))
    denied = Grant.rows.filter(effect="deny")
    denied.filter(group__role__name=ended).update(ends_at=today - timedelta(hours=1))
    denied.filter(group__role__name=ahead).update(starts_at=today + timedelta(days=1))
    people.remove_user(world.olga, "acme", "mia")
    assert removed_members.list_former_members(world.olga, "acme") == [("mia", [ahead, ends], [])]
    denied.filter(group__role__name=ends).update(ends_at=timezone.now())  # while she is away
    snapshot.forget()
    assert removed_members.list_former_members(world.olga, "acme") == [("mia", [ahead], [])]
    people.add_user(world.olga, "acme", "mia")
    assert people.get_user(world.olga, "acme", "mia").roles == [ahead]


def test_a_role_that_denies_only_later_is_not_theirs(world: World) -> None:
    """The link had ended before the DENY began."""
    role = world.give("mia", *READS)
    people.remove_user(world.olga, "acme", "mia")
    grants.grant_privileges(world.olga, "acme", role, Kind.SCHEMA, "lake.A", [("select_table", "deny")])
    people.add_user(world.olga, "acme", "mia")
    assert people.get_user(world.olga, "acme", "mia").roles == []


def test_a_deny_that_is_lifted_meanwhile_brings_no_allow_back(world: World) -> None:
    role = world.give("mia", *READS, BARS)
    people.remove_user(world.olga, "acme", "mia")
    grants.revoke_privileges(world.olga, "acme", role, Kind.SCHEMA, "lake.A", [("select_table", "deny")])
    people.add_user(world.olga, "acme", "mia")
    assert people.get_user(world.olga, "acme", "mia").roles == [] and not reads(world.mia)


def test_who_may_lift_the_deny_ends_what_is_kept(world: World, boss: str, wire: Wire) -> None:
    bars = world.give("mia", BARS)
    barred_group(world, "team", "mia")
    people.remove_user(world.actor(boss), "acme", "mia")
    revoke = "metalakes/acme/permissions/users/mia/revoke"
    assert wire("PUT", revoke, {"roleNames": [bars]}, user=boss)[0] == 403
    with pytest.raises(Forbidden):
        people.set_group_users(world.actor(boss), "acme", "team", remove=["mia"])
    with pytest.raises(Forbidden):
        people.remove_group(world.actor(boss), "acme", "team")
    status, body = wire("PUT", revoke, {"roleNames": [bars]})
    assert status == 200 and body["user"]["roles"] == [] and body["user"]["enabled"] is False
    assert people.set_group_users(world.olga, "acme", "team", remove=["mia"]).former == []
    people.add_user(world.olga, "acme", "mia")
    assert people.get_user(world.olga, "acme", "mia").roles == []
    assert people.get_group(world.olga, "acme", "team").users == []


def test_nothing_is_added_to_a_former_member(world: World) -> None:
    bars = world.give("mia", BARS)
    barred_group(world, "team", "mia")
    people.remove_user(world.olga, "acme", "mia")
    for act in (
        lambda: roles.assign_roles(world.olga, "acme", "user", "mia", [bars]),
        lambda: people.set_group_users(world.olga, "acme", "team", add=["mia"]),
        lambda: roles.unassign_roles(world.olga, "acme", "user", "nobody", [bars]),
        lambda: people.get_user(world.olga, "acme", "mia"),
    ):
        with pytest.raises(NotFound):
            act()


def test_what_is_kept_is_told_to_who_may_grant(world: World, boss: str, wire: Wire) -> None:
    bars = world.give("mia", BARS)
    barred_group(world, "team", "mia")
    people.remove_user(world.olga, "acme", "mia")
    kept = {"name": "mia", "roles": [bars], "groups": ["team"]}
    former = "metalakes/acme/access/former-members"
    assert wire("GET", former, user=boss) == wire("GET", former) == (200, {"code": 0, "formerMembers": [kept]})
    assert wire("GET", former, user="sam")[0] == 404
    people.add_user(world.olga, "acme", "sam")
    assert wire("GET", former, user="sam")[0] == 403
    assert wire("GET", "metalakes/acme/groups/team")[1]["group"]["formerUsers"] == ["mia"]
    asked = "metalakes/acme/access/explain?user=mia&privilege=select_table&type=table&fullName=lake.A:B.t"
    changes = wire("GET", asked)[1]["explanation"]["changes"]
    assert {"addMember", "liftDeny"} <= {step["change"] for steps in changes for step in steps}
    (entry,) = AuditEntry.objects.filter(event="user.removed")
    assert entry.details.items() >= {"objects_handed_over": 0, "roles": [bars], "groups": ["team"]}.items()


def test_the_history_tells_when_somebody_was_away(past: History) -> None:
    roles.create_role(past.olga, "acme", "bars")
    grants.grant_privileges(past.olga, "acme", "bars", Kind.SCHEMA, FLIGHTS, [("use_schema", "deny")])
    roles.assign_roles(past.olga, "acme", "user", "mia", ["bars"])
    people.remove_user(past.olga, "acme", "mia")
    away = now()
    people.add_user(past.olga, "acme", "mia")
    roles.assign_roles(past.olga, "acme", "user", "mia", ["readers"])
    back = now()
    roles.unassign_roles(past.olga, "acme", "user", "mia", ["bars"])
    freed = now()
    assert [past.loads("mia", moment) for moment in (away, back, freed, None)] == [False, False, True, True]
    assert "mia" not in past.at(away).members() and "mia" in past.at(back).members()
