"""A real DuckDB against a real server, beside PyIceberg: what it makes, writes and reads, and what it may not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

from tests.catalogs.racing import Client
from tests.iceberg_rest.test_pyiceberg import connect
from tests.names import own_name
from tests.servers import MetalakeServer

DEMO = "/api/metalakes/demo"
EXTENSIONS = ("httpfs", "avro", "iceberg")

Attach = Callable[[str], "Duck"]


class Duck:
    """One user's DuckDB, in memory, with the catalog `lake` attached."""

    def __init__(self, server: MetalakeServer, home: Path, token: str) -> None:
        self.connection = duckdb.connect(
            config={
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "home_directory": str(home),
            }
        )
        for name in EXTENSIONS:
            self.sql(f"LOAD '{extension(name)}'")
        self.sql(f"CREATE SECRET token (TYPE iceberg, TOKEN '{token}')")
        self.sql(f"ATTACH 'lake' AS lake (TYPE iceberg, ENDPOINT '{server.url}/iceberg/demo', SECRET token)")

    def sql(self, statement: str) -> list[Any]:
        """The rows; a statement that changes some answers with their number."""
        return self.connection.execute(statement).fetchall()


def extension(name: str) -> Path:
    """Where pip put it: it is loaded from there, and nothing is installed into anybody's home."""
    found = find_spec(f"duckdb_extension_{name}")
    assert found is not None and found.origin is not None
    return next(Path(found.origin).parent.rglob(f"{name}.duckdb_extension"))


@pytest.fixture(scope="module")
def attach(metalake_server: MetalakeServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attach]:
    """DuckDB for a user, who signs in with a personal token."""
    home, ducks = tmp_path_factory.mktemp("duckdb"), []

    def attach(user: str) -> Duck:
        ducks.append(Duck(metalake_server, home, token_of(metalake_server, user)))
        return ducks[-1]

    yield attach
    for duck in ducks:
        duck.connection.close()
    assert list(home.iterdir()) == []


def token_of(server: MetalakeServer, user: str) -> str:
    issued = Client(server.url).send("POST", "/api/tokens", {"name": f"engine {uuid4().hex}", "user": user})
    assert issued.status in (200, 201), issued.body
    secret: str = issued.body["token"]["secret"]
    return secret


@pytest.fixture(scope="module")
def duck(attach: Attach) -> Duck:
    return attach("admin")


@pytest.fixture(scope="module")
def ice(metalake_server: MetalakeServer) -> RestCatalog:
    return connect(metalake_server)


@pytest.fixture
def home(duck: Duck) -> str:
    """A schema of the test's own."""
    name = own_name("duck")
    duck.sql(f"CREATE SCHEMA lake.{name}")
    return name


def test_a_table_lives_and_ends(duck: Duck, ice: RestCatalog, home: str) -> None:
    table = f"lake.{home}.t"
    duck.sql(f"CREATE TABLE {table} (id BIGINT, city VARCHAR)")
    assert ice.load_table((home, "t")).schema().column_names == ["id", "city"]
    assert duck.sql(f"INSERT INTO {table} VALUES (1, 'Oslo'), (2, 'Rome'), (3, 'Lima')") == [(3,)]
    assert duck.sql(f"UPDATE {table} SET city = 'Bergen' WHERE id = 1") == [(1,)]
    assert duck.sql(f"DELETE FROM {table} WHERE id = 2") == [(1,)]
    assert duck.sql(f"SELECT * FROM {table} ORDER BY id") == [(1, "Bergen"), (3, "Lima")]
    rows = ice.load_table((home, "t")).scan().to_arrow().sort_by("id").to_pylist()
    assert rows == [{"id": 1, "city": "Bergen"}, {"id": 3, "city": "Lima"}]
    duck.sql(f"DROP TABLE {table}")
    assert not ice.table_exists((home, "t"))


def test_a_table_of_a_query(duck: Duck, ice: RestCatalog, home: str) -> None:
    """It writes rows and manifests into the staged table's folders, and commits then."""
    duck.sql(f"CREATE TABLE lake.{home}.t AS SELECT range AS id, 'n' || range AS name FROM range(1000)")
    assert ice.load_table((home, "t")).scan().count() == 1000
    assert duck.sql(f"SELECT count(*), max(name) FROM lake.{home}.t") == [(1000, "n999")]


