"""Grants that make no sense or reach too far: refused by every door, and nothing is changed."""

from __future__ import annotations

from typing import Any

import pytest

from authz.models import Grant
from authz.services import roles
from metalake.privileges import Effect, Kind, Privilege
from tests.authz.refusals import (
    DOORS,
    FORBIDDEN,
    ILLEGAL_ARGUMENT,
    ILLEGAL_OBJECT,
    ILLEGAL_PRIVILEGE,
    NO_OBJECT,
    ROLE,
    Door,
    Refusal,
    allow,
    create,
    deny,
    doors,
    giving,
    grant,
    hold,
    override,
    refused,
    revoke,
    securable,
    state,
)
from tests.authz.small_world import Wire, World

pytestmark = pytest.mark.store

# A name that an object of each kind could have; those of the first four are there.
NAMES = {
    Kind.METALAKE: "acme",
    Kind.CATALOG: "lake",
    Kind.SCHEMA: "lake.A",
    Kind.TABLE: "lake.A:B.t",
    Kind.VIEW: "lake.A:B.delays",
    Kind.TOPIC: "lake.A.departures",
    Kind.FILESET: "files.A.photos",
    Kind.MODEL: "lake.A.forecast",
    Kind.FUNCTION: "lake.A.distance",
    Kind.COLUMN: "lake.A:B.t.id",
    Kind.TAG: "pii",
    Kind.POLICY: "retention",
    Kind.ROLE: "analyst",
    Kind.JOB: "nightly",
    Kind.JOB_TEMPLATE: "compaction",
}


@pytest.fixture(autouse=True)
def analyst(world: World) -> None:
    """A role that a half-done override would empty."""
    roles.create_role(world.olga, "acme", "analyst")
    hold(world, "allow", "use_catalog", "lake")
    hold(world, "deny", "create_table", "lake.A")


# Privileges and what may hold them


def test_every_kind_and_every_privilege_is_looked_at() -> None:
    assert set(NAMES) == set(Kind) and len(Privilege) == 35
    assert [kind for kind in Kind if all(kind in privilege.grantable_on for privilege in Privilege)] == [Kind.METALAKE]


@doors
def test_a_privilege_on_what_cannot_hold_it(world: World, wire: Wire, door: Door) -> None:
    for kind, name in NAMES.items():
        unbindable = [privilege for privilege in Privilege if kind not in privilege.grantable_on]
        assert unbindable or kind is Kind.METALAKE
        for number, privilege in enumerate(unbindable):
            given = deny(privilege.upper()) if number % 2 else allow(privilege)
            where = ", ".join(sorted(privilege.grantable_on))
            message = f"Privilege {privilege} cannot be granted on a {kind}, but on: {where}."
            assert refused(wire, door(kind, name, given)) == (*ILLEGAL_PRIVILEGE, message)


@giving
@pytest.mark.parametrize("kind", [Kind.CATALOG, Kind.SCHEMA])
def test_a_privilege_about_what_this_catalog_does_not_hold(world: World, wire: Wire, door: Door, kind: Kind) -> None:
    foreign = [
        privilege
        for privilege in Privilege
        if kind in privilege.grantable_on and {"topic", "fileset", "model"} & set(privilege.split("_"))
    ]
    assert len(foreign) == 9
    for privilege in foreign:
        refusal = refused(wire, door(kind, NAMES[kind], allow(privilege)))
        assert refusal.shape == ILLEGAL_PRIVILEGE
        assert str(privilege) in refusal.message and "lake" in refusal.message
    for privilege in (Privilege.CREATE_TABLE, Privilege.SELECT_VIEW, Privilege.REGISTER_MODEL):
        assert refused(wire, door(Kind.CATALOG, "files", deny(privilege))).shape == ILLEGAL_PRIVILEGE


@doors
def test_a_privilege_given_twice(world: World, wire: Wire, door: Door) -> None:
    for given, named in [
        (allow("use_schema", "use_schema"), "use_schema"),
        (allow("use_schema") + deny("use_schema"), "use_schema"),
        (allow("use_schema", "create_table", "USE_SCHEMA"), "use_schema"),
        (allow("Use_Schema") + deny("use_sCHEMA"), "use_schema"),
        (allow("create_model", "register_model"), "register_model"),
        (deny("register_model") + allow("CREATE_MODEL"), "register_model"),
        (allow("create_model", "create_model"), "register_model"),
        (allow("create_model_version") + deny("link_model_version"), "link_model_version"),
        (allow("LINK_MODEL_VERSION", "Create_Model_Version"), "link_model_version"),
    ]:
        refusal = refused(wire, door(Kind.METALAKE, "acme", given))
        assert refusal == (*ILLEGAL_PRIVILEGE, f"Privilege {named} is given twice; say it once."), given


