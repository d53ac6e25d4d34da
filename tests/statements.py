"""Which of our statements never meet PostgreSQL: those that only tests without the mark `store` issue.

    python -m pytest -p tests.statements -n 2     # on SQLite, everything; they are listed at the end

A statement is told by its text, with numbers, texts and lists left out, and by the function of ours that issues it. For
each that is listed, mark a test that issues it `store`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from django.db.backends.signals import connection_created

HERE = Path(__file__).resolve().parent.parent
LEFT_OUT = [
    (re.compile(r"'[^']*'|\b\d+\b"), "?"),
    (re.compile(r"\((?:%s|NULL|\?)(?:, (?:%s|NULL|\?))+\)"), "(...)"),
    (re.compile(r"(\((?:[^()]|\([^()]*\))*\))(?:, \1)+"), r"\1, ..."),
    (re.compile(r'SAVEPOINT "?\w+"?'), "SAVEPOINT"),
    (re.compile(r"\s+"), " "),
]
Key = tuple[str, str]


class Statements:
    """Those that were issued, and for each whether a test marked `store` was among those that issued it."""

    def __init__(self) -> None:
        self.in_store: dict[Key, bool] = {}
        self.marked = False  # the running test
        self.preparing = False  # what all tests share: the migrations run on both databases

    def watch(self, sender: Any, connection: Any, **more: Any) -> None:
        if self.note not in connection.execute_wrappers:
            connection.execute_wrappers.append(self.note)

    def note(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if not self.preparing and (issuer := issued_by()):
            key = (issuer, shape(sql))
            self.in_store[key] = self.marked or self.in_store.get(key, False)
        return execute(sql, params, many, context)

    def add(self, others: list[tuple[str, str, bool]]) -> None:
        for issuer, text, in_store in others:
            self.in_store[issuer, text] = in_store or self.in_store.get((issuer, text), False)


statements = Statements()


@lru_cache(10_000)
def shape(sql: str) -> str:
    for pattern, instead in LEFT_OUT:
        sql = pattern.sub(instead, sql)
    return sql.strip()


def issued_by() -> str:
    """The nearest function of ours, as file:function; empty for statements of tests and of the framework alone."""
    frame = sys._getframe(2)
    while frame := frame.f_back:  # type: ignore[assignment]
        if file := file_of_ours(frame.f_code.co_filename):
            return f"{file}:{frame.f_code.co_name}"
    return ""


@lru_cache(10_000)
def file_of_ours(name: str) -> str:
    """Relative to the repository; empty for what is not ours, and for tests."""
    path = Path(name)
    file = path.relative_to(HERE) if path.is_relative_to(HERE) else None
    return str(file) if file and file.parts[0] not in ("tests", ".venv", "manage.py") else ""


def pytest_configure(config: pytest.Config) -> None:
    connection_created.connect(statements.watch, weak=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    statements.marked = item.get_closest_marker("store") is not None
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
    statements.preparing = fixturedef.scope == "session"
    try:
        return (yield)
    finally:
        statements.preparing = False


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):  # xdist sends it to the process that started the workers
        session.config.workeroutput["statements"] = [(*key, known) for key, known in statements.in_store.items()]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    statements.add(getattr(node, "workeroutput", {}).get("statements", []))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    missing = sorted(key for key, in_store in statements.in_store.items() if not in_store)
    terminalreporter.section(f"{len(missing)} of {len(statements.in_store)} statements never meet PostgreSQL")
    for issuer, text in missing:
        terminalreporter.line(f"{issuer}  {text}")
