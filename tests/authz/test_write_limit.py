"""Half of the threads write; who would wait for writers that do not end is told to come back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from authz import write_limit
from authz.write_limit import Writers
from metalake.errors import Conflict, StoreUnavailable
from tests.waiting import eventually


@pytest.fixture
def many(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Writers:
    settings.METALAKE_THREADS = 4
    monkeypatch.setattr(write_limit, "PATIENCE", 60.0)
    return Writers()


class Held:
    """Writers in threads of their own, each until it is let go, or fails."""

    def __init__(self, of: Writers) -> None:
        self.of, self.pool = of, ThreadPoolExecutor(8)

    def begin(self, end: Callable[[], object] = lambda: None) -> tuple[threading.Event, Any]:
        let_go = threading.Event()

        def write() -> None:
            with self.of.place():
                assert let_go.wait(60)
                end()

        return let_go, self.pool.submit(write)


def test_others_wait_while_writes_end(many: Writers) -> None:
    held = Held(many)
    first, second = held.begin()[0], held.begin()[0]
    assert eventually(lambda: many.inside == 2)
    third, written = held.begin()
    third.set()
    assert not written.done()
    first.set()
    written.result(60)
    second.set()
    assert eventually(lambda: many.inside == 0)


def test_nobody_waits_for_writers_that_do_not_end(many: Writers, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(many)
    first, second = held.begin()[0], held.begin()[0]
    assert eventually(lambda: many.inside == 2)
    monkeypatch.setattr(write_limit, "PATIENCE", 0.0)
    with pytest.raises(StoreUnavailable, match="nothing was changed") as told, many.place():
        pass
    assert told.value.retry_after == 1
    first.set()
    second.set()
    assert eventually(lambda: many.inside == 0)


def test_after_one_that_waited_in_vain_nobody_waits_until_one_ends_well(many: Writers) -> None:
    held = Held(many)

    def in_vain() -> None:
        raise StoreUnavailable("lock timeout")

    first, second = held.begin(in_vain), held.begin()
    assert eventually(lambda: many.inside == 2)
    first[0].set()
    assert isinstance(first[1].exception(60), StoreUnavailable)
    third = held.begin()[0]
    assert eventually(lambda: many.inside == 2)
    with pytest.raises(StoreUnavailable), many.place():
        pass
    second[0].set()
    second[1].result(60)
    fourth = held.begin()[0]
    fifth, written = held.begin()
    for each in (third, fourth, fifth):
        each.set()
    written.result(60)


def test_a_refusal_is_an_end_like_any_other(many: Writers) -> None:
    with pytest.raises(Conflict), many.place():
        raise Conflict("stale")
    assert (many.inside, many.is_stuck) == (0, False)
