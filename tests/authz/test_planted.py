"""The generator has teeth: each planted mistake shows within 300 worlds."""

from __future__ import annotations

from functools import cache

import pytest

from tests.authz.model import World, allowed
from tests.authz.planted import PLANTED, Evaluator
from tests.authz.worlds import Question, random_questions, random_world

WORLDS = 300


@cache
def answered(seed: int) -> tuple[World, list[tuple[Question, bool]]]:
    world = random_world(seed)
    return world, [(question, allowed(world, *question)) for question in random_questions(world, seed, 50)]


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
    assert first_world_against(allowed) is None
