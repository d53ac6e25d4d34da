"""`gcli` on metalakes, catalogs, schemas, tables and views of a real server."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from tests.glue import Glue
from tests.metalake_client.gcli import Gcli
from tests.waiting import eventually

pytestmark = pytest.mark.slow

TABLE = {"columns": [{"name": "id", "type": "long", "nullable": False}, {"name": "carrier", "type": "string"}]}
TEXT = {
    "InputFormat": "org.apache.hadoop.mapred.TextInputFormat",
    "OutputFormat": "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
    "SerdeInfo": {"SerializationLibrary": "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"},
}
PARTITION = {
    "type": "identity",
    "fieldNames": [["day"]],
    "values": [{"type": "literal", "dataType": "string", "value": "2026-11-24"}],
}
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


def test_the_lines_of_the_design_work_as_they_stand(gcli: Gcli, glue: Glue, tmp_path: Path) -> None:
    """Beside where the stand-in for AWS is, and its keys."""
    glue.create_bucket("lake")
    glue.client().create_database(DatabaseInput={"Name": "my_database"})
    storage = {"Columns": [{"Name": "id", "Type": "bigint"}], "Location": "s3://lake/delays", **TEXT}
    hive = {"Name": "delays", "TableType": "EXTERNAL_TABLE", "StorageDescriptor": storage}
    days = {"PartitionKeys": [{"Name": "day", "Type": "string"}]}
    iceberg = {"Name": "events", "Parameters": {"table_type": "ICEBERG", "metadata_location": "s3://lake/m.json"}}
    for table in (hive | days, iceberg):
        glue.client().create_table(DatabaseName="my_database", TableInput=table)
    keys = tmp_path / "keys"
    keys.write_text(
        f"aws-access-key-id={glue.access_key}\naws-secret-access-key={glue.secret_key}\n"
        f"aws-glue-endpoint={glue.endpoint}\ns3.endpoint={glue.endpoint}\n"
    )
    properties = "aws-region=us-east-1,aws-glue-catalog-id=123456789012"
    new = ("--name", "my_glue", "--provider", "glue", "--properties", properties)
    assert "works" in gcli.ok("catalog", "test", *new, "--properties-file", str(keys)).err
    made = gcli.ok("catalog", "create", *new, "--properties-file", str(keys))
    assert "Created catalog my_glue." in made.err and glue.secret_key not in made.out
    catalog = gcli.json("catalog", "details", "--catalog", "my_glue")
    assert catalog["properties"].items() >= {"aws-region": "us-east-1", "aws-glue-catalog-id": "123456789012"}.items()
    assert gcli.ok("schema", "list", "--catalog", "my_glue").out == "name\nmy_database\n"
    place = ("--catalog", "my_glue", "--schema", "my_database")
    assert gcli.ok("table", "list", *place).out == "name\ndelays\nevents\n"
    delays = (*place, "--table", "delays")
    assert gcli.json("table", "details", *delays)["properties"]["location"] == "s3://lake/delays"
    assert "works" in gcli.ok("catalog", "test", "--catalog", "my_glue").err
    assert gcli("catalog", "test", "--catalog", "my_glue", "-p", "aws-region=elsewhere").code == 2

    file = tmp_path / "partition.json"
    file.write_text(json.dumps(PARTITION))
    assert gcli.json("partition", "create", *delays, "--file", str(file))["name"] == "day=2026-11-24"
    assert gcli.ok("partition", "list", *delays).out.startswith("name\tproperties\nday=2026-11-24\t")
    one = (*delays, "--partition", "day=2026-11-24")
    assert gcli.json("partition", "details", *one)["fieldNames"] == [["day"]]
    gcli.ok("partition", "drop", *one, "--yes")
    assert gcli("partition", "drop", *one, "--yes").code == 4

    run = gcli.json("catalog", "refresh", "--catalog", "my_glue", "--wait")
    assert (run["state"], run["seen"]) == ("done", 3)
    shown = gcli.json("catalog", "refresh-details", "--catalog", "my_glue", "--id", run["id"])
    assert shown["state"] == "done" and gcli.json("catalog", "refreshes", "--catalog", "my_glue")[0] == shown
    assert [each["fullName"] for each in gcli.json("catalog", "reserved-places", "--catalog", "my_glue")] == []
    gcli.ok("catalog", "drop", "--catalog", "my_glue", "--force", "--yes")  # one catalog owns what is found in Glue


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


def asked_now_and_then(lake: Gcli, *words: str) -> Any:
    """For what the server does in the background, within 15 s: who asks without a pause takes its processor."""
    time.sleep(0.5)
    return lake.json(*words)


def test_views_are_checked_and_translated(lake: Gcli) -> None:
    view = (*IN_SCHEMA, "--view", "v")
    (checked,) = lake.json("view", "check", *view)
    assert (checked["dialect"], checked["problems"]) == ("spark", [])
    draft = lake("view", "check", *view, "--dialect", "trino", "--sql", "SELECT ((")
    assert draft.code == 5 and "trino" in draft.err
    assert lake("view", "check", *view, "--sql", "SELECT 1").code == 2
    suggested = lake.json("view", "suggest", *view, "--dialect", "trino")
    assert suggested["representation"]["sql"].split() == ["SELECT", "1", "AS", "one"]
    here = ("--default-catalog", "lake", "--default-schema", "travel:nyc")
    lake.ok("view", "set-dialect", *view, "--dialect", "spark", "--sql", "SELECT id AS one FROM flights", *here)
    assert eventually(lambda: bool(asked_now_and_then(lake, "view", "lineage", *view)))
    (link,) = lake.json("view", "lineage", *view)
    assert (link["link"], link["fullName"]) == ("reads", "lake.travel:nyc.flights")
    readers = lake.json("table", "lineage", *IN_SCHEMA, "--table", "flights")
    assert [each["view"] for each in readers] == ["lake.travel:nyc.v"]
    assert len(lake.json("view", "versions", *view, "--limit", "1")) == 1


def test_what_is_there_in_files_is_registered(lake: Gcli) -> None:
    loaded = lake.json("table", "details", *IN_SCHEMA, "--table", "flights")
    lake.ok("table", "drop", *IN_SCHEMA, "--table", "flights", "--yes")
    (place,) = lake.json("catalog", "reserved-places", "--catalog", "lake")
    assert place["fullName"] == "lake.travel:nyc.flights"
    file = next(Path(urlsplit(place["location"]).path).glob("metadata/*.metadata.json"))
    again = ("--name", "again", "--metadata-location", f"file://{file}")
    registered = lake.json("table", "register", *IN_SCHEMA, *again)
    assert registered["columns"] == loaded["columns"]
    assert lake("table", "register", *IN_SCHEMA, *again).code == 5
    places = lake.json("table", "places", *IN_SCHEMA, "--table", "again")
    assert [each["location"] for each in places] == [place["location"]]


def test_definitions_change_by_files(lake: Gcli, tmp_path: Path) -> None:
    file = tmp_path / "updates.json"
    file.write_text(json.dumps([{"@type": "addColumn", "fieldName": ["delay"], "type": "integer"}]))
    table = lake.json("table", "alter", *IN_SCHEMA, "--table", "flights", "--file", str(file))
    assert [column["name"] for column in table["columns"]] == ["id", "carrier", "delay"]
    lake.ok("schema", "create", "--catalog", "lake", "--name", "attic")
    lake.ok("table", "alter", *IN_SCHEMA, "--table", "flights", "--to-schema", "attic")
    assert lake.ok("table", "list", "--catalog", "lake", "--schema", "attic").out == "name\nflights\n"
    for content in ("{}", "[", '{"properties": 1}'):
        file.write_text(content)
        for words in (("create", "--name", "t"), ("alter", "--table", "flights")):
            wrong = lake("table", words[0], *IN_SCHEMA, *words[1:], "--file", str(file))
            assert wrong.code in (2, 4) and wrong.err.count("\n") == 1, (content, words)


def test_odd_names_are_names(lake: Gcli) -> None:
    for name in ("a/b", "50%", "a b", "it's", "ü"):
        lake.ok("schema", "create", "--catalog", "lake", "--name", name, "--parent", "odd")
        whole = f"odd:{name}"
        assert lake.json("schema", "details", "--catalog", "lake", "--schema", whole)["name"] == whole
        lake.ok("schema", "drop", "--catalog", "lake", "--schema", whole, "--yes")
    for name in ("..", "x:"):
        refused = lake("schema", "create", "--catalog", "lake", "--name", name)
        assert (refused.code, refused.err.count("\n")) == (2, 1), name
    assert lake.json("search", "-q", "flights")["objects"][0]["name"] == "flights"


def test_the_server_says_what_it_is(gcli: Gcli) -> None:
    assert gcli.json("server", "version")["version"].startswith("1.3.")
    assert gcli.json("server", "configs")["gravitino.schema.separator"] == ":"
    assert gcli.json("server", "health")["status"] == "UP"
    assert gcli.ok("server", "whoami").out == "principal\tadmin\n"
