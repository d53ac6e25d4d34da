"""Databases do what every provider does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from providers.jdbc.catalog import JdbcCatalog
from providers.jdbc.provider import MySQLProvider, PostgreSQLProvider
from tests.mariadb import MariaDB
from tests.postgres import PostgresServer
from tests.providers.behaviours import Behaviours
from tests.providers.jdbc_tables import postgres_properties


class TestPostgreSQL(Behaviours):
    has_properties = False

    @pytest.fixture
    def provider(self, postgres: PostgresServer, postgres_url: str) -> JdbcCatalog:
        return PostgreSQLProvider(1, postgres_properties(postgres_url))


class TestMariaDB(Behaviours):
    has_properties = has_identities = False

    @pytest.fixture
    def provider(self, mariadb: MariaDB) -> Iterator[JdbcCatalog]:
        yield MySQLProvider(1, mariadb.properties())
