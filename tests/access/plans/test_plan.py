"""Grants as code: export, plan and apply; what is refused changes nothing, and the blast radius is what happens."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.utils import timezone

from access.plans import apply, plan, plan_file
from access.plans.desired import Change, Wanted
from access.plans.export import export
from authz import policy
from authz.actor import Actor
from authz.models import Fact, Plan, PolicyEpoch
from authz.objects import by_ids
from authz.services import owners, people, roles
from metalake.errors import Conflict, Forbidden, NotFound
from metalake.kinds import Kind
from metalake.privileges import Privilege
from tests.authz.plan_files import FILE, LATER, lines, on, role, state, subtree, wanted
from tests.authz.small_world import World


def told(planned: plan.Planned) -> list[str]:
    return lines(planned.changes)


def make_so(actor: Actor, file: Wanted) -> list[Change]:
    planned = plan.plan(actor, "acme", file)
    return apply.apply_plan(actor, "acme", planned.token).changes


# Export, plan, apply


@pytest.mark.parametrize("subtree", [None, (Kind.CATALOG, "lake"), (Kind.SCHEMA, "lake.A"), (Kind.TABLE, "lake.A:B.t")])
def test_what_is_exported_is_what_there_is(filled: World, subtree: tuple[Kind, str] | None) -> None:
    exported = export(filled.olga, "acme", subtree)
    for file in (plan_file.read_file(plan_file.as_yaml(exported).encode()), wanted_of(exported)):
        planned = plan.plan(filled.olga, "acme", file)
        assert (planned.changes, planned.token, planned.summary) == ([], None, "nothing changes")
    assert plan_file.as_yaml(exported) == plan_file.as_yaml(export(filled.olga, "acme", subtree))


def wanted_of(exported: Wanted) -> Wanted:
    return plan_file.read_file(json.dumps(plan_file.as_data(exported)).encode(), plan_file.JSON)


def test_the_export_is_sorted_and_leaves_out_what_has_ended(filled: World) -> None:
    file = plan_file.as_data(export(filled.olga, "acme"))
    assert [one["name"] for one in file["roles"]] == ["empty", "no", "r1", "r2"]
    empty, no, r1, r2 = file["roles"]
    assert empty == {"name": "empty", "users": [], "groups": [], "grants": []}
    assert (no["users"], no["groups"]) == ([], ["analysts"])
    assert no["grants"][0]["allow"][0]["privilege"] == "use_catalog"
    assert r1["grants"] == [
        {"type": "catalog", "fullName": "lake", "allow": ["use_catalog"]},
        {"type": "schema", "fullName": "lake.A", "allow": ["use_schema"], "deny": ["modify_table"]},
    ]
    assert [one["fullName"] for one in r2["grants"]] == ["acme", "lake"], "the metalake first; select_table has ended"
    part = plan_file.as_data(export(filled.olga, "acme", (Kind.SCHEMA, "lake.A")))
    assert part["subtree"] == {"type": "schema", "fullName": "lake.A"}
    assert [(one["name"], "users" in one) for one in part["roles"]] == [("no", False), ("r1", False)]


def test_a_file_is_planned_and_applied_once(world: World) -> None:
    world.group("crew", "nils")
    world.give("nils", "use_catalog@lake")
    before = state()
    planned = plan.plan(world.olga, "acme", wanted(*FILE))
    assert state()[:4] == before[:4], "planning changes nothing but for the plan"
    assert told(planned) == [
        "createRole analyst",
        "grant analyst allow use_catalog lake",
        "grant analyst allow select_table lake.A",
        "grant analyst allow use_schema lake.A",
        "assign analyst user mia",
        "createRole guard",
        "grant guard deny modify_table lake.A",
        "assign guard group crew",
        "createRole later",
        "grant later allow select_table lake.A:B.t",
        "revoke r1 allow use_catalog lake",
    ]
    assert planned.blast.scheduled == 1 and planned.epoch == PolicyEpoch.objects.get().value
    lines = {(line.privilege, line.kind): line for line in planned.blast.lines}
    table = lines[Privilege.SELECT_TABLE, Kind.TABLE]
    assert (table.gain.users, table.gain.objects, table.gain.names) == (1, 1, ["mia"])
    assert table.lose.users == 0
    lake = lines[Privilege.USE_CATALOG, Kind.CATALOG]
    assert (lake.gain.names, lake.lose.names) == (["mia"], ["nils"])
    assert planned.summary.startswith("1 user gains select_table on 1 table and 2 schemas; ")

    made = apply.apply_plan(world.olga, "acme", planned.token)
    assert made == (planned.changes, planned.token)
    assert policy.permits(world.mia, policy.operations.LOAD_TABLE, by_ids([world.t.id])[world.t.id])
    assert world.role("r1") == {} and world.role("guard") == {"lake.A": ["deny modify_table"]}
    assert [entry.full_name for entry in world.events("role.created")][-3:] == ["analyst", "guard", "later"]
    (applied,) = world.events("access.applied")
    assert (applied.full_name, applied.details) == (
        "r1",
        {"granted": {}, "revoked": {str(world.lake.id): ["allow use_catalog"]}},
    )
    assert [entry.details for entry in world.events("role.assigned")][-2:] == [{"user": "mia"}, {"group": "crew"}]
    facts = set(Fact.objects.filter(event__in=("role.created", "access.applied")).values_list("topic", "event"))
    assert {("grants", "role.created"), ("grants", "access.applied"), ("object", "role.created")} <= facts
    assert Fact.objects.filter(topic="user_roles", holder=world.users["mia"].pk).exists()

    again = export(world.olga, "acme")
    assert plan.plan(world.olga, "acme", wanted(*FILE)).changes == []
    assert {one.name for one in again.roles} == {"analyst", "guard", "later", "r1"}, "a role that is left out stays"
    with pytest.raises(Conflict, match="was applied at"):
        apply.apply_plan(world.olga, "acme", planned.token)


@pytest.mark.store
def test_applying_and_exporting_gives_the_file_back(world: World) -> None:
    world.group("crew", "nils")
    make_so(world.olga, wanted(*FILE))
    exported = plan_file.as_data(export(world.olga, "acme"))
    assert exported["roles"] == [
        role(
            "analyst",
            {"type": "catalog", "fullName": "lake", "allow": ["use_catalog"]},
            {"type": "schema", "fullName": "lake.A", "allow": ["select_table", "use_schema"]},
            users=["mia"],
            groups=[],
        ),
        role("guard", {"type": "schema", "fullName": "lake.A", "deny": ["modify_table"]}, users=[], groups=["crew"]),
        role(
            "later",
            {
                "type": "table",
                "fullName": "lake.A:B.t",
                "allow": [{"privilege": "select_table", "startTime": LATER}],
            },
            users=[],
            groups=[],
        ),
    ]


@pytest.mark.store
def test_a_subtree_leaves_the_rest_alone(filled: World) -> None:
    before = plan_file.as_data(export(filled.olga, "acme"))
    make_so(filled.olga, wanted(subtree={"type": "schema", "fullName": "lake.A"}))
    after = plan_file.as_data(export(filled.olga, "acme"))
    for old, new in zip(before["roles"], after["roles"], strict=True):
        assert new == old | {"grants": [one for one in old["grants"] if not one["fullName"].startswith("lake.A")]}
    assert before != after


def test_who_may_grant_on_a_subtree_plans_it_alone(filled: World) -> None:
    nils = filled.actor("nils")
    part = wanted(
        role("r1", on("lake.A", "use_schema")), role("r2", on("lake", "manage_grants")), **subtree("catalog", "lake")
    )
    planned = plan.plan(nils, "acme", part)
    assert "revoke r1 deny modify_table lake.A" in told(planned)
    apply.apply_plan(nils, "acme", planned.token)
    for refused in (wanted(), wanted(role("r1"))):
        with pytest.raises(Forbidden):
            plan.plan(filled.actor("nils"), "acme", refused)
    with pytest.raises(Forbidden):
        export(filled.actor("nils"), "acme")


def test_an_ended_grant_is_given_anew(filled: World) -> None:
    ended = export(filled.olga, "acme")
    data = plan_file.as_data(ended)
    data["roles"][3]["grants"].append(on("lake.A:B.t", "select_table"))
    changes = make_so(filled.olga, plan_file.read_file(json.dumps(data).encode(), plan_file.JSON))
    assert [(change.change, change.privilege) for change in changes] == [("grant", Privilege.SELECT_TABLE)]
    assert "select_table" in str(filled.role("r2"))


@pytest.mark.store
def test_an_effect_and_a_span_are_replaced(world: World) -> None:
    world.give("mia", "use_catalog@lake", "deny use_schema@lake.A")
    planned = plan.plan(
        world.olga,
        "acme",
        wanted(
            role(
                "r1",
                on("lake", deny=("use_catalog",)),
                on("lake.A", deny=({"privilege": "use_schema", "endTime": LATER},)),
            )
        ),
    )
    assert told(planned) == [
        "revoke r1 allow use_catalog lake",
        "revoke r1 deny use_schema lake.A",
        "grant r1 deny use_catalog lake",
        "grant r1 deny use_schema lake.A",
    ]
    apply.apply_plan(world.olga, "acme", planned.token)
    assert world.role("r1") == {
        "lake": ["deny use_catalog"],
        "lake.A": ["deny use_schema until 2999-01-01T00:00:00+00:00"],
    }


# When the plan is not good (any more)


def test_a_plan_is_its_callers_and_of_its_metalake(world: World) -> None:
    world.give("mia", "manage_grants@acme", "create_role@acme")
    planned = plan.plan(world.olga, "acme", wanted(*FILE[:1]))
    before = state()
    for token in (planned.token, "made up", "", "\udc00"):
        with pytest.raises(NotFound, match="has no such plan"):
            apply.apply_plan(world.mia, "acme", token)
    world.metalake("globex", "olga")
    with pytest.raises(NotFound, match="has no such plan"):
        apply.apply_plan(world.olga, "globex", planned.token)
    assert state() == before
    assert apply.apply_plan(world.mia, "acme", None) == ([], None)
    with pytest.raises(NotFound, match="acme does not exist"):
        apply.apply_plan(world.actor("sam"), "acme", None)


def test_a_plan_is_good_for_an_hour_and_old_ones_go(world: World) -> None:
    planned = plan.plan(world.olga, "acme", wanted(*FILE[:1]))
    Plan.objects.update(created_at=timezone.now() - plan.GOOD_FOR)
    with pytest.raises(Conflict, match="older than 1:00:00"):
        apply.apply_plan(world.olga, "acme", planned.token)
    old = Plan.objects.get().pk
    plan.plan(world.olga, "acme", wanted(*FILE[:1]))
    assert Plan.objects.count() == 1 and not Plan.objects.filter(pk=old).exists()


STALE = {
    "grant": ("privileges.granted", lambda w: w.give("nils", "use_catalog@lake")),
    "role": ("role.created", lambda w: roles.create_role(w.olga, "acme", "another")),
    "owner": ("owner.set", lambda w: owners.set_owner(w.olga, "acme", Kind.SCHEMA, "lake.A", "nils", "user")),
    "member": ("user.added", lambda w: people.add_user(w.olga, "acme", "sam")),
    "left": ("user.removed", lambda w: people.remove_user(w.olga, "acme", "nils")),
    "group": ("group.added", lambda w: people.add_group(w.olga, "acme", "crew")),
}


@pytest.mark.parametrize("moved", STALE)
def test_a_plan_is_refused_once_rights_moved(world: World, moved: str) -> None:
    planned = plan.plan(world.olga, "acme", wanted(*FILE[:1]))
    event, act = STALE[moved]
    act(world)
    before = state()
    with pytest.raises(Conflict, match=r"changed since the plan was made: [\w.]+ by olga at") as refusal:
        apply.apply_plan(world.olga, "acme", planned.token)
    assert event in refusal.value.message or moved == "grant"
    assert state() == before


def test_objects_may_come_and_go_unless_they_are_in_the_plan(world: World) -> None:
    from catalogs.services import schemas
    from metalake.lineage import Address

    file = wanted(role("reader", on("lake", "use_catalog"), on("lake.flights", "use_schema")))
    schemas.create_schema(world.olga, Address(metalake="acme", catalog="lake", schema=("flights",)), None, {})
    planned = plan.plan(world.olga, "acme", file)
    schemas.create_schema(world.olga, Address(metalake="acme", catalog="lake", schema=("airports",)), None, {})
    schemas.drop_schema(world.olga, Address(metalake="acme", catalog="lake", schema=("airports",)))
    assert len(apply.apply_plan(world.olga, "acme", planned.token).changes) == 3
    planned = plan.plan(world.olga, "acme", wanted())
    schemas.drop_schema(world.olga, Address(metalake="acme", catalog="lake", schema=("flights",)))
    before = state()
    with pytest.raises(Conflict, match="dropped or moved"):
        apply.apply_plan(world.olga, "acme", planned.token)
    assert state() == before


def test_rights_are_asked_again_when_it_is_applied(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = world.give("mia", "manage_grants@acme", "create_role@acme", "use_catalog@acme")
    kept = role(mine, on("acme", "manage_grants", "create_role", "use_catalog"))
    planned = plan.plan(world.mia, "acme", wanted(kept, *FILE[:1]))
    roles.unassign_roles(world.olga, "acme", "user", "mia", [mine])
    before = state()
    with pytest.raises(Conflict, match=r"role\.unassigned by olga"):
        apply.apply_plan(world.mia, "acme", planned.token)
    # Even if nothing had moved.
    monkeypatch.setattr(apply, "facts_on_rights", lambda _: Fact.objects.none())
    with pytest.raises(Forbidden, match="mia may not"):
        apply.apply_plan(world.mia, "acme", planned.token)
    assert state() == before
    assert Plan.objects.get().applied_at is None


def test_each_change_is_asked_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = world.give("mia", "manage_grants@acme")
    theirs = world.give("nils", "run_job@acme")
    monkeypatch.setattr(apply, "facts_on_rights", lambda _: Fact.objects.none())
    kept, held = role(mine, on("acme", "manage_grants")), role(theirs, on("acme", "run_job"))
    files = [
        wanted(kept, role(theirs, on("acme", "run_job", "create_catalog"))),
        wanted(kept),
        wanted(kept, held | {"users": []}),
        wanted(kept, held | {"users": ["nils", "olga"]}),
    ]
    plans = [plan.plan(world.mia, "acme", file) for file in files]
    roles.unassign_roles(world.olga, "acme", "user", "mia", [mine])
    before = state()
    for planned in plans:
        with pytest.raises(Forbidden, match="mia may not"):
            apply.apply_plan(world.mia, "acme", planned.token)
    assert state() == before


# Who may plan what


def test_every_change_asks_what_it_always_asks(world: World) -> None:
    world.give("nils", "deny select_table@acme")
    mine = world.give("mia", "manage_grants@acme")
    keep = [role(mine, on("acme", "manage_grants")), role("r1", on("acme", deny=("select_table",)))]

    def refused(*more: dict[str, Any], instead: list[dict[str, Any]] = keep) -> str:
        before = state()
        with pytest.raises(Forbidden) as refusal:
            plan.plan(world.mia, "acme", wanted(*instead, *more))
        assert state() == before
        return refusal.value.message

    assert refused(role("fresh")) == "roles[2]: mia may not create role in metalake acme."
    assert "roles[1]: mia may not lift the DENY of select_table" in refused(instead=[keep[0], role("r1")])
    assert "role r1: mia may not lift" in refused(instead=[keep[0]])
    lake = role(mine, on("acme", "manage_grants"), on("lake", "bootstrap_namespace"))
    assert refused(instead=[lake, keep[1]]).startswith("roles[0].grants[1]: mia may not grant bootstrap_namespace")
    assert "roles[1].users: mia may not lift" in refused(instead=[keep[0], keep[1] | {"users": []}])
    part = plan.plan(world.mia, "acme", wanted(*keep))
    assert part.changes == []
    sees_nothing = world.actor("nils")
    for subtree_ in ({}, subtree("catalog", "lake")):
        with pytest.raises((Forbidden, NotFound)):
            plan.plan(sees_nothing, "acme", wanted(**subtree_))
        with pytest.raises((Forbidden, NotFound)):
            export(sees_nothing, "acme", (Kind.CATALOG, "lake") if subtree_ else None)


def test_grants_that_one_may_not_read_are_not_told(world: World) -> None:
    world.give("mia", "use_catalog@lake", "manage_grants@lake", "deny manage_grants@lake.A")
    with pytest.raises(Forbidden, match="may not read every grant in catalog lake"):
        export(world.mia, "acme", (Kind.CATALOG, "lake"))
    with pytest.raises(Forbidden, match="may not read every grant in catalog lake"):
        plan.plan(world.mia, "acme", wanted(**subtree("catalog", "lake")))


def test_a_subtree_does_not_tell_of_what_is_elsewhere(world: World) -> None:
    world.give("mia", "use_catalog@lake", "manage_grants@lake.A:B")
    said = []
    for name in ("lake.A", "lake.Z"):
        with pytest.raises(NotFound) as refusal:
            plan.plan(world.mia, "acme", wanted(role("r1", on(name, "use_schema")), **subtree("schema", "lake.A:B")))
        said.append(refusal.value.message.replace(f" {name} ", " * "))
    assert said == ["roles[0].grants[0]: Schema * does not exist in schema lake.A:B."] * 2
