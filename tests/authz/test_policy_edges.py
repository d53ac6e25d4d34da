"""The evaluator at its edges: each test is a question that worlds drawn at random seldom ask, or never."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from authz import operations, policy
from authz.actor import Actor
from authz.operations import OPERATIONS, SELF, Traversal, use_of
from authz.policy import Rights
from authz.snapshot import ALLOWS, DENY_SHIFT, mask_of
from metalake.errors import Forbidden, NotFound
from metalake.kinds import Kind, grantable_on
from metalake.lineage import Lineage, Node
from metalake.privileges import Effect, Privilege
from tests.authz.small_world import World
from tests.authz.test_snapshot import empty
from tests.cases import each

P = Privilege
NOON = 1_000.0  # of the only day here
OLGA, MIA, CREW, PARTNERS = 1, 2, 11, 12
PILOTS, SELLERS, GUESTS = 21, 22, 23
ACME, LAKE, FLIGHTS, EUROPE, DEPARTURES, DELAYS, ROLE = 31, 32, 33, 34, 35, 36, 37


@dataclass(frozen=True)
class Line:
    nodes: Sequence[Node]
    full_name: Sequence[str]


def node(id: int, kind: Kind, name: str, user: int | None = OLGA, group: int | None = None) -> Node:
    return Node(id, kind.value, name, user, group)


TOP = Line([node(ACME, Kind.METALAKE, "acme")], ["acme"])
CATALOG = Line([*TOP.nodes, node(LAKE, Kind.CATALOG, "lake")], ["lake"])
OUTER = Line([*CATALOG.nodes, node(FLIGHTS, Kind.SCHEMA, "flights")], ["lake", "flights"])
SCHEMA = Line([*OUTER.nodes, node(EUROPE, Kind.SCHEMA, "europe")], ["lake", "flights:europe"])
TABLE = Line([*SCHEMA.nodes, node(DEPARTURES, Kind.TABLE, "departures")], [*SCHEMA.full_name, "departures"])
VIEW = Line([*SCHEMA.nodes, node(DELAYS, Kind.VIEW, "delays")], [*SCHEMA.full_name, "delays"])
PILOT_ROLE = Line([*TOP.nodes, node(ROLE, Kind.ROLE, "pilots")], ["pilots"])


def allow(*privileges: Privilege) -> int:
    return sum(privilege.bit for privilege in privileges)


def deny(*privileges: Privilege) -> int:
    return allow(*privileges) << DENY_SHIFT


def mia(mask: int = 0, on: int = ACME, **tables: Any) -> Actor:
    held = {"members": {ACME: frozenset({MIA})}, "user_roles": {MIA: (PILOTS,)}, "grants": {PILOTS: {on: mask}}}
    return Actor(MIA, "mia", empty(**(held | tables)), at=NOON)


@pytest.fixture
def no_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """No schema leads on to another: the one thing that would be read from the database."""
    monkeypatch.setattr(policy, "is_path", lambda actor, lineage: False)


# Who asks


def test_roles_are_of_the_user_and_of_every_group_once_and_in_order() -> None:
    held = empty(
        user_roles={MIA: (SELLERS, PILOTS)},
        user_groups={MIA: (CREW, 99)},
        group_roles={CREW: (PILOTS,), PARTNERS: (GUESTS, PILOTS)},
    )
    assert Actor(MIA, "mia", held).roles == (PILOTS, SELLERS)
    assert Actor(MIA, "mia", held).groups == (CREW, 99)
    claiming = Actor(MIA, "mia", held, claimed=(PARTNERS, 98))
    assert claiming.roles == (PILOTS, SELLERS, GUESTS)
    assert sorted(claiming.groups) == [CREW, PARTNERS, 98, 99]
    assert held.roles_of(OLGA) == () and held.groups_of(OLGA) == ()
    assert not held.is_member(MIA, ACME)
    assert mia().policy.is_member(MIA, ACME) and not mia().policy.is_member(OLGA, ACME)


def test_roles_are_worked_out_once() -> None:
    held = empty(user_roles={MIA: (PILOTS,)})
    assert held.roles_of(MIA) is held.roles_of(MIA)


def test_an_owner_is_one_user_or_one_group() -> None:
    held = mia(user_groups={MIA: (CREW,)})
    owned = [(MIA, None), (None, CREW)]
    others = [(OLGA, None), (None, PARTNERS), (None, MIA), (CREW, None)]
    for owner in owned + others:
        assert held.owns(Node(LAKE, "catalog", "lake", *owner)) is (owner in owned), owner
    assert replace(held, claimed=(PARTNERS,)).owns(Node(LAKE, "catalog", "lake", None, PARTNERS))


def test_one_moment_for_the_whole_request(monkeypatch: pytest.MonkeyPatch) -> None:
    asker = replace(mia(), at=None)
    monkeypatch.setattr(time, "time", lambda: NOON)
    assert asker.now == NOON
    monkeypatch.setattr(time, "time", lambda: NOON + 1)
    assert asker.now == NOON
    assert asker.moment == datetime.fromtimestamp(NOON, UTC)
    assert asker.moment.tzinfo is UTC
    assert replace(asker, at=0.0).now == 0


def test_narrowing_leaves_every_deny_and_only_the_allows_of_active_roles() -> None:
    first, *_, last = P
    held = mia(
        user_roles={MIA: (PILOTS, SELLERS)},
        grants={PILOTS: {ACME: allow(first, last) | deny(P.USE_SCHEMA)}, SELLERS: {LAKE: allow(P.USE_CATALOG)}},
    )
    for active, wanted in [
        (None, allow(first, last, P.USE_CATALOG)),
        ((), 0),
        ((SELLERS,), allow(P.USE_CATALOG)),
        ((PILOTS, GUESTS), allow(first, last)),
    ]:
        assert replace(held, active=active).mask([ACME, LAKE]) == wanted | deny(P.USE_SCHEMA), active
    denied_twice = mia(grants={PILOTS: {ACME: deny(last)}})
    assert replace(denied_twice, active=(PILOTS,)).mask([ACME]) == deny(last)


def test_a_refreshed_actor_keeps_all_but_the_policy(world: World) -> None:
    before = replace(world.mia, claimed=(7,), active=(8,), at=NOON)
    world.give("mia", "use_catalog@lake")
    after = before.refreshed()
    assert after == replace(before, policy=after.policy)
    assert after.policy.epoch > before.policy.epoch


# What is held


def test_allows_and_denies_are_told_apart() -> None:
    for privilege in P:
        others = ALLOWS & ~privilege.bit
        held = Rights(True, privilege.bit, frozenset())
        assert held.allows(privilege) and held.holds(privilege) and not held.denies(privilege)
        denied = Rights(True, privilege.bit | privilege.bit << DENY_SHIFT, frozenset())
        assert denied.allows(privilege) and denied.denies(privilege) and not denied.holds(privilege)
        none = Rights(True, others | others << DENY_SHIFT, frozenset())
        assert not (none.allows(privilege) or none.denies(privilege) or none.holds(privilege))
        assert mask_of(privilege, Effect.ALLOW) == mask_of(privilege, "allow") == privilege.bit
        assert mask_of(privilege, Effect.DENY) == mask_of(privilege, "deny") == privilege.bit << DENY_SHIFT


def test_the_rights_on_a_lineage() -> None:
    above = {LAKE: allow(P.USE_CATALOG), DEPARTURES: deny(P.SELECT_TABLE)}
    held = mia(grants={PILOTS: above | {FLIGHTS: allow(P.USE_SCHEMA), DELAYS: allow(P.DROP_VIEW)}})
    mask = allow(P.USE_CATALOG, P.USE_SCHEMA) | deny(P.SELECT_TABLE)
    assert policy.rights_on(held, TABLE) == Rights(True, mask, frozenset())
    own = replace(held, id=OLGA, policy=replace(held.policy, members={ACME: frozenset({OLGA})}))
    kinds = {"metalake", "catalog", "schema", "table", SELF}
    assert policy.rights_on(own, TABLE) == Rights(True, 0, frozenset(kinds))
    assert policy.rights_on(own, CATALOG).owned == {"metalake", "catalog", SELF}
    mine = Line([*SCHEMA.nodes, node(DEPARTURES, Kind.TABLE, "departures", MIA)], TABLE.full_name)
    assert policy.rights_on(held, mine).owned == {"table", SELF}
    within = Line([*OUTER.nodes[:-1], node(FLIGHTS, Kind.SCHEMA, "flights", MIA), *TABLE.nodes[3:]], TABLE.full_name)
    assert policy.rights_on(held, within).owned == {"schema"}
    assert policy.rights_on(replace(held, id=99), TABLE) == Rights(False, 0, frozenset())


def test_without_authorization_everybody_may(settings: Any) -> None:
    nobody = Rights(False, 0, frozenset())
    assert not any(policy.decide(row, nobody, kind) for row in OPERATIONS.values() for kind in row.on)
    settings.METALAKE_AUTHORIZATION = "off"
    assert all(policy.decide(row, nobody, kind) for row in OPERATIONS.values() for kind in row.on)
    assert policy.is_path(mia(), OUTER) is True


# What it takes to use a privilege

_UP = {Kind.METALAKE: {"metalake"}, Kind.CATALOG: {"metalake", "catalog"}}
_UP[Kind.SCHEMA] = {"metalake", "catalog", "schema"}
_WAY = {Kind.METALAKE: Traversal.NONE, Kind.CATALOG: Traversal.CATALOG, Kind.JOB_TEMPLATE: Traversal.NONE}
_ROWS = {
    (P.CREATE_CATALOG, Kind.METALAKE): operations.CREATE_CATALOG,
    (P.MANAGE_USERS, Kind.METALAKE): operations.MANAGE_USERS,
    (P.MANAGE_GROUPS, Kind.METALAKE): operations.MANAGE_GROUPS,
    (P.CREATE_ROLE, Kind.METALAKE): operations.CREATE_ROLE,
    (P.REGISTER_JOB_TEMPLATE, Kind.METALAKE): operations.create_of(Kind.JOB_TEMPLATE),
    (P.RUN_JOB, Kind.METALAKE): operations.RUN_JOB,
    (P.CREATE_SCHEMA, Kind.CATALOG): operations.CREATE_SCHEMA,
    (P.CREATE_SCHEMA, Kind.SCHEMA): operations.CREATE_SCHEMA,
    (P.BOOTSTRAP_NAMESPACE, Kind.CATALOG): operations.BOOTSTRAP_SCHEMA,
    (P.CREATE_TABLE, Kind.SCHEMA): operations.CREATE_TABLE,
    (P.CREATE_VIEW, Kind.SCHEMA): operations.CREATE_VIEW,
    (P.ALTER_VIEW, Kind.VIEW): operations.ALTER_VIEW,
    (P.DROP_VIEW, Kind.VIEW): operations.DROP_VIEW,
    (P.MANAGE_GRANTS, Kind.METALAKE): OPERATIONS["grant_on_metalake"],
    (P.MANAGE_GRANTS, Kind.CATALOG): OPERATIONS["grant_on_catalog"],
    (P.MANAGE_GRANTS, Kind.SCHEMA): OPERATIONS["grant_on_schema"],
    (P.MANAGE_GRANTS, Kind.TABLE): OPERATIONS["grant_on_leaf"],
    (P.MANAGE_GRANTS, Kind.VIEW): OPERATIONS["grant_on_leaf"],
}
_ANSWERED = (Kind.METALAKE, Kind.CATALOG, Kind.SCHEMA, Kind.TABLE, Kind.VIEW)
_PAIRS = [(p, kind) for p in P for kind in sorted(grantable_on(p)) if p is not P.MANAGE_GRANTS or kind in _ANSWERED]


@each("privilege, kind", _PAIRS)
def test_what_it_takes_to_use_a_privilege(privilege: Privilege, kind: Kind) -> None:
    """Its own row where the table has one, with that privilege alone; else to hold it and to get there."""
    found, row = use_of(privilege, kind), _ROWS.get((privilege, kind))
    assert found.sufficient == (frozenset({privilege}),)
    if row is not None:
        assert replace(found, sufficient=row.sufficient) == row
    else:
        assert (found.name, found.blocked_by) == (f"use_{privilege.value}", ())
        assert found.on == {kind}
        assert found.owners == _UP.get(kind, {*_UP[Kind.SCHEMA], SELF})
        assert found.traversal is _WAY.get(kind, Traversal.SCHEMA)


def test_the_families_answer_by_the_word_of_a_kind() -> None:
    for kind in _ANSWERED:
        assert operations.load_of(kind.value) is OPERATIONS[f"load_{kind.value}"]
        suffix = "leaf" if kind in (Kind.TABLE, Kind.VIEW) else kind.value
        assert operations.grant_on(kind.value) is OPERATIONS[f"grant_on_{suffix}"]
        assert operations.own(kind.value) is OPERATIONS[f"own_{suffix}"]
        assert operations.read_access(kind.value) is OPERATIONS[f"read_access_to_{suffix}"]
    assert operations.load_of("role") is operations.LOAD_ROLE
    assert operations.own("role") is OPERATIONS["own_role"]


def test_what_is_usable_is_what_its_operation_allows_on_that_kind() -> None:
    held = Rights(
        True, allow(P.USE_CATALOG, P.CREATE_SCHEMA, P.SELECT_TABLE, P.RUN_JOB) | deny(P.USE_SCHEMA), frozenset()
    )
    assert policy.usable(held, Kind.CATALOG) == [P.USE_CATALOG, P.CREATE_SCHEMA, P.SELECT_TABLE]
    assert policy.usable(held, Kind.SCHEMA) == [], "below a schema that is denied nobody creates any"
    assert policy.usable(held, Kind.METALAKE) == [P.USE_CATALOG, P.CREATE_SCHEMA, P.SELECT_TABLE, P.RUN_JOB]
    assert policy.usable(replace(held, member=False), Kind.CATALOG) == []
    assert policy.usable(replace(held, owned=frozenset({"table", SELF}), mask=0), Kind.TABLE) == []


may_bootstrap = partial(policy.decide, operations.BOOTSTRAP_SCHEMA)


def test_who_may_bootstrap() -> None:
    held = Rights(True, allow(P.USE_CATALOG, P.BOOTSTRAP_NAMESPACE), frozenset())
    assert may_bootstrap(held, Kind.CATALOG) and policy.decide(operations.BOOTSTRAP_SCHEMA, held, Kind.SCHEMA)
    for denied in (P.CREATE_SCHEMA, P.USE_CATALOG, P.BOOTSTRAP_NAMESPACE):
        assert not policy.decide(
            operations.BOOTSTRAP_SCHEMA, replace(held, mask=held.mask | deny(denied)), Kind.CATALOG
        ), denied
    hidden = replace(held, mask=held.mask | deny(P.USE_SCHEMA))
    assert may_bootstrap(hidden, Kind.CATALOG) and not policy.decide(operations.BOOTSTRAP_SCHEMA, hidden, Kind.SCHEMA)


@pytest.mark.usefixtures("no_path")
def test_below_a_schema_that_is_denied_nobody_creates_any() -> None:
    asker = mia(allow(P.USE_CATALOG, P.CREATE_SCHEMA) | deny(P.USE_SCHEMA))
    assert policy.permits(asker, operations.CREATE_SCHEMA, CATALOG)
    assert not policy.permits(asker, operations.CREATE_SCHEMA, OUTER)
    policy.require(asker, operations.CREATE_SCHEMA, CATALOG)
    with pytest.raises(NotFound):
        policy.require(asker, operations.CREATE_SCHEMA, OUTER)


@pytest.mark.parametrize("line", [TOP, CATALOG, SCHEMA, TABLE, VIEW])
def test_who_may_grant(line: Line) -> None:
    getting_there = {ACME: allow(P.USE_CATALOG, P.USE_SCHEMA)}
    for place in (n.id for n in VIEW.nodes):
        held = {**getting_there, place: getting_there.get(place, 0) | allow(P.MANAGE_GRANTS)}
        above = place in [n.id for n in line.nodes]
        assert policy.may_grant(mia(grants={PILOTS: held}), line) is above, place


# What is seen, and how it is said

_ENTER = allow(P.USE_CATALOG)
_READ = _ENTER | allow(P.USE_SCHEMA)


@pytest.mark.usefixtures("no_path")
@pytest.mark.parametrize(
    ("line", "mask", "seen"),
    [
        (TOP, 0, True),
        (CATALOG, 0, False),
        (CATALOG, _ENTER, True),
        (SCHEMA, _ENTER, False),
        (SCHEMA, _READ, True),
        (TABLE, _READ, False),
        (TABLE, _READ | allow(P.MODIFY_TABLE), True),
        (TABLE, _READ | allow(P.DROP_VIEW), False),
        (VIEW, _READ, False),
        (VIEW, _READ | allow(P.DROP_VIEW), True),
        (VIEW, _READ | allow(P.SELECT_VIEW), True),
        (VIEW, _READ | allow(P.SELECT_TABLE), False),
        (VIEW, _ENTER | allow(P.DROP_VIEW), False),
        (PILOT_ROLE, 0, False),
        (PILOT_ROLE, allow(P.MANAGE_GRANTS), True),
    ],
)
def test_what_is_seen(line: Line, mask: int, seen: bool) -> None:
    assert policy.sees(mia(mask), line) is seen
    assert policy.sees(replace(mia(mask), id=99), line) is False, "no member sees anything"
    assert policy.sees(mia(), line, Rights(False, mask, frozenset())) is False
    assert policy.sees(mia(), line, Rights(True, mask, frozenset())) is seen


def test_the_holder_of_a_role_sees_it() -> None:
    holder = mia(user_roles={MIA: (ROLE,)})
    assert policy.sees(holder, PILOT_ROLE)
    policy.require_member(holder, TOP)
    with pytest.raises(Forbidden, match=r"^mia may not load role pilots\.$"):
        policy.require(holder, operations.LOAD_ROLE, PILOT_ROLE)


def test_a_schema_that_leads_on_is_seen_by_whoever_gets_into_the_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "is_path", lambda actor, lineage: lineage.nodes[-1].id == FLIGHTS)
    assert policy.sees(mia(_ENTER), OUTER)
    assert not policy.sees(mia(_ENTER), SCHEMA)
    assert not policy.sees(mia(), OUTER)
    monkeypatch.setattr(policy, "is_path", lambda actor, lineage: True)
    assert not policy.sees(mia(_READ), TABLE)
    assert not policy.sees(mia(), CATALOG)


@pytest.mark.usefixtures("no_path")
@pytest.mark.parametrize(
    ("line", "member", "mask", "message", "kind"),
    [
        (TOP, False, 0, "Metalake acme does not exist.", "metalake"),
        (TABLE, False, _READ, "Metalake acme does not exist.", "metalake"),
        (PILOT_ROLE, False, 0, "Metalake acme does not exist.", "metalake"),
        (PILOT_ROLE, True, 0, "Role pilots does not exist.", "role"),
        (CATALOG, True, 0, "Catalog lake does not exist.", "catalog"),
        (TABLE, True, 0, "Catalog lake does not exist.", "catalog"),
        (TABLE, True, _ENTER, "Schema lake.flights:europe does not exist.", "schema"),
        (SCHEMA, True, _ENTER, "Schema lake.flights:europe does not exist.", "schema"),
        (TABLE, True, _READ, "Table lake.flights:europe.departures does not exist.", "table"),
        (VIEW, True, _READ, "View lake.flights:europe.delays does not exist.", "view"),
    ],
)
def test_a_miss_is_told_of_the_first_thing_that_is_not_seen(
    line: Line, member: bool, mask: int, message: str, kind: str
) -> None:
    asker = mia(mask) if member else replace(mia(mask), id=99)
    operation = operations.own(line.nodes[-1].kind)
    with pytest.raises(NotFound) as miss:
        policy.require(asker, operation, line)
    assert (miss.value.message, miss.value.kind) == (message, kind)
    told = policy.unseen(asker, line)
    assert (told.message, told.kind) == (message, kind)


def test_an_outer_schema_is_no_step_of_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """`flights:europe` is one name: that `flights` alone is hidden does not hide what is below it."""
    asked: list[Lineage] = []

    def sees(actor: Actor, line: Lineage) -> bool:
        asked.append(line)
        return True

    monkeypatch.setattr(policy, "sees", sees)
    assert policy.unseen(mia(), TABLE).kind == "table"
    assert [(line.nodes[-1].id, list(line.full_name)) for line in asked] == [
        (ACME, ["acme"]),
        (LAKE, ["lake"]),
        (EUROPE, ["lake", "flights:europe"]),
    ]


_MOST = _READ | allow(P.SELECT_TABLE, P.SELECT_VIEW)


@pytest.mark.usefixtures("no_path")
@pytest.mark.parametrize(
    ("operation", "line", "said"),
    [
        (operations.ALTER_METALAKE, TOP, "alter metalake acme"),
        (operations.CREATE_CATALOG, TOP, "create catalog in metalake acme"),
        (OPERATIONS["own_catalog"], CATALOG, "set the owner of catalog lake"),
        (OPERATIONS["grant_on_catalog"], CATALOG, "grant on catalog lake"),
        (OPERATIONS["read_access_to_catalog"], CATALOG, "read who has access to catalog lake"),
        (operations.READ_ROLES, TOP, "read roles in metalake acme"),
        (operations.CREATE_TABLE, SCHEMA, "create table in schema lake.flights:europe"),
        (operations.DROP_SCHEMA, SCHEMA, "drop schema lake.flights:europe"),
        (operations.ALTER_TABLE, TABLE, "alter table lake.flights:europe.departures"),
        (operations.DROP_VIEW, VIEW, "drop view lake.flights:europe.delays"),
    ],
)
def test_a_refusal_says_who_may_not_do_what(operation: operations.Operation, line: Line, said: str) -> None:
    with pytest.raises(Forbidden) as refused:
        policy.require(mia(_MOST), operation, line)
    assert refused.value.message == f"mia may not {said}."
    assert refused.value.kind == line.nodes[-1].kind
