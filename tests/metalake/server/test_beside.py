"""Reads of a real PostgreSQL beside an event loop: many at once, and when it does not answer as it should."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from metalake.blocking import BeginAgain
from server.http import async_statements
from server.http.async_statements import Sessions

BY_LOOP = 2  # sessions
END_OTHERS = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND datname = current_database()"""


@contextmanager
def connected(url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


class Reads:
    """Sessions of a running event loop, and reads that wait for their answers in it."""

    def __init__(self, url: str) -> None:
        loop = asyncio.get_running_loop()
        self.sessions = Sessions(loop, BY_LOOP, lambda: psycopg.connect(url, autocommit=True))

    async def open(self) -> None:
        self.sessions.look()
        async with asyncio.timeout(20):
            while len(self.sessions.all) < BY_LOOP:
                await asyncio.sleep(0.01)

    def begin(self, statement: str, *parameters: Any) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def read() -> None:
            try:
                future.set_result(self.sessions.fetch(statement, parameters))
            except BeginAgain:
                future.set_result("again")

        self.sessions.run(read)
        return future

    async def __call__(self, statement: str, *parameters: Any) -> Any:
        async with asyncio.timeout(20):
            return await self.begin(statement, *parameters)


@pytest.fixture
def beside_loop(postgres_url: str) -> Callable[[Callable[[Reads], Awaitable[None]]], None]:
    """Run a test in an event loop, with sessions that are open."""

    async def within(test: Callable[[Reads], Awaitable[None]]) -> None:
        reads = Reads(postgres_url)
        await reads.open()
        try:
            await test(reads)
        finally:
            reads.sessions.close()

    return lambda test: asyncio.run(within(test))


Within = Callable[[Callable[[Reads], Awaitable[None]]], None]


def test_many_reads_share_a_few_sessions_and_each_gets_its_own_answer(beside_loop: Within) -> None:
    async def test(reads: Reads) -> None:
        asked = [reads.begin("SELECT %s, pg_sleep(0.001)", number) for number in range(200)]
        async with asyncio.timeout(20):
            assert [rows[0][0] for rows in await asyncio.gather(*asked)] == [*range(200)]
        text = "é" * 3_000_000  # more than a socket takes at once
        assert await reads("SELECT %s, %s", text, None) == [(text, None)]

    beside_loop(test)


def test_a_slow_read_holds_up_no_other(beside_loop: Within) -> None:
    async def test(reads: Reads) -> None:
        slow = reads.begin("SELECT pg_sleep(2)")
        for number in range(20):
            assert await reads("SELECT %s", number) == [(number,)]
        assert not slow.done()

    beside_loop(test)


def test_sessions_that_the_database_ends_are_opened_again(beside_loop: Within, postgres_url: str) -> None:
    async def test(reads: Reads) -> None:
        waiting = [reads.begin("SELECT pg_sleep(600)") for _ in range(BY_LOOP + 3)]  # three of them have no session yet
        with connected(postgres_url) as other:
            async with asyncio.timeout(20):
                while not all(each.done() for each in waiting):
                    other.execute(END_OTHERS)
                    await asyncio.sleep(0.05)
            assert await asyncio.gather(*waiting) == ["again"] * len(waiting)
        assert await reads("SELECT %s", 1) == "again" and not reads.sessions.is_open
        await reads.open()
        assert await reads("SELECT %s", 1) == [(1,)]

    beside_loop(test)


def test_idle_sessions_that_end_are_noticed_before_a_read(beside_loop: Within, postgres_url: str) -> None:
    async def test(reads: Reads) -> None:
        with connected(postgres_url) as other:
            other.execute(END_OTHERS)
        async with asyncio.timeout(20):
            while reads.sessions.all:
                await asyncio.sleep(0.01)
        await reads.open()
        assert await reads("SELECT %s", 1) == [(1,)]

    beside_loop(test)


def test_what_fails_is_left_to_the_way_of_all_and_the_session_goes_on(beside_loop: Within) -> None:
    async def test(reads: Reads) -> None:
        for _ in range(BY_LOOP):
            assert await reads("SET statement_timeout = 50") == []
        for _ in range(3):
            assert await reads("SELECT pg_sleep(5)") == "again"
            assert len(reads.sessions.all) == BY_LOOP
        for _ in range(BY_LOOP):
            await reads("DEALLOCATE ALL")
            assert await reads("SELECT %s", "a") == [("a",)]
        assert await reads("SELECT no_such_column") == "again"

    beside_loop(test)


def test_a_database_that_does_not_answer_is_given_up(beside_loop: Within, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(reads: Reads) -> None:
        hanging = [reads.begin("SELECT pg_sleep(600)") for _ in range(BY_LOOP + 1)]
        reads.sessions.look()
        assert not any(each.done() for each in hanging)
        monkeypatch.setattr(async_statements, "PATIENCE", -1)
        reads.sessions.look()
        async with asyncio.timeout(20):
            assert await asyncio.gather(*hanging) == ["again"] * len(hanging)
        monkeypatch.undo()
        await reads.open()
        assert await reads("SELECT %s", 1) == [(1,)]

    beside_loop(test)
