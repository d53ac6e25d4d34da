"""Laws that hold in every world, checked on the reference model and on the evaluator that decides."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple
from urllib.parse import quote

import pytest

from authz import operations, policy, snapshot
from authz.callers.identity import actor_of
from authz.models import Grant as StoredGrant
from authz.models import User as StoredUser
from authz.objects import find_object
from authz.services import grants, owners, people, roles
from catalogs.services import schemas, tables
from metalake.kinds import Kind
from metalake.lineage import Address
from metalake.models import Securable
from tests.authz.model import ALLOW, DENY, Actor, Grant, Party, World, allowed, answer, visible
from tests.authz.small_world import PASSWORD, kind_at
from tests.authz.small_world import World as SmallWorld
from tests.authz.stored import Stored, clear
from tests.authz.test_policy import ask, supported
from tests.authz.worlds import GRANTABLE_ON, Question, random_questions, random_world, with_grant, with_owner
from tests.catalogs.callers import Caller as NativeCaller
from tests.iceberg_rest.world import Caller as IcebergCaller
from tests.iceberg_rest.world import basic
from tests.profiles import share

RANK = {"unseen": 0, "forbidden": 1, "ok": 2, None: 0}  # None: what a service decides, on both sides of a law

Ranks = Callable[[World, Sequence[Question]], list[int]]


class Decider(NamedTuple):
    """Who answers, and of how many worlds a law is asked; the evaluator's have to be stored."""

    ranks: Ranks
    share: float

    def some_worlds(self, number: int) -> Iterator[tuple[random.Random, World, list[Question]]]:
        for seed in range(share(number * self.share)):
            world = random_world(seed)
            yield random.Random(-seed - 1), world, random_questions(world, seed, 40)


def by_model(world: World, questions: Sequence[Question]) -> list[int]:
    return [RANK[answer(world, *question)] for question in questions]


def by_evaluator(world: World, questions: Sequence[Question]) -> list[int]:
    stored = Stored([world])
    try:
        return [RANK[ask(stored, 0, question)] if supported(world, question) else 0 for question in questions]
    finally:
        clear()


@pytest.fixture(params=["model", pytest.param("evaluator", marks=[pytest.mark.store, pytest.mark.django_db])])
def by(request: pytest.FixtureRequest) -> Decider:
    if request.param == "model":
        return Decider(by_model, 1)
    request.getfixturevalue("db")
    return Decider(by_evaluator, 0.1)


def random_grant(rng: random.Random, world: World, effect: str) -> Grant:
    """One that no role holds yet, not even with the other effect."""
    taken = {(grant.role, grant.privilege, grant.obj) for grant in world.grants}
    roles = [obj for obj in world.objects.values() if obj.kind == "role"]
    free = [
        Grant(role.id, privilege, effect, obj)
        for role in roles
        for obj in world.objects
        if world.lineage(obj)[-1] == role.parent
        for privilege in ("use_catalog", "use_schema", "create_schema", "select_table", "manage_grants")
        if world.kind(obj) in GRANTABLE_ON[privilege] and (role.id, privilege, obj) not in taken
    ]
    return rng.choice(free)


def test_adding_allow_never_removes_access(by: Decider) -> None:
    for rng, world, questions in by.some_worlds(150):
        more = with_grant(world, random_grant(rng, world, ALLOW))
        assert all(a <= b for a, b in zip(by.ranks(world, questions), by.ranks(more, questions), strict=True))


def test_adding_ownership_never_removes_access(by: Decider) -> None:
    for rng, world, questions in by.some_worlds(150):
        user = rng.choice(list(world.users))
        more = with_owner(world, rng.choice(list(world.objects)), Party("user", user))
        asked = [question._replace(user=user) for question in questions]
        assert all(a <= b for a, b in zip(by.ranks(world, asked), by.ranks(more, asked), strict=True))


def test_adding_deny_never_adds_access(by: Decider) -> None:
    for rng, world, questions in by.some_worlds(150):
        less = with_grant(world, random_grant(rng, world, DENY))
        assert all(a >= b for a, b in zip(by.ranks(world, questions), by.ranks(less, questions), strict=True))


def test_order_of_grants_is_irrelevant(by: Decider) -> None:
    for rng, world, questions in by.some_worlds(60):
        shuffled = replace(world, grants=tuple(rng.sample(world.grants, len(world.grants))))
        assert by.ranks(world, questions) == by.ranks(shuffled, questions)


