"""Databases that the suite's servers have, as catalogs, and tables in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from formats.native.changes import read_changes
from formats.native.tables import CreateTableRequest
from providers.jdbc.catalog import JdbcCatalog
from providers.jdbc.provider import MySQLProvider, PostgreSQLProvider
from providers.remote_objects import Remote
from tests.mariadb import MariaDB

SAMPLES = Path(__file__).parent.parent / "samples"
SHOP = "rental"
NOW = {"type": "function", "funcName": "current_timestamp", "funcArgs": []}


@dataclass(frozen=True)
class Database:
    """A catalog with a schema, and another way to the same server: `execute` runs SQL there, and returns rows."""

    provider: JdbcCatalog
    schema: str
    execute: Callable[..., list[Any]]

    @property
    def is_postgresql(self) -> bool:
        return isinstance(self.provider, PostgreSQLProvider)

    def named(self, *parts: str) -> str:
        """A quoted name below the schema."""
        return self.provider.dialect.ddl.name(self.schema, *parts)

    def load(self, table: str) -> Remote:
        return self.provider.tables.load([self.schema], table)

    def columns(self, table: str) -> dict[str, dict[str, Any]]:
        """The columns of a table on the native wire, by name."""
        shown = self.provider.tables.show(self.load(table).definition)
        return {column["name"]: column for column in shown["columns"]}

    def make(self, table: str, *columns: dict[str, Any], **more: Any) -> Remote:
        asked = CreateTableRequest.model_validate({"name": table, "columns": [*columns], **more})
        draft = self.provider.tables.draft(self.provider.schemas.load([self.schema]), asked)
        return self.provider.tables.create([self.schema], table, draft.definition)

    def alter(self, table: str, *updates: dict[str, Any]) -> Remote:
        """The table after the updates, which is as `altered` foretold it."""
        before = self.load(table)
        expected = self.provider.tables.altered(before.definition, read_changes(updates))
        after = self.provider.tables.alter([self.schema], table, updates, before.version)
        shown, wanted = (self.provider.tables.show(each) for each in (after.definition, expected))
        assert (shown["comment"], shown["columns"]) == (wanted["comment"], wanted["columns"])
        assert after == self.load(table) and after.version == self.listed()[table].version
        return after

    def listed(self) -> dict[str, Remote]:
        return {one.name: one for one in self.provider.tables.list([self.schema], whole=True).items}


def column(name: str, type_: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, **more}


def key(*fields: str, name: str | None = None, sort: str = "PRIMARY_KEY") -> dict[str, Any]:
    return {"indexType": sort, "name": name, "fieldNames": [[field] for field in fields]}


def update(action: str, field: str = "", **more: Any) -> dict[str, Any]:
    """An update of the native wire, of a column unless `field` is empty."""
    return {"@type": action, **({"fieldName": [field]} if field else {}), **more}


def external(spelling: str) -> dict[str, str]:
    return {"type": "external", "catalogString": spelling}


def literal(type_: Any, value: str) -> dict[str, Any]:
    return {"type": "literal", "dataType": type_, "value": value}


@pytest.fixture
def postgres_database(postgres_url: str) -> Iterator[Database]:
    yield from _in_postgres(postgres_url, "flights", ["CREATE SCHEMA flights"])


def _in_postgres(url: str, schema: str, statements: Sequence[str]) -> Iterator[Database]:
    with psycopg.connect(url, autocommit=True) as connection:

        def execute(*statements: str) -> list[Any]:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

        execute(*statements)
        yield Database(PostgreSQLProvider(1, postgres_properties(url)), schema, execute)


def postgres_properties(url: str) -> dict[str, str]:
    """The properties of a catalog on a database of the suite's server, which trusts everybody."""
    return {"jdbc-url": f"jdbc:postgresql://{url.rpartition('@')[2]}", "jdbc-user": "postgres", "jdbc-password": "any"}


@pytest.fixture
def mariadb_database(mariadb: MariaDB) -> Iterator[Database]:
    yield from _in_mariadb(mariadb, [])


def _in_mariadb(server: MariaDB, statements: Sequence[str]) -> Iterator[Database]:
    name = server.create_database()
    with server.connect(database=name) as connection, connection.cursor() as cursor:

        def execute(*statements: str) -> list[Any]:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall()) if statements else []

        execute(*filter(str.strip, statements))
        yield Database(MySQLProvider(1, server.properties()), name, execute)
        execute(f"DROP DATABASE {name}")


@pytest.fixture(params=["postgres", "mariadb"])
def database(request: pytest.FixtureRequest) -> Database:
    """An empty schema, on both."""
    made: Database = request.getfixturevalue(f"{request.param}_database")
    return made


@pytest.fixture(params=["postgres", "mariadb"])
def shop(request: pytest.FixtureRequest) -> Iterator[Database]:
    """A database that somebody else made, on both."""
    if request.param == "postgres":
        statements = [(SAMPLES / "rental_postgresql.sql").read_text()]
        yield from _in_postgres(request.getfixturevalue("postgres_url"), SHOP, statements)
    else:
        statements = (SAMPLES / "rental_mysql.sql").read_text().split(";\n")
        yield from _in_mariadb(request.getfixturevalue("mariadb"), statements)
