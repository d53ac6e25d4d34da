"""Who is removed is shown before, and is back with all that they had within the hour, as far as it is still so."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from access.plans import departures, plan_file
from access.plans.departures import Return
from access.plans.export import export
from authz.models import AuditEntry, Fact, Group, Role
from authz.services import grants, owners, people, roles
from metalake.errors import AlreadyExists, Conflict, Forbidden, Invalid, NotFound
from metalake.kinds import Kind
from metalake.models import Securable
from tests.authz.small_world import World

pytestmark = pytest.mark.django_db


@pytest.fixture
def team(world: World) -> World:
    """mia holds r1, is in the group crew, which holds r2 and owns the schema B, and owns the schema A."""
    world.give("mia", "use_catalog@lake")
    world.give("nils", "select_table@lake")
    world.group("crew", "mia", "nils")
    roles.assign_roles(world.olga, "acme", "group", "crew", ["r2"])
    owners.set_owner(world.olga, "acme", Kind.SCHEMA, "lake.A", "mia", "user")
    owners.set_owner(world.olga, "acme", Kind.SCHEMA, "lake.A:B", "crew", "group")
    return world


def state(world: World) -> dict[str, Any]:
    """Everybody's roles and groups, and who owns what."""
    owned = Securable.objects.order_by("pk").values_list("name", "owner_user__username", "owner_group__name")
    users = [(each.name, each.roles) for each in people.list_users(world.olga, "acme")]
    groups = [(each.name, each.roles, each.users) for each in map(_group(world), ("crew",))]
    return {"plan": plan_file.as_data(export(world.olga, "acme")), "owned": list(owned), "who": (users, groups)}


def _group(world: World) -> Any:
    return lambda name: people.get_group(world.olga, "acme", name)


def remove(world: World, sort: str, name: str, by: str = "olga") -> int:
    """Remove somebody; their id."""
    id = departures.leaving(world.olga, "acme", sort, name).id
    drop = people.remove_user if sort == "user" else people.remove_group
    assert drop(world.actor(by), "acme", name)
    return id


def back(world: World, sort: str, id: int, by: str = "olga") -> Return:
    return departures.bring_back(world.actor(by), "acme", sort, id)


@pytest.mark.store
@pytest.mark.parametrize(("sort", "name"), [("user", "mia"), ("group", "crew")])
def test_who_is_removed_and_back_has_what_they_had(team: World, sort: str, name: str) -> None:
    before, mia = state(team), team.mia.policy.roles_of(team.mia.id)
    returned = back(team, sort, remove(team, sort, name))
    role, linked = ("r1", 1) if sort == "user" else ("r2", 2)
    assert (returned.name, returned.roles, returned.linked, returned.objects) == (name, [role], linked, 1)
    assert returned.left == ()
    assert state(team) == before
    assert team.mia.policy.roles_of(team.mia.id) == mia, "the snapshot has it too"
    (entry,) = team.events(f"{sort}.restored")
    assert (entry.actor, entry.details["objects_returned"]) == ("olga", 1)
    owned = Fact.objects.filter(topic="object", about=(team.a if sort == "user" else team.ab).pk).latest("id")
    assert owned.event == f"{sort}.restored" and owned.state["owner_user" if sort == "user" else "owner_group"]


@pytest.mark.store
def test_it_is_shown_before_what_passes_to_whom(team: World) -> None:
    shown = departures.leaving(team.olga, "acme", "user", "mia")
    assert (shown.heir.name, [each.path for each in shown.owned], shown.more) == ("olga", ["lake.A"], False)
    shown = departures.leaving(team.olga, "acme", "group", "crew")
    assert [each.path for each in shown.owned] == ["lake.A:B"]
    team.give("nils", "manage_users@acme")
    assert departures.leaving(team.actor("nils"), "acme", "user", "mia").owned == [], "nils does not see lake.A"
    with pytest.raises(NotFound, match=r"User mai does not exist. Did you mean mia\?"):
        departures.leaving(team.olga, "acme", "user", "mai")
    with pytest.raises(Forbidden):
        departures.leaving(team.mia, "acme", "user", "nils")


def test_the_last_owner_is_not_removed(team: World) -> None:
    with pytest.raises(Invalid, match="choose its new owner first"):
        departures.leaving(team.olga, "acme", "user", "olga")
    owners.set_owner(team.olga, "acme", Kind.METALAKE, "acme", "crew", "group")
    with pytest.raises(Invalid, match="hand it to another owner first"):
        departures.leaving(team.mia, "acme", "group", "crew")
    assert departures.leaving(team.mia, "acme", "user", "mia").person.name == "mia", "nils owns it too"
    people.remove_user(team.mia, "acme", "nils")
    with pytest.raises(Invalid, match="choose its new owner first"):
        departures.leaving(team.mia, "acme", "user", "mia")


def _drop_role(world: World) -> None:
    roles.drop_role(world.olga, "acme", "r1")


def _drop_group(world: World) -> None:
    people.remove_group(world.olga, "acme", "crew")


def _hand_on(world: World) -> None:
    owners.set_owner(world.olga, "acme", Kind.SCHEMA, "lake.A", "nils", "user")


