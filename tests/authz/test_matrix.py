"""Every case of the matrix, on the evaluator and on the reference model; a sample of them through the database."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import pytest

from authz import policy
from authz.actor import Actor
from authz.operations import OPERATIONS
from authz.snapshot import Snapshot, mask_of
from metalake.errors import Forbidden, NotFound
from metalake.lineage import Lineage, Node
from tests.authz import matrix, model
from tests.authz.matrix import CLAIMED, LISTS, MAIN, MAKES_SCHEMAS, OWN, SECOND, STRANGERS, TEAM, Case, Key
from tests.authz.stored import Line, Stored

AT_LEAST = {"A": 4_900, "B": 2_000, "C": 1_550, "D": 10_700, "E": 6_800, "F": 4_500}
"""What each block has at the least, so that a generator that lost its cases is found."""

GOVERNOR, MIA, STRANGER, CREW, PARTNERS = 1, 2, 3, 11, 12
_ROLES = {OWN: 21, SECOND: 22, TEAM: 23, CLAIMED: 24, STRANGERS: 25}
_HOLDERS = {
    OWN: model.Party("user", MIA),
    SECOND: model.Party("user", MIA),
    TEAM: model.Party("group", CREW),
    CLAIMED: model.Party("group", PARTNERS),
    STRANGERS: model.Party("user", STRANGER),
}
_OWNERS = {"user": model.Party("user", MIA), TEAM: _HOLDERS[TEAM], CLAIMED: _HOLDERS[CLAIMED]}

_ids: dict[Key, int] = {}


def id_of(key: Key) -> int:
    """The same for the same object in every case; what was dropped has one too."""
    return _ids.setdefault(key, 100 + len(_ids))


def _objects() -> dict[int, model.Securable]:
    governor = model.Party("user", GOVERNOR)
    objects = {}
    for key in matrix.all_keys():
        above = id_of(key[:-1]) if len(key) > 1 else None
        objects[id_of(key)] = model.Securable(id_of(key), matrix.kind_of(key).value, key[-1], above, governor)
    for role, id in _ROLES.items():
        objects[id] = model.Securable(id, "role", role, id_of(MAIN[:1]), governor)
    return objects


OBJECTS = _objects()
USERS = {id: model.User(id, name) for id, name in ((GOVERNOR, "governor"), (MIA, "mia"), (STRANGER, "nils"))}
METALAKES = [obj.id for obj in OBJECTS.values() if obj.kind == "metalake"]
GROUPS = {
    CREW: model.Group(CREW, "crew", METALAKES[0], frozenset({MIA})),
    PARTNERS: model.Group(PARTNERS, "partners", METALAKES[0], frozenset({MIA})),
}


def world_of(case: Case) -> model.World:
    objects = OBJECTS
    if case.owner is not None:
        key, party = case.owner
        objects = {**objects, id_of(key): replace(OBJECTS[id_of(key)], owner=_OWNERS[party])}
    users = (GOVERNOR, STRANGER, *([MIA] if case.member else []))
    return model.World(
        users=USERS,
        groups=GROUPS,
        objects=objects,
        members=frozenset((metalake, user) for metalake in METALAKES for user in users),
        assignments=frozenset((_ROLES[role], party) for role, party in _HOLDERS.items()),
        grants=tuple(
            model.Grant(_ROLES[role], privilege.value, model.DENY if deny else model.ALLOW, id_of(at))
            for privilege, at, role, deny in case.grants
        ),
    )


def actor_of(world: model.World) -> Actor:
    """Mia, on a policy built by hand. That she is one of the partners only her token says."""
    grants: dict[int, dict[int, int]] = {}
    for grant in world.grants:
        of_role = grants.setdefault(grant.role, {})
        of_role[grant.obj] = of_role.get(grant.obj, 0) | mask_of(matrix.Privilege(grant.privilege), grant.effect)
    members = {metalake: frozenset(u for m, u in world.members if m == metalake) for metalake in METALAKES}
    direct = {user: tuple(sorted(r for r, p in world.assignments if p == ("user", user))) for user in USERS}
    stored = {group: tuple(sorted(r for r, p in world.assignments if p == ("group", group))) for group in GROUPS}
    held = Snapshot(
        epoch=1,
        stamp="x",
        members=members,
        user_roles=direct,
        user_groups={MIA: (CREW,)},
        group_roles=stored,
        grants=grants,
    )
    return Actor(MIA, "mia", held, claimed=(PARTNERS,))


def line_of(world: model.World, on: Key) -> Line:
    nodes = []
    for key in matrix.lineage(on):
        obj = world.objects[id_of(key)]
        by_user = obj.owner.kind == "user"
        nodes.append(Node(obj.id, obj.kind, obj.name, *((obj.owner.id, None) if by_user else (None, obj.owner.id))))
    return Line(tuple(nodes))


def ask(actor: Actor, case: Case, line: Lineage) -> str:
    """The evaluator's answer; lists and the making of schemas ask it as their services do."""
    row = OPERATIONS[case.operation]
    if row.name in LISTS:
        return "ok" if policy.sees(actor, line) else "unseen"
    if row.name in MAKES_SCHEMAS:
        if not policy.sees(actor, Line(tuple(line.nodes[:2]))):
            return "unseen"
        return "ok" if policy.permits(actor, row, line) else "forbidden"
    try:
        policy.require(actor, row, line)
    except Forbidden:
        return "forbidden"
    except NotFound:
        return "unseen"
    return "ok"


