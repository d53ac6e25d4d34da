"""Explanations as they are told: who gave what, what stands in the way, who may change it, and what is kept back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from authz import snapshot
from authz.models import Grant, Member
from authz.services import grants, owners, roles
from metalake.kinds import Kind
from tests.authz.explaining import TABLE, Asking, changes, said
from tests.authz.small_world import Wire, World, kind_at

READ = ("use_catalog@acme", "use_schema@acme")


@pytest.fixture
def explain(world: World, wire: Wire) -> Asking:
    return Asking(wire)


# A yes


@pytest.mark.parametrize("level", ["acme", "lake", "lake.A", "lake.A:B", TABLE])
def test_a_role_that_allows_it_on_any_level(world: World, explain: Asking, level: str) -> None:
    role = world.give("mia", *READ, f"select_table@{level}")
    told = explain("select_table")
    assert told["allowed"] and "changes" not in told
    assert (told["user"], told["privilege"], told["object"]) == (
        "mia", "select_table", {"type": "table", "fullName": TABLE},
    )  # fmt: skip
    assert said(told["because"]) == [
        "mia is a member of metalake acme",
        "mia is allowed use_catalog",
        f"Role {role} allows use_catalog on metalake acme",
        f"mia holds role {role}",
        "mia is allowed use_schema",
        f"Role {role} allows use_schema on metalake acme",
        f"mia holds role {role}",
        "mia is allowed select_table",
        f"Role {role} allows select_table on {kind_at(level)} {level}",
        f"mia holds role {role}",
    ]
    grant = told["because"][3]["because"][0]["grant"]
    row = Grant.objects.get(permission__codename="select_table")
    assert grant == {
        "role": role,
        "privilege": "select_table",
        "condition": "allow",
        "on": {"type": kind_at(level).value, "fullName": level},
        "grantor": "olga",
        "grantTime": row.granted_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    }


def test_a_role_held_through_a_group_and_directly(world: World, explain: Asking) -> None:
    world.give("mia", *READ)
    world.group("analysts", "mia")
    role = world.give("mia", "select_table@lake.A")
    roles.assign_roles(world.olga, "acme", "group", "analysts", [role])
    told = explain("select_table")
    held = told["because"][3]["because"][0]["because"]
    assert [reason["says"] for reason in held] == [
        f"mia holds role {role}.",
        f"mia is in group analysts, which holds role {role}.",
    ]
    assert [reason.get("through") for reason in held] == [None, {"group": "analysts"}]


def test_several_grants_of_it_are_all_named_up_to_ten(world: World, explain: Asking) -> None:
    for _ in range(12):
        world.give("mia", "select_table@lake.A", *READ)
    given = explain("select_table")["because"][3]["because"]
    assert len(given) == 11
    assert given[10]["says"] == "So do 2 more grants."


@pytest.mark.parametrize(
    ("owned", "needs"),
    [("acme", []), ("lake", []), ("a", ["use_catalog"]), ("ab", ["use_catalog"]), ("t", ["use_catalog", "use_schema"])],
)
def test_ownership_with_the_way_that_it_needs(world: World, explain: Asking, owned: str, needs: list[str]) -> None:
    row = getattr(world, owned)
    if needs:
        world.give("mia", *READ)
    world.own("mia", row)
    told = explain("drop_table", by="mia", user=None)
    assert told["allowed"] and told["operation"] == "drop_table"
    assert [reason["says"] for reason in told["because"]] == [
        "mia is a member of metalake acme.",
        *(f"mia is allowed {privilege}." for privilege in needs),
        told["because"][-1]["says"],
    ]
    assert told["because"][-1]["owner"] == {"name": "mia", "type": "USER"}
    assert told["because"][-1]["on"]["type"] == row.kind


@pytest.mark.store
def test_ownership_by_a_group(world: World, explain: Asking) -> None:
    world.group("stewards", "mia")
    owners.set_owner(world.olga, "acme", Kind.CATALOG, "lake", "stewards", "group")
    reason = explain("drop_table")["because"][-1]
    assert reason["says"] == "Group stewards owns catalog lake, and mia is in it."
    assert (reason["owner"], reason["through"]) == ({"name": "stewards", "type": "GROUP"}, {"group": "stewards"})


def test_several_ways(world: World, explain: Asking) -> None:
    world.give("mia", *READ, "select_table@lake.A", "modify_table@lake", "deny modify_table@lake.A")
    world.own("mia", world.lake)
    told = explain("load_table")
    assert [reason["says"] for reason in told["because"]] == [
        "mia is a member of metalake acme.",
        "Owning catalog lake is enough.",
        "use_catalog, use_schema and select_table together are enough.",
    ]


# A no


def test_everything_is_missing(world: World, explain: Asking) -> None:
    told = explain("select_table", user="nils")
    assert not told["allowed"]
    assert said(told["because"]) == [
        "No role of nils allows use_catalog on catalog lake or above it",
        "No role of nils allows use_schema on schema lake.A:B or above it",
        f"No role of nils allows select_table on table {TABLE} or above it",
    ]
    assert changes(told) == [["grant use_catalog@lake", "grant use_schema@lake.A:B", f"grant select_table@{TABLE}"]]
    assert told["changes"][0][0]["says"] == "Grant use_catalog on catalog lake to a role and assign it to nils."
    assert told["changes"][0][0]["by"] == {"names": ["olga"], "more": 0}


def test_the_way_is_missing(world: World, explain: Asking) -> None:
    world.give("mia", "use_catalog@lake", "select_table@acme")
    assert changes(explain("select_table")) == [["grant use_schema@lake.A:B"]]


def test_either_of_two_privileges_would_do(world: World, explain: Asking) -> None:
    world.give("mia", *READ)
    assert changes(explain("load_table")) == [[f"grant select_table@{TABLE}"], [f"grant modify_table@{TABLE}"]]


@pytest.mark.parametrize("level", ["acme", "lake", "lake.A", "lake.A:B", TABLE])
def test_a_deny_on_any_level(world: World, explain: Asking, level: str) -> None:
    world.give("mia", *READ, "select_table@acme")
    held, denied = "select_table@lake", f"deny select_table@{level}"
    if level == "lake":
        held = "select_table@lake.A"
    role = world.give("mia", held, denied)
    told = explain("select_table")
    assert said(told["because"]) == [
        "mia is denied select_table, and a DENY wins",
        f"Role {role} denies select_table on {kind_at(level)} {level}",
        f"mia holds role {role}",
    ]
    assert changes(told) == [[f"liftDeny select_table@{level} of {role}"]]


def test_every_deny_has_to_go_and_the_missing_has_to_come(world: World, explain: Asking) -> None:
    one = world.give("mia", "use_catalog@lake", "deny select_table@lake")
    two = world.give("mia", "use_schema@lake", f"deny select_table@{TABLE}")
    assert changes(explain("select_table")) == [
        [
            f"liftDeny select_table@{TABLE} of {two}",
            f"liftDeny select_table@lake of {one}",
            f"grant select_table@{TABLE}",
        ]
    ]


def test_a_deny_that_blocks_another_privilege(world: World, explain: Asking) -> None:
    role = world.give("mia", "use_catalog@lake", "create_schema@lake", "deny use_schema@lake.A")
    assert changes(explain("create_schema", "lake.A")) == [[f"liftDeny use_schema@lake.A of {role}"]]


def test_what_is_the_owners_alone(world: World, explain: Asking) -> None:
    world.give("mia", "use_catalog@lake")
    told = explain("drop_table")
    assert changes(told) == [
        ["own@lake.A:B"],
        ["own@lake"],
        ["own@acme"],
        ["grant use_schema@lake.A:B", f"own@{TABLE}"],
    ]
    assert f"mia does not own table {TABLE}" in said(told["because"])


def test_who_is_no_member_is_told_like_who_does_not_exist(world: World, explain: Asking) -> None:
    sam, nobody = explain("select_table", user="sam"), explain("select_table", user="xam")
    assert said(sam["because"]) == ["sam is no member of metalake acme"]
    assert changes(sam)[0][0] == "addMember@acme"
    assert str(sam).replace("sam", "xam") == str(nobody)


def test_a_disabled_member_keeps_what_would_count(world: World, explain: Asking) -> None:
    world.give("mia", *READ, "select_table@lake")
    Member.objects.filter(user__username="mia").update(enabled=False)
    snapshot.forget()
    assert changes(explain("select_table")) == [["addMember@acme"]]


def test_grants_that_are_ahead_are_named(world: World, explain: Asking) -> None:
    role = world.give("mia", *READ)
    later = datetime.now(UTC) + timedelta(days=1)
    grants.grant_privileges(
        world.olga, "acme", role, Kind.CATALOG, "lake", [("select_table", "allow", later, later + timedelta(days=1))]
    )
    (lacking,) = explain("select_table")["because"]
    assert lacking["because"][0]["says"].startswith(
        f"Role {role} allows select_table on catalog lake, but only from {later:%Y-%m-%d %H:%M} UTC, granted by olga"
    )
    assert lacking["because"][0]["grant"].keys() >= {"startTime", "endTime"}


@pytest.mark.store
def test_roles_that_the_request_leaves_out(world: World, explain: Asking) -> None:
    reading, writing = world.give("mia", *READ, "select_table@lake"), world.give("mia", "modify_table@lake")
    told = explain("modify_table", by="mia", active=reading)
    assert not told["allowed"]
    left_out = f"Role {writing} allows modify_table on catalog lake, but this request leaves that role out"
    assert left_out in said(told["because"])
    assert changes(told) == [[f"useRole modify_table@lake of {writing}"]]
    assert explain("modify_table", by="mia", active=f"{reading},{writing}")["allowed"]


def test_a_yes_names_neither_what_is_ahead_nor_what_the_request_leaves_out(world: World, explain: Asking) -> None:
    reading, also = world.give("mia", *READ, "select_table@lake"), world.give("mia", "select_table@lake.A")
    later = world.give("mia")
    ahead = ("select_table", "allow", datetime.now(UTC) + timedelta(days=1), None)
    grants.grant_privileges(world.olga, "acme", later, Kind.CATALOG, "lake", [ahead])

    def givers(active: str) -> set[str]:
        reason = explain("select_table", by="mia", active=active)["because"][3]
        return {below["grant"]["role"] for below in reason["because"]}

    assert givers("ALL") == {reading, also}
    assert givers(reading) == {reading}
