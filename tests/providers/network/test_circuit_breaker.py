"""The breaker spares a system that fails; the metrics say what was called and what was spared."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.test import Client

from metalake import shared_memory
from metalake.errors import Conflict, NotFound, OutcomeUnknown, ProviderBusy, ProviderTimeout, ProviderUnavailable
from providers import circuit_breaker as lines
from providers.circuit_breaker import Line
from tests.providers.network.calls import CATALOG, Provider, ask, down, occupy
from tests.waiting import eventually


def fail(times: int) -> None:
    for _ in range(times):
        with pytest.raises(ProviderUnavailable, match=r"Refused\."):
            ask(Provider(down()), "drop_table")


def is_spared() -> bool:
    """Whether nobody is asked."""
    provider = Provider()
    try:
        ask(provider)
    except ProviderBusy:
        assert provider.calls == 0
        return True
    assert provider.calls == 1
    return False


def test_five_failures_in_a_row_open_it(line: Line, clock: SimpleNamespace) -> None:
    fail(4)
    assert not is_spared()
    fail(5)
    with pytest.raises(ProviderBusy, match="It said: Refused") as told:
        ask(Provider())
    assert told.value.retry_after == lines.COOL_DOWN
    assert clock.slept == [], "it waits although nobody is asked"


def test_half_of_twenty_open_it(line: Line, clock: SimpleNamespace) -> None:
    for _ in range(9):
        fail(1)
        ask(Provider())
    fail(1)
    assert not line.is_open, "19 calls are no window"
    ask(Provider())
    fail(1)
    assert line.is_open


def test_lost_answers_and_silence_are_failures(line: Line) -> None:
    for _ in range(4):
        with pytest.raises(OutcomeUnknown):
            ask(Provider(OutcomeUnknown("Lost.")), "create_table")
    with pytest.raises(ProviderTimeout):
        ask(Provider(lambda: time.sleep(0.05)), total=0.01)
    assert line.is_open


def test_half_open_it_lets_one_call_try(line: Line, clock: SimpleNamespace) -> None:
    fail(5)
    clock.now += lines.COOL_DOWN - 0.1
    assert is_spared()
    clock.now += 0.2
    gate = threading.Event()
    trial = occupy(1, Provider(gate.wait))
    assert eventually(lambda: line.trying is not None)
    assert is_spared(), "a second call tries, too"
    gate.set()
    trial[0].join()
    assert not line.is_open
    fail(1)
    assert not line.is_open, "what failed before it came back still counts"


def test_once_it_is_back_its_past_is_forgotten(line: Line, clock: SimpleNamespace) -> None:
    for _ in range(lines.WINDOW // 2):
        ask(Provider())
        fail(1)
    assert line.is_open
    clock.now += lines.COOL_DOWN + 1
    ask(Provider())
    fail(1)
    assert not line.is_open


def test_a_trial_that_fails_opens_it_again(line: Line, clock: SimpleNamespace) -> None:
    fail(5)
    clock.now += lines.COOL_DOWN + 1
    fail(1)
    assert is_spared()
    clock.now += lines.COOL_DOWN + 1
    assert not is_spared()


@pytest.mark.parametrize(
    "answer", [NotFound("No."), Conflict("Stale."), down(retryable=False), ProviderBusy("Throttled."), KeyError("bug")]
)
def test_a_refusal_is_an_answer(answer: Exception, line: Line) -> None:
    for _ in range(30):
        with pytest.raises((type(answer), OutcomeUnknown)):
            ask(Provider(answer), "drop_table")
    assert not line.is_open


def test_each_catalog_has_its_own(line: Line, clock: SimpleNamespace) -> None:
    fail(5)
    other = Provider()
    other.catalog_id = CATALOG + 1
    assert ask(other) == "answer"


def test_a_catalog_that_changed_starts_anew(line: Line, clock: SimpleNamespace) -> None:
    fail(5)
    gate = threading.Event()
    lines.forget(CATALOG)
    running = occupy(1, Provider(gate.wait))
    lines.forget(CATALOG)  # while a call is made
    assert not is_spared()
    gate.set()
    running[0].join()


# Metrics


@pytest.mark.django_db
def test_the_metrics_say_what_happened(line: Line, clock: SimpleNamespace) -> None:
    def shown() -> dict[str, float]:
        lines = Client().get("/metrics").content.decode().splitlines()
        return {name: float(value) for name, _, value in (text.rpartition(" ") for text in lines if text[0] != "#")}

    before = shown()
    ask(Provider())
    fail(5)
    with pytest.raises(ProviderBusy):
        ask(Provider())
    after = shown()

    def grown(name: str) -> float:
        return after[name] - before.get(name, 0)

    one = f'catalog="{CATALOG}",'
    calls = "metalake_remote_calls_total{" + one + 'outcome="%s",provider="Elsewhere",verb="%s"}'
    assert grown(calls % ("answered", "load_table")) == 1
    assert grown(calls % ("ProviderUnavailable", "drop_table")) == 5
    assert grown(calls % ("spared", "load_table")) == 1
    assert grown("metalake_remote_seconds_count{" + one + 'provider="Elsewhere",verb="drop_table"}') == 5
    breaker = f'metalake_remote_breaker_open{{catalog="{CATALOG}"}}'
    assert after[breaker] == 1
    lines.forget(CATALOG)
    assert breaker not in shown()


# In another process of the server


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_memory, "_board", shared_memory.Board(tmp_path))
    monkeypatch.setattr(lines, "COOL_DOWN", 0.0)  # the next call may try at once


def fail_five_times() -> None:
    fail(5)


def enter() -> None:
    lines.line_of(CATALOG).enter("Elsewhere")


def forget() -> None:
    lines.forget(CATALOG)


def elsewhere(act: Callable[[], object]) -> BaseProcess:
    """Have another process do it, and stay: one that begins anew, since other tests may have left this one's threads
    anywhere.
    """
    spawn = get_context("spawn")
    did = spawn.Event()
    process = spawn.Process(target=do_and_stay, args=(shared_memory._board.folder, act, did))
    process.start()
    assert did.wait(60)
    return process


def do_and_stay(folder: Path, act: Callable[[], object], did: Event) -> None:
    shared_memory._board, lines.COOL_DOWN = shared_memory.Board(folder), 0.0
    act()
    did.set()
    signal.pause()


def end(process: BaseProcess) -> None:
    process.kill()
    process.join()


def test_one_call_in_all_processes_tries_and_another_may_where_it_dies(shared: None, line: Line) -> None:
    end(elsewhere(fail_five_times))
    assert line.is_open
    other = elsewhere(enter)
    assert is_spared(), "a second call tries, too"
    end(other)
    assert not is_spared()
    assert not line.is_open


def test_where_a_catalog_leads_is_forgotten_by_all_processes_and_late_answers_say_nothing(
    shared: None, line: Line
) -> None:
    fail(5)
    end(elsewhere(forget))
    assert not lines.line_of(CATALOG).is_open
    line.note(answered=False, error="of the former address")
    assert lines.line_of(CATALOG).health.recent == ""
    assert lines.line_of(CATALOG) is not line