def test_dropping_a_role_equals_revoking_its_grants(by: Decider) -> None:
    for rng, world, questions in by.some_worlds(60):
        role = rng.choice([obj.id for obj in world.objects.values() if obj.kind == "role"])
        asked = [question for question in questions if question.obj is None or world.kind(question.obj) != "role"]
        revoked = replace(world, grants=tuple(g for g in world.grants if g.role != role))
        taken = replace(world, assignments=frozenset(a for a in world.assignments if a[0] != role))
        assert by.ranks(revoked, asked) == by.ranks(taken, asked)


def test_list_is_the_filter_of_load() -> None:
    paths = 0
    for _, world, _ in Decider(by_model, 1).some_worlds(40):
        for user in world.users:
            loadable = {obj for obj in world.objects if allowed(world, user, f"load_{world.kind(obj)}", obj)}
            droppable = {o for o in world.objects if world.kind(o) == "view" and allowed(world, user, "drop_view", o)}
            known = {above for obj in loadable | droppable for above in world.lineage(obj)}
            for container in (None, *world.objects):
                shown: dict[int, str] = {}
                for kind in ("metalake", "catalog", "schema", "table", "view", "role"):
                    shown |= visible(world, user, container, kind)
                children = set(world.children.get(container, ()))
                assert {obj for obj, how in shown.items() if how == "full"} == children & loadable
                assert set(shown) == children & known
                assert container is None or not shown or container in known
                paths += "path" in shown.values()
    assert paths > share(10)


def test_look_alikes_share_no_grants(by: Decider) -> None:
    """A grant on one object changes what may be done to it and below it, and to nothing beside or above it."""
    for rng, world, questions in by.some_worlds(150):
        grant = random_grant(rng, world, rng.choice((ALLOW, DENY)))
        changed = with_grant(world, grant)
        asked = [
            question
            for question in questions
            if question.obj is not None
            and world.kind(question.obj) != "role"
            and not question.operation.startswith("list_")
            and grant.obj not in world.lineage(question.obj)
        ]
        ok = [[rank == RANK["ok"] for rank in by.ranks(some, asked)] for some in (world, changed)]
        assert ok[0] == ok[1]


def test_names_decide_nothing(by: Decider) -> None:
    for _, world, questions in by.some_worlds(40):
        renamed = replace(world, objects={id: replace(obj, name=str(id)) for id, obj in world.objects.items()})
        assert by.ranks(world, questions) == by.ranks(renamed, questions)


# Laws of what comes and goes, and of lists, through the services and the wires.

READS = ("use_catalog@acme", "use_schema@acme")
A, AB, T = "lake.A", "lake.A:B", "lake.A:B.t"


def may(world: SmallWorld, user: str, operation: operations.Operation, full_name: str) -> bool:
    found = find_object("acme", kind_at(full_name), full_name)
    return policy.permits(world.actor(user), operation, found)


def loads(world: SmallWorld, user: str, full_name: str) -> bool:
    return may(world, user, operations.load_of(kind_at(full_name)), full_name)


@pytest.mark.store
@pytest.mark.parametrize(
    "times", [100, pytest.param(100, id="long", marks=[pytest.mark.long, pytest.mark.timeout(600)])]
)
def test_what_is_made_anew_inherits_nothing(world: SmallWorld, times: int) -> None:
    """Dropped and made again as often as an id or a grant could come back; every way to hold it is tried in turn."""
    role = world.give("mia", *READS)
    world.group("sailors", "mia")
    ident = Address(metalake="acme", catalog="lake", schema=["A", "X"])
    for number in range(share(times)):
        schemas.create_schema(world.olga, ident, None, {})
        assert not may(world, "mia", operations.CREATE_TABLE, "lake.A:X")
        if number % 3 == 0:
            grants.grant_privileges(
                world.olga, "acme", role, Kind.SCHEMA, "lake.A:X", [("create_table", "allow"), ("use_schema", "deny")]
            )
            assert not loads(world, "mia", "lake.A:X")
        else:
            owner = ("mia", "user") if number % 3 == 1 else ("sailors", "group")
            owners.set_owner(world.olga, "acme", Kind.SCHEMA, "lake.A:X", *owner)
            assert may(world, "mia", operations.DROP_SCHEMA, "lake.A:X")
        schemas.drop_schema(world.olga, ident)
    schemas.create_schema(world.olga, ident, None, {})
    assert loads(world, "mia", "lake.A:X")
    assert not StoredGrant.objects.filter(permission__codename="create_table").exists()


