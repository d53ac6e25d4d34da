"""Calls to an outside system: their deadline, retries, and places for the waiting."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import override_settings

from metalake.errors import (
    Conflict,
    MetalakeError,
    NotFound,
    OutcomeUnknown,
    ProviderBusy,
    ProviderTimeout,
    ProviderUnavailable,
)
from providers import circuit_breaker, remote
from providers.circuit_breaker import Line
from tests.providers.network.calls import CATALOG, Provider, ask, down, occupy
from tests.waiting import eventually

# Deadline


def test_a_read_that_does_not_answer_is_given_up(line: Line) -> None:
    gate = threading.Event()
    started = time.monotonic()
    with pytest.raises(ProviderTimeout, match="did not answer in time"):
        ask(Provider(gate.wait), total=0.1)
    assert 0.1 <= time.monotonic() - started < 30
    gate.set()


def test_a_write_that_does_not_answer_may_have_happened(line: Line) -> None:
    gate = threading.Event()
    provider = Provider(gate.wait)
    with pytest.raises(OutcomeUnknown):
        ask(provider, "create_table", total=0.1)
    gate.set()
    assert provider.calls == 1


def test_the_deadline_is_for_all_tries_together(line: Line, clock: SimpleNamespace) -> None:
    def slow() -> None:
        clock.now += 12.0
        raise down()

    provider = Provider(slow, slow, slow)
    with pytest.raises(ProviderUnavailable):
        ask(provider, total=20.0)
    assert provider.calls == 2


def test_no_pause_outlasts_the_deadline(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote.random, "uniform", lambda low, high: high)
    provider = Provider(down(), down(), down())
    with pytest.raises(ProviderUnavailable):
        ask(provider, total=0.3)
    assert provider.calls == 1


# Retries


def test_a_read_is_tried_three_times(line: Line) -> None:
    provider = Provider(down(), down())
    assert ask(provider) == "answer"
    assert provider.calls == 3
    failing = Provider(*[down()] * 9)
    with pytest.raises(ProviderUnavailable):
        ask(failing)
    assert failing.calls == 3


@pytest.mark.parametrize("verb", sorted(remote.READS))
def test_every_read_is_tried_again(verb: str, line: Line) -> None:
    provider = Provider(down())
    assert ask(provider, verb) == "answer"
    assert provider.calls == 2


@pytest.mark.parametrize("verb", ["create_schema", "alter_table", "drop_table", "rename_table", "commit_table"])
@pytest.mark.parametrize("failure", [down(), ProviderBusy("Throttled."), OutcomeUnknown("Lost.")])
def test_a_write_is_tried_once(verb: str, failure: MetalakeError, line: Line) -> None:
    provider = Provider(failure)
    with pytest.raises(type(failure)):
        ask(provider, verb)
    assert provider.calls == 1


@pytest.mark.parametrize("failure", [down(retryable=False), NotFound("No."), Conflict("Stale."), KeyError("bug")])
def test_what_trying_again_does_not_help_is_tried_once(failure: Exception, line: Line) -> None:
    provider = Provider(failure)
    with pytest.raises(type(failure)):
        ask(provider)
    assert provider.calls == 1


def test_a_write_whose_answer_is_not_understood_may_have_happened(line: Line) -> None:
    with pytest.raises(OutcomeUnknown, match="not understood") as told:
        ask(Provider(KeyError("secret-in-the-answer")), "create_table")
    assert "secret" not in told.value.message


def test_the_pauses_jitter_and_grow(line: Line, clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    spans: list[tuple[float, float]] = []

    def longest(low: float, high: float) -> float:
        spans.append((low, high))
        return high

    monkeypatch.setattr(remote.random, "uniform", longest)
    ask(Provider(down(), down()))
    ask(Provider(ProviderBusy("Throttled."), ProviderBusy("Throttled.")))
    assert spans == [(0, 0.4), (0, 0.8), (0, 2.0), (0, 4.0)]
    assert clock.slept == [0.4, 0.8, 2.0, 4.0]


def test_what_a_throttling_system_asks_for_is_obeyed(line: Line, clock: SimpleNamespace) -> None:
    soon, later = ProviderBusy("Throttled."), ProviderBusy("Throttled.")
    soon.retry_after, later.retry_after = 1, 60
    provider = Provider(soon, later)
    with pytest.raises(ProviderBusy) as told:
        ask(provider)
    assert clock.slept == [1]
    assert (provider.calls, told.value.retry_after) == (2, 60)


# Places


@pytest.mark.parametrize(("threads", "places"), [(8, 4), (2, 1), (1, 1), (64, 16)])
def test_one_system_has_half_of_the_threads_and_sixteen_at_most(
    threads: int, places: int, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(circuit_breaker, "SLOW", 60.0)
    gate = threading.Event()
    provider = Provider(*[gate.wait] * places)
    with override_settings(METALAKE_THREADS=threads):
        waiters = occupy(places, provider)
        assert eventually(lambda: provider.calls == places)
        with pytest.raises(ProviderBusy, match="others wait for it") as told:
            ask(provider)
        assert told.value.retry_after == 1
        gate.set()
        for waiter in waiters:
            waiter.join()
        assert ask(provider) == "answer"


@override_settings(METALAKE_THREADS=2)
def test_a_call_waits_for_its_place_while_others_get_answers(line: Line) -> None:
    gate = threading.Event()
    waiters = occupy(1, Provider(gate.wait))
    assert eventually(lambda: len(line.waiting) == 1)
    answers: list[Any] = []
    late = threading.Thread(target=lambda: answers.append(ask(Provider())))
    late.start()
    time.sleep(0.05)
    assert not answers
    gate.set()
    late.join()
    assert answers == ["answer"]
    for waiter in waiters:
        waiter.join()


@override_settings(METALAKE_THREADS=2)
def test_nobody_waits_for_the_place_of_a_call_to_a_system_that_fails(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(circuit_breaker, "PATIENCE", 30.0)
    with pytest.raises(ProviderUnavailable):
        ask(Provider(down()), "create_table")
    gate = threading.Event()
    waiters = occupy(1, Provider(gate.wait))
    assert eventually(lambda: len(line.waiting) == 1)
    started = time.monotonic()
    with pytest.raises(ProviderBusy, match="others wait for it"):
        ask(Provider())
    assert time.monotonic() - started < 15
    gate.set()
    for waiter in waiters:
        waiter.join()


@pytest.mark.parametrize(("threads", "places"), [(8, 2), (16, 4), (2, 1)])
def test_slow_calls_hold_a_quarter_of_the_threads(
    threads: int, places: int, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(circuit_breaker, "SLOW", 0.05)
    gate = threading.Event()
    provider = Provider(*[gate.wait] * places)
    with override_settings(METALAKE_THREADS=threads):
        waiters = occupy(places, provider)
        assert eventually(lambda: provider.calls == places)
        time.sleep(0.1)
        with pytest.raises(ProviderBusy, match="answers slowly"):
            ask(provider)
        other = Provider()
        other.catalog_id = CATALOG + 1
        assert ask(other) == "answer", "another catalog waits for it"
        gate.set()
        for waiter in waiters:
            waiter.join()
        assert ask(provider) == "answer"


@override_settings(METALAKE_THREADS=8)
def test_all_systems_together_hold_three_quarters_of_the_threads(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(circuit_breaker, "SLOW", 60.0)
    gate = threading.Event()
    waiters = []
    for number in (1, 2):
        silent = Provider(*[gate.wait] * 3)
        silent.catalog_id = CATALOG + number
        waiters += occupy(3, silent)
    assert eventually(lambda: Line.threads_in_use == 6)
    with pytest.raises(ProviderBusy, match="Other systems answer slowly"):
        ask(Provider())
    gate.set()
    for waiter in waiters:
        waiter.join()
    assert ask(Provider()) == "answer"
    assert Line.threads_in_use == 0


@override_settings(METALAKE_THREADS=8)
def test_the_last_threads_wait_for_no_place(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(circuit_breaker, "SLOW", 60.0)
    monkeypatch.setattr(circuit_breaker, "PATIENCE", 60.0)
    gate = threading.Event()
    silent = Provider(*[gate.wait] * 4)
    waiters = occupy(4, silent)
    assert eventually(lambda: len(line.waiting) == 4)
    waiters += occupy(2, Provider())
    assert eventually(lambda: Line.threads_in_use == 6)
    with pytest.raises(ProviderBusy, match="others wait for it"):
        ask(Provider())
    assert Line.threads_in_use == 6
    gate.set()
    for waiter in waiters:
        waiter.join()
    assert ask(Provider()) == "answer"
    assert Line.threads_in_use == Line.under_way == 0


def test_a_call_that_was_given_up_keeps_its_place_until_it_ends(line: Line) -> None:
    gate = threading.Event()
    with pytest.raises(ProviderTimeout):
        ask(Provider(gate.wait), total=0.05)
    assert len(line.waiting) == 1
    gate.set()
    assert eventually(lambda: not line.waiting)