@pytest.mark.store
@pytest.mark.parametrize(
    ("meanwhile", "says"),
    [
        (_drop_role, "Role r1 was dropped since."),
        (_drop_group, "Group crew was removed since."),
        (_hand_on, "Of the objects that they owned, 1 have another owner by now."),
    ],
)
def test_what_has_changed_since_is_left_and_said(team: World, meanwhile: Any, says: str) -> None:
    id = remove(team, "user", "mia")
    meanwhile(team)
    assert back(team, "user", id).left == (says,)
    assert team.mia.is_member(team.acme.pk)


@pytest.mark.store
def test_each_part_takes_the_right_to_give_it(team: World) -> None:
    """nils manages users and groups only: who is back by him has no role, and what they owned stays with olga."""
    team.give("nils", "manage_users@acme", "manage_groups@acme")
    returned = back(team, "user", remove(team, "user", "mia", "nils"), "nils")
    assert (returned.roles, returned.linked, returned.objects) == ([], 0, 0)
    assert returned.left == (
        "User mia has no role again: you may not assign roles.",
        "Group crew stays without them: you may not put anybody in.",
        departures.GONE,  # nils does not see lake.A
    )
    assert team.mia.policy.roles_of(team.mia.id) == () and not team.mia.groups
    team.a.refresh_from_db()
    assert team.a.owner_user.username == "olga"


def test_what_the_caller_does_not_see_has_no_name(team: World) -> None:
    """As above with manage_users alone, and a reader of lake.A, who is told that it stays."""
    team.give("nils", "manage_users@acme")
    roles.unassign_roles(team.olga, "acme", "user", "nils", ["r2"])
    people.set_group_users(team.olga, "acme", "crew", remove=["nils"])
    id = remove(team, "user", "mia", "nils")
    assert "A group of theirs stays without them: you may not put anybody in." in back(team, "user", id, "nils").left
    owners.set_owner(team.olga, "acme", Kind.SCHEMA, "lake.A", "mia", "user")
    team.give("nils", "use_catalog@lake", "use_schema@lake")
    left = back(team, "user", remove(team, "user", "mia", "nils"), "nils").left
    assert left == ("Of the objects that they owned, 1 stay with their owner: you may not set it.",)


@pytest.mark.store
def test_an_owner_is_not_back_where_a_deny_would_be_shed(team: World) -> None:
    """nils owns lake.A's catalog, so he may set owners, but a DENY of mia's on the catalog is olga's to lift."""
    owners.set_owner(team.olga, "acme", Kind.CATALOG, "lake", "nils", "user")
    team.give("nils", "manage_users@acme", "manage_grants@acme")
    id = remove(team, "user", "mia", "nils")
    grants.grant_privileges(team.olga, "acme", "r1", Kind.METALAKE, "acme", [("select_table", "deny")])
    returned = back(team, "user", id, "nils")
    assert (returned.roles, returned.objects) == (["r1"], 0)
    assert returned.left == (
        "Group crew stays without them: a DENY that you may not lift would be shed.",
        "What they owned stays with its owner: a DENY that you may not lift would be shed.",
    )


def test_nobody_else_undoes_it_nor_later_nor_twice(team: World) -> None:
    team.give("nils", "manage_users@acme")
    id = remove(team, "user", "mia")
    with pytest.raises(NotFound, match="nils has removed no such user"):
        back(team, "user", id, "nils")
    with pytest.raises(NotFound):
        back(team, "user", team.users["sam"].pk)
    AuditEntry.objects.filter(event="user.removed").update(at=AuditEntry.objects.latest("id").at - timedelta(hours=1))
    with pytest.raises(Conflict, match="more than an hour ago"):
        back(team, "user", id)
    people.add_user(team.olga, "acme", "mia")
    people.remove_user(team.olga, "acme", "mia")
    back(team, "user", id)
    with pytest.raises(AlreadyExists, match="User mia was added again since"):
        back(team, "user", id)
    id = remove(team, "group", "crew")
    people.add_group(team.olga, "acme", "crew")
    with pytest.raises(AlreadyExists):
        back(team, "group", id)
    assert Group.objects.count() == 1 and Role.objects.count() == 3


def test_a_removal_of_ones_own_does_not_undo_a_later_one(team: World) -> None:
    """Else what the other took back before removing them would be given again."""
    team.give("nils", "manage_users@acme", "manage_grants@acme")
    id = remove(team, "user", "mia", "nils")
    back(team, "user", id, "nils")
    roles.unassign_roles(team.olga, "acme", "user", "mia", ["r1"])
    remove(team, "user", "mia")
    with pytest.raises(NotFound, match="nils has removed no such user"):
        back(team, "user", id, "nils")
    assert back(team, "user", id).roles == []


def test_a_disabled_user_is_back_disabled_and_former_people_stay_out(team: World) -> None:
    people.add_user(team.olga, "acme", "sam", external_id="x-1", enabled=False)
    back(team, "user", remove(team, "user", "sam"))
    row = people.get_user(team.olga, "acme", "sam").row
    assert (row.enabled, row.external_id) == (False, "x-1")
    id = remove(team, "group", "crew")
    people.remove_user(team.olga, "acme", "nils")
    assert back(team, "group", id).left == ("1 of its people are not in acme any more.",)
    assert people.get_group(team.olga, "acme", "crew").users == ["mia"]
