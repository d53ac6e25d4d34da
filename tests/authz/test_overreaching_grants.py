"""Grants that reach too far: refused by every door, with nothing changed and nothing told of what is hidden."""

from __future__ import annotations

from typing import Any

import pytest

from tests.authz.refusals import (
    FORBIDDEN,
    NO_OBJECT,
    ROLE,
    Door,
    Refusal,
    allow,
    create,
    deny,
    doors,
    grant,
    hold,
    override,
    refused,
    revoke,
    securable,
)
from tests.authz.small_world import Wire, World

pytestmark = pytest.mark.usefixtures("analyst")


HIDDEN = [
    ("catalog", "lake", "ocean", "create_schema"),
    ("schema", "lake.A", "lake.X", "use_schema"),
    ("schema", "lake.A:B", "lake.A:X", "use_schema"),
    ("table", "lake.A:B.t", "lake.A:B.x", "select_table"),
    ("table", "lake.A:B.t", "lake.X.t", "select_table"),
]


def let_in(world: World, door: Door) -> None:
    """Mia may use the door; without USE_CATALOG even who may grant on the metalake sees nothing in a catalog."""
    may = ["manage_grants@acme", "deny manage_grants@lake"] if door is override else ["create_role@acme"]
    world.give("mia", *may)


@doors
@pytest.mark.parametrize(("kind", "hidden", "missing", "privilege"), HIDDEN)
def test_a_hidden_object_is_answered_like_a_missing_one(
    world: World, wire: Wire, door: Door, kind: str, hidden: str, missing: str, privilege: str
) -> None:
    let_in(world, door)
    for effect in (allow, deny):
        refusals = [refused(wire, door(kind, name, effect(privilege)), user="mia") for name in (hidden, missing)]
        told = [(*r.shape, r.message.replace(name, "*")) for r, name in zip(refusals, (hidden, missing), strict=True)]
        assert told[0] == told[1] == (*NO_OBJECT, f"{kind.capitalize()} * does not exist.")


@pytest.mark.parametrize("door", [create, override], ids=lambda door: door.__name__)
@pytest.mark.parametrize(("kind", "hidden", "missing", "privilege"), HIDDEN)
def test_a_hidden_object_is_not_told_by_what_comes_after_it(
    world: World, wire: Wire, door: Door, kind: str, hidden: str, missing: str, privilege: str
) -> None:
    let_in(world, door)
    refusals = []
    for name in (hidden, missing):
        method, path, body = door(kind, name, allow(privilege))
        (entries,) = (value for value in body.values() if isinstance(value, list))
        entries.append(securable("catalog", "nowhere", allow("use_catalog")))
        refusals.append(refused(wire, (method, path, body), user="mia").message.replace(name, "*"))
    assert refusals[0] == refusals[1]


@doors
@pytest.mark.parametrize(("kind", "hidden", "missing", "privilege"), HIDDEN)
def test_a_hidden_object_is_not_told_by_what_is_wrong_with_the_grant(
    world: World, wire: Wire, door: Door, kind: str, hidden: str, missing: str, privilege: str
) -> None:
    let_in(world, door)
    for wrong in ({"endTime": "2001-01-01T00:00:00Z"}, {"startTime": "2001-01-01T00:00:00Z"}, {"name": "use_model"}):
        given = [allow(privilege)[0] | wrong]
        refusals = [refused(wire, door(kind, name, given), user="mia") for name in (hidden, missing)]
        told = [(*r.shape, r.message.replace(name, "*")) for r, name in zip(refusals, (hidden, missing), strict=True)]
        assert told[0] == told[1], wrong


@doors
def test_a_stranger_learns_nothing(world: World, wire: Wire, door: Door) -> None:
    told = set()
    for metalake in ("acme", "nowhere"):
        for kind, name in (("catalog", "lake"), ("catalog", "ocean"), ("schema", "lake.A")):
            method, path, body = door(kind, name, allow("manage_grants"))
            refusal = refused(wire, (method, path.replace("acme", metalake), body), user="sam")
            told.add((*refusal.shape, refusal.message.replace(metalake, "*")))
    assert told == {(404, 1003, "NoSuchMetalakeException", "Metalake * does not exist.")}


PATH = ("use_catalog@lake", "use_schema@lake.A")