# What the model calls the same question: its operation, missing parents, and the privilege that is given.
_IN_THE_MODEL: dict[str, tuple[str, int, str]] = {
    **dict.fromkeys(("list_members", "list_roles", "list_job_templates", "list_jobs"), ("load_metalake", 0, "")),
    **dict.fromkeys(("read_roles", "assign_roles"), ("grant_privilege", 0, "create_catalog")),
    **dict.fromkeys(("move_table", "move_view"), ("set_owner", 0, "")),
    "test_connection": ("create_catalog", 0, ""),
    "list_child_schemas": ("list_schemas", 0, ""),
    "bootstrap_schema": ("create_schema", 1, ""),
}
_FAMILIES_IN_THE_MODEL = {
    "grant_on_": ("grant_privilege", 0, "use_schema"),
    "own_": ("set_owner", 0, ""),
    "read_access_to_": ("grant_privilege", 0, "use_schema"),
}


def in_the_model(operation: str) -> tuple[str, int, str]:
    for start, question in _FAMILIES_IN_THE_MODEL.items():
        if operation.startswith(start):
            return question
    return _IN_THE_MODEL.get(operation, (operation, 0, ""))


@cache
def cases(block: str) -> list[Case]:
    return matrix.cases(block)


def said_by_the_model(world: model.World, case: Case) -> str:
    operation, missing, privilege = in_the_model(case.operation)
    return model.answer(world, MIA, operation, id_of(case.on), missing, privilege)


@pytest.mark.parametrize("block", matrix.BLOCKS)
def test_block(block: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a schema leads on to another is read from the database, so here from the case; the sample asks there."""
    leads_on = [False]
    monkeypatch.setattr(policy, "is_path", lambda actor, lineage: leads_on[0])
    wrong = []
    for case in cases(block):
        leads_on[0] = case.leads_on
        world = world_of(case)
        said, found = said_by_the_model(world, case), ask(actor_of(world), case, line_of(world, case.on))
        if not said == found == case.answer:
            wrong.append(f"made {case.answer}, evaluator {found}, model {said}: {case}")
    assert not wrong, "\n".join([f"{len(wrong)} of {len(cases(block))} cases of block {block}", *wrong[:5]])


@pytest.mark.store
@pytest.mark.django_db
@pytest.mark.parametrize("block", "CDEF")
def test_a_sample_through_the_database(block: str) -> None:
    chosen = [case for case in cases(block)[::19] if not any(map(matrix.is_gone, _places(case)))]
    chosen += [case for case in cases(block) if case.leads_on][::7]
    stored = Stored([_cut(world_of(case), case) for case in chosen])
    wrong = []
    for place, case in enumerate(chosen):
        found = ask(stored.actor(place, MIA), case, stored.line(place, id_of(case.on)))
        if found != case.answer:
            wrong.append(f"made {case.answer}, found {found}: {case}")
    assert not wrong, "\n".join([f"{len(wrong)} of {len(chosen)}", *wrong[:5]])
    assert len(chosen) > 80


def _places(case: Case) -> list[Key]:
    return [case.on, *(grant.at for grant in case.grants), *([case.owner[0]] if case.owner else [])]


def _cut(world: model.World, case: Case) -> model.World:
    """Only what the case is about, so that many fit into one database."""
    kept = {id_of(MAIN[:1]), *_ROLES.values()} | {
        id_of(key) for place in _places(case) for key in matrix.lineage(place)
    }
    return replace(
        world,
        objects={id: obj for id, obj in world.objects.items() if id in kept},
        members=frozenset((metalake, user) for metalake, user in world.members if metalake in kept),
    )


# The matrix itself


def test_the_matrix_is_whole() -> None:
    counts = {block: len(cases(block)) for block in matrix.BLOCKS}
    assert all(counts[block] >= least for block, least in AT_LEAST.items()), counts
    assert sum(counts.values()) >= 10_800, counts


def test_every_row_has_its_cases_in_every_block() -> None:
    by_privilege = {name for name, row in OPERATIONS.items() if any(matrix.full_sets(row))}
    for block in matrix.BLOCKS:
        asked = {case.operation for case in cases(block)}
        assert asked >= (set(OPERATIONS) if block in "AEF" else by_privilege), block


# Whoever sees the object may do these.
_AS_SEEN = LISTS | {"load_metalake", "load_catalog", "load_table", "load_role", "list_members", "list_roles"}
_AS_SEEN |= {"load_job_template", "list_job_templates", "list_jobs"}


def test_every_row_is_allowed_and_refused_on_every_kind() -> None:
    answers: dict[tuple[str, str], Counter[str]] = {}
    for block in matrix.BLOCKS:
        for case in cases(block):
            answers.setdefault((case.operation, matrix.kind_of(case.on)), Counter())[case.answer] += 1
    assert len(answers) == len(list(matrix.asks()))
    for (operation, kind), counted in answers.items():
        assert counted["ok"] > 5 and counted["unseen"] > 2, (operation, kind, counted)
        assert (counted["forbidden"] > 2) is (operation not in _AS_SEEN), (operation, kind, counted)
