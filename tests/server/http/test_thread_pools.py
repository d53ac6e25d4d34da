"""Short reads give way to what may block, and begin again where they find that they must wait."""

from __future__ import annotations

import os
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, cast

import psycopg
import pytest
from django.db import OperationalError

from benchmarks.http import basic
from metalake import blocking
from metalake.blocking import BeginAgain, TooLong, all_of, at_most, be_brief, may_block, short_reads
from metalake.database_errors import unavailable
from metalake.models import Outbox
from server.http import limits
from server.http.http_server import HttpServer, _is_read
from server.http.thread_pools import Pool
from tests.cases import each
from tests.servers import StartMetalake
from tests.waiting import eventually


def test_only_short_reads_begin_again() -> None:
    may_block()
    with short_reads(), pytest.raises(BeginAgain):
        may_block()
    may_block()


@pytest.mark.store
@pytest.mark.django_db
def test_a_list_is_short_up_to_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocking, "LONG", 3)
    monkeypatch.setattr(blocking, "BRIEF", 2)
    Outbox.objects.bulk_create(Outbox(topic="t", payload={"n": n}) for n in range(4))
    rows = Outbox.objects.order_by("pk").values_list("pk", flat=True)
    assert len(all_of(rows)) == 4
    with short_reads():
        assert all_of(rows[:3]) == list(rows)[:3]
        with pytest.raises(TooLong):
            all_of(rows)


@pytest.mark.django_db
def test_beside_the_event_loop_a_list_is_shorter_still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocking, "BRIEF", 2)
    Outbox.objects.bulk_create(Outbox(topic="t", payload={"n": n}) for n in range(3))
    rows = Outbox.objects.order_by("pk").values_list("pk", flat=True)

    def list_beside_it(most: int) -> list[int]:
        be_brief()
        return at_most(None, lambda limit: list(range(most))[:limit])

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(list_beside_it, 2).result() == [0, 1]
        with pytest.raises(BeginAgain) as again:
            thread.submit(list_beside_it, 3).result()
    assert not isinstance(again.value, TooLong)  # a thread of its own process makes it
    with short_reads():
        assert len(all_of(rows)) == 3


def test_a_short_read_that_the_database_failed_is_asked_once_more() -> None:
    failure = OperationalError("the connection is lost")
    assert unavailable(failure)
    with short_reads(), pytest.raises(BeginAgain):
        unavailable(failure)


@each(
    "method, target, is_short",
    [
        ("GET", "/iceberg/demo/v1/config?warehouse=lake", True),
        ("HEAD", "http://localhost/iceberg/demo/v1/lake/namespaces/a%1Fb/tables/t", True),
        ("POST", "/iceberg/demo/v1/lake/namespaces/a/tables", False),
        ("GET", "/api/metalakes/demo/catalogs/lake/schemas/a:b/tables/t", True),
        ("GET", "/api/metalakes/demo/catalogs", True),
        ("GET", "/api/metalakes/demo/access/explain", False),
        ("GET", "/api/metalakes/demo/roles", False),
        ("GET", "/health", True),
        ("GET", "/login", False),
        ("GET", "/api/schema/", False),
    ],
)
def test_what_begins_as_a_short_read(method: str, target: str, is_short: bool) -> None:
    assert _is_read({"REQUEST_METHOD": method, "RAW_URI": target}) is is_short


# A pool


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere all threads of a process are as nice")
def test_threads_that_may_block_let_the_event_loop_go_first() -> None:
    server = HttpServer(cast(Any, None), cast(Any, None))
    of_loop, niceness = os.getpriority(os.PRIO_PROCESS, 0), dict[str, int]()

    def look(name: str) -> None:
        niceness[name] = os.getpriority(os.PRIO_PROCESS, 0)

    for pool in (server.reads, server.others):
        pool.start()
        pool.take(partial(look, pool.name))
    assert eventually(lambda: len(niceness) == 2)
    assert niceness == {"reads": of_loop, "answers": of_loop + limits.NICENESS}


@pytest.fixture
def held() -> Any:
    """A pool of two threads with a line of one, and what lets its jobs end."""
    pool, go = Pool("test", 2, 1), threading.Event()
    pool.start()
    yield pool, go
    go.set()


def test_a_full_line_takes_nothing_more(held: tuple[Pool, threading.Event]) -> None:
    pool, go = held
    done: list[int] = []

    def job(number: int) -> Callable[[], None]:
        def wait() -> None:
            go.wait(30)
            done.append(number)

        return wait

    for number in range(2):
        assert pool.take(job(number))
        assert eventually(lambda: len(pool.since) > number)  # noqa: B023
    assert pool.take(job(2))
    assert not pool.take(job(3))
    go.set()
    assert eventually(lambda: sorted(done) == [0, 1, 2])
    assert pool.take(job(4))


def test_a_thread_survives_what_its_job_raises(held: tuple[Pool, threading.Event]) -> None:
    pool, go = held
    go.set()
    answered: list[bool] = []

    def fail() -> None:
        raise SystemExit

    for job in (fail, fail, fail, lambda: answered.append(True)):
        assert eventually(lambda: pool.take(job))  # noqa: B023
    assert eventually(lambda: bool(answered))


def test_a_pool_is_stuck_when_every_thread_is(held: tuple[Pool, threading.Event]) -> None:
    pool, go = held
    assert pool.take(lambda: bool(go.wait(30)))
    assert eventually(lambda: len(pool.since) == 1)
    pool.since = {number: time.monotonic() - 1000 for number in pool.since}
    assert not pool.is_stuck
    assert pool.take(lambda: bool(go.wait(30)))
    assert eventually(lambda: len(pool.since) == 2)
    assert not pool.is_stuck  # the second has just begun
    pool.since = dict.fromkeys(pool.since, time.monotonic() - 1000)
    assert pool.is_stuck


# A server


def test_a_read_that_waits_for_the_database_leaves_the_others_their_threads(
    start_metalake: StartMetalake, migrated_postgres_url: str
) -> None:
    """Two threads for short reads: four readers of a locked table do not keep them."""
    server = start_metalake(METALAKE_DATABASE_URL=migrated_postgres_url, METALAKE_READ_THREADS="2")
    headers = {"Authorization": basic("admin", server.admin_password)}

    def get(path: str) -> int:
        with urllib.request.urlopen(urllib.request.Request(server.url + path, headers=headers), timeout=60) as answer:
            return int(answer.status)

    assert get("/api/metalakes") == 200
    with psycopg.connect(migrated_postgres_url) as other, ThreadPoolExecutor(4) as readers:
        other.execute("LOCK TABLE catalogs_catalog IN ACCESS EXCLUSIVE MODE")
        waiting = [readers.submit(get, "/api/metalakes/demo/catalogs") for _ in range(4)]
        assert get("/api/metalakes") == 200
        assert not any(each.done() for each in waiting)
        other.rollback()
        assert [each.result() for each in waiting] == [200] * 4
