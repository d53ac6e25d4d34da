"""Writers of one process wait for each other in turn, and no longer than a transaction waits for a lock."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections
from pytest_django import DjangoDbBlocker

from metalake.sqlite import base

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
