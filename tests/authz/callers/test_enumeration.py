"""Who may not list users, groups or roles cannot try out their names: after some misses every such question waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from authz.callers import enumeration
from authz.models import Remembered
from authz.services import people, roles
from tests.authz.small_world import Wire, World

TABLE = "table/lake.A:B.t"
GRANT = {"privileges": [{"name": "select_table", "condition": "allow"}]}

Ask = Callable[[str], tuple[str, str, Any]]
T = {"type": "table", "fullName": "lake.A:B.t"}
WISH = {**T, "privileges": [{"name": "select_table", "condition": "allow"}]}
ASKS: dict[str, Ask] = {
    "an owner": lambda name: ("PUT", f"metalakes/acme/owners/{TABLE}", {"name": name, "type": "user"}),
    "a role to grant to": lambda name: ("PUT", f"metalakes/acme/permissions/roles/{name}/{TABLE}/grant", GRANT),
    "a role to revoke from": lambda name: ("PUT", f"metalakes/acme/permissions/roles/{name}/{TABLE}/revoke", GRANT),
    "whose access": lambda name: (
        "GET", f"metalakes/acme/access/users/{name}?type=table&fullName=lake.A:B.t", None,
    ),
    "what a role reaches": lambda name: (
        "GET", f"metalakes/acme/access/roles/{name}?type=table&fullName=lake.A:B.t", None,
    ),
    "why": lambda name: (
        "GET",
        f"metalakes/acme/access/explain?type=table&fullName=lake.A:B.t&privilege=select_table&user={name}",
        None,
    ),
    "a role of a plan": lambda name: (
        "POST",
        "metalakes/acme/access/plan",
        {"metalake": "acme", "subtree": {"type": "table", "fullName": "lake.A:B.t"}, "roles": [{"name": name}]},
    ),
    "a role of a change": lambda name: (
        "POST",
        "metalakes/acme/access/changes",
        {"changes": [{"change": "grant", "role": name, "on": T, "privilege": "select_table", "condition": "allow"}]},
    ),
    "a user of a proposal": lambda name: ("POST", "metalakes/acme/access/proposals", WISH | {"users": [name]}),
    "a user of a removal": lambda name: ("POST", "metalakes/acme/access/removals", T | {"user": name}),
    "a role of a proposal": lambda name: ("POST", "metalakes/acme/access/proposals", WISH | {"role": name}),
    "a new role": lambda name: ("POST", "metalakes/acme/roles", {"name": name}),
    "a user for a group": lambda name: ("PUT", "metalakes/acme/groups/team", {"usersToAdd": [name]}),
}  # fmt: skip
HITS = {"a role to grant to": "secret", "a role to revoke from": "secret", "what a role reaches": "secret",
        "a role of a plan": "secret", "a role of a change": "secret", "a role of a proposal": "secret"}  # fmt: skip


@pytest.fixture
def mia(world: World, monkeypatch: pytest.MonkeyPatch) -> str:
    """She owns a table, and lists nobody."""
    monkeypatch.setattr(enumeration, "MISSES", 5)
    world.give("mia", "use_catalog@lake", "use_schema@lake", "manage_groups@acme")
    world.give("nils", "use_catalog@lake")
    roles.create_role(world.olga, "acme", "secret")
    people.add_group(world.olga, "acme", "team")
    world.own("mia", world.t)
    return "mia"


def missing_of(ask: str) -> str:
    """A name that is a miss; a new role's is one that is taken."""
    return "secret" if ask == "a new role" else "nobody"


@pytest.mark.parametrize("ask", ASKS)
def test_misses_are_counted_and_then_all_wait(world: World, wire: Wire, mia: str, ask: str) -> None:
    if ask == "a new role":
        world.give("mia", "create_role@acme")
    for _ in range(5):
        status, body = wire(*ASKS[ask](missing_of(ask)), user=mia)
        assert status != 429, body
    found = HITS.get(ask, "fresh" if ask == "a new role" else "nils")
    for name in (missing_of(ask), found):
        status, body = wire(*ASKS[ask](name), user=mia)
        assert (status, body["type"]) == (429, "TooManyRequestsException"), "a hit would tell as much as a miss"
    assert "who may list them need not guess" in body["message"]
    Remembered.objects.update(until=1)
    status, body = wire(*ASKS[ask](found), user=mia)
    assert status == 200, body


@pytest.mark.parametrize("ask", ASKS)
def test_hits_are_not_counted(world: World, wire: Wire, mia: str, ask: str) -> None:
    for n in range(7):
        if ask == "a new role":
            world.give("mia", "create_role@acme")
        found = HITS.get(ask, f"fresh{n}" if ask == "a new role" else "nils")
        status, body = wire(*ASKS[ask](found), user=mia)
        assert status == 200, body
        world.own("mia", world.t)


@pytest.mark.parametrize("ask", ASKS)
def test_who_may_list_them_is_never_counted(world: World, wire: Wire, mia: str, ask: str) -> None:
    for _ in range(8):
        status, body = wire(*ASKS[ask](missing_of(ask)), user="olga")
        assert status != 429, body
    assert not Remembered.objects.filter(count__gt=0).exists()


def test_a_plan_of_many_names_tells_none_of_them(world: World, wire: Wire, mia: str) -> None:
    world.give("mia", "create_role@acme")
    method, path, file = ASKS["a role of a plan"]("x")
    file["roles"] = [{"name": f"guess{n}"} for n in range(6)]
    status, body = wire(method, path, file, user=mia)
    assert status == 429, body


def test_a_plan_of_many_new_roles_tells_none_of_them(world: World, wire: Wire, mia: str) -> None:
    world.give("mia", "create_role@acme")
    names = [*(f"guess{n}" for n in range(6)), "secret"]
    body = {"changes": [{"change": "createRole", "role": name} for name in names]}
    status, reply = wire("POST", "metalakes/acme/access/changes", body, user=mia)
    assert status == 429, reply


def test_who_gains_the_right_to_list_them_waits_no_longer(world: World, wire: Wire, mia: str) -> None:
    for _ in range(5):
        wire(*ASKS["an owner"]("nobody"), user=mia)
    assert wire(*ASKS["an owner"]("nils"), user=mia)[0] == 429
    world.give("mia", "manage_users@acme")
    assert wire(*ASKS["an owner"]("nils"), user=mia)[0] == 200


def test_one_callers_misses_are_nobody_elses(world: World, wire: Wire, mia: str) -> None:
    world.give("nils", "manage_grants@lake.A", "use_schema@lake")
    for _ in range(6):
        wire(*ASKS["a role to grant to"]("nobody"), user=mia)
    assert wire(*ASKS["a role to grant to"]("nobody"), user="nils")[0] == 404