def test_a_partitioned_table(duck: Duck, ice: RestCatalog, home: str) -> None:
    duck.sql(f"CREATE TABLE lake.{home}.t (id BIGINT, day DATE) PARTITIONED BY (bucket(4, id), month(day))")
    duck.sql(f"INSERT INTO lake.{home}.t SELECT range, DATE '2026-01-30' + range::INT FROM range(10)")
    table = ice.load_table((home, "t"))
    assert [str(field.transform) for field in table.spec().fields] == ["bucket[4]", "month"]
    assert table.scan(row_filter="day >= '2026-02-01'").count() == 8
    assert duck.sql(f"SELECT min(day) FROM lake.{home}.t WHERE id > 4") == [(date(2026, 2, 4),)]


def test_nested_schemas(duck: Duck, ice: RestCatalog, home: str) -> None:
    duck.sql(f'CREATE SCHEMA lake."{home}.emea.2026"')
    assert ice.list_namespaces((home, "emea")) == [(home, "emea", "2026")]
    duck.sql(f'CREATE TABLE lake."{home}.emea.2026".t AS SELECT 7 AS id')
    assert duck.sql(f'SELECT id FROM lake."{home}.emea.2026".t') == [(7,)]
    assert ice.load_table((home, "emea", "2026", "t")).scan().to_arrow().to_pylist() == [{"id": 7}]


def test_what_pyiceberg_wrote(duck: Duck, ice: RestCatalog, home: str) -> None:
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", "b", None]})
    table = ice.create_table((home, "t"), rows.schema)
    table.append(rows)
    table.delete("id = 2")
    assert duck.sql(f"SELECT * FROM lake.{home}.t ORDER BY id") == [(1, "a"), (3, None)]
    duck.sql(f"INSERT INTO lake.{home}.t VALUES (4, 'd')")
    table.refresh()
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 3, 4]


def test_rights(metalake_server: MetalakeServer, attach: Attach, duck: Duck, ice: RestCatalog, home: str) -> None:
    """Dora may look into the catalog: to her what she may not read is not there, and nothing of hers is made."""
    admin, dora = Client(metalake_server.url), own_name("dora")
    add(admin, dora)
    duck.sql(f"CREATE TABLE lake.{home}.t AS SELECT 1 AS id")
    give(admin, dora, "catalog", "lake", "use_catalog")
    hers = attach(dora)
    for statement in (f"SELECT * FROM lake.{home}.t", f"INSERT INTO lake.{home}.t VALUES (2)"):
        with pytest.raises(duckdb.Error, match="does not exist"):
            hers.sql(statement)
    with pytest.raises(duckdb.Error, match=r"[Ff]orbidden|not permitted|403"):
        hers.sql("CREATE SCHEMA lake.hers")

    give(admin, dora, "schema", f"lake.{home}", "use_schema", "select_table")
    hers = attach(dora)
    assert hers.sql(f"SELECT * FROM lake.{home}.t") == [(1,)]
    for statement in (f"INSERT INTO lake.{home}.t VALUES (2)", f"CREATE TABLE lake.{home}.u AS SELECT 1 AS id"):
        with pytest.raises(duckdb.Error, match=r"[Ff]orbidden|not permitted|403"):
            hers.sql(statement)
    assert ice.list_tables(home) == [(home, "t")]
    assert duck.sql(f"SELECT * FROM lake.{home}.t") == [(1,)]


def add(admin: Client, user: str) -> None:
    """To the metalake, without a right."""
    assert admin.send("POST", f"{DEMO}/users", {"name": user}).status == 200


def give(admin: Client, user: str, kind: str, full_name: str, *privileges: str) -> None:
    """Through a role of its own."""
    role = own_name("role")
    allowed = [{"name": privilege, "condition": "allow"} for privilege in privileges]
    securable = {"type": kind, "fullName": full_name, "privileges": allowed}
    body = {"name": role, "properties": {}, "securableObjects": [securable]}
    assert admin.send("POST", f"{DEMO}/roles", body).status == 200
    assert admin.send("PUT", f"{DEMO}/permissions/users/{user}/grant", {"roleNames": [role]}).status == 200


def test_a_wrong_token(metalake_server: MetalakeServer, tmp_path: Path) -> None:
    with pytest.raises(duckdb.Error, match=r"[Uu]nauthorized|401"):
        Duck(metalake_server, tmp_path, "mlk_wrong")
