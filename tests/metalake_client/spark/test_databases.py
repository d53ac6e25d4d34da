"""A real Spark on the databases of a metalake: each reads what the other made."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from metalake_client.engines.databases import DRIVERS
from tests.catalogs.racing import Client
from tests.jars import LOCKED
from tests.names import own_name
from tests.providers.jdbc_tables import Database, mariadb_database, postgres_database  # noqa: F401 (fixtures)
from tests.servers import MetalakeServer
from tests.spark import Spark

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]  # a Spark starts for each database

PROGRAM = """
import json
from metalake_client.spark import metalake_session

session = metalake_session(**{asked})
said = {{"tells": str(session.metalake), "view": session.metalake.view("db", {schema!r}, "cheap")}}
rows = [[row.asDict() for row in session.sql(each.format(**said)).collect()] for each in {statements}]
print(json.dumps(said | {{"rows": rows}}, default=str))
"""
NAMES = ("id", "small", "half", "whole", "price", "word", "day", "at", "ok")
TYPES = "bigint not null, smallint, float, double, decimal(10|2), varchar(20), date, timestamp_ntz, boolean"
VALUES = "1, 2, 0.5, 0.25, 12.34, 'Größe', date'2024-01-02', timestamp_ntz'2024-01-02 03:04:05', true"
SHOWN = ["long", "short", "float", "double", "decimal(10,2)", "varchar(20)", "date", "timestamp", "boolean"]
OF_MYSQL = {"at": "timestamp(0)", "ok": {"type": "external", "catalogString": "bit(1)"}}  # as Spark spells them there


@dataclass
class Databases:
    """A metalake of its own, whose catalog `db` is a database."""

    server: MetalakeServer
    metalake: str
    properties: dict[str, str]
    execute: Callable[..., list[Any]]

    def send(self, method: str, path: str, body: Any = None) -> Any:
        answer = Client(self.server.url).send(method, f"/api/metalakes/{self.metalake}/{path}", body)
        assert answer.status == 200, answer.body
        return answer.body

    def token(self) -> str:
        made = Client(self.server.url).send("POST", "/api/tokens", {"name": own_name("spark")})
        secret: str = made.body["token"]["secret"]
        return secret


@pytest.fixture
def databases(request: pytest.FixtureRequest, metalake_server: MetalakeServer, scheme: str) -> Iterator[Databases]:
    word = "postgres" if scheme == "postgresql" else "mariadb"
    database: Database = request.getfixturevalue(f"{word}_database")
    properties = dict(database.provider.properties)
    properties["jdbc-url"] = properties["jdbc-url"].replace("mysql", scheme)
    if scheme == "postgresql":  # which trusts everybody
        properties["jdbc-password"] = "canary-4f0d"
    made = Databases(metalake_server, own_name("m"), properties, database.execute)
    named = {"name": made.metalake}
    assert Client(metalake_server.url).send("POST", "/api/metalakes", named).status == 200
    provider = f"jdbc-{database.provider.dialect.word}"
    catalog = {"name": "db", "type": "relational", "provider": provider, "properties": properties}
    made.send("POST", "catalogs", catalog)
    yield made
    made.send("DELETE", "catalogs/db?force=true")  # it owns the server, which other tests register, too


@pytest.mark.parametrize("scheme", ["postgresql", "mariadb", pytest.param("mysql", marks=pytest.mark.long)])
def test_spark_and_metalake_see_what_the_other_made(databases: Databases, iceberg_spark: Spark, scheme: str) -> None:
    schema, send = own_name("sales"), databases.send
    send("POST", "catalogs/db/schemas", {"name": schema})
    tables = f"catalogs/db/schemas/{schema}/tables"
    columns: list[dict[str, Any]] = [{"name": name, "type": type_} for name, type_ in zip(NAMES, SHOWN, strict=True)]
    columns[0]["nullable"] = False
    key = {"indexType": "PRIMARY_KEY", "name": "PRIMARY", "fieldNames": [["id"]]}
    send("POST", tables, {"name": "ours", "columns": columns, "indexes": [key]})
    databases.execute(f"CREATE VIEW {schema}.cheap AS SELECT word FROM {schema}.ours WHERE price < 20")

    there = f"db.{schema}"
    of_spark = (f"{name} {type_}".replace("|", ",") for name, type_ in zip(NAMES, TYPES.split(", "), strict=True))
    statements = [
        f"insert into {there}.ours values ({VALUES})",
        f"select * from {there}.ours",
        "select * from {view}",
        f"create table {there}.theirs ({', '.join(of_spark)})",
        f"insert into {there}.theirs select * from {there}.ours",
        f"show tables in {there}",
        "set spark.sql.catalog.db.password",
    ]
    password = databases.properties["jdbc-password"]
    secrets = {"db": {"jdbc-password": password}}
    named = {"url": databases.server.url, "metalake": databases.metalake, "token": databases.token()}
    program = PROGRAM.format(asked={**named, "secrets": secrets}, schema=schema, statements=statements)
    said = json.loads(iceberg_spark.call("python", program, {}))

    _, (ours,), cheap, _, _, listed, shown = said["rows"]
    assert (ours["id"], ours["price"], ours["word"], ours["ok"]) == (1, "12.34", "Größe", True)
    assert (ours["day"], ours["at"]) == ("2024-01-02", "2024-01-02 03:04:05")
    assert said["view"] == f"`db`.`{schema}`.`cheap`" and cheap == [{"word": "Größe"}]
    assert sorted(each["tableName"] for each in listed) == ["ours", "theirs"], "those of this schema alone"
    assert "by JDBC" in said["tells"] and password not in said["tells"] + json.dumps(shown)

    made = send("GET", f"{tables}/theirs")["table"]
    expected = dict(zip(NAMES, SHOWN, strict=True)) | ({} if scheme == "postgresql" else OF_MYSQL)
    assert {column["name"]: column["type"] for column in made["columns"]} == expected
    assert [column["nullable"] for column in made["columns"]] == [False, *[True] * 8]
    assert databases.execute(f"SELECT word FROM {schema}.theirs") == [("Größe",)]


def test_the_drivers_that_run_here_are_those_that_are_named() -> None:
    run = {path.rpartition("/")[2].removesuffix(".jar") for path in LOCKED["jdbc-drivers"]}
    assert {"-".join(driver.package.split(":")[1:]) for each in DRIVERS.values() for driver in each} == run