@pytest.mark.store
@pytest.mark.django_db
def test_dropping_a_role_is_what_revoking_all_of_it_is() -> None:
    """The same world twice: in one its owner drops a role, in the other takes away all that the role holds."""
    same = 0
    for seed in range(share(30)):
        world = random_world(seed, strays=False)
        role = random.Random(seed).choice([obj for obj in world.objects.values() if obj.kind == "role"])
        top = world.objects[role.parent or 0]
        holders = [u for u in world.users if Actor(world, u).is_member(top.id) and Actor(world, u).owns(top.id)]
        stored = Stored([world, world])
        snapshot.forget()
        if holders:
            actors = [actor_of(StoredUser.objects.get(pk=stored.id(place, holders[0]))) for place in (0, 1)]
            roles.drop_role(actors[0], f"0{top.name}", role.name)
            grants.override_role(actors[1], f"1{top.name}", role.name, [])
            stored.policy = snapshot.latest()
            questions = [question for question in random_questions(world, seed, 40) if supported(world, question)]
            answers = [[ask(stored, place, question) for question in questions] for place in (0, 1)]
            assert answers[0] == answers[1]
            same += len(questions)
        clear()
    assert same > share(400)


@pytest.mark.store
def test_a_role_made_anew_inherits_nothing(world: SmallWorld) -> None:
    role = world.give("mia", *READS, f"select_table@{T}")
    assert loads(world, "mia", T)
    roles.drop_role(world.olga, "acme", role)
    assert not loads(world, "mia", T)
    roles.create_role(world.olga, "acme", role)
    assert not loads(world, "mia", T)
    assert world.role(role) == {}
    for reads in READS:
        privilege, _, where = reads.partition("@")
        grants.grant_privileges(world.olga, "acme", role, kind_at(where), where, [(privilege, "allow")])
    assert not loads(world, "mia", A), "its former holder does not hold it"


@pytest.mark.store
def test_a_user_added_again_inherits_nothing(world: SmallWorld) -> None:
    world.give("mia", *READS, f"select_table@{T}")
    world.group("sailors", "mia")
    for row in (world.a, world.t):
        world.own("mia", row)
    owners.set_owner(world.olga, "acme", Kind.SCHEMA, AB, "sailors", "group")
    assert may(world, "mia", operations.DROP_TABLE, T)
    people.remove_user(world.olga, "acme", "mia")
    people.add_user(world.olga, "acme", "mia")
    assert not any(loads(world, "mia", name) for name in ("lake", A, AB, T))
    world.give("mia", *READS)
    assert not may(world, "mia", operations.ALTER_SCHEMA, A)
    assert not may(world, "mia", operations.ALTER_SCHEMA, AB), "she is in no group"
    assert not loads(world, "mia", T)


@pytest.mark.store
def test_a_group_made_anew_inherits_nothing(world: SmallWorld) -> None:
    role = world.give("olga", f"select_table@{T}")
    world.give("mia", *READS)
    world.group("sailors", "mia")
    roles.assign_roles(world.olga, "acme", "group", "sailors", [role])
    owners.set_owner(world.olga, "acme", Kind.SCHEMA, A, "sailors", "group")
    assert loads(world, "mia", T)
    people.remove_group(world.olga, "acme", "sailors")
    assert not loads(world, "mia", T)
    world.group("sailors")
    assert people.get_group(world.olga, "acme", "sailors").users == []
    people.set_group_users(world.olga, "acme", "sailors", add=["mia"])
    assert not loads(world, "mia", T)
    assert not may(world, "mia", operations.ALTER_SCHEMA, A)


@pytest.mark.store
def test_what_leavers_owned_is_the_metalake_owners(world: SmallWorld) -> None:
    """Of a user and of a group, at every level; what others own stays theirs."""
    world.group("sailors", "nils")
    roles.create_role(world.olga, "acme", "readers")
    handed = {Kind.CATALOG: "files", Kind.SCHEMA: AB, Kind.TABLE: T, Kind.ROLE: "readers"}
    owners.set_owner(world.olga, "acme", Kind.SCHEMA, A, "nils", "user")
    for name, type_, leave in (("mia", "user", people.remove_user), ("sailors", "group", people.remove_group)):
        for kind, full_name in handed.items():
            owners.set_owner(world.olga, "acme", kind, full_name, name, type_)
        assert leave(world.olga, "acme", name)
        owned = [owners.get_owner(world.olga, "acme", kind, full_name).name for kind, full_name in handed.items()]
        assert owned == ["olga"] * len(handed)
        assert owners.get_owner(world.olga, "acme", Kind.SCHEMA, A).name == "nils"


