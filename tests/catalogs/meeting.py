"""Two writes that meet: the second begins while the first is done and not committed, and waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from django.db import connection, transaction

from tests.waiting import eventually

WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


def met(first: Callable[[], object], second: Callable[[], object]) -> Any:
    """What `second` returned, or raised; on PostgreSQL, since on SQLite a write begins when the other has ended.

    Services run in threads of their own, as requests do; what `first` writes is committed once `second` waits for it,
    or has ended without.
    """
    done, may_commit = threading.Event(), threading.Event()
    failures: list[BaseException] = []
    outcome: list[Any] = []

    def hold() -> None:
        with transaction.atomic():
            first()
            done.set()
            assert may_commit.wait(60)

    def follow() -> None:
        try:
            outcome.append(second())
        except Exception as refusal:
            outcome.append(refusal)

    one, other = (threading.Thread(target=_run, args=(act, failures)) for act in (hold, follow))
    one.start()
    assert eventually(lambda: done.is_set() or not one.is_alive())
    other.start()
    try:
        assert eventually(lambda: not other.is_alive() or _waiters() > 0)
    finally:
        may_commit.set()
        for thread in (one, other):
            thread.join(60)
    assert not failures, failures
    return outcome[0]


def _waiters() -> int:
    with connection.cursor() as cursor:
        cursor.execute(WAITING)
        return int(cursor.fetchone()[0])


def _run(act: Callable[[], object], failures: list[BaseException]) -> None:
    try:
        act()
    except BaseException as failure:
        failures.append(failure)
    finally:
        connection.close()
