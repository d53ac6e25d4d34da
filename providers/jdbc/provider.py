"""The providers of databases."""

from __future__ import annotations

from providers.jdbc.catalog import JdbcCatalog
from providers.jdbc.mysql import Doris, MySQL, StarRocks
from providers.jdbc.postgresql import PostgreSQL


class PostgreSQLProvider(JdbcCatalog):
    label = "PostgreSQL"
    dialect = PostgreSQL()
    longest_name = 63
    needs_database = True


class MySQLProvider(JdbcCatalog):
    label = "MySQL"
    dialect = MySQL()
    longest_name = 64 * 4


class DorisProvider(MySQLProvider):
    """Apache Doris, which speaks MySQL's wire; it was not run."""

    label = "Doris"
    dialect = Doris()


class StarRocksProvider(MySQLProvider):
    """StarRocks, which speaks MySQL's wire; it was not run."""

    label = "StarRocks"
    dialect = StarRocks()
