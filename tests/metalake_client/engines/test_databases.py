"""Databases in the files of engines: URLs built from their parts, passwords by reference, and what is refused."""

from __future__ import annotations

from contextlib import suppress
from itertools import combinations

import pytest

from metalake.errors import Invalid
from metalake_client.engines import duckdb, flink, pyiceberg, spark_defaults, trino
from metalake_client.engines.catalogs import MASK, EngineCatalog
from metalake_client.engines.databases import database_of
from providers.jdbc.url import MYSQL_TLS, POSTGRES_TLS, Tls, parse_jdbc_url
from tests.cases import each
from tests.metalake_client.engines.catalogs import METALAKE, URL

FOREIGN = "currentSchema=x&allowLoadLocalInfile=true&socketFactory=evil.Class"


def database(url: str, kind: str = "mysql", **more: str) -> EngineCatalog:
    properties = {"jdbc-url": url, "jdbc-user": "o'hara", "jdbc-password": MASK} | more
    return EngineCatalog(name="Db", provider=f"jdbc-{kind}", properties=properties)


@pytest.mark.parametrize(
    ("catalog", "in_trino", "in_spark", "in_duckdb"),
    [
        (
            database(f"jdbc:postgresql://[::1]/?ssl=true&{FOREIGN}", "postgresql", **{"jdbc-database": "a b"}),
            "jdbc:postgresql://[::1]:5432/a%20b?sslmode=verify-full&sslfactory=org.postgresql.ssl.DefaultJavaSSLFactory",
            "jdbc:postgresql://[::1]:5432/a%20b?sslmode=verify-full&sslfactory=org.postgresql.ssl.DefaultJavaSSLFactory",
            ("postgres", "HOST '::1', PORT 5432", ", DATABASE 'a b'", "sslmode=verify-full sslrootcert=system"),
        ),
        (
            database(f"jdbc:mysql://db.lan:3307/shop?useSSL=true&requireSSL=false&{FOREIGN}"),
            "jdbc:mysql://db.lan:3307?sslMode=REQUIRED",
            "jdbc:mysql://db.lan:3307/?sslMode=REQUIRED&databaseTerm=SCHEMA",
            ("mysql", "HOST 'db.lan', PORT 3307", ", SSL_MODE 'required'", ""),
        ),
        (
            database("jdbc:mysql://db.lan?sslMode=disabled", **{"jdbc-driver": "org.mariadb.jdbc.Driver"}),
            "jdbc:mariadb://db.lan:3306?sslMode=disable",
            "jdbc:mysql://db.lan:3306/?sslMode=disable&permitMysqlScheme=true&useCatalogTerm=schema",
            ("mysql", "HOST 'db.lan', PORT 3306", ", SSL_MODE 'disabled'", ""),
        ),
    ],
)
def test_a_database(catalog: EngineCatalog, in_trino: str, in_spark: str, in_duckdb: tuple[str, ...]) -> None:
    of_trino = trino.render(URL, METALAKE, [catalog]).files["db.properties"].splitlines()[1:]
    assert of_trino == [
        f"connector.name={in_trino.split(':')[1]}",
        f"connection-url={in_trino}",
        "connection-user=o'hara",
        "connection-password=${ENV:METALAKE_DB_JDBC_PASSWORD}",
    ]
    made = spark_defaults.render(URL, METALAKE, [catalog])
    of_spark = dict(line.split(" ", 1) for line in made.files["spark-defaults.conf"].splitlines()[1:])
    assert of_spark["spark.sql.catalog.Db.url"] == in_spark
    assert of_spark["spark.sql.catalog.Db.password"] == "${env:METALAKE_DB_JDBC_PASSWORD}"
    assert {"postgresql": "org.postgresql:", "mysql": "com.mysql:", "mariadb": "org.mariadb.jdbc:"}[
        in_trino.split(":")[1]
    ] in of_spark["spark.jars.packages"]
    assert any("METALAKE_DB_JDBC_PASSWORD" in note for note in made.notes)
    old = spark_defaults.render(URL, METALAKE, [catalog], version="3.5")  # which replaces nothing there
    assert "password" not in old.files["spark-defaults.conf"].split("spark.sql.catalog.Db", 1)[1]
    assert any("the setting spark.sql.catalog.Db.password" in note for note in old.notes)
    kind, place, more, words = in_duckdb
    sql = duckdb.render(URL, METALAKE, [catalog]).files["metalake.sql"]
    login = f"{place}, USER 'o''hara', PASSWORD getenv('METALAKE_DB_JDBC_PASSWORD'){more}"
    assert f"INSTALL {kind};\nLOAD {kind};\n" in sql and f'SECRET "metalake Db database" (TYPE {kind}, {login});' in sql
    assert f"""ATTACH '{words}' AS "Db" (TYPE {kind}, SECRET "metalake Db database");""" in sql


@each("kind, tls", [("postgresql", POSTGRES_TLS), ("mysql", MYSQL_TLS)])
def test_the_server_and_its_clients_find_the_same_tls_in_a_url(kind: str, tls: dict[str, dict[str, Tls]]) -> None:
    """Clients cannot import the server, so each has rules of its own."""
    chosen = ["", *(f"{name}={value.upper()}" for name, values in tls.items() for value in values)]
    for query in [*chosen, *map("&".join, combinations(chosen[1:], 2))]:
        url = f"jdbc:{kind}://db.lan/shop?{query}"
        with suppress(Invalid):  # parameters that contradict each other, or one that stands twice
            server = parse_jdbc_url(url, {kind: kind}, tls)
            assert database_of(database(url, kind)).tls.name == server.tls.name, url


@each(
    "url", ["jdbc:postgresql://h/d", "jdbc:mysql://a,b/d", "jdbc:mysql://h/d?sslMode=odd", "jdbc:mysql://${ENV:X}", ""]
)
def test_a_url_that_is_not_passed_on(url: str) -> None:
    for render in (trino.render, duckdb.render, spark_defaults.render):
        refused = render(URL, METALAKE, [database(url)])
        assert "jdbc-url" in refused.refused["Db"] and "h/d" not in "".join(refused.files.values())


def test_other_engines_and_other_databases_say_that_there_is_no_support() -> None:
    for render in (flink.render, pyiceberg.render):
        assert "no support" in render(URL, METALAKE, [database("jdbc:mysql://h")]).refused["Db"]
    for kind in ("doris", "starrocks"):
        for render in (trino.render, duckdb.render, spark_defaults.render):
            assert "no support" in render(URL, METALAKE, [database("jdbc:mysql://h", kind)]).refused["Db"]
