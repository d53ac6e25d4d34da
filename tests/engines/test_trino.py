"""A real Trino as a client of the Iceberg REST wire: in schemas where nobody said where tables go."""

from __future__ import annotations

import pytest
from pyiceberg.catalog.rest import RestCatalog

from tests.catalogs.racing import Client
from tests.iceberg_rest.test_duckdb import add, give, token_of
from tests.iceberg_rest.test_pyiceberg import connect
from tests.names import own_name
from tests.servers import MetalakeServer
from tests.trino import Trino, TrinoError

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]  # the first time it fetches 821 MB


@pytest.fixture(scope="module")
def ice(metalake_server: MetalakeServer) -> RestCatalog:
    return connect(metalake_server)


@pytest.fixture(scope="module")
def lake(trino: Trino, metalake_server: MetalakeServer) -> Trino:
    """With the catalog `lake`, as admin."""
    trino.attach("lake", f"{metalake_server.url}/iceberg/demo", "lake", token_of(metalake_server, "admin"))
    return trino


@pytest.fixture
def home(lake: Trino) -> str:
    """A schema of the test's own, without a location."""
    name = own_name("trino")
    lake.sql(f"CREATE SCHEMA lake.{name}")
    return name


def test_a_table_lives_and_ends(lake: Trino, ice: RestCatalog, home: str) -> None:
    table = f"lake.{home}.t"
    lake.sql(f"CREATE TABLE {table} (id bigint, city varchar) WITH (partitioning = ARRAY['bucket(id, 4)'])")
    assert lake.sql(f"INSERT INTO {table} VALUES (1, 'Oslo'), (2, 'Rome'), (3, 'Lima')") == [[3]]
    lake.sql(f"UPDATE {table} SET city = 'Bergen' WHERE id = 1")
    lake.sql(f"DELETE FROM {table} WHERE id = 2")
    lake.sql(f"ALTER TABLE {table} ADD COLUMN zip varchar")
    assert lake.sql(f"SELECT * FROM {table} ORDER BY id") == [[1, "Bergen", None], [3, "Lima", None]]
    made = ice.load_table((home, "t"))
    assert sorted(made.scan().to_arrow()["city"].to_pylist()) == ["Bergen", "Lima"]
    assert made.location().startswith(ice.load_namespace_properties(home)["location"])
    lake.sql(f"ALTER TABLE {table} RENAME TO lake.{home}.u")
    lake.sql(f"DROP TABLE lake.{home}.u")
    assert ice.list_tables(home) == []


def test_a_table_of_a_query_and_one_in_its_place(lake: Trino, ice: RestCatalog, home: str) -> None:
    lake.sql(f"CREATE TABLE lake.{home}.t AS SELECT * FROM (VALUES 1, 2, 3) AS v (id)")
    assert ice.load_table((home, "t")).scan().count() == 3
    lake.sql(f"CREATE OR REPLACE TABLE lake.{home}.t AS SELECT 'x' AS name")
    assert lake.sql(f"SELECT * FROM lake.{home}.t") == [["x"]]


def test_nested_schemas(lake: Trino, ice: RestCatalog, home: str) -> None:
    lake.sql(f'CREATE SCHEMA lake."{home}.emea.2026"')
    lake.sql(f'CREATE TABLE lake."{home}.emea.2026".t AS SELECT 7 AS id')
    assert ice.load_table((home, "emea", "2026", "t")).scan().to_arrow()["id"].to_pylist() == [7]
    ice.load_table((home, "emea", "2026", "t")).delete()
    assert lake.sql(f'SELECT count(*) FROM lake."{home}.emea.2026".t') == [[0]]


def test_a_view_lives_and_ends(lake: Trino, ice: RestCatalog, home: str) -> None:
    lake.sql(f"CREATE TABLE lake.{home}.t AS SELECT * FROM (VALUES (1, 'Oslo'), (2, 'Rome')) AS v (id, city)")
    view = f"lake.{home}.late"
    lake.sql(f"CREATE VIEW {view} COMMENT 'late' SECURITY INVOKER AS SELECT id FROM lake.{home}.t WHERE id > 1")
    assert lake.sql(f"SELECT * FROM {view}") == [[2]]
    assert lake.sql(f"SHOW TABLES FROM lake.{home}") == [["late"], ["t"]]
    (query,) = ice.load_view((home, "late")).current_version().representations
    assert query.root.dialect == "trino"
    lake.sql(f"CREATE OR REPLACE VIEW {view} SECURITY INVOKER AS SELECT id, city FROM lake.{home}.t")
    assert lake.sql(f"SELECT count(*) FROM {view}") == [[2]]
    lake.sql(f"COMMENT ON VIEW {view} IS 'all of them'")
    assert ice.load_view((home, "late")).properties["comment"] == "all of them"
    lake.sql(f"ALTER VIEW {view} RENAME TO lake.{home}.later")
    lake.sql(f"DROP VIEW lake.{home}.later")
    assert ice.list_views(home) == []


def test_who_has_no_rights_makes_and_leaves_nothing(
    trino: Trino, metalake_server: MetalakeServer, ice: RestCatalog, home: str
) -> None:
    admin, tom = Client(metalake_server.url), own_name("tom")
    add(admin, tom)
    give(admin, tom, "catalog", "lake", "use_catalog", "use_schema", "select_table")
    trino.attach("his", f"{metalake_server.url}/iceberg/demo", "lake", token_of(metalake_server, tom))
    for statement in (f"CREATE TABLE his.{home}.t (id bigint)", f"CREATE TABLE his.{home}.t AS SELECT 1 AS id"):
        with pytest.raises(TrinoError):
            trino.sql(statement)
    assert trino.sql(f"SHOW TABLES FROM his.{home}") == []
    assert ice.list_tables(home) == []