@pytest.mark.parametrize("door", [grant, create], ids=lambda door: door.__name__)
@pytest.mark.parametrize(
    ("held", "kind", "name", "asked", "named"),
    [
        ((), "metalake", "acme", allow("use_catalog"), "metalake acme"),
        (("use_catalog@lake",), "catalog", "lake", allow("use_catalog"), "catalog lake"),
        (PATH, "schema", "lake.A", deny("use_schema"), "schema lake.A"),
        ((*PATH, "select_table@lake.A:B.t"), "table", "lake.A:B.t", allow("select_table"), "table lake.A:B.t"),
        (("manage_grants@lake",), "metalake", "acme", allow("use_catalog"), "metalake acme"),
        ((*PATH, "manage_grants@lake.A:B"), "schema", "lake.A", allow("use_schema"), "schema lake.A"),
        (("use_catalog@lake", "manage_grants@lake", "deny manage_grants@lake.A", "use_schema@lake.A"),
         "schema", "lake.A:B", allow("use_schema"), "schema lake.A:B"),
        ((*PATH, "manage_grants@lake.A"), "schema", "lake.A", allow("use_schema", "manage_grants"), "manage_grants"),
        ((*PATH, "manage_grants@lake.A"), "table", "lake.A:B.t", deny("manage_grants"), "manage_grants"),
        (("use_catalog@lake", "manage_grants@lake"), "catalog", "lake", allow("create_schema", "bootstrap_namespace"),
         "bootstrap_namespace"),
        (("manage_grants@acme",), "metalake", "acme", allow("manage_grants", "bootstrap_namespace"),
         "bootstrap_namespace"),
    ],
)  # fmt: skip
def test_beyond_the_grantors_own_authority(
    world: World, wire: Wire, door: Door, held: tuple[str, ...], kind: str, name: str, asked: Any, named: str
) -> None:
    world.give("mia", "create_role@acme", *held)
    refusal = refused(wire, door(kind, name, asked), user="mia")
    assert refusal.shape == FORBIDDEN
    assert refusal.message.startswith("mia may not grant") and named in refusal.message


def test_making_a_role_takes_create_role_whatever_else_is_held(world: World, wire: Wire) -> None:
    world.give("mia", "manage_grants@acme", "use_catalog@lake")
    refusal = refused(wire, create("catalog", "lake", allow("use_catalog")), user="mia")
    assert refusal.shape == FORBIDDEN and "create role" in refusal.message


def test_overriding_beyond_the_callers_authority(world: World, wire: Wire) -> None:
    kept = [securable("catalog", "lake", allow("use_catalog")), securable("schema", "lake.A", deny("create_table"))]

    def overriding(*entries: Any) -> Refusal:
        return refused(wire, ("PUT", ROLE, {"overrides": list(entries)}), user="mia")

    world.give("mia", "create_role@acme", "use_catalog@lake", "use_schema@lake.A", "manage_grants@lake")
    refusal = overriding(*kept)
    assert refusal.shape == FORBIDDEN and "assign roles in metalake acme" in refusal.message
    world.give("mia", "manage_grants@acme")
    refusal = overriding(*kept, securable("metalake", "acme", allow("use_schema", "bootstrap_namespace")))
    assert refusal.shape == FORBIDDEN and "bootstrap_namespace" in refusal.message
    world.give("mia", "deny manage_grants@lake")
    refusal = overriding(kept[0])
    assert refusal.shape == FORBIDDEN and "may not lift a DENY" in refusal.message
    refusal = overriding(kept[0], securable("schema", "lake.A", allow("create_table")))
    assert refusal.shape == FORBIDDEN and "schema lake.A" in refusal.message
    assert wire("PUT", ROLE, {"overrides": kept}, user="mia")[0] == 200


@pytest.mark.parametrize("given", [deny("create_table"), allow("use_schema") + deny("create_table")])
def test_lifting_a_deny_takes_authority_above_it(world: World, wire: Wire, given: Any) -> None:
    hold(world, "allow", "use_schema", "lake.A")
    world.give("mia", *PATH, "manage_grants@lake.A")
    refusal = refused(wire, revoke("schema", "lake.A", given), user="mia")
    assert refusal == (*FORBIDDEN, "mia may not lift a DENY on schema lake.A.")