UNKNOWN = [
    "", " ", "fly", "use_catalog ", " use_catalog", "use-catalog", "use catalog", "use_catalog\n", "usecatalog",
    "Privilege.USE_CATALOG", "use_catalog,create_schema", "*", "all", "owner", "%s", "usé_catalog", "null", "0",
    "x" * 100_000,
]  # fmt: skip


@doors
def test_a_privilege_that_nobody_knows(world: World, wire: Wire, door: Door) -> None:
    for name in UNKNOWN:
        refusal = refused(wire, door(Kind.CATALOG, "lake", allow("create_schema", name)))
        assert refusal.shape == ILLEGAL_PRIVILEGE, name
        assert "known privilege" in refusal.message and "%" not in refusal.message and len(refusal.message) < 200


@doors
def test_no_privilege_at_all(world: World, wire: Wire, door: Door) -> None:
    assert refused(wire, door(Kind.CATALOG, "lake", [])).shape == ILLEGAL_PRIVILEGE


@pytest.mark.parametrize(
    ("kind", "name", "condition"),
    [
        ("catalog", "create_schema", "allow"),
        ("CATALOG", "CREATE_SCHEMA", "ALLOW"),
        ("cataLog", "Create_Schema", "aLLow"),
    ],
)
def test_case_makes_no_difference(world: World, wire: Wire, kind: str, name: str, condition: str) -> None:
    given = [{"name": name, "condition": condition}]
    assert wire(*grant(kind, "lake", given))[0] == 200
    assert world.role("analyst")["lake"] == ["allow create_schema", "allow use_catalog"]
    assert wire(*override(kind, "lake", given))[0] == 200
    assert world.role("analyst") == {"lake": ["allow create_schema"]}
    assert wire(*create(kind, "lake", given))[0] == 200
    assert world.role("fresh") == {"lake": ["allow create_schema"]}
    assert wire(*revoke(kind, "lake", given))[0] == 200
    assert world.role("analyst") == {}


def test_a_legacy_name_is_the_same_privilege(world: World, wire: Wire) -> None:
    assert wire(*grant("metalake", "acme", allow("CREATE_MODEL")))[0] == 200
    assert world.role("analyst")["acme"] == ["allow register_model"]
    assert refused(wire, grant("metalake", "acme", deny("register_model"))).shape == ILLEGAL_PRIVILEGE
    assert wire(*revoke("metalake", "acme", allow("create_model")))[0] == 200
    assert "acme" not in world.role("analyst")


@pytest.mark.parametrize(("held", "asked"), [("deny", "allow"), ("allow", "deny")])
def test_the_opposite_of_what_is_held_is_revoked_first(world: World, wire: Wire, held: str, asked: str) -> None:
    hold(world, held, "use_schema", "lake.A")
    both = [{"name": "register_function", "condition": "allow"}, {"name": "USE_SCHEMA", "condition": asked.upper()}]
    refusal = refused(wire, grant("schema", "lake.A", both))
    assert refusal.shape == ILLEGAL_PRIVILEGE
    assert f"analyst holds {held} use_schema there: revoke it before you {asked} it" in refusal.message


# Objects


MISSING = {
    Kind.METALAKE: ["other", "lake", "ACME"],
    Kind.CATALOG: ["ocean", "Lake", "acme"],
    Kind.SCHEMA: ["lake.X", "lake.A:X", "lake.B", "lake.a", "ocean.A", "files.A"],
    Kind.TABLE: ["lake.A:B.x", "lake.A.t", "lake.X.t", "ocean.A:B.t", "lake.A:B.T"],
}


@doors
def test_an_object_that_is_not_there(world: World, wire: Wire, door: Door) -> None:
    """Also of a kind that is not kept yet."""
    holding = {kind: privilege for privilege in Privilege for kind in privilege.grantable_on}
    assert len(holding) == 12
    for kind, privilege in holding.items():
        for name in MISSING.get(kind, [NAMES[kind]]):
            refusal = refused(wire, door(kind, name, allow(privilege)))
            assert refusal == (*NO_OBJECT, f"{kind.capitalize()} {name} does not exist.")


@doors
def test_a_table_is_no_view(world: World, wire: Wire, door: Door) -> None:
    assert refused(wire, door(Kind.VIEW, "lake.A:B.t", allow("select_view"))).shape == NO_OBJECT


@doors
def test_a_name_that_no_object_of_the_kind_can_have(world: World, wire: Wire, door: Door) -> None:
    for kind, names in {
        "metalake": ["acme.lake"],
        "catalog": ["lake.A", "lake."],
        "schema": ["lake", "lake.", ".A", "lake.A.t"],
        "table": ["lake.A", "lake..t", "lake.A.B.t", "acme.lake.A:B.t"],
    }.items():
        for name in names:
            refusal = refused(wire, door(kind, name, allow("manage_grants")))
            assert refusal == (*ILLEGAL_OBJECT, f"{name!r} is not the full name of a {kind}.")


