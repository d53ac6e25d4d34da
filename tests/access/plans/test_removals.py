"""All that gives somebody access to an object is taken together, and nothing that others or other things need."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from access.explain.queries import Place, Whom
from access.plans import apply
from access.plans.apply import Moved
from access.plans.plan import Planned, plan_changes
from access.plans.removals import Part, remove_access
from access.plans.undo import plan_undo
from authz.models import Plan, Role
from authz.services import grants, people, roles
from metalake.errors import NotFound
from metalake.kinds import Kind
from metalake.privileges import Effect
from tests.authz.plan_files import PATH, lines
from tests.authz.small_world import Wire, World, kind_at

WAY = ("use_catalog@lake", "use_schema@lake.A")


class Shown(NamedTuple):
    """A removal with the plan of it."""

    parts: list[Part]
    notes: list[str]
    planned: Planned


def removal(world: World, where: str = "lake.A:B.t", who: str = "mia", *, by: str = "olga", **more: Any) -> Shown:
    whom = Whom("group", who[6:]) if who.startswith("group ") else Whom("user", who)
    shown = remove_access(world.actor(by), "acme", whom, Place(kind_at(where), where), **more)
    return Shown(*shown, plan_changes(world.actor(by), "acme", shown.changes))


def planned(shown: Shown) -> list[str]:
    return lines(shown.planned.changes)


def said(removal: Shown) -> dict[str, str]:
    return {part.role: part.says for part in removal.parts}


def share(world: World, role: str, *users: str) -> None:
    for user in users:
        roles.assign_roles(world.olga, "acme", "user", user, [role])


@pytest.mark.store
def test_a_role_of_nobody_else_goes_with_all_that_led_there_and_comes_back(world: World) -> None:
    world.give("mia", *WAY, "select_table@lake.A:B.t")
    taken = removal(world)
    assert planned(taken) == [
        "revoke r1 allow use_catalog lake",
        "revoke r1 allow use_schema lake.A",
        "revoke r1 allow select_table lake.A:B.t",
        "unassign r1 user mia",
        "dropRole r1",
    ]
    assert said(taken) == {"r1": "Only user mia holds it; nothing is left in it: it is dropped."}
    assert "1 user loses select_table on 1 table" in taken.planned.summary
    token = apply.apply_plan(world.olga, "acme", taken.planned.token).token
    assert not Role.objects.filter(name="r1").exists() and removal(world).parts == []
    undone = plan_undo(world.olga, "acme", token)
    apply.apply_plan(world.olga, "acme", undone.token)
    assert world.role("r1") == {
        "lake": ["allow use_catalog"],
        "lake.A": ["allow use_schema"],
        "lake.A:B.t": ["allow select_table"],
    }


def test_use_that_serves_something_else_stays(world: World) -> None:
    world.give("mia", *WAY, "select_table@lake.A:B.t")
    other = world.give("mia", "create_table@lake.A")
    taken = removal(world)
    assert planned(taken) == ["revoke r1 allow select_table lake.A:B.t"]
    assert taken.notes == [
        "use_schema on schema lake.A stays: it leads to more that they have.",
        "use_catalog on catalog lake stays: it leads to more that they have.",
    ]
    assert planned(removal(world, "lake.A"))[-2:] == ["unassign r2 user mia", "dropRole r2"], "what lies below goes too"
    grants.revoke_privileges(world.olga, "acme", other, Kind.SCHEMA, "lake.A", [("create_table", "allow")])
    world.own("mia", world.t)
    owning = removal(world)
    assert planned(owning) == ["revoke r1 allow select_table lake.A:B.t"], "owners need the way too"
    assert owning.notes[0] == "user mia owns table lake.A:B.t: only another owner ends that."


def test_what_people_of_a_group_hold_themselves_keeps_the_group_s_use(world: World) -> None:
    world.group("crew", "nils")
    world.give("nils", "select_table@lake.A:B")
    roles.create_role(world.olga, "acme", "crew_way")
    for where, privilege in (("lake", "use_catalog"), ("lake.A", "use_schema"), ("lake.A:B.t", "modify_table")):
        grants.grant_privileges(world.olga, "acme", "crew_way", kind_at(where), where, [(privilege, "allow")])
    roles.assign_roles(world.olga, "acme", "group", "crew", ["crew_way"])
    taken = removal(world, who="group crew")
    assert planned(taken) == ["revoke crew_way allow modify_table lake.A:B.t"] and len(taken.notes) == 2


def test_a_role_that_others_hold_is_taken_from_one(world: World) -> None:
    world.group("crew", "mia")
    shared = world.give("mia", *WAY, "select_table@lake.A:B")
    share(world, shared, "nils")
    taken = removal(world)
    assert planned(taken) == ["unassign r1 user mia"]
    assert said(taken) == {"r1": "1 other holds it and keeps it; user mia loses it with all that it allows elsewhere."}
    roles.assign_roles(world.olga, "acme", "group", "crew", [shared])
    both = removal(world)
    assert "2 others hold it and keep it" in said(both)[shared] and planned(both) == ["unassign r1 user mia"]
    assert "user mia has it through group crew: leave that" in said(both)[shared]
    roles.unassign_roles(world.olga, "acme", "user", "mia", [shared])
    through = removal(world)
    assert not planned(through) and [part.changes for part in through.parts] == [()]
    assert planned(removal(world, who="group crew")) == ["unassign r1 group crew"]


def test_a_role_of_ways_that_others_hold_is_left_by_whom_it_leads_nowhere(world: World) -> None:
    way = world.give("mia", *WAY)
    share(world, way, "nils")
    world.give("mia", "select_table@lake.A:B.t")
    taken = removal(world)
    assert planned(taken)[:1] == ["unassign r1 user mia"] and planned(taken)[-1] == "dropRole r2"
    only = removal(world, only=["r2"])
    assert planned(only)[-1] == "dropRole r2" and "unassign r1 user mia" not in planned(only)


@pytest.mark.store
def test_a_role_of_ways_stays_where_any_of_it_leads_to_more(world: World) -> None:
    """Else taking access to A would take what the way to C needs."""
    share(world, world.give("mia", *WAY), "nils")
    world.give("mia", "select_table@lake.A:B.t")
    world.schema("C")
    world.give("mia", "use_schema@lake.C", "create_table@lake.C")
    taken = removal(world)
    assert planned(taken) == ["revoke r2 allow select_table lake.A:B.t", "unassign r2 user mia", "dropRole r2"]
    assert taken.notes == [
        "use_schema on schema lake.A stays: role r1, which others hold too, is taken whole or not at all.",
        "use_catalog on catalog lake stays: it leads to more that they have.",
    ]


def test_what_leads_there_and_stays_is_said_with_its_reason(world: World) -> None:
    world.group("crew", "mia")
    roles.create_role(world.olga, "acme", "way")
    grants.grant_privileges(world.olga, "acme", "way", Kind.CATALOG, "lake", [("use_schema", "allow")])
    roles.assign_roles(world.olga, "acme", "group", "crew", ["way"])
    share(world, world.give("mia", "use_catalog@lake", "use_catalog@files"), "nils")
    taken = removal(world, "lake.A")
    assert (taken.parts, planned(taken)) == ([], [])
    assert taken.notes == [
        "use_schema on catalog lake stays: user mia has role way through group crew.",
        "use_catalog on catalog lake stays: role r1, which others hold too, holds more than that.",
    ]


def test_many_roles_take_as_many_statements_as_few(world: World) -> None:
    def give(count: int) -> int:
        for _ in range(count):
            share(world, world.give("mia", "select_table@lake.A"), "nils")
            world.give("mia", *WAY, "select_table@lake.A")
        with CaptureQueriesContext(connection) as asked:
            remove_access(world.olga, "acme", Whom("user", "mia"), Place(Kind.SCHEMA, "lake.A"))
        return len(asked)

    assert give(1) == give(4)


def test_a_privilege_that_bears_on_the_object_goes_from_where_it_stands(world: World) -> None:
    world.give("mia", "use_catalog@lake", "select_table@lake", "create_catalog@acme", "manage_users@acme")
    assert planned(removal(world)) == ["revoke r1 allow select_table lake", "revoke r1 allow use_catalog lake"]
    assert planned(removal(world, "acme"))[-1] == "dropRole r1", "of the metalake all goes"


# Who may


def test_it_takes_what_taking_each_by_hand_takes(world: World) -> None:
    world.give("mia", *WAY, "select_table@lake.A:B.t")
    shared = world.give("mia", "modify_table@lake.A:B.t")
    share(world, shared, "olga")
    with pytest.raises(NotFound):
        removal(world, by="nils")
    world.give("nils", *WAY, "manage_grants@lake.A")
    nils = removal(world, by="nils")
    assert planned(nils) == ["revoke r1 allow select_table lake.A:B.t"], "what he cannot take still needs the way"
    assert (
        said(nils)[shared] == "1 other holds it and keeps it; taking it from one takes manage_grants on metalake acme."
    )
    roles.unassign_roles(world.olga, "acme", "user", "mia", [shared])
    nils = removal(world, by="nils")
    assert planned(nils) == ["revoke r1 allow use_schema lake.A", "revoke r1 allow select_table lake.A:B.t"]
    where = "table lake.A:B.t, schema lake.A (for all in it)"
    assert said(nils)["r1"] == f"Only user mia holds it: what it holds on {where} is revoked."
    assert nils.notes == ["use_catalog on catalog lake stays: you may not take it."]
    world.give("mia", "use_schema@files")
    assert removal(world, by="nils").notes == nils.notes, "whether it is needed elsewhere is not told"
    world.give("mia", "create_catalog@acme", "modify_table@acme")
    assert said(removal(world, by="nils"))["r5"] == (
        "Only user mia holds it; you may not take modify_table on metalake acme."
    )
    grants.revoke_privileges(world.olga, "acme", "r3", Kind.SCHEMA, "lake.A", [("manage_grants", "allow")])
    with pytest.raises(Moved, match="cannot be applied any more"):
        apply.apply_plan(world.actor("nils"), "acme", nils.planned.token)
    assert "lake.A:B.t" in world.role("r1"), "it is asked again when it is applied"


@pytest.mark.store
@pytest.mark.parametrize("elsewhere", [(), ("use_catalog@files",)], ids=["all of it", "a part of it"])
@pytest.mark.parametrize("other", [("user", "nils"), ("group", "team")], ids=["a user", "a group"])
def test_a_role_that_somebody_else_got_meanwhile_is_shown_again(
    world: World, other: tuple[str, str], elsewhere: tuple[str, ...]
) -> None:
    people.add_group(world.olga, "acme", "team")
    world.give("mia", *WAY, "select_table@lake.A:B.t", *elsewhere)
    world.give("nils", *WAY, "select_table@lake.A:B.t")  # so nobody else loses by it
    taken, before = removal(world), Plan.objects.get()
    roles.assign_roles(world.olga, "acme", *other, ["r1"])
    with pytest.raises(Moved, match="Role r1 has other holders now than then" if elsewhere else None):
        apply.apply_plan(world.olga, "acme", taken.planned.token)
    assert planned(removal(world)) == ["unassign r1 user mia"]
    if elsewhere:
        del before.changes["holders"]
        before.save()
        assert apply.apply_plan(world.olga, "acme", taken.planned.token).changes, "a plan from before has none"


# A DENY


@pytest.mark.store
def test_a_deny_of_many_is_lifted_for_one(world: World) -> None:
    denied = world.give("mia", "deny select_table@lake", "deny modify_table@lake")
    share(world, denied, "nils")
    lifted = removal(world, effect=Effect.DENY)
    assert planned(lifted) == ["unassign r1 user mia"]
    world.give("nils", *WAY, "manage_grants@lake", "manage_grants@lake.A")
    refused = removal(world, by="nils", effect=Effect.DENY)
    assert not planned(refused), "lifting takes who may grant on the parent of the object that carries it"
    apply.apply_plan(world.olga, "acme", lifted.planned.token)
    assert (
        world.actor("nils").policy.user_roles[world.users["nils"].pk] and not removal(world, effect=Effect.DENY).parts
    )
    alone = removal(world, who="nils", effect=Effect.DENY)
    assert planned(alone)[-1] == "dropRole r1", "nobody else is denied it"


def test_a_deny_is_not_lifted_for_former_members(world: World) -> None:
    denied = world.give("mia", "deny select_table@lake")
    share(world, denied, "nils")
    people.remove_user(world.olga, "acme", "nils")
    lifted = removal(world, effect=Effect.DENY)
    assert planned(lifted) == ["unassign r1 user mia"]
    assert said(lifted)[denied].endswith("user mia loses it with all that it denies elsewhere.")
    apply.apply_plan(world.olga, "acme", lifted.planned.token)
    people.add_user(world.olga, "acme", "nils")
    assert planned(removal(world, who="nils", effect=Effect.DENY))[-1] == "dropRole r1"


def test_a_deny_beside_allows_or_through_a_group_is_said_and_stays(world: World) -> None:
    mixed = world.give("mia", "deny modify_table@lake", "select_table@lake")
    share(world, mixed, "nils")
    world.group("crew", "mia")
    blocked = world.give("nils", "deny create_table@lake")
    roles.assign_roles(world.olga, "acme", "group", "crew", [blocked])
    lifted = removal(world, "lake", effect=Effect.DENY)
    assert not planned(lifted)
    assert "it also allows things, which user mia would lose" in said(lifted)[mixed]
    assert said(lifted)[blocked] == "user mia has it through group crew: leave that, or change what it holds."
    assert "what it denies counts no more for them" in said(removal(world, "lake"))[mixed]


def test_nobody_sheds_a_deny_by_taking_access(world: World) -> None:
    mixed = world.give("mia", "deny modify_table@acme", "select_table@lake")
    share(world, mixed, "olga")
    world.give("nils", "manage_grants@acme")
    kept = removal(world, "lake", by="nils")
    assert not planned(kept) and "it carries a DENY that you may not lift" in said(kept)[mixed]


# The wire


def test_the_wire(world: World, wire: Wire) -> None:
    world.give("mia", *WAY, "select_table@lake.A:B.t")
    asked = {"user": "mia", "type": "table", "fullName": "lake.A:B.t"}
    status, body = wire("POST", f"{PATH}/removals", asked)
    shown = body["removal"]
    assert status == 200 and shown["notes"] == []
    assert [(part["role"], part["offered"]) for part in shown["parts"]] == [("r1", True)]
    assert wire("POST", f"{PATH}/apply", {"token": shown["plan"]["token"]})[0] == 200
    assert "token" not in wire("POST", f"{PATH}/removals", asked)[1]["removal"]["plan"]
    for wrong, status in (
        ({"group": "crew"}, 400),
        ({"type": "role"}, 400),
        ({"user": "nobody"}, 404),
        ({"fullName": "lake.A:B.no"}, 404),
        ({"condition": "maybe"}, 400),
    ):
        assert wire("POST", f"{PATH}/removals", asked | wrong)[0] == status, wrong
    assert wire("POST", f"{PATH}/removals", asked, user="nils")[0] == 404
