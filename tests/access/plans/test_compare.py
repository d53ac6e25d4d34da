"""Plans of changes: just the wanted steps, checked as each by itself, and made again where rights moved."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from access.plans import apply as applying
from access.plans import plan
from access.plans.apply import Applied, Moved
from access.plans.desired import Change
from authz import policy
from authz.models import Plan
from authz.objects import by_ids
from authz.services import grants, people, roles
from metalake.errors import AlreadyExists, Conflict, Forbidden, Invalid, MetalakeError, NotFound
from metalake.kinds import Kind
from tests.authz.plan_files import PATH, change, lines, state
from tests.authz.small_world import Wire, World
from tests.cases import each

LATER = datetime(2999, 1, 1, tzinfo=UTC)
WISH = [
    change("createRole", "reader"),
    change("grant", "reader", "use_catalog@lake"),
    change("grant", "reader", "use_schema@lake.A"),
    change("grant", "reader", "select_table@lake.A"),
    change("assign", "reader", "user mia"),
]


def apply(world: World, *changes: Change) -> Applied:
    planned = plan.plan_changes(world.olga, "acme", changes)
    return applying.apply_plan(world.olga, "acme", planned.token)


@pytest.mark.store
def test_wanted_changes_are_planned_and_applied_and_nothing_else(world: World) -> None:
    world.give("nils", "use_catalog@lake")
    before = state()
    planned = plan.plan_changes(world.olga, "acme", WISH)
    assert state()[:4] == before[:4], "planning changes nothing but for the plan"
    assert lines(planned.changes) == [
        "createRole reader",
        "grant reader allow use_catalog lake",
        "grant reader allow select_table lake.A",
        "grant reader allow use_schema lake.A",
        "assign reader user mia",
    ]
    assert planned.summary.startswith("1 user gains select_table on 1 table and 2 schemas; ")
    applied = applying.apply_plan(world.olga, "acme", planned.token)
    assert applied == (planned.changes, planned.token)
    assert policy.permits(world.mia, policy.operations.LOAD_TABLE, by_ids([world.t.id])[world.t.id])
    assert world.role("r1") == {"lake": ["allow use_catalog"]}, "what others granted stays"
    with pytest.raises(AlreadyExists, match=r"changes\[0\]: Role reader already exists"):
        plan.plan_changes(world.olga, "acme", WISH)
    again = plan.plan_changes(world.olga, "acme", WISH[1:])
    assert (again.changes, again.token, again.summary) == ([], None, "nothing changes")


@pytest.mark.store
def test_a_privilege_is_replaced_where_the_plan_revokes_it(world: World) -> None:
    world.give("mia", "use_catalog@lake", "deny use_schema@lake.A")
    other_effect, other_span = (
        change("grant", "r1", "deny use_catalog@lake"),
        change("grant", "r1", "deny use_schema@lake.A", ends=LATER),
    )
    for wanted, there in ((other_effect, "allow use_catalog"), (other_span, "deny use_schema")):
        with pytest.raises(Invalid, match=rf"changes\[0\]: Role r1 holds {there} there: revoke that in the same plan"):
            plan.plan_changes(world.olga, "acme", [wanted])
    applied = apply(
        world,
        other_effect,
        other_span,
        change("revoke", "r1", "use_catalog@lake"),
        change("revoke", "r1", "deny use_schema@lake.A"),
        change("revoke", "r1", "select_table@lake.A"),
    )
    assert len(applied.changes) == 4, "a revoke of what is not there is no change"
    assert world.role("r1") == {
        "lake": ["deny use_catalog"],
        "lake.A": ["deny use_schema until 2999-01-01T00:00:00+00:00"],
    }


@pytest.mark.store
def test_a_role_is_dropped_with_what_it_held(world: World) -> None:
    world.group("crew", "mia")
    name = world.give("nils", "use_catalog@lake")
    roles.assign_roles(world.olga, "acme", "group", "crew", [name])
    planned = plan.plan_changes(world.olga, "acme", [change("dropRole", name)])
    assert lines(planned.changes) == [
        "revoke r1 allow use_catalog lake",
        "unassign r1 user nils",
        "unassign r1 group crew",
        "dropRole r1",
    ]
    assert planned.summary == "2 users lose use_catalog on 1 catalog"
    applying.apply_plan(world.olga, "acme", planned.token)
    assert roles.list_roles(world.olga, "acme") == []
    assert [entry.full_name for entry in world.events("role.dropped")] == [name]


def _of_two(verb: str, *whats: str) -> list[Change]:
    return [change(verb, "r1", what) for what in whats]


WRONG: dict[str, tuple[list[Change], type[MetalakeError]]] = {
    r"changes\[1\]: This is there twice": (_of_two("grant", "use_catalog@lake", "use_catalog@lake"), Invalid),
    "is both assigned to user mia and taken": (
        [change("assign", "r1", "user mia"), change("unassign", "r1", "user mia")],
        Invalid,
    ),
    r"is dropped by changes\[1\]; change nothing else": (
        [change("grant", "r1", "use_catalog@lake"), change("dropRole", "r1")],
        Invalid,
    ),
    r"changes\[0\]: Role no does not exist": ([change("grant", "no", "use_catalog@lake")], NotFound),
    r"changes\[0\]: Role gone does not exist": ([change("dropRole", "gone")], NotFound),
    r"changes\[0\]: User ghost does not exist": ([change("assign", "r1", "user ghost")], NotFound),
    r"changes\[0\]: User sam does not exist": ([change("assign", "r1", "user sam")], NotFound),
    r"changes\[0\]: Group ghosts does not exist": ([change("unassign", "r1", "group ghosts")], NotFound),
    r"changes\[0\]: Catalog pond does not exist": ([change("grant", "r1", "use_catalog@pond")], NotFound),
    r"changes\[0\]: Privilege select_table is for relational": ([change("grant", "r1", "select_table@files")], Invalid),
    r"changes\[0\]: Privilege use_catalog cannot be granted on a schema": (
        [change("grant", "r1", "use_catalog@lake.A")],
        Invalid,
    ),
    r"changes\[0\]: 'a b' cannot be a role name": ([change("createRole", "a b")], Invalid),
    r"changes\[0\]: Privilege use_catalog is to end at 2001": (
        [change("grant", "r1", "use_catalog@lake", ends=datetime(2001, 1, 1, tzinfo=UTC))],
        Invalid,
    ),
}


@each("said", WRONG)
def test_a_wrong_change_changes_nothing_and_is_named(world: World, said: str) -> None:
    world.give("nils", "use_schema@lake")
    changes, kind = WRONG[said]
    before = state()
    with pytest.raises(kind, match=said):
        plan.plan_changes(world.olga, "acme", changes)
    assert state() == before


REFUSED = {
    "may not create role": [change("createRole", "fresh")],
    "may not grant on catalog lake": [change("grant", "r1", "use_catalog@lake")],
    "may not grant manage_grants on schema lake.A": [change("grant", "r1", "manage_grants@lake.A")],
    "may not lift a DENY on schema lake.A": [change("revoke", "r1", "deny modify_table@lake.A")],
    "may not assign roles": [change("assign", "r1", "user nils")],
    "may not assign roles in": [change("unassign", "r1", "user ghost")],
    "may not drop role": [change("dropRole", "r2")],
}


@pytest.mark.parametrize("said", REFUSED)
def test_each_change_asks_what_it_asks_by_itself(world: World, said: str) -> None:
    """Also where it is so already, or about somebody who does not exist."""
    world.give("nils", "use_catalog@lake", "deny modify_table@lake.A")
    world.give("mia", "use_catalog@lake", "manage_grants@lake.A", "use_schema@lake")
    before = state()
    with pytest.raises(Forbidden, match=rf"changes\[0\]: mia {said}"):
        plan.plan_changes(world.mia, "acme", REFUSED[said])
    assert state() == before
    mine = [change("grant", "r1", "select_table@lake.A"), change("revoke", "r1", "select_table@lake.A:B")]
    assert lines(plan.plan_changes(world.mia, "acme", mine).changes) == ["grant r1 allow select_table lake.A"]


def test_what_is_hidden_is_answered_like_what_is_missing(world: World) -> None:
    world.give("mia", "use_catalog@lake", "manage_grants@lake.A:B")
    texts = []
    for name in ("lake.A", "lake.Z"):
        for verb in ("grant", "revoke"):
            with pytest.raises(NotFound) as refusal:
                plan.plan_changes(world.mia, "acme", [change(verb, "r1", f"deny use_schema@{name}")])
            texts.append(refusal.value.message.replace(f" {name} ", " * "))
    assert texts == ["changes[0]: Schema * does not exist."] * 4


# Rights that move between the plan and its application

ELSEWHERE: dict[str, Callable[[World], Any]] = {
    "a grant": lambda w: w.give("nils", "use_catalog@lake"),
    "a member": lambda w: people.add_user(w.olga, "acme", "sam"),
    "a group": lambda w: people.add_group(w.olga, "acme", "crew"),
}


@pytest.mark.store
@pytest.mark.parametrize("moved", ELSEWHERE)
def test_a_plan_that_comes_to_the_same_is_applied(world: World, moved: str) -> None:
    planned = plan.plan_changes(world.olga, "acme", WISH)
    ELSEWHERE[moved](world)
    assert applying.apply_plan(world.olga, "acme", planned.token).changes == planned.changes


DIFFERENTLY: dict[str, tuple[Callable[[World], Any], str]] = {
    "done already": (
        lambda w: grants.grant_privileges(w.olga, "acme", "r1", Kind.SCHEMA, "lake.A", [("select_table", "allow")]),
        r"There is no need any more to grant select_table on schema lake.A to role r1\.",
    ),
    "undone": (
        lambda w: grants.revoke_privileges(w.olga, "acme", "r1", Kind.CATALOG, "lake", [("use_catalog", "allow")]),
        r"It would also grant use_catalog on catalog lake to role r1\.",
    ),
    "another holder": (
        lambda w: roles.assign_roles(w.olga, "acme", "user", "mia", ["r1"]),
        "It came to: 1 user gains select_table on 1 table.* It comes to: 2 users gain select_table on 1 table",
    ),
}


@pytest.mark.store
@pytest.mark.parametrize("moved", DIFFERENTLY)
def test_a_plan_that_comes_to_something_else_is_shown_again(world: World, moved: str) -> None:
    world.give("nils", "use_catalog@lake", "use_schema@lake")
    wish = [change("grant", "r1", "use_catalog@lake"), change("grant", "r1", "select_table@lake.A")]
    planned = plan.plan_changes(world.olga, "acme", wish)
    act, said = DIFFERENTLY[moved]
    act(world)
    before = state()
    with pytest.raises(Moved, match=said) as refusal:
        applying.apply_plan(world.olga, "acme", planned.token)
    assert state()[:4] == before[:4]
    fresh = refusal.value.planned
    assert fresh
    if fresh.token:
        assert applying.apply_plan(world.olga, "acme", fresh.token).changes == fresh.changes


def test_a_plan_that_fits_no_more_is_refused_with_its_reason(world: World) -> None:
    planned = plan.plan_changes(world.olga, "acme", WISH)
    roles.create_role(world.olga, "acme", "reader")
    with pytest.raises(Conflict, match=r"role.created by olga at .* changes\[0\]: Role reader already exists"):
        applying.apply_plan(world.olga, "acme", planned.token)
    mine = world.give("mia", "manage_grants@acme", "create_role@acme")
    planned = plan.plan_changes(world.mia, "acme", [change("createRole", "mine")])
    roles.unassign_roles(world.olga, "acme", "user", "mia", [mine])
    with pytest.raises(Forbidden, match="mia may not create role"):
        applying.apply_plan(world.mia, "acme", planned.token)


def test_rights_that_never_rest_are_told_in_the_end(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = plan.plan_changes(world.olga, "acme", WISH)
    renew, rounds = applying.renew, []

    def disturbed(*asked: Any) -> None:
        renew(*asked)
        rounds.append(world.give("nils", "use_catalog@lake"))

    world.give("nils", "use_catalog@lake")
    monkeypatch.setattr(applying, "renew", disturbed)
    with pytest.raises(Conflict, match="keep changing; try again"):
        applying.apply_plan(world.olga, "acme", planned.token)
    assert len(rounds) == applying.ATTEMPTS and Plan.objects.get().applied_at is None


def test_the_blast_radius_is_never_counted_under_the_lock(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from access.plans import blast_radius

    planned = plan.plan_changes(world.olga, "acme", WISH)
    world.give("nils", "use_catalog@lake")
    inside = []
    radius = blast_radius.radius
    depth = len(connection.savepoint_ids)

    def watched(*asked: Any) -> blast_radius.BlastRadius:
        inside.append(len(connection.savepoint_ids) > depth)
        return radius(*asked)

    monkeypatch.setattr(blast_radius, "radius", watched)
    applying.apply_plan(world.olga, "acme", planned.token)
    assert inside == [False]


# The wire


def test_a_plan_is_a_list_of_changes_that_can_be_sent_again(world: World, wire: Wire) -> None:
    body = [
        {"change": "createRole", "role": "reader"},
        {
            "change": "grant",
            "role": "reader",
            "privilege": "SELECT_TABLE",
            "condition": "ALLOW",
            "on": {"type": "schema", "fullName": "lake.A"},
            "endTime": "2999-01-01T00:00:00Z",
        },
        {"change": "assign", "role": "reader", "user": "mia"},
    ]
    status, reply = wire("POST", f"{PATH}/changes", {"changes": body})
    assert status == 200, reply
    changes = reply["plan"]["changes"]
    assert [one["change"] for one in changes] == ["createRole", "grant", "assign"]
    status, again = wire("POST", f"{PATH}/changes", {"changes": changes})
    assert (status, again["plan"]["changes"]) == (200, changes)
    status, applied = wire("POST", f"{PATH}/apply", {"token": reply["plan"]["token"]})
    assert (status, applied["applied"]) == (200, {"changes": changes, "token": reply["plan"]["token"]})
    status, moved = wire("POST", f"{PATH}/apply", {"token": again["plan"]["token"]})
    assert (status, moved["type"]) == (409, "OptimisticLockException")
    assert "Role reader already exists" in moved["message"]


GRANT = {"change": "grant", "role": "r", "privilege": "use_catalog", "condition": "allow"}
LAKE = {"type": "catalog", "fullName": "lake"}


@each(
    "body, said",
    [
        ({}, "changes: is required"),
        ({"changes": [{"change": "fly", "role": "r"}]}, "changes[0].change: must be"),
        ({"changes": [{"change": "createRole"}]}, "changes[0].role: is required"),
        ({"changes": [GRANT]}, "changes[0]: on: is required to grant"),
        ({"changes": [GRANT | {"on": LAKE, "user": "mia"}]}, "changes[0]: user: does not belong to grant"),
        ({"changes": [GRANT | {"on": LAKE, "privilege": "fly"}]}, "changes[0]: 'fly' is no privilege"),
        ({"changes": [GRANT | {"on": {"type": "galaxy", "fullName": "x"}}]}, "changes[0]: 'galaxy' is no object type"),
        ({"changes": [{"change": "assign", "role": "r"}]}, "changes[0]: user or group: is required to assign"),
        ({"changes": [{"change": "dropRole", "role": "r", "startTime": "2999-01-01"}]}, "startTime: does not belong"),
        ({"changes": [{"change": "assign", "role": "r", "user": "m", "group": "g"}]}, "group: does not belong"),
    ],
)
def test_wrong_bodies_are_told_with_their_place(world: World, wire: Wire, body: Any, said: str) -> None:
    status, reply = wire("POST", f"{PATH}/changes", body)
    assert status == 400 and said in reply["message"], reply


def test_a_plan_of_changes_reads_no_grants_but_those_it_names(world: World) -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as captured:
            plan.plan_changes(world.olga, "acme", WISH)
        return len(captured)

    few = statements()
    for _ in range(10):
        world.give("nils", "use_catalog@lake", "use_schema@lake.A")
    assert statements() <= few
