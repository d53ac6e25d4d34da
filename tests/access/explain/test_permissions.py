"""Who may ask for an explanation, what is kept back from them, what the past answers, and what is a bad question."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from authz.models import Fact
from authz.services import change, grants, owners, people, roles
from metalake.events import stands
from metalake.kinds import Kind
from metalake.models import Securable
from tests.authz.explaining import TABLE, Asking, changes, said
from tests.authz.small_world import Wire, World

ABOUT_T = {"type": "table", "fullName": TABLE}


@pytest.fixture
def explain(world: World, wire: Wire) -> Asking:
    return Asking(wire)


# Who may ask


def test_about_others_asks_whoever_may_grant_there(world: World, explain: Asking) -> None:
    world.give("mia", "use_catalog@lake", "use_schema@lake", "select_table@lake")
    asked = {**ABOUT_T, "privilege": "select_table", "user": "nils"}
    status, body = explain.raw("mia", **asked)
    assert (status, body["message"]) == (403, f"mia may not read who has access to table {TABLE}.")
    world.give("mia", f"manage_grants@{TABLE}")
    assert explain.raw("mia", **asked)[0] == 200


def test_about_oneself_everyone_who_sees_the_object(world: World, explain: Asking) -> None:
    world.give("mia", "use_catalog@lake", "use_schema@lake", "select_table@lake")
    assert explain("select_table", by="mia", user=None)["allowed"]
    assert not explain("modify_table", by="mia", user="mia")["allowed"]


@pytest.mark.parametrize("user", [None, "nils", "olga", "nobody"])
def test_what_is_unseen_is_answered_like_what_is_missing(world: World, explain: Asking, user: str | None) -> None:
    world.give("nils", "use_catalog@lake", "use_schema@lake.A:B")
    for by in ("mia", "nils"):
        unseen = explain.raw(by, privilege="select_table", user=user, **ABOUT_T)
        missing = explain.raw(by, privilege="select_table", user=user, type="table", fullName="lake.A:B.u")
        assert unseen[0] == missing[0] == 404
        assert str(unseen).replace("B.t", "B.u") == str(missing)


def test_the_metalake_is_for_its_members(world: World, explain: Asking) -> None:
    status, body = explain.raw("sam", privilege="use_catalog", type="metalake", fullName="acme")
    assert (status, body["type"]) == (404, "NoSuchMetalakeException")


# What is kept back


@pytest.mark.store
def test_names_are_for_who_may_read_access_there(world: World, explain: Asking) -> None:
    """mia may grant on the table alone; the catalog and the schema she loads, the metalake she belongs to."""
    world.give("mia", "use_catalog@lake", "use_schema@lake.A:B", f"manage_grants@{TABLE}")
    owned_by_olga = {"redacted": True, "owner": {"name": "olga", "type": "USER"}}
    told = explain("drop_table", by="mia")
    assert {step["on"]["fullName"]: step["by"] for steps in told["changes"] for step in steps} == {
        "acme": owned_by_olga,
        "lake": owned_by_olga,
        "lake.A:B": owned_by_olga,
        TABLE: {"names": ["olga"], "more": 0},
    }
    ((step,),) = explain("select_table", by="mia")["changes"]
    assert step["by"] == {"names": ["mia", "olga"], "more": 0}


@pytest.mark.store
def test_the_first_five_are_named(world: World, explain: Asking) -> None:
    for n in range(7):
        people.add_user(world.olga, "acme", f"steward{n}")
    world.group("stewards", *(f"steward{n}" for n in range(7)))
    owners.set_owner(world.olga, "acme", Kind.CATALOG, "lake", "stewards", "group")
    world.give("mia", "use_catalog@lake", "use_schema@lake")
    ((step,),) = explain("select_table")["changes"]
    assert step["by"] == {"names": ["olga", "steward0", "steward1", "steward2", "steward3"], "more": 3}


def test_of_hidden_objects_nothing_is_told(world: World, explain: Asking) -> None:
    """nils may grant on A:B and reach it, but A above it is not his to see."""
    world.give("nils", "use_catalog@lake", "manage_grants@lake.A:B")
    role = world.give("mia", "use_catalog@lake", "use_schema@lake.A")
    told = explain("load_schema", "lake.A:B", by="nils")
    assert f"Role {role} allows use_schema on an object you may not see" in said(told["because"])
    assert "lake.A'" not in str(told)
    assert "lake.A'" in str(explain("load_schema", "lake.A:B"))
    world.give("mia", "deny use_schema@lake.A")
    told = explain("load_schema", "lake.A:B", by="nils")
    assert "lake.A'" not in str(told) and "lake.A " not in str(told)
    ((step,),) = told["changes"]
    assert step["by"] == {"redacted": True} and "on" not in step


# The past


def moment_of_the_last_change() -> str:
    return Fact.objects.order_by("-id").values_list("at", flat=True)[0].isoformat()


@pytest.fixture
def begun(world: World) -> None:
    """The small world is written past the services: its history begins here."""
    rows = [world.acme, world.lake, world.a, world.ab, world.t]
    for row in rows:
        securable = Securable.objects.get(pk=row.pk)
        facts = [stands(securable)]
        if row is world.acme:
            facts += [["members", world.acme.id, world.users[name].id, True] for name in ("olga", "mia", "nils")]
        top = change.enter(world.olga, "acme")
        change.publish_events(change.event(world.olga, top, f"{row.kind}.created", row.kind, row.id, [row.name], facts))


def test_what_was_granted_and_taken_back(world: World, begun: None, explain: Asking) -> None:
    role = world.give("mia", "use_catalog@lake", "use_schema@lake", "select_table@lake")
    then = moment_of_the_last_change()
    grants.revoke_privileges(world.olga, "acme", role, Kind.CATALOG, "lake", [("select_table", "allow")])
    now = explain("select_table")
    assert not now["allowed"] and changes(now) == [[f"grant select_table@{TABLE}"]]
    for by, user in (("olga", "mia"), ("mia", None)):
        told = explain("select_table", by=by, user=user, asOf=then)
        assert told["allowed"] and datetime.fromisoformat(told["asOf"]) == datetime.fromisoformat(then)
        assert told["because"][3]["because"][0]["grant"]["grantor"] == "olga"
        assert f"Role {role} allows select_table on catalog lake" in said(told["because"])


@pytest.mark.store
def test_a_no_of_the_past_has_reasons_and_no_changes(world: World, begun: None, explain: Asking) -> None:
    role = world.give("mia", "use_catalog@lake", "use_schema@lake", "select_table@acme", "deny select_table@lake")
    then = moment_of_the_last_change()
    roles.drop_role(world.olga, "acme", role)
    told = explain("select_table", asOf=then)
    assert not told["allowed"] and "changes" not in told
    assert f"Role {role} denies select_table on catalog lake" in said(told["because"])


@pytest.mark.store
def test_who_owned_and_who_belonged_then(world: World, begun: None, explain: Asking) -> None:
    world.group("stewards", "nils")
    owners.set_owner(world.olga, "acme", Kind.CATALOG, "lake", "stewards", "group")
    then = moment_of_the_last_change()
    people.remove_group(world.olga, "acme", "stewards")
    told = explain("drop_table", user="nils", asOf=then)
    assert told["because"][-1]["says"] == "Group stewards owns catalog lake, and nils is in it."
    assert not explain("drop_table", user="nils")["allowed"]


# Bad questions


@pytest.mark.store
@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({}, "Name a privilege or an operation, and not both."),
        ({"privilege": "select_table", "operation": "load_table"}, "Name a privilege or an operation, and not both."),
        ({"privilege": "read"}, "'read' is no privilege; known are alter_view, "),
        ({"privilege": ""}, "'' is no privilege; known are alter_view, "),
        ({"operation": "read"}, "'read' is no operation; known are alter_catalog, "),
        ({"operation": "load"}, "'load' is no operation; known are "),
        ({"operation": "load_schema"}, "Operation load_schema is not asked on a table, but on: schema."),
        (
            {"privilege": "use_schema"},
            "Privilege use_schema has no meaning on a table, but on: catalog, metalake, schema.",
        ),
        ({"privilege": "run_job"}, "Privilege run_job has no meaning on a table, but on: metalake."),
        ({"privilege": "select_table", "type": "sheet"}, "'sheet' is no object type; known are metalake, "),
        (
            {"operation": "load_role", "type": "role", "fullName": "r1"},
            "Access is explained on catalog, job_template, metalake, ",
        ),
        ({"privilege": "select_table", "type": None}, "Name the object: type and fullName are both needed."),
        ({"privilege": "select_table", "fullName": None}, "Name the object: type and fullName are both needed."),
        ({"privilege": "select_table", "fullName": "lake"}, "'lake' is not the full name of a table."),
        ({"privilege": "select_table", "fullName": "lake.A\0.t"}, "Query parameter fullName holds a NUL character."),
        ({"privilege": "select_table", "user": ""}, "The user has no name; leave user out to ask about yourself."),
        ({"privilege": "select_table", "asOf": "yesterday"}, "asOf is 'yesterday', but has to be a moment in ISO 8601"),
        ({"privilege": "select_table", "asOf": ""}, "asOf is '', but has to be a moment in ISO 8601"),
        (
            {"privilege": "select_table", "asOf": "0001-01-01T00:00:00+14:00"},
            "asOf is '0001-01-01T00:00:00+14:00', but",
        ),
        ({"privilege": "select_table", "asOf": "2999-01-01"}, "2999-01-01T00:00:00+00:00 lies ahead; asOf is a moment"),
        ({"privilege": "select_table", "asOf": "2001-01-01"}, "The history of metalake acme "),
    ],
)
def test_bad_questions(world: World, explain: Asking, query: dict[str, Any], says: str) -> None:
    status, body = explain.raw(**(ABOUT_T | query))
    assert status == 400, body
    assert body["message"].startswith(says)


def test_a_privilege_in_any_case_and_by_its_older_name(world: World, explain: Asking) -> None:
    assert explain("SELECT_TABLE")["privilege"] == "select_table"
    assert explain("Create_Model", "lake.A")["privilege"] == "register_model"


def test_when_authorization_is_off(world: World, explain: Asking, settings: Any) -> None:
    settings.METALAKE_AUTHORIZATION = "off"
    told = explain("drop_table", user="nils")
    assert told["allowed"] and said(told["because"]) == ["Authorization is off: everybody may do everything"]
    assert "changes" not in told


@pytest.mark.store
def test_an_explanation_is_a_few_statements(world: World, wire: Wire, django_assert_max_num_queries: Any) -> None:
    explain = Asking(wire)
    for _ in range(8):
        world.give("mia", "use_catalog@lake", "use_schema@lake", "deny select_table@lake", "manage_grants@lake")
    explain("select_table")
    with django_assert_max_num_queries(14):
        explain("select_table")
    with django_assert_max_num_queries(10):
        explain("use_schema", "lake.A")
