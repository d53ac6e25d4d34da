"""Views of every engine as definitions, and broken ones with what is wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.hive.tables import HiveColumn, HiveTable
from formats.hive.views.forms import Form
from formats.hive.views.reader import read
from formats.hive.views.unreadable import LONGEST_TEXT, LONGEST_TYPE, MOST_COLUMNS, Unreadable
from formats.native.view_definition import Representation, SecurityMode
from tests.cases import each
from tests.formats.hive.views import samples
from tests.formats.hive.views.samples import (
    FLINK_PARAMETERS,
    SPARK_PARAMETERS,
    SPARK_SQL,
    TRINO_JSON,
    flink_1_20,
    presto_view,
    trino_476,
)


def column(name: str, type: Any, comment: str | None = None, nullable: bool = True) -> dict[str, Any]:
    whole = {"name": name, "type": type, "nullable": nullable, "autoIncrement": False}
    return whole if comment is None else whole | {"comment": comment}


def struct(*fields: tuple[str, str]) -> dict[str, Any]:
    return {"type": "struct", "fields": [{"name": name, "type": type, "nullable": True} for name, type in fields]}


def array(element: Any) -> dict[str, Any]:
    return {"type": "list", "elementType": element, "containsNull": True}


def without(parameters: dict[str, str], *names: str) -> dict[str, str]:
    return {name: value for name, value in parameters.items() if name not in names}


def test_spark_s_view_has_its_sql_columns_and_place() -> None:
    view = read(samples.of_spark())
    only = Representation(dialect="spark", sql=SPARK_SQL, default_catalog="spark_catalog", default_schema="db")
    assert view.definition.representations == (only,)
    assert view.definition.columns == (column("the_id", "long", "vid"), column("nm", "string"))
    assert (view.definition.comment, view.definition.properties) == ("view comment", {"owner_team": "x"})
    assert (view.engine, view.format, view.owner, view.expanded_sql) == ("spark", "hive", "anna", None)
    assert view.definition.security_mode is None and not view.is_materialized


def test_spark_s_schema_wins_over_the_columns_of_the_entry() -> None:
    lower = (HiveColumn("the_id", "bigint"), HiveColumn("other", "array<string>"))
    assert [each["name"] for each in read(samples.of_spark(columns=lower)).definition.columns] == ["the_id", "nm"]
    parameters = without(SPARK_PARAMETERS, "spark.sql.sources.schema")
    assert read(samples.of_spark(columns=lower, parameters=parameters)).definition.columns[1]["type"] == array("string")


def test_a_view_of_spark_2_has_a_database_alone() -> None:
    names = [name for name in SPARK_PARAMETERS if name.startswith("view.catalogAndNamespace")]
    parameters = without(SPARK_PARAMETERS, *names) | {"view.default.database": "db2"}
    definition = read(samples.of_spark(parameters=parameters)).definition
    assert (definition.default_catalog, definition.default_schema) == (None, "db2")


def test_hive_s_view_has_what_the_user_wrote_and_what_hive_made_of_it() -> None:
    view = read(samples.of_hive())
    assert (view.form, view.engine) == (Form.HIVE, "hive")
    assert view.definition.in_dialect("hive").sql == "select id, legs from flights"
    assert view.expanded_sql == "select `flights`.`id`, `flights`.`legs` from `db`.`flights`"
    assert view.definition.columns == (column("id", "long", "who"), column("legs", array(struct(("from", "string")))))
    assert read(samples.of_hive(view_original_text=" ")).definition.representations[0].sql == view.expanded_sql


def test_trino_s_view_is_in_its_text() -> None:
    view = read(samples.of_trino())
    sql = "SELECT id, 'it''s' word FROM flights"
    only = Representation(dialect="trino", sql=sql, default_catalog="hive", default_schema="db")
    assert view.definition.representations == (only,)
    assert view.definition.columns == (
        column("id", "long", "who"),
        column("at", "timestamp_tz(3)"),
        column("legs", array(struct(("from", "varchar(3)"), ("to", "string")))),
        column("word", {"type": "external", "catalogString": "json"}),
    )
    assert (view.definition.comment, view.definition.properties) == ("flights of today", {"owner_team": "x"})
    assert (view.definition.security_mode, view.owner) == (SecurityMode.DEFINER, "anna")


def test_what_trino_476_wrote_is_read() -> None:
    views = {name: read(trino_476(name)) for name in ("definers", "invokers", "materialized")}
    assert [(view.engine, view.definition.security_mode, view.is_materialized) for view in views.values()] == [
        ("trino", SecurityMode.DEFINER, False),
        ("trino", SecurityMode.INVOKER, False),
        ("trino", None, True),
    ]
    definers, invokers, materialized = (view.definition for view in views.values())
    assert definers.comment == "flights of today" and definers.columns[0] == column("id", "long", "who")
    assert {each["name"]: each["type"] for each in definers.columns[1:]} == {
        "a": "string",
        "b": "varchar(10)",
        "c": "char(3)",
        "d": "decimal(3,2)",
        "e": "float",
        "f": "date",
        "g": "timestamp(3)",
        "h": "timestamp_tz(6)",
        "i": "time(0)",
        "o": "interval_day",
        "p": "interval_year",
        "q": "binary",
        "r": "uuid",
        "l": struct(("fRom", "integer"), ('to "b', "varchar(3)")),
        "m": {"type": "map", "keyType": "varchar(1)", "valueType": "decimal(2,1)", "valueContainsNull": True},
        "j": {"type": "external", "catalogString": "json"},
        "k": {"type": "external", "catalogString": "array(row(integer,varchar(1)))"},
        "s": {"type": "external", "catalogString": "time(0) with time zone"},
    }
    assert invokers.representations == (Representation(dialect="trino", sql="SELECT 'it''s' word\n\n"),)
    assert (materialized.comment, materialized.properties) == ("daily", {})


def test_trino_alone_says_whose_rights_it_runs_with() -> None:
    invoker = {name: value for name, value in TRINO_JSON.items() if name != "owner"} | {"runAsInvoker": True}
    assert read(samples.of_trino(invoker)).definition.security_mode is SecurityMode.INVOKER
    assert read(samples.of_trino(TRINO_JSON, owner=None)).owner == "anna"
    assert read(samples.of_athena()).definition.security_mode is SecurityMode.DEFINER  # as Trino takes it
    assert [read(make()).definition.security_mode for make in (samples.of_hive, samples.of_flink)] == [None, None]


def test_a_materialized_view_is_read_as_what_it_is() -> None:
    view = read(samples.of_trino_materialized())
    assert view.is_materialized and view.engine == "trino" and view.definition.security_mode is None
    assert view.definition.properties == {} and len(view.definition.columns) == 4


def test_flink_s_view_takes_its_columns_from_its_parameters() -> None:
    view = read(samples.of_flink())
    to = {"name": "to", "type": "string", "nullable": False, "comment": "airport"}
    legs = {"type": "struct", "fields": [{"name": "from", "type": "varchar(3)", "nullable": True}, to]}
    assert view.definition.columns == (
        column("id", "long", "who", nullable=False),
        column("at", "timestamp_tz(3)"),
        column("legs", array(legs)),
        column("took", "interval_day"),
    )
    assert (view.definition.comment, view.definition.default_schema) == ("delays", None)
    assert view.expanded_sql == "SELECT `id` FROM `c`.`db`.`flights`"


def test_what_flink_1_20_wrote_is_read() -> None:
    everything = read(flink_1_20("everything"))
    assert (everything.engine, everything.definition.comment, everything.definition.properties) == (
        "flink",
        "all types",
        {},
    )
    columns = {each["name"]: each for each in everything.definition.columns}
    assert {name for name, each in columns.items() if each["nullable"]} == {"w"}
    element = struct(("EXPR$0", "integer"), ("EXPR$1", "char(1)"))
    element["fields"] = [field | {"nullable": False} for field in element["fields"]]
    assert {name: each["type"] for name, each in columns.items()} == {
        "a": "boolean",
        "b": "byte",
        "c": "short",
        "d": "integer",
        "e": "long",
        "f": "float",
        "g": "double",
        "h": "decimal(10,2)",
        "i": "char(3)",
        "j": "varchar(10)",
        "k": "string",
        "l": "fixed(1)",
        "m": "binary",
        "n": "date",
        "o": "time(0)",
        "p": "timestamp(3)",
        "q": "timestamp_tz(9)",
        "r": {"type": "list", "elementType": element, "containsNull": False},
        "s": struct(("fRom", "integer"), ("to `b", "varchar(3)")),
        "t": {"type": "map", "keyType": "char(1)", "valueType": "decimal(2,1)", "valueContainsNull": False},
        "u": "interval_day",
        "v": "interval_year",
        "w": "integer",
        "x": {"type": "external", "catalogString": "VARBINARY(3)"},
        "y": {"type": "external", "catalogString": "MULTISET<INT NOT NULL>"},
    }


def test_names_and_comments_that_flink_1_20_wrote_are_read() -> None:
    named = read(flink_1_20("named"))
    assert named.definition.columns == (
        column("the Id", "long", nullable=False),
        column("Word", "char(3)", nullable=False),
    )
    assert named.definition.representations == (
        Representation(dialect="flink", sql="SELECT `id`, `word`\nFROM `words`\nWHERE `word` <> 'it''s'"),
    )
    assert named.expanded_sql and "`hive`.`flights`.`words`" in named.expanded_sql


@pytest.mark.parametrize("name", ["altered", "renamed", "mended"])
def test_what_flink_1_20_renamed_and_altered_is_read(name: str) -> None:
    """Renaming drops `is_generic`, and the next alteration leaves all former names behind another `flink.`."""
    view = read(flink_1_20(name))
    assert (view.engine, view.definition.comment, view.definition.properties) == ("flink", None, {})
    named = {"altered": ["word"], "renamed": ["id", "word"], "mended": ["id"]}
    assert [each["name"] for each in view.definition.columns] == named[name]


def test_older_flinks_are_understood() -> None:
    old = {"is_generic": "true"} | {
        name.replace("flink.schema", "flink.generic.table.schema").replace("data-type", "type"): value
        for name, value in FLINK_PARAMETERS.items()
        if name.startswith("flink.schema")
    }
    assert read(samples.of_flink(parameters=old)).definition.columns == read(samples.of_flink()).definition.columns
    bare = samples.of_flink(parameters={"is_generic": "true"}, columns=(HiveColumn("id", "bigint"),), comment="c")
    assert read(bare).definition.columns == (column("id", "long"),) and read(bare).definition.comment == "c"


def test_glue_s_own_form_has_several_dialects() -> None:
    view = read(samples.of_glue())
    assert {each.dialect: each.sql for each in view.definition.representations} == {
        "athena": "select id from flights",
        "redshift": "select id from db.flights",
    }
    assert (view.engine, view.format, view.definition.comment) == ("glue", "glue", "c")
    assert view.definition.columns == (column("id", "long"),)


def test_of_two_versions_of_a_dialect_the_one_that_is_not_stale_is_shown() -> None:
    stale = {"Dialect": "ATHENA", "ViewOriginalText": "select 1", "IsStale": True}
    rest = {"ViewDefinition": {"Representations": [stale, stale | {"IsStale": False, "ViewOriginalText": "select 2"}]}}
    assert [each.sql for each in read(samples.of_glue(rest=rest)).definition.representations] == ["select 2"]


SCHEMA = "spark.sql.sources.schema"
BROKEN: dict[str, tuple[HiveTable, str]] = {
    "an Iceberg view": (samples.of_iceberg(), "its metadata file"),
    "no SQL": (samples.of_hive(view_original_text=None, view_expanded_text=" "), "no SQL"),
    "too much SQL": (samples.of_hive(view_expanded_text="x" * (LONGEST_TEXT + 1)), "at most 16777216 are read"),
    "gigantic base64": (samples.of_trino(view_original_text="A" * (LONGEST_TEXT + 1)), "at most 16777216 are read"),
    "too long a type": (samples.of_hive(columns=(HiveColumn("a", "x" * (LONGEST_TYPE + 1)),)), "at most 65536"),
    "too many columns": (samples.of_hive(columns=(HiveColumn("a", "int"),) * (MOST_COLUMNS + 1)), "10001 columns"),
    "no text": (samples.of_trino(view_original_text=None), "does not begin with"),
    "no end": (samples.of_trino(view_original_text="/* Presto View: e30="), "end with"),
    "broken base64": (samples.of_trino(view_original_text="/* Presto View: e3?= */"), "base64"),
    "no JSON": (samples.of_trino(b"{"), "does not hold JSON"),
    "no UTF-8": (samples.of_trino(b'{"originalSql": "\xff"}'), "does not hold JSON"),
    "not a number": (samples.of_trino(b'{"originalSql": NaN}'), "does not hold JSON"),
    "deep JSON": (samples.of_trino(b"[" * 100_000 + b"]" * 100_000), "does not hold JSON"),
    "rather deep JSON": (samples.of_trino(b'{"a":' + b"[" * 300 + b"]" * 300 + b"}"), "not the object"),
    "a list": (samples.of_trino([1]), "not the object"),
    "no originalSql": (samples.of_trino({"columns": []}), "has no originalSql"),
    "SQL of another shape": (samples.of_trino(TRINO_JSON | {"originalSql": ["select 1"]}), "SQL is not a text"),
    "half a pair": (samples.of_trino(TRINO_JSON | {"originalSql": "select '\ud800'"}), "half of a surrogate pair"),
    "NUL": (samples.of_trino(TRINO_JSON | {"comment": "\0"}), "comment has a NUL character"),
    "no columns": (samples.of_trino(TRINO_JSON | {"columns": []}), "has no columns"),
    "columns of another shape": (samples.of_trino(TRINO_JSON | {"columns": {"a": 1}}), "has no columns"),
    "a column without type": (samples.of_trino(TRINO_JSON | {"columns": [{"name": "a"}]}), "without name or type"),
    "a type that is no text": (
        samples.of_trino(TRINO_JSON | {"columns": [{"name": "a", "type": {"type": "bigint"}}]}),
        "type is not a text",
    ),
    "neither definer nor invoker": (samples.of_trino(TRINO_JSON | {"runAsInvoker": "no"}), "neither true nor false"),
    "a number for a schema": (samples.of_trino(TRINO_JSON | {"schema": 3}), "schema is not a text"),
    "another number of columns": (
        samples.of_spark(parameters=SPARK_PARAMETERS | {"view.query.out.numCols": "1"}),
        "1 columns in view.query.out, 2 in its schema",
    ),
    "a missing name": (
        samples.of_spark(parameters=without(SPARK_PARAMETERS, "view.query.out.col.1")),
        "view.query.out.col.1 is missing",
    ),
    "no number of names": (
        samples.of_spark(parameters=SPARK_PARAMETERS | {"view.query.out.numCols": "two"}),
        "numCols is not a number",
    ),
    "a gigantic number": (
        samples.of_spark(parameters=SPARK_PARAMETERS | {"view.catalogAndNamespace.numParts": "9" * 5000}),
        "numParts is not a number",
    ),
    "a broken schema": (samples.of_spark(parameters=SPARK_PARAMETERS | {SCHEMA: "{"}), "do not hold a schema"),
    "a part of a schema": (
        samples.of_spark(parameters=without(SPARK_PARAMETERS, SCHEMA) | {f"{SCHEMA}.numParts": "2"}),
        "do not hold a schema",
    ),
    "a Flink column without type": (
        samples.of_flink(parameters=without(FLINK_PARAMETERS, "flink.schema.1.data-type")),
        "flink.schema.1.data-type is missing",
    ),
    "a gap": (samples.of_flink(parameters=without(FLINK_PARAMETERS, "flink.schema.1.name")), "have a gap"),
    "no representations": (samples.of_glue(rest={"IsMultiDialectView": True}), "no Representations"),
    "a representation of text": (
        samples.of_glue(rest={"ViewDefinition": {"Representations": ["select 1"]}}),
        "no Representations",
    ),
    "a blank dialect": (
        samples.of_glue(
            rest={"ViewDefinition": {"Representations": [{"Dialect": " ", "ViewOriginalText": "select 1"}]}}
        ),
        "blank dialect",
    ),
    "no dialect": (
        samples.of_glue(rest={"ViewDefinition": {"Representations": [{"ViewOriginalText": "select 1"}]}}),
        "dialect is not a text",
    ),
}


@each("name", BROKEN)
def test_a_broken_view_says_what_is_wrong(name: str) -> None:
    table, reason = BROKEN[name]
    with pytest.raises(Unreadable, match=f"The view cannot be read. .*{reason}"):
        read(table)


def test_base64_without_padding_is_read_as_java_reads_it() -> None:
    text = presto_view(TRINO_JSON | {"comment": "x"}).replace("=", "")
    assert read(samples.of_trino(view_original_text=text)).definition.comment == "x"


TEXTS = st.text(max_size=12) | st.sampled_from(["2", "true", "bigint", "{}", "select 1"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*TRINO_JSON, "name", "type"]), inner),
    max_leaves=12,
)
NAMES = st.sampled_from(
    [*SPARK_PARAMETERS, *FLINK_PARAMETERS, "presto_view", "flink.schema.7.name", f"{SCHEMA}.numParts"]
)


def readable_or_not(table: HiveTable) -> None:
    try:
        read(table)
    except Unreadable as refusal:
        assert refusal.reason.endswith(".")


@given(JSON, st.dictionaries(st.sampled_from(list(TRINO_JSON)), JSON, max_size=3))
def test_any_json_is_a_view_or_unreadable(data: Any, changes: dict[str, Any]) -> None:
    readable_or_not(samples.of_trino(data))
    readable_or_not(samples.of_trino(TRINO_JSON | changes))
    readable_or_not(samples.of_glue(rest={"ViewDefinition": data}))


@given(st.binary(max_size=40), TEXTS)
def test_any_text_is_a_view_or_unreadable(raw: bytes, text: str) -> None:
    readable_or_not(samples.of_trino(raw))
    readable_or_not(samples.of_trino(view_original_text=f"/* Presto View: {text} */"))


@given(
    st.sampled_from(["hive", "spark", "flink"]), st.dictionaries(NAMES, TEXTS, max_size=4), st.lists(TEXTS, max_size=2)
)
def test_any_parameters_are_a_view_or_unreadable(engine: str, parameters: dict[str, str], types: list[str]) -> None:
    table = samples.WRITABLE[engine]()
    columns = tuple(HiveColumn(type, type, type) for type in types)
    readable_or_not(replace(table, parameters=table.parameters | parameters))
    readable_or_not(replace(table, parameters=parameters, columns=columns))
