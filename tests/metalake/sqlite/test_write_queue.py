"""Writers wait for each other in turn, threads and processes, and no longer than a transaction waits for a lock."""

from __future__ import annotations

import errno
import fcntl
import multiprocessing
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections
from pytest_django import DjangoDbBlocker

from metalake.sqlite import base, write_queue
from metalake.sqlite.write_queue import Processes, WriteQueue
from tests.waiting import eventually

WAIT = 0.3  # seconds that a transaction of these tests waits


@pytest.fixture
def store(tmp_path: Path, django_db_blocker: DjangoDbBlocker) -> Iterator[list[base.DatabaseWrapper]]:
    """Connections of a process to one store."""
    settings = {
        **connections[DEFAULT_DB_ALIAS].settings_dict,
        "NAME": str(tmp_path / "store.db"),
        "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": WAIT},
    }
    wrappers = [base.DatabaseWrapper(settings, alias=f"turns-{number}") for number in range(5)]
    for wrapper in wrappers:
        wrapper.inc_thread_sharing()
    with django_db_blocker.unblock():
        yield wrappers
        for wrapper in wrappers:
            wrapper.close()


def begin(wrapper: base.DatabaseWrapper) -> None:
    wrapper.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)


def end(wrapper: base.DatabaseWrapper, *, commit: bool = True) -> None:
    wrapper.commit() if commit else wrapper.rollback()
    wrapper.set_autocommit(True)


@pytest.mark.parametrize("ends", ["commit", "rollback", "close"])
def test_the_next_writer_begins_when_one_ends(store: list[base.DatabaseWrapper], ends: str) -> None:
    first, second, *_ = store
    begin(first)
    order, statements = list[str](), list[str]()
    second.ensure_connection()
    second.connection.set_trace_callback(statements.append)

    def write() -> None:
        begin(second)
        order.append("second")
        end(second)

    waiting = threading.Thread(target=write)
    waiting.start()
    time.sleep(WAIT / 3)
    assert order == statements == []  # it does not wait in SQLite
    order.append("first")
    if ends == "close":
        first.close()
    else:
        end(first, commit=ends == "commit")
    waiting.join(timeout=10)
    assert order == ["first", "second"]


def test_a_writer_gives_up_in_the_words_of_sqlite(store: list[base.DatabaseWrapper]) -> None:
    first, second, *_ = store
    begin(first)
    with pytest.raises(OperationalError, match="database is locked"):
        begin(second)
    end(first)
    begin(second)
    end(second)


def test_a_writer_that_waits_more_briefly_gives_up_sooner(store: list[base.DatabaseWrapper]) -> None:
    first, second, *_ = store
    second.wait_at_most(60)
    first.wait_at_most(0.01)
    begin(second)
    with pytest.raises(OperationalError):
        begin(first)  # the time limit of this test would end before sixty seconds
    end(second)


def test_a_turn_is_given_back_where_another_process_writes(store: list[base.DatabaseWrapper]) -> None:
    first, second, *_ = store
    context = multiprocessing.get_context("spawn")
    holds, may_end = context.Event(), context.Event()
    other = context.Process(target=hold, args=(first.settings_dict["NAME"], holds, may_end))
    other.start()
    assert holds.wait(30)
    with pytest.raises(OperationalError, match="locked"):
        begin(first)
    may_end.set()
    other.join(30)
    begin(second)
    end(second)


def hold(name: str, holds: threading.Event, may_end: threading.Event) -> None:
    import sqlite3

    connection = sqlite3.connect(name, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    holds.set()
    may_end.wait(30)
    connection.close()


def test_who_waits_longest_is_next(store: list[base.DatabaseWrapper]) -> None:
    first, *others = store
    served = list[int]()

    def write(number: int) -> None:
        others[number].wait_at_most(60)
        begin(others[number])
        served.append(number)
        end(others[number])

    begin(first)
    writers = [threading.Thread(target=write, args=[number]) for number in range(len(others))]
    for writer in writers:
        writer.start()
        time.sleep(WAIT / 10)
    end(first)
    for writer in writers:
        writer.join(timeout=30)
    assert served == [*range(len(others))]


OTHER = """
import sys, time
from metalake.sqlite.write_queue import Processes
turns = Processes(sys.argv[1])
for line in sys.stdin:
    if line == "take\\n":
        assert turns.take(time.monotonic() + 60)
        print("has", flush=True)
    else:
        turns.give()
"""


@contextmanager
def another_process(store: Path) -> Iterator[subprocess.Popen[str]]:
    """One that takes and gives the turn of a store as it is told."""
    command = [sys.executable, "-c", OTHER, f"{store}-turns"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as other:
        yield other
        other.kill()


def tell(other: subprocess.Popen[str], word: str) -> None:
    assert other.stdin is not None
    other.stdin.write(f"{word}\n")


def has_it(other: subprocess.Popen[str]) -> bool:
    assert other.stdout is not None
    return other.stdout.readline() == "has\n"


def is_next(store: Path) -> bool:
    """Whether some process is the next one there, as a third process sees it."""
    look = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, int(sys.argv[2]))"
    command = [sys.executable, "-c", look, f"{store}-turns", str(Processes.NEXT)]
    return subprocess.run(command, stderr=subprocess.DEVNULL).returncode != 0


def test_a_process_that_waits_is_before_one_that_just_wrote(tmp_path: Path) -> None:
    store = tmp_path / "store"
    own = Processes(f"{store}-turns")
    assert own.take(0)
    with another_process(store) as other:
        tell(other, "take")
        assert eventually(lambda: is_next(store))
        own.give()
        assert not own.take(time.monotonic()), "it was there before the one that waited"
        assert has_it(other)
        tell(other, "give")
        assert own.take(time.monotonic() + 60)


def test_what_a_killed_process_had_is_free(tmp_path: Path) -> None:
    with another_process(tmp_path / "store") as other:
        tell(other, "take")
        assert has_it(other)
    assert Processes(f"{tmp_path / 'store'}-turns").take(time.monotonic() + 60)


@pytest.mark.parametrize(("stint", "order"), [(0.0, ["other", "second"]), (60.0, ["second", "other"])])
def test_threads_write_one_after_the_other_until_another_process_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stint: float, order: list[str]
) -> None:
    monkeypatch.setattr(write_queue, "STINT", stint)
    store, served = tmp_path / "store", list[str]()
    turn = WriteQueue(str(store))
    assert turn.take(0)

    def write() -> None:
        assert turn.take(60)
        served.append("second")
        turn.give()

    with another_process(store) as other:
        second = threading.Thread(target=write)
        second.start()
        tell(other, "take")
        assert eventually(lambda: bool(turn._waiting) and is_next(store))
        turn.give()
        if stint:
            second.join(60)
        assert has_it(other)
        served.append("other")
        tell(other, "give")
        second.join(60)
    assert served == order


def test_who_gives_up_waiting_for_another_process_leaves_the_turn_to_others(tmp_path: Path) -> None:
    turn = WriteQueue(str(tmp_path / "store"))
    with another_process(tmp_path / "store") as other:
        tell(other, "take")
        assert has_it(other)
        assert not turn.take(0.01)
        tell(other, "give")
        assert turn.take(60)
        turn.give()


@pytest.mark.parametrize("fails", ["open", "lock"])
def test_where_no_file_can_be_locked_threads_take_turns_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    if fails == "lock":
        monkeypatch.setattr(fcntl, "lockf", refuse)
    turn = WriteQueue(str(tmp_path / ("store" if fails == "lock" else "missing/store")))
    for _ in range(2):
        assert turn.take(1)
        assert not turn.take(0.01)
        turn.give()