@pytest.mark.store
def test_renaming_keeps_grants(world: SmallWorld) -> None:
    """They follow the object, and a namesake that takes the old name gets none."""
    world.give("mia", *READS, f"select_table@{T}")
    world.give("nils", *READS, "create_schema@lake")
    here, home = (
        Address(metalake="acme", catalog="lake", schema=["A", "B"]),
        Address(metalake="acme", catalog="lake", schema=["A"]),
    )
    tables.rename_table(world.olga, replace(here, leaf="t"), replace(here, leaf="u"))
    world.table("t")
    assert (loads(world, "mia", "lake.A:B.u"), loads(world, "mia", T)) == (True, False)
    tables.rename_table(world.olga, replace(here, leaf="u"), replace(home, leaf="t"))
    world.table("u")
    assert (loads(world, "mia", "lake.A.t"), loads(world, "mia", "lake.A:B.u")) == (True, False)
    Securable.objects.filter(pk=world.lake.pk).update(name="sea")
    assert may(world, "nils", operations.CREATE_SCHEMA, "sea")
    assert loads(world, "mia", "sea.A.t")


@pytest.mark.store(once=True)
@pytest.mark.parametrize("seed", range(2))
def test_lists_are_the_filter_of_checks(world: SmallWorld, seed: int) -> None:
    """On both wires, and by pages of any size where they page; without one, nobody pages."""
    rng = random.Random(seed)
    names = [f"{letter}{number}" for letter in ("A", "a", "AB") for number in range(18)]
    for name in names:
        below = world.schema(name, world.a)
        world.schema("deep", below)
        world.table(name)
    some = partial(rng.sample, names)
    reads = ("use_catalog@lake", f"use_schema@{AB}")
    world.give("mia", *reads, f"use_schema@{A}", *(f"deny use_schema@{A}:{name}" for name in some(9)))
    world.give("mia", "select_table@acme", *(f"deny select_table@{AB}.{name}" for name in some(30)))
    world.give("mia", *(f"modify_table@{AB}.{name}" for name in some(5)))
    world.give("nils", *reads, *(f"use_schema@{A}:{name}" for name in some(9)))
    world.give("nils", *(f"use_schema@{A}:{name}:deep" for name in some(9)))
    world.give("nils", *(f"select_table@{AB}.{name}" for name in some(9)))
    owned = Securable.objects.filter(parent_id=world.ab.pk, name__in=some(5))
    owned.update(owner_user=world.users["nils"])
    for user in ("olga", "mia", "nils"):
        actor = world.actor(user)
        shown = [name for name in ("B", *names) if policy.sees(actor, find_object("acme", Kind.SCHEMA, f"{A}:{name}"))]
        assert _listed(user, "schemas?parentSchema=A") == sorted(f"A:{name}" for name in shown)
        loaded = [name for name in ("t", *names) if loads(world, user, f"{AB}.{name}")]
        assert _listed(user, "schemas/A%3AB/tables") == sorted(loaded)
        for size in (None, 1, 2, 5, 16, 53, 100):
            assert _walked(user, "namespaces?parent=A", size) == sorted(["A", name] for name in shown), size
            assert _walked(user, "namespaces/A%1FB/tables?", size) == sorted(loaded), size
        hides = len(names) + 1 - min(len(shown), len(loaded))
        assert min(len(shown), len(loaded)) > 5
        assert hides > 5 or user == "olga"


def _listed(user: str, path: str) -> list[str]:
    answer = NativeCaller(user, PASSWORD).get(f"metalakes/acme/catalogs/lake/{path}")
    return [identifier["name"] for identifier in answer["identifiers"]]


def _walked(user: str, path: str, size: int | None) -> list:
    """The names on all pages, none of which holds more than was asked for."""
    caller = IcebergCaller(user, "acme", headers={"HTTP_AUTHORIZATION": basic(user, PASSWORD)})
    found: list = []
    token: str | None = ""
    while token is not None:
        paging = "" if size is None else f"&pageSize={size}&pageToken={quote(token)}"
        body = caller.get(f"{path}{paging}").json
        page = body.get("namespaces") or [identifier["name"] for identifier in body.get("identifiers", ())]
        assert size is None or 0 < len(page) <= size
        found += page
        token = body["next-page-token"]
    return found
