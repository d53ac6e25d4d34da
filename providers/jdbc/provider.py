"""The providers of databases."""

from __future__ import annotations

from collections.abc import Mapping

from metalake.kinds import Kind
from providers.base import Offer, Storage
from providers.jdbc.catalog import JdbcCatalog
from providers.jdbc.mysql import MySQL
from providers.jdbc.postgresql import PostgreSQL
from providers.jdbc.stores import JdbcSchemas, JdbcTables, JdbcViews


class JdbcProvider(JdbcCatalog):
    @classmethod
    def offers(cls, properties: Mapping[str, str]) -> Mapping[Kind, Offer]:
        formats = frozenset({cls.dialect.word})
        return {
            Kind.SCHEMA: Offer(storage=Storage.EXTERNAL, remote=JdbcSchemas),
            Kind.TABLE: Offer(storage=Storage.EXTERNAL, remote=JdbcTables, formats=formats),
            Kind.VIEW: Offer(storage=Storage.EXTERNAL, remote=JdbcViews, formats=formats),
        }


class PostgreSQLProvider(JdbcProvider):
    label = "PostgreSQL"
    dialect = PostgreSQL()
    longest_name = 63
    needs_database = True


class MySQLProvider(JdbcProvider):
    label = "MySQL"
    dialect = MySQL()
    longest_name = 64 * 4


class DorisProvider(MySQLProvider):
    """Apache Doris, which speaks MySQL's wire; it was not run."""

    label = "Doris"
    dialect = MySQL("Doris", checks_views=False)


class StarRocksProvider(MySQLProvider):
    """StarRocks, which speaks MySQL's wire; it was not run."""

    label = "StarRocks"
    dialect = MySQL("StarRocks", checks_views=False)
