"""The generator has teeth: each planted mistake shows within half of the worlds of every day."""

from __future__ import annotations

from functools import cache

import pytest

import tests.authz.planted_requests  # noqa: F401 (plants more)
from tests.authz.model import Actor, World
from tests.authz.planted import PLANTED, Evaluator, evaluator
from tests.authz.test_policy import WORLDS as NAMED
from tests.authz.worlds import Question, random_questions, random_world
from tests.profiles import PROFILES

pytestmark = pytest.mark.long

WORLDS = round(NAMED * PROFILES["everyday"].share) // 2
right_answer = evaluator(Actor)


@cache
def answered(seed: int) -> tuple[World, list[tuple[Question, str]]]:
    world = random_world(seed)
    return world, [(question, right_answer(world, *question)) for question in random_questions(world, seed, 50)]


def first_world_against(evaluate: Evaluator) -> int | None:
    for seed in range(WORLDS):
        world, questions = answered(seed)
        if any(evaluate(world, *question) != right for question, right in questions):
            return seed
    return None


def test_each_mistake_is_found() -> None:
    assert [name for name, mistaken in PLANTED.items() if first_world_against(mistaken) is None] == []


def test_an_evaluator_without_mistake_is_not_accused() -> None:
    assert first_world_against(right_answer) is None
