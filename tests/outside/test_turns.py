"""Catalogs are swept beside each other: a system that hangs holds up the writes to no other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from catalogs.models import Catalog, Intent
from outside import recovery, steps
from tests.outside.crashes import killed_at, lapse, settle_all
from tests.outside.writes import Bench
from tests.waiting import eventually

pytestmark = [pytest.mark.store, pytest.mark.django_db(transaction=True)]


class Hanging:
    """The system of `deep`: nobody learns what became of a call until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked, self.let_go = threading.Event(), threading.Event()
        real, deep = steps.outcomes.outcome_of, Catalog.objects.get(name="deep").pk

        def look(provider: Any, *told: Any) -> Any:
            if provider.catalog_id == deep:
                self.asked.set()
                assert self.let_go.wait(60)
            return real(provider, *told)

        monkeypatch.setattr(steps.outcomes, "outcome_of", look)


@pytest.fixture
def hanging(benches: dict[str, Bench], monkeypatch: pytest.MonkeyPatch) -> Iterator[Hanging]:
    """Its sweep is not waited for."""
    monkeypatch.setattr(recovery, "ROUND", 0.1)
    held = Hanging(monkeypatch)
    yield held
    held.let_go.set()
    assert eventually(lambda: not recovery._swept)


def state_of(intent: Intent) -> str:
    return Intent.objects.get(pk=intent.pk).state


def test_one_that_hangs_holds_up_no_other(benches: dict[str, Bench], hanging: Hanging) -> None:
    stuck = [killed_at("after 0", partial(benches["deep"].make_schema, name)) for name in ("sales", "hangars", "crews")]
    first = killed_at("after 0", lambda: benches["flat"].make_schema("sales"))
    lapse()
    recovery.sweep()
    assert eventually(lambda: state_of(first) == "committed")
    assert hanging.asked.wait(60)
    second = killed_at("after 0", lambda: benches["flat"].make_schema("flights"))
    recovery.sweep()
    assert eventually(lambda: state_of(second) == "committed")
    assert {state_of(intent) for intent in stuck} == {"open"}
    hanging.let_go.set()
    assert eventually(lambda: not recovery._swept)
    settle_all()
    assert {state_of(intent) for intent in stuck} == {"committed"}


def test_a_catalog_has_one_sweeper_at_a_time(benches: dict[str, Bench], hanging: Hanging) -> None:
    for name in ("sales", "flights"):
        killed_at("after 0", partial(benches["deep"].make_schema, name))
    lapse()
    recovery.sweep()
    assert hanging.asked.wait(60)
    fences = list(Intent.objects.order_by("pk").values_list("fence", flat=True))
    lapse()
    recovery.sweep()
    assert list(Intent.objects.order_by("pk").values_list("fence", flat=True)) == fences


def test_who_is_slow_leaves_its_place(benches: dict[str, Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    """After its turn, whatever is left of it: the next round goes on."""
    monkeypatch.setattr(recovery, "TURN", -1.0)
    killed_at("after 0", lambda: benches["deep"].make_schema("sales"))
    assert recovery.sweep() == 0
    monkeypatch.undo()
    assert recovery.sweep() == 1
