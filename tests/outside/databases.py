"""PostgreSQL and MariaDB in the crash matrix: each statement of a session is a request that can meet a fault."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import orjson
import psycopg
import pymysql
import pytest

from providers.jdbc.catalog import JdbcCatalog
from providers.jdbc.connections import Session
from providers.remote_objects import Remote
from tests.faults import Faults
from tests.outside.outside import ANSWERS, FOREIGN, Outside, is_foreign
from tests.providers.world import LEVELS

SETTING_UP = ("SET ", "SELECT version()")


class Database(Outside):
    """A database of the test's own, with the errors that its driver raises."""

    endings = ANSWERS
    changing: ClassVar[tuple[str, ...]]  # what requests begin with that change something for others
    errors: ClassVar[dict[str, Callable[[], Exception]]]
    asks_people = True

    def __init__(self, direct: JdbcCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
        self.faults, self.direct, self.properties = Faults(), direct, direct.properties
        for method in ("rows", "run", "commit"):
            monkeypatch.setattr(Session, method, self._meeting_faults(getattr(Session, method)))
        self.put_schema(FOREIGN)
        self.execute(f"CREATE TABLE {FOREIGN}.staff (id INT PRIMARY KEY)")
        super().__init__()

    def _meeting_faults(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def request(session: Session, *given: Any) -> Any:
            name = " ".join(given[0].split()[:3]) if given else "COMMIT"
            act = partial(real, session, *given)
            match fault := "" if name.startswith(SETTING_UP) else self.faults.next(name):
                case "":
                    return act()
                case "slow" | "slow, dropped":
                    return self.faults.slow(act, arrives=fault == "slow")
                case "lost":
                    act()
                case "late":  # the server goes on with a connection whose client is gone
                    orphan, session.raw = copy.copy(session), None
                    self.faults.arrive_late(lambda: _end_after(orphan, partial(real, orphan, *given)))
            session.is_good = False
            session.close()
            raise self.errors.get(fault, self.errors["lost"])()

        return request

    def execute(self, statement: str) -> None:
        """As somebody else."""
        login = self.direct.login
        session = self.direct.dialect.connect(login, writes=True)
        session.run(statement)
        session.commit()
        session.close()

    def objects(self) -> dict[str, Remote]:
        found = {}
        for schema in self.direct.schemas.list().items:
            found[schema.name] = schema
            for table in self.direct.tables.list([schema.name], whole=True).items:
                found[f"{schema.name}{LEVELS}{table.name}"] = table
        return found

    def put_schema(self, name: str) -> None:
        self.execute(f"CREATE SCHEMA {name}")

    def reset(self) -> None:
        self.heal()
        for schema in self.direct.schemas.list().items:
            if not is_foreign(schema.name):
                self.direct.schemas.drop([schema.name], schema.identity, cascade=True)

    def marker_of(self, definition: dict[str, Any]) -> None:
        return None

    def plain(self, definition: dict[str, Any]) -> str:
        return orjson.dumps({**definition, "created": None}, option=orjson.OPT_SORT_KEYS).decode()

    def changes(self, request: str) -> bool:
        return request.startswith(self.changing)


def _end_after(session: Session, act: Callable[[], Any]) -> None:
    try:
        act()
    finally:
        session.close()


class Postgres(Database):
    provider = "jdbc-postgresql"
    changing = ("COMMIT",)
    errors: ClassVar[dict[str, Callable[[], Exception]]] = {
        "lost": lambda: psycopg.OperationalError("server closed the connection unexpectedly"),
        "down": lambda: psycopg.errors.AdminShutdown("terminating connection due to administrator command"),
        "denied": lambda: psycopg.errors.InsufficientPrivilege("permission denied"),
    }


class Maria(Database):
    provider = "jdbc-mysql"
    changing = ("CREATE", "ALTER", "DROP", "RENAME")
    errors: ClassVar[dict[str, Callable[[], Exception]]] = {
        "lost": lambda: pymysql.OperationalError(2013, "Lost connection to MySQL server during query"),
        "down": lambda: pymysql.OperationalError(1053, "Server shutdown in progress"),
        "denied": lambda: pymysql.OperationalError(1142, "ALTER command denied"),
    }
