"""The generator has teeth: each planted mistake shows within 300 worlds."""

from __future__ import annotations

from functools import cache

import pytest

import tests.authz.planted_requests  # noqa: F401 (plants more)
from tests.authz.model import Actor, World
from tests.authz.planted import PLANTED, Evaluator, evaluator
from tests.authz.worlds import Question, random_questions, random_world

WORLDS = 300


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


@pytest.mark.parametrize("mistake", PLANTED)
def test_mistake_is_found(mistake: str) -> None:
    assert first_world_against(PLANTED[mistake]) is not None


def test_an_evaluator_without_mistake_is_not_accused() -> None:
    assert first_world_against(right_answer) is None
