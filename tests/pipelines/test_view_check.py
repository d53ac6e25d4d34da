"""Views as Spark's own analyzer reads them: nothing is run, and what is said says no more than the SQL."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.pipelines.conftest import Lab
from tests.providers.jdbc.test_provider import postgres_properties

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

VIEWS: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "good": ("SELECT id, upper(city) AS town FROM lake.nyc.orders", [("id", "long"), ("town", "string")]),
    "above": ("WITH x AS (SELECT * FROM good) SELECT x.town FROM x", [("town", "string")]),
    "both": ("SELECT city FROM orders UNION ALL SELECT town FROM good", [("city", "string")]),
    "comma": ("SELECT id FROM lake.`a, b`.orders", [("id", "long")]),
    "lost": ("SELECT id,\n nope FROM orders", [("id", "long"), ("nope", "string")]),
    "adrift": ("SELECT id FROM orders", [("id", "long")]),
    "gone": ("SELECT id FROM nowhere", [("id", "long")]),
    "behind": ("SELECT * FROM lost", [("id", "long"), ("nope", "string")]),
    "typed": ("SELECT id AS it FROM orders", [("number", "string")]),
    "drops": ("DROP TABLE lake.nyc.orders", [("id", "long")]),
    "file": ("SELECT * FROM csv.`/etc/passwd`", [("_c0", "string")]),
}
WRONG = {
    "lost": ("There is no column `nope`.", 2, 2),
    "adrift": ("Spark finds no `orders`.", 1, 16),
    "gone": ("Spark finds no `nowhere`.", 1, 16),
    "drops": ("Spark cannot read it at 'DROP'.", 1, 1),
}


def view(name: str, sql: str, columns: list[tuple[str, str]], dialect: str = "spark") -> dict[str, Any]:
    place = {} if name == "adrift" else {"defaultCatalog": "lake", "defaultSchema": "nyc"}
    queries = [{"type": "sql", "dialect": dialect, "sql": sql} | place]
    declared = [{"name": column, "type": type_} for column, type_ in columns]
    return {"name": name, "columns": declared, "representations": queries}


@pytest.fixture
def lake(lab: Lab) -> Lab:
    return make_lake(lab)


def make_lake(lab: Lab) -> Lab:
    properties = {"warehouse": f"{lab.server.environment['METALAKE_WAREHOUSE']}/{lab.metalake}"}
    lake = {"name": "lake", "type": "relational", "provider": "lakehouse-iceberg", "properties": properties}
    lab.call("POST", "catalogs", body=lake)
    for schema in ("nyc", "a, b"):
        lab.call("POST", "catalogs", "lake", "schemas", body={"name": schema})
    columns = [{"name": "id", "type": "long"}, {"name": "city", "type": "string"}, {"name": "secret", "type": "string"}]
    nyc = ("catalogs", "lake", "schemas", "nyc")
    for schema in ("nyc", "a, b"):
        lab.call("POST", "catalogs", "lake", "schemas", schema, "tables", body={"name": "orders", "columns": columns})
    for name, (sql, declared) in VIEWS.items():
        lab.call("POST", *nyc, "views", body=view(name, sql, declared))
    lab.call("POST", *nyc, "views", body=view("trinos", "SELECT 1", [], "trino"))
    return lab


def add_database(lab: Lab, url: str) -> None:
    """A catalog `pg` with a view that runs and one whose function reads a table that is gone."""
    with psycopg.connect(url, autocommit=True) as database:
        database.execute(
            'CREATE SCHEMA s; CREATE TABLE s.t (id bigint, "Day" date); CREATE TABLE s.gone (id int);'
            'CREATE VIEW s.fine AS SELECT id, "Day" FROM s.t;'
            "CREATE FUNCTION s.f() RETURNS int LANGUAGE sql STABLE AS 'SELECT id FROM s.gone';"
            "CREATE VIEW s.lost AS SELECT t.id, s.f() AS of FROM s.t; DROP TABLE s.gone"
        )
    asked = {"name": "pg", "type": "relational", "provider": "jdbc-postgresql", "properties": postgres_properties(url)}
    lab.call("POST", "catalogs", body=asked)
    lab.call("GET", "catalogs", "pg", "schemas", "s", "views")


def finding(lab: Lab, name: str) -> Any:
    return lab.call("GET", "catalogs", "lake", "schemas", "nyc", "views", name, "finding").get("finding")


def only(lab: Lab, name: str) -> dict[str, Any]:
    (dialect,) = finding(lab, name)["dialects"]
    return dict(dialect)


def snapshots(lab: Lab) -> list[int]:
    names = ("view_checks", "view_reads", "view_columns")
    return [lab.rows(f"select count(*) n from system.lineage.{name}.snapshots")[0]["n"] for name in names]


def check(lab: Lab) -> str:
    code, output = lab.run("pipelines.view_check")
    assert code == 0, output
    return output


def test_views_are_analysed_and_what_drifted_is_told(lake: Lab, postgres_url: str) -> None:
    add_database(lake, postgres_url)
    assert "Views checked: 13, of which broken: 8; not" in check(lake)
    good = only(lake, "good")
    assert good["problems"] == good["differences"] == []
    assert good["reads"] == [{"catalog": "lake", "schemaName": "nyc", "name": "orders"}]
    assert only(lake, "comma")["reads"] == [{"catalog": "lake", "schemaName": "a, b", "name": "orders"}]
    assert [(each["name"], each["type"], each["madeOf"]) for each in good["columns"]] == [
        ("id", "long", [{"source": 0, "name": "id"}]),
        ("town", "string", [{"source": 0, "name": "city"}]),
    ]
    above = only(lake, "above")
    assert [each["name"] for each in above["reads"]] == ["good"], "what lies behind a view is the view's own"
    assert above["columns"][0]["madeOf"] == [{"source": 0, "name": "town"}]
    both = only(lake, "both")
    assert {both["reads"][each["source"]]["name"] for each in both["columns"][0]["madeOf"]} == {"orders", "good"}
    for name, (text, line, column) in WRONG.items():
        (problem,) = only(lake, name)["problems"]
        assert (problem["text"], problem["line"], problem["column"]) == (text, line, column), name
    assert only(lake, "file")["problems"]
    assert only(lake, "behind")["problems"] and "secret" not in str(finding(lake, "behind"))
    assert [(each["text"], each["position"]) for each in only(lake, "typed")["differences"]] == [
        ("It yields `it` instead of `number`.", 1),
        ("`number` is long instead of string.", 1),
    ]
    assert "secret" not in str([finding(lake, name) for name in VIEWS]), "no other column of a table is named"
    assert finding(lake, "trinos") is None
    lake.call("GET", "catalogs", "lake", "schemas", "nyc", "tables", "orders")
    broken = lake.call("GET", "views", "broken")["views"]
    broken = [each for each in broken if each["fullName"] != "pg.s.lost"]
    assert {each["fullName"].rpartition(".")[2] for each in broken} == {*WRONG, "file", "behind", "typed"}
    _is_as_its_database_says(lake)
    changes = lake.call("GET", "access", "objects", "view", "lake.nyc.lost", "changes")["changes"]
    assert changes[0]["event"] == "view.drifted"

    rows = lake.rows("select view[2] v, name, count(*) n from system.lineage.view_reads group by 1, 2")
    assert {(row["v"], row["name"]) for row in rows if row["v"] == "both"} == {("both", "orders"), ("both", "good")}
    made = lake.rows("select of_column from system.lineage.view_columns where view[2] = 'good' order by position")
    assert [row["of_column"] for row in made] == ["id", "city"]


def _is_as_its_database_says(lab: Lab) -> None:
    fine, lost = (
        lab.call("GET", "catalogs", "pg", "schemas", "s", "views", name, "finding")["finding"]
        for name in ("fine", "lost")
    )
    assert fine["engine"].startswith("PostgreSQL ") and not fine["broken"] and lost["broken"]
    (dialect,) = fine["dialects"]
    assert dialect["reads"] == [{"catalog": "pg", "schemaName": "s", "name": "t"}]
    assert [(each["name"], each["type"]) for each in dialect["columns"]] == [("id", "long"), ("Day", "date")]
    (problem,) = lost["dialects"][0]["problems"]
    assert problem["text"] == "Something that it reads does not exist any more."
    assert "gone" not in str(lost)


@pytest.mark.long
def test_what_is_unchanged_is_not_written_and_what_was_mended_is_told(lake: Lab) -> None:
    check(lake)
    before = snapshots(lake)
    check(lake)
    assert snapshots(lake) == before, "what is unchanged is not written"
    mended = {
        "@type": "updateRepresentation",
        "representation": view("x", "SELECT id, city AS nope FROM orders", [])["representations"][0],
    }
    lake.call("PUT", "catalogs", "lake", "schemas", "nyc", "views", "lost", body={"updates": [mended]})
    assert finding(lake, "lost") is None
    assert "of which broken: 5;" in check(lake)
    assert finding(lake, "lost")["broken"] is False
    changes = lake.call("GET", "access", "objects", "view", "lake.nyc.lost", "changes")["changes"]
    assert changes[0]["event"] == "view.mended"


@pytest.mark.long
def test_a_run_that_is_killed_before_its_tables_are_seen_is_run_again(lake: Lab) -> None:
    killed = (
        "from unittest import mock\nfrom pipelines.results import Pending\n"
        "mock.patch.object(Pending, 'publish', side_effect=KeyboardInterrupt).start()"
    )
    code, _ = lake.run("pipelines.view_check", before=killed)
    assert code == 130 and lake.rows("select * from system.lineage.view_checks") == []
    code, output = lake.run("pipelines.view_check", before="from unittest import mock\nmock.patch.stopall()")
    assert code == 0, output
    assert len(lake.rows("select * from system.lineage.view_checks")) == len(VIEWS)
