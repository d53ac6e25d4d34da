"""`gcli` on metalakes, catalogs, schemas, tables and views of a real server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.metalake_client.gcli import Gcli

pytestmark = pytest.mark.slow

TABLE = {"columns": [{"name": "id", "type": "long", "nullable": False}, {"name": "carrier", "type": "string"}]}
VIEW = {"representations": [{"type": "sql", "dialect": "spark", "sql": "SELECT 1 AS one"}]}
IN_SCHEMA = ("--catalog", "lake", "--schema", "travel:nyc")


@pytest.fixture
def lake(gcli: Gcli, tmp_path: Path) -> Gcli:
    """With the catalog `lake`, its schema travel:nyc, and there the table flights and the view v."""
    gcli.ok("catalog", "create", "--name", "lake", "--provider", "lakehouse-iceberg")
    gcli.ok("schema", "create", "--catalog", "lake", "--name", "nyc", "--parent", "travel")
    for kind, name, definition in (("table", "flights", TABLE), ("view", "v", VIEW)):
        file = tmp_path / f"{kind}.json"
        file.write_text(json.dumps(definition))
        gcli.ok(kind, "create", *IN_SCHEMA, "--name", name, "--file", str(file), "--properties", "owner=me")
    return gcli


def test_the_lines_of_the_design_work_as_they_stand(gcli: Gcli) -> None:
    properties = "aws-region=us-east-1,aws-glue-catalog-id=123456789012"
    made = gcli.ok("catalog", "create", "--name", "my_glue", "--provider", "glue", "--properties", properties)
    assert "Created catalog my_glue." in made.err
    catalog = gcli.json("catalog", "details", "--catalog", "my_glue")
    assert catalog["properties"].items() >= {"aws-region": "us-east-1", "aws-glue-catalog-id": "123456789012"}.items()


def test_objects_are_listed_and_shown(lake: Gcli) -> None:
    assert lake.ok("schema", "list", "--catalog", "lake").out == "name\ntravel\n"
    assert lake.ok("schema", "list", "--catalog", "lake", "--parent", "travel").out == "name\ntravel:nyc\n"
    assert lake.ok("table", "list", *IN_SCHEMA).out == "name\nflights\n"
    table = lake.json("table", "details", *IN_SCHEMA, "--table", "flights")
    assert [column["name"] for column in table["columns"]] == ["id", "carrier"]
    assert table["properties"]["owner"] == "me"
    assert yaml.safe_load(lake.ok("table", "details", *IN_SCHEMA, "--table", "flights", "-o", "yaml").out) == table
    shown = lake.ok("table", "details", *IN_SCHEMA, "--table", "flights").out
    assert "name\tflights" in shown and "carrier\tstring" in shown
    assert [each["name"] for each in lake.json("catalog", "list")] == ["lake"]
    assert len(lake.json("metalake", "list", "--limit", "1")) == 1


def test_objects_are_changed_and_dropped(lake: Gcli) -> None:
    lake.ok("table", "alter", *IN_SCHEMA, "--table", "flights", "-p", "owner=you,k=v", "--comment", "all flights")
    table = lake.json("table", "alter", *IN_SCHEMA, "--table", "flights", "--remove", "k")
    properties = table["properties"]
    assert (table["comment"], properties["owner"], "k" in properties) == ("all flights", "you", False)
    lake.ok("table", "alter", *IN_SCHEMA, "--table", "flights", "--rename", "trips")
    assert lake("table", "alter", *IN_SCHEMA, "--table", "trips").code == 2
    lake.ok("catalog", "disable", "--catalog", "lake")
    assert lake("table", "list", *IN_SCHEMA).code == 5
    lake.ok("catalog", "enable", "--catalog", "lake")
    asked = lake("table", "drop", *IN_SCHEMA, "--table", "trips")
    assert asked.code == 2 and "--yes" in asked.err
    lake.ok("table", "drop", *IN_SCHEMA, "--table", "trips", "--yes")
    assert lake("table", "drop", *IN_SCHEMA, "--table", "trips", "--yes").code == 4
    assert lake.ok("table", "list", *IN_SCHEMA).err == "There are none.\n"


def test_a_dry_run_makes_nothing(lake: Gcli) -> None:
    made = lake.ok("schema", "create", "--catalog", "lake", "--name", "a:b", "--dry-run")
    assert made.out == "name\na\na:b\n"
    assert lake.ok("schema", "list", "--catalog", "lake").out == "name\ntravel\n"


def test_views_have_dialects_and_versions(lake: Gcli, tmp_path: Path) -> None:
    view, query = (*IN_SCHEMA, "--view", "v"), tmp_path / "query.sql"
    query.write_text("SELECT 1 AS one")
    lake.ok("view", "add-dialect", *view, "--dialect", "trino", "--sql-file", str(query))
    lake.ok("view", "set-dialect", *view, "--dialect", "trino", "--sql", "SELECT 2 AS one")
    assert lake("view", "add-dialect", *view, "--dialect", "trino", "--sql", "SELECT 1 AS one").code == 2
    assert lake("view", "add-dialect", *view, "--dialect", "flink").code == 2
    assert [each["version"] for each in lake.json("view", "versions", *view)] == [3, 2, 1]
    assert len(lake.json("view", "version", *view, "--version", "2")["representations"]) == 2
    changed = lake.json("view", "compare", *view, "--version", "1", "--other", "2")["differences"]
    assert [each["part"] for each in changed] == ["representations.trino"]
    assert len(lake.json("view", "rollback", *view, "--version", "1", "--yes")["representations"]) == 1
    lake.ok("view", "add-dialect", *view, "--dialect", "duckdb", "--sql", "SELECT 1 AS one")
    left = lake.json("view", "remove-dialect", *view, "--dialect", "duckdb", "--yes")
    assert [each["dialect"] for each in left["representations"]] == ["spark"]


def test_a_catalog_that_is_kept_here_has_nothing_to_refresh(lake: Gcli) -> None:
    refused = lake("catalog", "refresh", "--catalog", "lake")
    assert refused.code == 2 and "nothing to refresh" in refused.err
