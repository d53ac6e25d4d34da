"""Undo: the inverse of an applied plan, as far as it still stands; what moved since is left and said."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from access.plans import apply as applying
from access.plans import plan, plan_file
from access.plans import undo as undoing
from access.plans.desired import Change
from access.plans.export import export
from access.plans.plan import Planned
from authz import snapshot
from authz.models import Grant, Plan
from authz.services import grants, owners, people, roles
from metalake.errors import Conflict, NotFound
from metalake.kinds import Kind
from tests.authz.plan_files import PATH, change, lines, on, role, wanted
from tests.authz.small_world import Wire, World

LATER = datetime(2999, 1, 1, tzinfo=UTC)
NEW = [
    change("createRole", "reader"),
    change("grant", "reader", "use_catalog@lake"),
    change("assign", "reader", "user mia"),
]


def apply(world: World, *changes: Change) -> str:
    """The token of a plan of these changes, applied by olga."""
    planned = plan.plan_changes(world.olga, "acme", changes)
    assert applying.apply_plan(world.olga, "acme", planned.token).token == planned.token
    assert planned.token
    return planned.token


def undo(world: World, token: str) -> Planned:
    planned = undoing.plan_undo(world.olga, "acme", token)
    applying.apply_plan(world.olga, "acme", planned.token)
    return planned


def everything(world: World) -> dict[str, Any]:
    return plan_file.as_data(export(world.olga, "acme"))


@pytest.mark.store
def test_what_is_undone_is_as_before_and_can_be_done_again(filled: World) -> None:
    before = everything(filled)
    token = apply(
        filled,
        *NEW,
        change("grant", "empty", "deny select_table@lake.A", ends=LATER),
        change("revoke", "r1", "use_catalog@lake"),
        change("grant", "r1", "deny use_catalog@lake"),
        change("revoke", "no", "use_catalog@lake"),
        change("unassign", "no", "group analysts"),
        change("dropRole", "r2"),
    )
    after = everything(filled)
    planned = undo(filled, token)
    assert (planned.left, _from_now(everything(filled))) == ((), _from_now(before))
    assert planned.token
    undo(filled, planned.token)
    assert _from_now(everything(filled)) == _from_now(after)
    undone = filled.events("access.applied")[-1]
    assert datetime.fromisoformat(undone.details["undoes"]) == Plan.objects.order_by("applied_at")[1].applied_at


def _from_now(state: dict[str, Any]) -> dict[str, Any]:
    """The grants without starts that are past: what is given back begins at once."""
    for role_ in state["roles"]:
        for grant in role_["grants"]:
            for effect in ("allow", "deny"):
                for place, given in enumerate(grant.get(effect, [])):
                    if isinstance(given, dict) and given.get("startTime", "9") < timezone.now().isoformat():
                        del given["startTime"]
                        grant[effect][place] = given if "endTime" in given else given["privilege"]
    return state


@pytest.mark.store
def test_a_plan_of_a_state_is_undone_too(world: World) -> None:
    world.give("nils", "use_catalog@lake")
    before = everything(world)
    planned = plan.plan(world.olga, "acme", wanted(role("fresh", on("lake", "use_schema"), users=["mia"])))
    applying.apply_plan(world.olga, "acme", planned.token)
    assert everything(world) != before and planned.token
    undo(world, planned.token)
    assert everything(world) == before


MOVED: dict[str, tuple[Callable[[World], Any], str, list[str]]] = {
    "granted more": (
        lambda w: grants.grant_privileges(w.olga, "acme", "reader", Kind.CATALOG, "lake", [("use_schema", "allow")]),
        "Role reader stays: it was granted more since.",
        ["revoke reader allow use_catalog lake", "unassign reader user mia"],
    ),
    "another holder": (
        lambda w: roles.assign_roles(w.olga, "acme", "user", "nils", ["reader"]),
        "Role reader stays: it is held by others too.",
        ["revoke reader allow use_catalog lake", "unassign reader user mia"],
    ),
    "another owner": (
        lambda w: owners.set_owner(w.olga, "acme", Kind.ROLE, "reader", "nils", "user"),
        "Role reader stays: it has another owner now.",
        ["revoke reader allow use_catalog lake", "unassign reader user mia"],
    ),
    "given up": (
        lambda w: roles.unassign_roles(w.olga, "acme", "user", "mia", ["reader"]),
        "User mia and role reader changed since.",
        ["revoke reader allow use_catalog lake", "dropRole reader"],
    ),
    "left": (
        lambda w: people.remove_user(w.olga, "acme", "mia"),
        "User mia and role reader changed since.",
        ["revoke reader allow use_catalog lake", "dropRole reader"],
    ),
    "for another time": (
        lambda w: grants.grant_privileges(
            w.olga, "acme", "reader", Kind.CATALOG, "lake", [("use_catalog", "allow", None, LATER)]
        ),
        "use_catalog of role reader on catalog lake changed since.",
        ["unassign reader user mia"],
    ),
    "dropped": (lambda w: roles.drop_role(w.olga, "acme", "reader"), "Role reader was dropped since.", []),
}


@pytest.mark.store
@pytest.mark.parametrize("moved", MOVED)
def test_what_moved_since_is_left_and_said(world: World, moved: str) -> None:
    token = apply(world, *NEW)
    act, said, remaining = MOVED[moved]
    act(world)
    planned = undoing.plan_undo(world.olga, "acme", token)
    assert said in planned.left
    assert lines(planned.changes) == remaining
    if planned.token:
        applying.apply_plan(world.olga, "acme", planned.token)


def test_a_role_that_is_made_again_is_a_new_one(world: World) -> None:
    roles.create_role(world.olga, "acme", "rich", {"team": "blue"})
    token = apply(world, change("dropRole", "rich"))
    assert undo(world, token).left == ("Role rich is made anew: it is yours, and has none of its properties.",)
    assert roles.load_role(world.olga, "acme", "rich").row


def test_what_ended_meanwhile_is_not_given_back(world: World) -> None:
    world.give("nils", "use_schema@lake")
    until = timezone.now() + timedelta(days=1)
    grants.grant_privileges(world.olga, "acme", "r1", Kind.CATALOG, "lake", [("use_catalog", "allow", None, until)])
    token = apply(world, change("revoke", "r1", "use_catalog@lake"), change("revoke", "r1", "use_schema@lake"))
    row = Plan.objects.get()
    row.changes["steps"][0]["take"] = [
        [id, privilege, effect, starts, ends and (timezone.now() - timedelta(hours=1)).isoformat()]
        for id, privilege, effect, starts, ends in row.changes["steps"][0]["take"]
    ]
    row.save()
    planned = undoing.plan_undo(world.olga, "acme", token)
    assert planned.left == ("use_catalog on catalog lake of role r1 would have ended by now.",)
    assert lines(planned.changes) == ["grant r1 allow use_schema lake"]


def test_rights_that_are_lost_hide_what_moved(world: World) -> None:
    mine = world.give("mia", "manage_grants@acme")
    world.give("nils", "use_schema@lake")
    wish = [change("grant", "r2", "use_catalog@lake"), change("assign", "r2", "user olga")]
    planned = plan.plan_changes(world.mia, "acme", wish)
    applying.apply_plan(world.mia, "acme", planned.token)
    roles.unassign_roles(world.olga, "acme", "user", "mia", [mine])
    inverse = undoing.plan_undo(world.mia, "acme", planned.token)
    assert inverse.changes == []
    assert inverse.left == (undoing.GONE, "Who holds role r2 stays as it is, since you may no longer assign roles.")


@pytest.mark.store
def test_undo_is_for_who_applied_it_and_for_an_hour(world: World) -> None:
    world.give("mia", "manage_grants@acme")
    planned = plan.plan_changes(world.olga, "acme", NEW)
    with pytest.raises(Conflict, match="was not applied"):
        undoing.plan_undo(world.olga, "acme", planned.token)
    applying.apply_plan(world.olga, "acme", planned.token)
    for actor, token in ((world.mia, planned.token), (world.olga, "made up"), (world.olga, None)):
        with pytest.raises(NotFound, match="has no such plan"):
            undoing.plan_undo(actor, "acme", token)
    Plan.objects.update(created_at=timezone.now() - plan.GOOD_FOR)
    plan.plan_changes(world.olga, "acme", [change("createRole", "another")])
    assert lines(undoing.plan_undo(world.olga, "acme", planned.token).changes)[-1] == "dropRole reader"
    Plan.objects.filter(applied_at__isnull=False).update(applied_at=timezone.now() - plan.GOOD_FOR)
    with pytest.raises(Conflict, match="more than 1:00:00 ago"):
        undoing.plan_undo(world.olga, "acme", planned.token)


def test_undo_over_the_wire(world: World, wire: Wire) -> None:
    body = [{"change": "createRole", "role": "reader"}, {"change": "assign", "role": "reader", "user": "mia"}]
    token = wire("POST", f"{PATH}/changes", {"changes": body})[1]["plan"]["token"]
    assert wire("POST", f"{PATH}/undo", {"token": token})[0] == 409
    wire("POST", f"{PATH}/apply", {"token": token})
    roles.assign_roles(world.olga, "acme", "user", "nils", ["reader"])
    status, reply = wire("POST", f"{PATH}/undo", {"token": token})
    assert (status, reply["plan"]["left"]) == (200, ["Role reader stays: it is held by others too."])
    assert reply["plan"]["changes"] == [{"change": "unassign", "role": "reader", "user": "mia"}]
    assert wire("POST", f"{PATH}/apply", {"token": reply["plan"]["token"]})[0] == 200
    assert wire("POST", f"{PATH}/undo", {"token": token}, user="mia")[0] == 404
    snapshot.forget()
    assert not Grant.objects.exists()
