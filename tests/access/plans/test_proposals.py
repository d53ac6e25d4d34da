"""Roles for people: one that exists for exactly this, or a new one; and whom to ask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import pytest

from access.explain.queries import Place, Whom
from access.plans import apply, role_choice
from access.plans.proposals import AccessRequest, Proposal, propose
from authz.models import Plan
from authz.name_rules import check_role_name
from authz.objects import by_ids
from authz.services import grants, people, roles
from authz.services.grant_entries import Given
from metalake.errors import Forbidden, Invalid, NotFound, TooLarge
from metalake.kinds import Kind
from metalake.privileges import Effect, Privilege
from tests.authz.plan_files import PATH, lines
from tests.authz.small_world import Wire, World, kind_at
from tests.cases import each

LATER = datetime(2999, 1, 1, tzinfo=UTC)


def wish(where: str, *privileges: str, to: tuple[str, ...] = ("mia",), **more: Any) -> AccessRequest:
    """wish("lake.A", "select_table", "deny modify_table", to=("mia", "group crew"))"""
    entries = {
        Privilege(text.removeprefix("deny ")): Given(Effect.DENY if text.startswith("deny ") else Effect.ALLOW)
        for text in privileges
    }
    whom = tuple(Whom("group", name[6:]) if name.startswith("group ") else Whom("user", name) for name in to)
    return AccessRequest(whom, Place(kind_at(where), where), entries, **more)


def proposed(world: World, *asked: Any, user: str = "olga", **more: Any) -> Proposal:
    return propose(world.actor(user), "acme", wish(*asked, **more))


def verdicts(proposal: Proposal) -> list[tuple[str, str, str]]:
    return [(note.whom.name, note.privilege.value, note.verdict) for note in proposal.notes]


# Which role


@pytest.mark.store
def test_a_new_role_is_named_after_the_object_and_opens_the_way(world: World) -> None:
    proposal = proposed(world, "lake.A:B", "select_table", "use_schema")
    assert (proposal.role, proposal.is_new) == ("lake_A_B_reader", True)
    assert proposal.reason == ("New role lake_A_B_reader: no role exists for exactly this that nobody else holds.")
    assert proposal.planned and lines(proposal.planned.changes) == [
        "createRole lake_A_B_reader",
        "grant lake_A_B_reader allow use_catalog lake",
        "grant lake_A_B_reader allow select_table lake.A:B",
        "grant lake_A_B_reader allow use_schema lake.A:B",
        "assign lake_A_B_reader user mia",
    ]
    assert [(use.privilege, use.is_added, use.says) for use in proposal.use] == [
        (Privilege.USE_CATALOG, True, "mia lacks use_catalog on catalog lake: it is given too.")
    ]
    assert proposal.planned.summary.startswith("1 user gains select_table on 1 table and 1 schema; ")
    assert verdicts(proposal) == [("mia", "select_table", "new"), ("mia", "use_schema", "new")]
    apply.apply_plan(world.olga, "acme", proposal.planned.token)
    again = proposed(world, "lake.A:B", "select_table", "use_schema")
    assert (again.role, again.changes, again.planned) == (None, (), None)
    assert again.reason == "All of it is effective already."
    assert verdicts(again) == [("mia", "select_table", "effective"), ("mia", "use_schema", "effective")]
    assert again.notes[0].says == "Role lake_A_B_reader allows select_table on schema lake.A:B, and mia holds it."


# Roles of mia alone, or of the group crew alone, into which nothing more goes.
OTHERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "for something else": ("mia", ("use_catalog@files",)),
    "for more": ("mia", ("select_table@lake.A", "modify_table@lake.A")),
    "for less": ("mia", ("use_schema@lake.A",)),
    "for the same elsewhere": ("mia", ("select_table@lake.A", "use_schema@lake.A", "select_table@lake.A:B")),
    "of DENYs": ("group crew", ("deny select_table@lake.A:B.t",)),
    "of DENYs there": ("group crew", ("deny modify_table@lake.A",)),
    "one DENY beside it": ("mia", ("select_table@lake.A", "use_schema@lake.A", "deny modify_table@lake.A")),
}


@pytest.mark.parametrize("held", OTHERS)
def test_nothing_goes_into_a_role_that_is_for_anything_else(world: World, held: str) -> None:
    world.group("crew", "nils")
    whom, grants_ = OTHERS[held]
    name = world.give("mia" if whom == "mia" else "olga", *grants_)
    if whom != "mia":
        roles.assign_roles(world.olga, "acme", "group", "crew", [name])
        roles.unassign_roles(world.olga, "acme", "user", "olga", [name])
    before = world.role(name)
    proposal = proposed(world, "lake.A", "use_schema", "select_table", to=(whom,))
    assert (proposal.role, proposal.is_new) == ("lake_A_reader", True)
    assert not any(change.role == name for change in proposal.changes)
    assert proposal.planned and apply.apply_plan(world.olga, "acme", proposal.planned.token)
    assert world.role(name) == before


@pytest.mark.store
def test_a_role_that_exists_for_exactly_this_is_taken(world: World) -> None:
    """It may also open the way; who of these people lacks it gets it."""
    exact = ("use_catalog@lake", "use_schema@lake.A", "select_table@lake.A", "select_view@lake.A")
    mine, _ = world.give("mia", *exact[1:]), world.give("nils", *exact)
    world.group("crew")
    proposal = proposed(world, "lake.A", *(each.partition("@")[0] for each in exact[1:]), to=("mia", "group crew"))
    assert (proposal.role, proposal.is_new, proposal.reason, proposal.other_holders) == (
        mine,
        False,
        "r1 exists for exactly this: Reader on schema lake.A, held by mia and by nobody else.",
        ((), 0),
    )
    assert lines(proposal.changes) == ["grant r1 allow use_catalog lake", "assign r1 group crew"]
    (other,) = proposal.alternatives
    assert (other.role, other.other_holders) == ("r2", (("nils",), 1))
    assert other.reason == "r2 exists for exactly this: Reader on schema lake.A, held by nils."
    roles.create_role(world.olga, "acme", "free")
    grants.grant_privileges(world.olga, "acme", "free", Kind.TABLE, "lake.A:B.t", [("modify_table", "deny")])
    denied = proposed(world, "lake.A:B.t", "deny modify_table")
    assert denied.reason == "free exists for exactly this: DENY modify_table on table lake.A:B.t, held by nobody yet."


def test_a_role_that_others_hold_is_offered_and_not_taken(world: World) -> None:
    world.group("crew")
    shared = world.give("nils", "use_catalog@lake", "use_schema@lake.A", "select_table@lake.A")
    roles.assign_roles(world.olga, "acme", "group", "crew", [shared])
    proposal = proposed(world, "lake.A", "use_schema", "select_table")
    assert proposal.role == "lake_A_reader"
    assert [(one.role, one.other_holders) for one in proposal.alternatives] == [(shared, (("crew", "nils"), 2))]
    chosen = proposed(world, "lake.A", "use_schema", "select_table", role=shared)
    assert (chosen.reason, chosen.other_holders) == ("You chose role r1.", (("crew", "nils"), 2))
    assert lines(chosen.changes) == [f"assign {shared} user mia"] and not chosen.alternatives


def test_a_role_of_somebody_else_is_offered_and_not_taken(world: World) -> None:
    """Its owner could change or drop it."""
    world.give("nils", "use_catalog@lake", "use_schema@lake.A", "manage_grants@lake.A", "create_role@acme")
    roles.create_role(world.actor("nils"), "acme", "trap")
    privileges = [("select_table", "allow"), ("use_schema", "allow")]
    grants.grant_privileges(world.actor("nils"), "acme", "trap", Kind.SCHEMA, "lake.A", privileges)
    asked = ("lake.A", "select_table", "use_schema")
    proposal = proposed(world, *asked)
    assert proposal.role == "lake_A_reader" and not proposal.alternatives, "nor does USE_* go into it"
    assert proposal.reason.endswith("no role exists for exactly this that nobody else holds or owns.")
    (other,) = proposed(world, *asked, with_use=frozenset()).alternatives
    assert other.reason == (
        "trap exists for exactly this: select_table, use_schema on schema lake.A, held by nobody yet, owned by nils."
    )
    roles.assign_roles(world.olga, "acme", "user", "mia", ["trap"])
    assert proposed(world, *asked, with_use=frozenset()).role == "trap", "mia has it already"


def test_a_role_that_is_chosen_is_taken_and_says_who_holds_it(world: World) -> None:
    chosen = world.give("nils", "deny modify_table@lake.A")
    proposal = proposed(world, "lake.A", "select_table", role=chosen, with_use=frozenset())
    assert (proposal.role, proposal.other_holders) == (chosen, (("nils",), 1))
    assert proposal.reason == "You chose role r1, which also holds 1 DENY."
    assert lines(proposal.changes) == ["grant r1 allow select_table lake.A", "assign r1 user mia"]
    with pytest.raises(Invalid, match="Role r1 holds one of these privileges there with another effect"):
        proposed(world, "lake.A", "modify_table", role=chosen)
    fresh = proposed(world, "lake.A", "select_table", role="my/role", to=())
    assert fresh.is_new and lines(fresh.changes)[0] == "createRole my/role"
    with pytest.raises(Invalid, match="cannot be a role name"):
        proposed(world, "lake.A", "select_table", role="my role")


def test_a_grant_for_a_time_has_a_role_of_its_own(world: World) -> None:
    """One that is chosen makes it longer and never shorter."""
    timed, exact = world.give("mia"), world.give("mia", "select_table@lake.A:B")
    grants.grant_privileges(world.olga, "acme", timed, Kind.SCHEMA, "lake.A", [("select_table", "allow", None, LATER)])
    assert proposed(world, "lake.A", "select_table", with_use=frozenset()).role == "lake_A_reader"
    longer = proposed(world, "lake.A", "select_table", role=timed, with_use=frozenset())
    assert longer.reason == "You chose role r1, which also holds 1 grant for a time."
    assert lines(longer.changes) == ["revoke r1 allow select_table lake.A", "grant r1 allow select_table lake.A"]
    assert verdicts(longer) == [("mia", "select_table", "broken")], "without use_catalog it is of no use"
    for span, word in (((None, LATER), "until"), ((LATER, None), "from")):
        entries = {Privilege.SELECT_TABLE: Given(Effect.ALLOW, *span)}
        wanted = AccessRequest((Whom("user", "nils"),), Place(Kind.SCHEMA, "lake.A:B"), entries, with_use=frozenset())
        fresh = propose(world.olga, "acme", wanted)
        assert (fresh.role, fresh.is_new) == (f"lake_A_B_reader_{word}_2999-01-01", True) and fresh.role != exact
        assert fresh.planned and fresh.reason.endswith("a grant for a time has a role of its own.")
        apply.apply_plan(world.olga, "acme", fresh.planned.token)
        again = propose(world.olga, "acme", replace(wanted, people=(Whom("user", "mia"),)))
        assert again.reason.endswith(f"has a role of its own; there is a role {fresh.role} already.")


@pytest.mark.parametrize(
    ("names", "privileges", "first"),
    [
        (("a b.c",), ("select_table",), "lake_a_b_c_reader"),
        (("=x",), ("modify_table",), "lake_=x_writer"),
        (("\u200b",), ("manage_grants",), "lake_schema_manager"),
        (
            ("department", *(f"unit{n}" for n in range(9)), "x"),
            ("select_table",),
            "lake--unit1_unit2_unit3_unit4_unit5_unit6_unit7_unit8_x_reader",
        ),
        (("é" * 200,), ("deny use_schema",), "lake--" + "é" * 51 + "_denied"),
    ],
)
def test_odd_names_make_readable_roles(
    world: World, names: tuple[str, ...], privileges: tuple[str, ...], first: str
) -> None:
    row = None
    for name in names:
        row = world.schema(name, row)
    assert row
    every = list(islice(role_choice.names_for(by_ids([row.pk])[row.pk], wish("lake.A", *privileges).entries), 100))
    assert every[0] == first
    assert len(set(every)) == 100
    for name in every:
        check_role_name(name)


def test_a_name_that_is_taken_is_passed_over_and_said(world: World) -> None:
    for name in ("lake_A_reader", *(f"lake_A_reader_{n}" for n in range(2, 12))):
        roles.create_role(world.olga, "acme", name)
    proposal = proposed(world, "lake.A", "select_table")
    assert proposal.role == "lake_A_reader_12"
    assert proposal.reason.endswith("; there is a role lake_A_reader, for something or somebody else.")


# SharedDict and the way


def test_each_person_and_privilege_has_a_note(world: World) -> None:
    world.group("crew", "nils")
    name = world.give("mia", "use_catalog@lake", "use_schema@lake", "select_table@lake")
    roles.assign_roles(world.olga, "acme", "group", "crew", [name])
    world.give("nils", "deny modify_table@lake.A")
    people.add_user(world.olga, "acme", "sam", enabled=False)
    proposal = proposed(
        world, "lake.A", "select_table", "modify_table", to=("mia", "nils", "group crew", "olga", "sam")
    )
    assert {(note.whom.name, note.privilege.value): (note.verdict, note.says) for note in proposal.notes} == {
        ("mia", "select_table"): ("effective", "Role r1 allows select_table on catalog lake, and mia holds it."),
        ("mia", "modify_table"): ("new", "mia gets modify_table."),
        ("nils", "select_table"): (
            "effective",
            "Role r1 allows select_table on catalog lake, and nils is in group crew, which holds it.",
        ),
        ("nils", "modify_table"): ("beaten", "Role r2 denies modify_table on schema lake.A, and nils holds it."),
        ("crew", "select_table"): ("effective", "Role r1 allows select_table on catalog lake, and crew holds it."),
        ("crew", "modify_table"): ("new", "crew gets modify_table."),
        ("olga", "select_table"): ("effective", "olga owns metalake acme."),
        ("olga", "modify_table"): ("effective", "olga owns metalake acme."),
        ("sam", "select_table"): ("broken", "sam is no enabled member of metalake acme."),
        ("sam", "modify_table"): ("broken", "sam is no enabled member of metalake acme."),
    }
    assert proposal.use == ()
    entries = {Privilege.MODIFY_TABLE: Given(Effect.ALLOW, LATER)}
    (note,) = propose(
        world.olga, "acme", AccessRequest((Whom("user", "mia"),), Place(Kind.SCHEMA, "lake.A"), entries)
    ).notes
    assert (note.verdict, note.says) == ("later", "mia gets modify_table from 2999-01-01 00:00 UTC.")


USES: dict[str, tuple[tuple[str, str], list[tuple[str, str]]]] = {
    "a table": (("lake.A:B.t", "select_table"), [("use_catalog", "lake"), ("use_schema", "lake.A:B")]),
    "a schema": (("lake.A", "create_table"), [("use_catalog", "lake"), ("use_schema", "lake.A")]),
    "new schemas": (("lake.A", "create_schema"), [("use_catalog", "lake")]),
    "granting": (("lake.A", "manage_grants"), [("use_catalog", "lake")]),
    "a catalog": (("lake", "select_table"), [("use_catalog", "lake"), ("use_schema", "lake")]),
    "only its use": (("lake", "use_catalog"), []),
    "all of it": (("acme", "select_table"), [("use_catalog", "acme"), ("use_schema", "acme")]),
    "people": (("acme", "manage_users"), []),
    "a DENY": (("lake.A", "deny select_table"), []),
}


@pytest.mark.parametrize("what", USES)
def test_what_is_lacking_on_the_way_is_added(world: World, what: str) -> None:
    asked, uses = USES[what]
    proposal = proposed(world, *asked)
    assert [(use.privilege.value, ".".join(use.on.full_name)) for use in proposal.use] == uses
    granted = {one for one in lines(proposal.changes) if " allow use_" in one}
    wanted = [*uses, (asked[1], asked[0])] if asked[1].startswith("use_") else uses
    assert granted == {f"grant {proposal.role} allow {privilege} {on}" for privilege, on in wanted}


# Those who may grant on the object alone


@pytest.fixture
def steward(world: World) -> World:
    """Nils may grant on lake.A, and nothing beyond; mia holds a role with grants there."""
    world.give("nils", "use_catalog@lake", "manage_grants@lake.A")  # r1
    world.give("mia", "modify_table@lake.A")  # r2
    return world


def test_who_may_not_assign_roles_is_told_whom_to_ask(steward: World) -> None:
    before = Plan.objects.count()
    proposal = proposed(steward, "lake.A", "select_table", user="nils")
    assert (proposal.role, proposal.changes, proposal.planned) == (None, (), None)
    (ask,) = proposal.asks
    assert ask.says == (
        "Give mia allow select_table on schema lake.A: assigning a role takes manage_grants on metalake acme."
    )
    assert ask.by and (ask.by.names, ask.by.more) == (("olga",), 0)
    (way, _) = proposal.use
    assert (way.privilege, way.is_added) == (Privilege.USE_CATALOG, False) and way.by and way.by.names is None
    assert Plan.objects.count() == before


def test_they_may_grant_to_a_role_that_everybody_holds_already(steward: World) -> None:
    proposal = proposed(steward, "lake.A", "select_table", user="nils", role="r2")
    assert lines(proposal.changes) == ["grant r2 allow select_table lake.A", "grant r2 allow use_schema lake.A"]
    assert proposal.other_holders == (("mia",), 1) and not proposal.asks
    others = proposed(steward, "lake.A", "select_table", user="nils", role="r2", to=("olga", "mia"))
    assert "assigning role r2 takes manage_grants" in others.reason and others.asks and not others.changes


def test_they_do_not_learn_who_holds_a_role_elsewhere(steward: World) -> None:
    elsewhere = steward.give("mia", "use_catalog@files")
    proposal = proposed(steward, "lake.A", "select_table", user="nils", role=elsewhere)
    assert not proposal.changes and proposal.asks
    alone = proposed(steward, "lake.A", "select_table", user="nils", role=elsewhere, to=())
    assert alone.other_holders is None and alone.planned
    with pytest.raises(NotFound, match="Role ghost does not exist"):
        proposed(steward, "lake.A", "select_table", user="nils", role="ghost")


def test_who_may_not_make_roles_is_told_whom_to_ask(world: World) -> None:
    world.give("nils", "manage_grants@acme", "use_catalog@lake")
    proposal = proposed(world, "lake.A", "select_table", user="nils")
    assert "making a role takes create_role on metalake acme" in proposal.reason
    assert proposal.asks[0].by and proposal.asks[0].by.names == ("olga",)


# Wrong wishes

WRONG: dict[str, tuple[Callable[[World], Proposal], type[Exception]]] = {
    "User ghost does not exist": (lambda w: proposed(w, "lake.A", "select_table", to=("ghost",)), NotFound),
    "User sam does not exist": (lambda w: proposed(w, "lake.A", "select_table", to=("mia", "sam")), NotFound),
    "Group crew does not exist": (lambda w: proposed(w, "lake.A", "select_table", to=("group crew",)), NotFound),
    "Name a user, a group or a role": (lambda w: proposed(w, "lake.A", "select_table", to=()), Invalid),
    "Name at least one privilege": (lambda w: proposed(w, "lake.A"), Invalid),
    "500 users and groups may be named at once, not 501": (
        lambda w: proposed(w, "lake.A", "select_table", to=tuple(f"u{n}" for n in range(501))),
        TooLarge,
    ),
    "Privilege select_table is for relational": (lambda w: proposed(w, "files", "select_table"), Invalid),
    "Privilege use_catalog cannot be granted on a schema": (lambda w: proposed(w, "lake.A", "use_catalog"), Invalid),
    "Schema lake.Z does not exist": (lambda w: proposed(w, "lake.Z", "select_table"), NotFound),
    "nils may not grant": (lambda w: proposed(w, "acme", "use_catalog", user="nils"), Forbidden),
    "Schema lake.A does not exist": (lambda w: proposed(w, "lake.A", "select_table", user="nils"), NotFound),
}


@each("said", WRONG)
def test_a_wrong_wish_is_told(world: World, said: str) -> None:
    act, kind = WRONG[said]
    with pytest.raises(kind, match=said):
        act(world)


def test_proposals_over_the_wire(steward: World, wire: Wire) -> None:
    body = {
        "users": ["mia"],
        "type": "schema",
        "fullName": "lake.A",
        "privileges": [{"name": "SELECT_TABLE", "condition": "allow"}],
    }
    status, reply = wire("POST", f"{PATH}/proposals", body)
    assert status == 200, reply
    proposal = reply["proposal"]
    assert (proposal["role"], proposal["isNew"], proposal["alternatives"]) == ("lake_A_reader", True, [])
    assert proposal["plan"]["refused"] == [] and proposal["plan"]["refusedTotal"] == 0
    assert proposal["notes"] == [
        {"user": "mia", "privilege": "select_table", "verdict": "new", "says": "mia gets select_table."}
    ]
    uses = [(use["privilege"], use["on"]["fullName"], use["offered"], use["added"]) for use in proposal["use"]]
    assert uses == [("use_catalog", "lake", True, True), ("use_schema", "lake.A", True, True)]
    one = wire("POST", f"{PATH}/proposals", body | {"withUse": ["use_schema"]})[1]["proposal"]
    assert [(use["offered"], use["added"]) for use in one["use"]] == [(True, False), (True, True)]
    assert [line["privilege"] for line in one["plan"]["changes"] if "privilege" in line] == [
        "select_table",
        "use_schema",
    ]
    for wrong, says in ((["fly"], "withUse[0]: 'fly' is none of"), ("use_schema", "withUse: must be true or false")):
        status, reply = wire("POST", f"{PATH}/proposals", body | {"withUse": wrong})
        assert status == 400 and says in reply["message"], reply
    assert proposal["otherHolders"] == {"names": [], "total": 0}
    assert wire("POST", f"{PATH}/apply", {"token": proposal["plan"]["token"]})[0] == 200
    status, reply = wire("POST", f"{PATH}/proposals", body | {"groups": ["ghosts"]})
    assert (status, reply["type"]) == (404, "NoSuchGroupException")
    status, reply = wire("POST", f"{PATH}/proposals", body, user="nils")
    assert status == 200 and reply["proposal"]["notes"][0]["verdict"] == "effective"
    status, reply = wire("POST", f"{PATH}/proposals", body | {"users": ["olga", "mia"]}, user="sam")
    assert (status, reply["type"]) == (404, "NoSuchMetalakeException")
