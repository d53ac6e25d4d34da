"""Laws that hold in every world, checked on the reference model."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from tests.authz.model import ALLOW, DENY, Grant, Party, World, allowed, answer, visible
from tests.authz.worlds import GRANTABLE_ON, Question, random_questions, random_world, with_grant, with_owner

RANK = {"unseen": 0, "forbidden": 1, "ok": 2}


def some_worlds(number: int) -> Iterator[tuple[random.Random, World, list[Question]]]:
    for seed in range(number):
        world = random_world(seed)
        yield random.Random(-seed - 1), world, random_questions(world, seed, 40)


def ranks(world: World, questions: list[Question]) -> list[int]:
    return [RANK[answer(world, *question)] for question in questions]


def random_grant(rng: random.Random, world: World, effect: str) -> Grant:
    role = rng.choice([obj.id for obj in world.objects.values() if obj.kind == "role"])
    metalake = world.objects[role].parent
    privilege = rng.choice(("use_catalog", "use_schema", "create_schema", "select_table", "manage_grants"))
    kinds = GRANTABLE_ON[privilege]
    places = [o for o in world.objects if world.kind(o) in kinds and world.lineage(o)[-1] == metalake]
    return Grant(role, privilege, effect, rng.choice(places))


def test_adding_allow_never_removes_access() -> None:
    for rng, world, questions in some_worlds(150):
        more = with_grant(world, random_grant(rng, world, ALLOW))
        assert all(a <= b for a, b in zip(ranks(world, questions), ranks(more, questions), strict=True))


def test_adding_ownership_never_removes_access() -> None:
    for rng, world, questions in some_worlds(150):
        user = rng.choice(list(world.users))
        more = with_owner(world, rng.choice(list(world.objects)), Party("user", user))
        asked = [question._replace(user=user) for question in questions]
        assert all(a <= b for a, b in zip(ranks(world, asked), ranks(more, asked), strict=True))


def test_adding_deny_never_adds_access() -> None:
    for rng, world, questions in some_worlds(150):
        less = with_grant(world, random_grant(rng, world, DENY))
        assert all(a >= b for a, b in zip(ranks(world, questions), ranks(less, questions), strict=True))


def test_order_of_grants_is_irrelevant() -> None:
    for rng, world, questions in some_worlds(60):
        shuffled = replace(world, grants=tuple(rng.sample(world.grants, len(world.grants))))
        assert ranks(world, questions) == ranks(shuffled, questions)


def test_dropping_a_role_equals_revoking_its_grants() -> None:
    for rng, world, questions in some_worlds(60):
        role = rng.choice([obj.id for obj in world.objects.values() if obj.kind == "role"])
        asked = [question for question in questions if question.obj is None or world.kind(question.obj) != "role"]
        revoked = replace(world, grants=tuple(g for g in world.grants if g.role != role))
        taken = replace(world, assignments=frozenset(a for a in world.assignments if a[0] != role))
        assert ranks(revoked, asked) == ranks(taken, asked)


def test_list_is_the_filter_of_load() -> None:
    paths = 0
    for _, world, _ in some_worlds(40):
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
    assert paths > 10


def test_look_alikes_share_no_grants() -> None:
    """A grant on one object changes what may be done to it and below it, and to nothing beside or above it."""
    for rng, world, questions in some_worlds(150):
        grant = random_grant(rng, world, rng.choice((ALLOW, DENY)))
        changed = with_grant(world, grant)
        for question in questions:
            if question.obj is None or world.kind(question.obj) == "role" or question.operation.startswith("list_"):
                continue
            if grant.obj not in world.lineage(question.obj):
                assert allowed(world, *question) == allowed(changed, *question)


def test_names_decide_nothing() -> None:
    for _, world, questions in some_worlds(40):
        nameless = replace(world, objects={id: replace(obj, name="") for id, obj in world.objects.items()})
        assert ranks(world, questions) == ranks(nameless, questions)
