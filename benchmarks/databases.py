"""Databases as catalogs, PostgreSQL and MariaDB: listing 5,000 tables against the bare client, and the statements of
loading a table and of refreshing 10,000 unchanged ones.

`python -m benchmarks.databases [tables]` lists that many, and refreshes twice as many.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

from benchmarks.harness import claim, finish, on_both_databases, serve
from benchmarks.list_external import compare, listed

TABLES = 5_000
COLUMNS = (
    "flight_id bigint PRIMARY KEY, carrier varchar(8), origin char(3), delay int, fare decimal(10,2), left_at date"
)


@dataclass(frozen=True)
class Database:
    """A real database with a connection of its driver; `schemas` are those with `tables` and twice as many tables."""

    label: str
    catalog: str
    provider: str
    properties: dict[str, str]
    connection: Any
    schemas: tuple[str, str]
    names: str  # the driver's query for the names and kinds of a schema's relations

    def run(self, statement: str, *parameters: Any) -> int:
        """The number of rows that come, if any do."""
        with self.connection.cursor() as cursor:
            cursor.execute(statement, parameters or None)
            return len(cursor.fetchall()) if cursor.description else 0

    def fill(self, tables: int) -> None:
        for schema, count in zip(self.schemas, (tables, 2 * tables), strict=True):
            self.run(f"CREATE SCHEMA {schema}")
            for number in range(count):
                self.run(f"CREATE TABLE {schema}.flights_{number:05} ({COLUMNS})")


def main(arguments: list[str]) -> None:
    on_both_databases("benchmarks.databases", arguments)
    tables = int(arguments[0]) if arguments else TABLES
    from authz.callers.identity import issue_token
    from benchmarks.outside import outside_catalog
    from benchmarks.population import METALAKE, first_catalog, reader_of_outside_tables

    owner = first_catalog()
    with ExitStack() as stack:
        databases = [stack.enter_context(postgresql()), stack.enter_context(mariadb())]
        for database in databases:
            database.fill(tables)
            outside_catalog(owner, database.catalog, database.provider, **database.properties)
        for database in databases:
            statements_of_a_load(database)
            unchanged(database, 2 * tables)
        url, token = serve(stack).url, f"Bearer {issue_token(reader_of_outside_tables(), 'bench')}"
        for database in databases:
            small = database.schemas[0]
            asked = f"{url}/api/metalakes/{METALAKE}/catalogs/{database.catalog}/schemas/{small}/tables"
            compare(
                database.label,
                tables,
                lambda asked=asked: listed(asked, token),  # type: ignore[misc]
                lambda database=database, small=small: database.run(database.names, small),  # type: ignore[misc]
            )
    finish()


@contextmanager
def postgresql() -> Iterator[Database]:
    import psycopg

    from tests.postgres import running_postgres

    with running_postgres() as server, psycopg.connect(server.url, autocommit=True) as connection:
        where = server.url.rpartition("@")[2]
        properties = {"jdbc-url": f"jdbc:postgresql://{where}", "jdbc-user": "postgres", "jdbc-password": "any"}
        names = "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = %s"
        yield Database("PostgreSQL", "pg", "jdbc-postgresql", properties, connection, ("small", "large"), names)


@contextmanager
def mariadb() -> Iterator[Database]:
    from tests.mariadb import running_mariadb

    with running_mariadb() as server, server.connect() as connection:
        names = "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = %s"
        schemas = ("small", "large")
        yield Database("MariaDB", "maria", "jdbc-mysql", server.properties(), connection, schemas, names)


def statements_of_a_load(database: Database) -> None:
    from catalogs.models import Catalog
    from providers.registry import provider_for

    row = Catalog.objects.get(name=database.catalog)
    provider = provider_for(row.provider, row.pk, database.properties)
    provider.tables.load([database.schemas[0]], "flights_00000")  # the connection is set up
    with statements() as count:
        provider.tables.load([database.schemas[0]], "flights_00000")
    claim(f"statements to {database.label} for one table", count(), 4)


def unchanged(database: Database, tables: int) -> None:
    from benchmarks.refresh import refreshed

    first, seconds = refreshed(database.catalog)
    assert first["catalogs_mirror"], "writes are not noticed"
    print(f"  {database.label}: the first refresh takes {seconds:.1f} s")
    with statements() as count:
        second, seconds = refreshed(database.catalog)
    own = second.pop("catalogs_refreshrun")
    print(
        f"  {database.label}: {tables:,} unchanged tables and half as many in {seconds:.1f} s, {own} writes to the run"
    )
    claim(f"{database.label}: writes to other rows", second.total(), 0)
    others = {"PostgreSQL": 1, "MariaDB": 0}[database.label]  # the schema public
    claim(f"statements to {database.label} for each schema", (count() - 1) / (2 + others), 3)


@contextmanager
def statements() -> Iterator[Any]:
    """Counts what sessions send to a database."""
    from providers.jdbc.connections import Session

    sent = 0
    inner = Session._in_time

    def counted(session: Session) -> Any:
        nonlocal sent
        sent += 1
        return inner(session)

    with mock.patch.object(Session, "_in_time", counted):
        yield lambda: sent


if __name__ == "__main__":
    main(sys.argv[1:])