@doors
def test_a_schema_name_that_leads_nowhere(world: World, wire: Wire, door: Door) -> None:
    for name in ("lake.:", "lake.A:", "lake.:A", "lake.A::B", "lake.A ", "lake.%2E", "lake.*", "lake.'"):
        refusal = refused(wire, door("schema", name, allow("use_schema")))
        assert refusal.shape in (ILLEGAL_OBJECT, ILLEGAL_ARGUMENT, NO_OBJECT), name


@doors
def test_a_kind_that_nobody_knows(world: World, wire: Wire, door: Door) -> None:
    for kind in ("planet", "tables", " table", "0", "job-template", "user", "group"):
        refusal = refused(wire, door(kind, "lake", allow("use_catalog")))
        assert refusal.shape == ILLEGAL_OBJECT
        assert repr(kind) in refusal.message and "catalog, schema, table" in refusal.message


def test_a_role_that_is_not_there(world: World, wire: Wire) -> None:
    for method, path, body in (door("catalog", "lake", allow("use_catalog")) for door in (grant, revoke, override)):
        refusal = refused(wire, (method, path.replace("analyst", "pilot"), body))
        assert refusal == (404, 1003, "NoSuchRoleException", "Role pilot does not exist.")


@pytest.mark.parametrize("door", [create, override], ids=lambda door: door.__name__)
@pytest.mark.parametrize(
    ("second", "shape"),
    [
        (securable("catalog", "lake", allow("create_schema")), ILLEGAL_OBJECT),
        (securable("CATALOG", "lake", deny("use_catalog")), ILLEGAL_OBJECT),
        (securable("schema", "lake.A", allow("create_role")), ILLEGAL_PRIVILEGE),
        (securable("schema", "lake.A", allow("use_model")), ILLEGAL_PRIVILEGE),
        (securable("schema", "lake.A", []), ILLEGAL_PRIVILEGE),
        (securable("schema", "lake.X", allow("use_schema")), NO_OBJECT),
        (securable("schema", "lake", allow("use_schema")), ILLEGAL_OBJECT),
        (securable("planet", "lake", allow("use_schema")), ILLEGAL_OBJECT),
    ],
)
def test_one_wrong_entry_spoils_all(
    world: World, wire: Wire, door: Door, second: Any, shape: tuple[int, int, str]
) -> None:
    method, path, body = door("catalog", "lake", allow("use_catalog", "create_schema"))
    (entries,) = (value for value in body.values() if isinstance(value, list))
    entries.append(second)
    assert refused(wire, (method, path, body)).shape == shape


# Rights


HIDDEN = [
    ("catalog", "lake", "ocean", "create_schema"),
    ("schema", "lake.A", "lake.X", "use_schema"),
    ("schema", "lake.A:B", "lake.A:X", "use_schema"),
    ("table", "lake.A:B.t", "lake.A:B.x", "select_table"),
    ("table", "lake.A:B.t", "lake.X.t", "select_table"),
]


@doors
@pytest.mark.parametrize(("kind", "hidden", "missing", "privilege"), HIDDEN)
def test_a_hidden_object_is_answered_like_a_missing_one(
    world: World, wire: Wire, door: Door, kind: str, hidden: str, missing: str, privilege: str
) -> None:
    # Without USE_CATALOG even who may grant on the metalake sees nothing in a catalog.
    may = ["manage_grants@acme", "deny manage_grants@lake"] if door is override else ["create_role@acme"]
    world.give("mia", *may)
    for effect in (allow, deny):
        refusals = [refused(wire, door(kind, name, effect(privilege)), user="mia") for name in (hidden, missing)]
        told = [(*r.shape, r.message.replace(name, "*")) for r, name in zip(refusals, (hidden, missing), strict=True)]
        assert told[0] == told[1] == (*NO_OBJECT, f"{kind.capitalize()} * does not exist.")


@pytest.mark.parametrize("door", [create, override], ids=lambda door: door.__name__)
@pytest.mark.parametrize(("kind", "hidden", "missing", "privilege"), HIDDEN)
def test_a_hidden_object_is_not_told_by_what_comes_after_it(
    world: World, wire: Wire, door: Door, kind: str, hidden: str, missing: str, privilege: str
) -> None:
    may = ["manage_grants@acme", "deny manage_grants@lake"] if door is override else ["create_role@acme"]
    world.give("mia", *may)
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
    may = ["manage_grants@acme", "deny manage_grants@lake"] if door is override else ["create_role@acme"]
    world.give("mia", *may)
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


def test_what_is_refused_here_is_granted_when_it_is_right(world: World, wire: Wire) -> None:
    """The doors above do work, and the state that was compared does show it."""
    for door in DOORS:
        before = state()
        method, path, body = door("catalog", "lake", allow("create_schema"))
        assert wire(method, path, body)[0] == 200
        after = state()
        assert all(was != now for was, now in zip(before[2:], after[2:], strict=True)), door
        assert before[0] != after[0]
    assert {grant.effect for grant in Grant.objects.all()} <= {effect.value for effect in Effect}
