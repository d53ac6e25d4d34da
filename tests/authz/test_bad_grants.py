"""Grants that make no sense: refused by every door, and nothing is changed."""

from __future__ import annotations

from typing import Any

import pytest

from authz.models import Grant
from authz.objects import DOTS
from metalake.kinds import Kind, grantable_on
from metalake.privileges import Effect, Privilege
from tests.authz.refusals import (
    DOORS,
    ILLEGAL_ARGUMENT,
    ILLEGAL_OBJECT,
    ILLEGAL_PRIVILEGE,
    NO_OBJECT,
    Door,
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
from tests.cases import each

pytestmark = pytest.mark.usefixtures("analyst")

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


# Privileges and what may hold them


def test_every_kind_and_every_privilege_is_looked_at() -> None:
    assert set(NAMES) == set(Kind) and len(Privilege) == 35
    assert [kind for kind in Kind if all(kind in grantable_on(privilege) for privilege in Privilege)] == [Kind.METALAKE]


@doors
def test_a_privilege_on_what_cannot_hold_it(world: World, wire: Wire, door: Door) -> None:
    for kind, name in NAMES.items():
        unbindable = [privilege for privilege in Privilege if kind not in grantable_on(privilege)]
        assert unbindable or kind is Kind.METALAKE
        if kind in (Kind.VIEW, Kind.JOB_TEMPLATE) and door in (grant, revoke):
            # What the path names is looked for before the body is read, and there is neither.
            assert refused(wire, door(kind, name, allow(unbindable[0]))).status == 404
            continue
        for number, privilege in enumerate(unbindable):
            given = deny(privilege.upper()) if number % 2 else allow(privilege)
            where = ", ".join(sorted(grantable_on(privilege)))
            message = f"Privilege {privilege} cannot be granted on a {kind}, but on: {where}."
            assert refused(wire, door(kind, name, given)) == (*ILLEGAL_PRIVILEGE, message)


@giving
@pytest.mark.parametrize("kind", [Kind.CATALOG, Kind.SCHEMA])
def test_a_privilege_about_what_this_catalog_does_not_hold(world: World, wire: Wire, door: Door, kind: Kind) -> None:
    foreign = [
        privilege
        for privilege in Privilege
        if kind in grantable_on(privilege) and {"topic", "fileset", "model"} & set(privilege.split("_"))
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
        assert "is no privilege" in refusal.message and "%" not in refusal.message and len(refusal.message) < 800


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
    holding = {kind: privilege for privilege in Privilege for kind in grantable_on(privilege)}
    assert len(holding) == 12
    for kind, privilege in holding.items():
        for name in MISSING.get(kind, [NAMES[kind]]):
            refusal = refused(wire, door(kind, name, allow(privilege)))
            assert refusal == (*NO_OBJECT, f"{kind.capitalize().replace('_', ' ')} {name} does not exist.")


@doors
def test_a_table_is_no_view(world: World, wire: Wire, door: Door) -> None:
    assert refused(wire, door(Kind.VIEW, "lake.A:B.t", allow("select_view"))).shape == NO_OBJECT


@doors
def test_a_name_that_no_object_of_the_kind_can_have(world: World, wire: Wire, door: Door) -> None:
    for kind, names in {
        "metalake": ["acme.lake"],
        "catalog": ["lake.A", "lake."],
        "schema": ["lake", "lake.", ".A", "lake.A.t"],
        "table": ["lake.A", "lake..t", "lake.A.C.t", "acme.lake.A:B.t"],
    }.items():
        for name in names:
            refusal = refused(wire, door(kind, name, allow("manage_grants")))
            hint = (
                f" {DOTS}"
                if kind in ("schema", "table") and name.count(".") > ("schema", "table").index(kind) + 1
                else ""
            )
            assert refusal == (*ILLEGAL_OBJECT, f"{name!r} is not the full name of a {kind}.{hint}")


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


@each("door", [create, override])
@each(
    "second, shape",
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


# And those that do make sense


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
