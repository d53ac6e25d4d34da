"""Definitions written in each engine's form, and altered without losing what the engine wrote."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from formats.hive.tables import HiveColumn, HiveTable
from formats.hive.views import forms
from formats.hive.views.reader import read
from formats.hive.views.unreadable import Unreadable
from formats.hive.views.writer import rewritten, written
from formats.native.view_definition import Representation, SecurityMode, ViewDefinition
from metalake.errors import Invalid, MetalakeError, Unsupported
from tests.cases import each
from tests.formats.hive.views import samples
from tests.formats.hive.views.samples import SPARK_PARAMETERS, TRINO_JSON, WRITABLE
from tests.formats.hive.views.test_reader import array, column, struct, without

SQL = "SELECT id, 'ü\n' AS word FROM flights -- all"
COLUMNS = (column("Id", "long", "who"), column("word", "varchar(3)"), column("legs", array(struct(("from", "string")))))

ONE = {"type": "literal", "dataType": "long", "value": "1"}


def wanted(dialect: str = "spark", **parts: Any) -> ViewDefinition:
    only = Representation(dialect=dialect, sql=parts.pop("sql", SQL), **parts.pop("defaults", {}))
    whole = {"columns": COLUMNS, "comment": "c", "properties": {"owner_team": "x"}}
    return ViewDefinition(representations=(only,), **{**whole, **parts})


def trino_data(table: HiveTable) -> dict[str, Any]:
    text = table.view_original_text or ""
    assert text.startswith("/* Presto View: ") and text.endswith(" */")
    data: dict[str, Any] = json.loads(base64.b64decode(text[16:-3], validate=True))
    return data


def refused(kind: type[MetalakeError], match: str, definition: ViewDefinition, table: HiveTable | None = None) -> None:
    with pytest.raises(kind, match=match):
        written("v1", "db", definition) if table is None else rewritten(table, definition)


# -- New views


def test_a_new_spark_view_has_what_spark_needs_to_select() -> None:
    table = written("V1", "db", wanted(), owner="anna", query_columns=["id", "w", "legs"])
    assert (table.name, table.table_type, table.owner, table.comment) == ("v1", "VIRTUAL_VIEW", "anna", "c")
    assert (table.view_original_text, table.view_expanded_text) == (SQL, SQL)
    assert table.columns == (
        HiveColumn("id", "bigint", "who"),
        HiveColumn("word", "varchar(3)"),
        HiveColumn("legs", "array<struct<from:string>>"),
    )
    schema = json.loads(table.parameters.pop("spark.sql.sources.schema"))
    assert [(field["name"], field["type"]) for field in schema["fields"][:2]] == [("Id", "long"), ("word", "string")]
    assert table.parameters == {
        "owner_team": "x",
        "spark.sql.create.version": "4.1.4",
        "view.catalogAndNamespace.numParts": "2",
        "view.catalogAndNamespace.part.0": "spark_catalog",
        "view.catalogAndNamespace.part.1": "db",
        "view.query.out.numCols": "3",
        "view.query.out.col.0": "id",
        "view.query.out.col.1": "w",
        "view.query.out.col.2": "legs",
        "view.schemaMode": "COMPENSATION",
    }
    storage = {name: getattr(table, name) for name in samples.SEQUENCE_FILES}
    assert storage == samples.SEQUENCE_FILES and table.serde_parameters == {"serialization.format": "1"}


def test_a_new_trino_view_is_as_trino_writes_it() -> None:
    definition = wanted("trino", defaults={"default_catalog": "hive", "default_schema": "db"})
    table = written("v1", "db", replace(definition, security_mode=SecurityMode.DEFINER), owner="anna")
    assert trino_data(table) == {
        "originalSql": SQL,
        "catalog": "hive",
        "schema": "db",
        "columns": [
            {"name": "Id", "type": "bigint", "comment": "who"},
            {"name": "word", "type": "varchar(3)"},
            {"name": "legs", "type": 'array(row("from" varchar))'},
        ],
        "comment": "c",
        "owner": "anna",
        "runAsInvoker": False,
        "path": [],
    }
    assert table.columns == (HiveColumn("dummy", "string"),) and table.view_expanded_text == "/* Presto View */"
    made = {"presto_view": "true", "comment": "Presto View", "trino_created_by": "Metalake", "trino_version": "476"}
    assert table.parameters == {**made, "owner_team": "x"} and table.comment is None


def test_a_trino_view_without_a_mode_is_an_invoker_s() -> None:
    data = trino_data(written("v1", "db", wanted("trino"), owner="anna"))
    assert data["runAsInvoker"] is True and not {"owner", "catalog", "schema"} & data.keys()


def test_a_new_flink_view_is_as_flink_writes_it() -> None:
    table = written("v1", "db", wanted("flink", columns=(column("id", "long", "who", nullable=False), COLUMNS[1])))
    assert table.parameters == {
        "owner_team": "x",
        "is_generic": "true",
        "flink.comment": "c",
        "flink.schema.0.name": "id",
        "flink.schema.0.data-type": "BIGINT NOT NULL",
        "flink.schema.0.comment": "who",
        "flink.schema.1.name": "word",
        "flink.schema.1.data-type": "VARCHAR(3)",
    }
    assert table.columns == (HiveColumn("id", "bigint", "who"), HiveColumn("word", "varchar(3)"))
    at = (column("at", "timestamp_tz(3)"),)
    assert written("v1", "db", wanted("flink", columns=at)).columns == ()  # Hive has no such type


def test_a_new_hive_view_has_no_marks() -> None:
    table = written("v1", "db", wanted("hive"))
    assert table.parameters == {"owner_team": "x"} and table.view_expanded_text == SQL
    assert [each.name for each in table.columns] == ["id", "word", "legs"]
    assert written("v1", "db", wanted("hive", columns=())).columns == ()


@pytest.mark.parametrize("dialect", ["spark", "trino", "flink", "hive", "Spark"])
def test_what_is_written_is_read_again(dialect: str) -> None:
    places = {"default_catalog": "c", "default_schema": "s"} if dialect in ("spark", "trino", "Spark") else {}
    definition = wanted(dialect, defaults=places)
    view = read(written("v1", "db", definition))
    only = replace(definition.representations[0], dialect=dialect.lower())
    mode = SecurityMode.INVOKER if dialect == "trino" else None
    columns = tuple({**each, "name": each["name"].lower()} for each in COLUMNS) if dialect == "hive" else COLUMNS
    assert view.definition == replace(definition, representations=(only,), security_mode=mode, columns=columns)
    assert view.engine == dialect.lower()


REFUSED: list[tuple[type[MetalakeError], str, ViewDefinition]] = [
    (Invalid, r"representations\[0\]\.dialect: .* trino, spark, flink, hive, not for 'mysql'", wanted("mysql")),
    (
        Invalid,
        r"representations\[1\]: .* exactly one representation, and 'trino'.* Iceberg tables",
        replace(wanted(), representations=(*wanted().representations, *wanted("trino").representations)),
    ),
    *[
        (Unsupported, "securityMode: .* counts as INVOKER", wanted(dialect, security_mode=mode))
        for dialect in ("spark", "flink", "hive")
        for mode in SecurityMode
    ],
    *[
        (Invalid, rf"representations\[0\]\.{place}: .* none", wanted(dialect, defaults=defaults))
        for dialect in ("flink", "hive")
        for place, defaults in (
            ("defaultCatalog", {"default_catalog": "c"}),
            ("defaultSchema", {"default_schema": "s"}),
        )
    ],
    *[(Invalid, "columns: .* list them", wanted(dialect, columns=())) for dialect in ("spark", "trino", "flink")],
    (Invalid, "defaultCatalog: Trino needs one", wanted("trino", defaults={"default_schema": "s"})),
    (Invalid, "as its owner, and this one has none", wanted("trino", security_mode=SecurityMode.DEFINER)),
    *[
        (Unsupported, r"columns\[0\]\.nullable", wanted(dialect, columns=(column("id", "long", nullable=False),)))
        for dialect in ("spark", "trino", "hive")
    ],
    (Unsupported, r"columns\[0\]\.autoIncrement", wanted(columns=({**column("id", "long"), "autoIncrement": True},))),
    (
        Unsupported,
        r"columns\[0\]\.defaultValue",
        wanted(columns=({**column("a", "long"), "defaultValue": ONE},)),
    ),
    (Unsupported, r"columns\[0\]\.type", wanted("hive", columns=(column("id", "uuid"),))),
    (Unsupported, r"columns\[0\]\.type", wanted("spark", columns=(column("id", "interval_day"),))),
    (Invalid, r"columns\[0\]\.name", wanted("hive", columns=(column("a.b", "long"),))),
    (Invalid, r"columns\[1\]\.name: 'ID' is there", wanted(columns=(column("id", "long"), column("ID", "long")))),
    *[
        (Invalid, rf"properties\.{name}: reserved", wanted("hive", properties={name: "1"}))
        for name in (
            *("presto_view", "comment", "spark.sql.create.version", "view.query.out.numCols", "is_generic"),
            *("flink.schema.0.name", "flink.comment", "table_type", "metadata_location", "transient_lastDdlTime"),
        )
    ],
]  # fmt: skip


@each("kind, match, definition", REFUSED)
def test_what_a_form_cannot_hold_is_refused(kind: type[MetalakeError], match: str, definition: ViewDefinition) -> None:
    refused(kind, match, definition)


def test_the_query_has_as_many_columns_as_the_view() -> None:
    with pytest.raises(Invalid, match="the view has 3 columns, its query 1"):
        written("v1", "db", wanted(), query_columns=["id"])


# -- Alterations


@pytest.mark.parametrize("name", WRITABLE)
def test_nothing_changes_where_nothing_is_asked_for(name: str) -> None:
    table = WRITABLE[name]()
    assert rewritten(table, read(table).definition) == table


@each("name", WRITABLE)
@each(
    "change",
    [
        {"comment": "another"},
        {"comment": None},
        {"properties": {"team": "y"}},
        {"columns": (column("a", "long", "new"), column("b", "string"))},
        {"sql": "select 2"},
        {"comment": "another", "properties": {}, "sql": "select 3", "columns": (column("a", "date"),)},
    ],
)
def test_an_alteration_changes_what_it_says_and_stays_in_the_form(name: str, change: dict[str, Any]) -> None:
    table = WRITABLE[name]()
    before = read(table)
    parts = dict(change)
    only = before.definition.representations[0]
    only = replace(only, sql=parts.pop("sql", only.sql))
    after = replace(before.definition, representations=(only,), **parts)
    altered = rewritten(table, after)
    assert read(altered).definition == after and forms.detect(altered) is before.form
    assert (altered.owner, altered.serde_lib, altered.rest) == (table.owner, table.serde_lib, table.rest)
    others = {key: value for key, value in table.parameters.items() if forms.why_reserved(key)}
    if "sql" not in change and "columns" not in change and "comment" not in change:
        assert {key: value for key, value in altered.parameters.items() if forms.why_reserved(key)} == others
        assert altered.view_original_text == table.view_original_text
    assert rewritten(altered, before.definition) is not None


@pytest.mark.parametrize("name", WRITABLE)
def test_columns_that_stay_keep_what_the_engine_wrote_of_them(name: str) -> None:
    table = WRITABLE[name]()
    definition = read(table).definition
    altered = rewritten(table, replace(definition, columns=(*definition.columns[1:], column("more", "long"))))
    assert rewritten(altered, replace(definition, columns=definition.columns[1:])) == rewritten(
        table, replace(definition, columns=definition.columns[1:])
    )
    match name:
        case "flink":
            assert altered.parameters["flink.schema.2.data-type"] == "INTERVAL DAY(3) TO SECOND(6)"
            assert altered.parameters["flink.schema.2.expr"] == "`landed` - `started`"
        case "trino":
            assert trino_data(altered)["columns"][:3] == TRINO_JSON["columns"][1:]
            assert altered.columns == table.columns
        case "athena":
            assert [each.name for each in altered.columns] == ["n", "more"]


def test_what_trino_476_wrote_stays_but_for_the_change() -> None:
    table = samples.trino_476("definers")
    definition = read(table).definition
    altered = rewritten(table, replace(definition, columns=definition.columns[1:], comment=None))
    was = trino_data(table)
    del was["comment"], was["columns"][0]
    assert trino_data(altered) == was and replace(altered, view_original_text=table.view_original_text) == table


def test_what_flink_1_20_wrote_stays_but_for_the_change() -> None:
    table = samples.flink_1_20("everything")
    definition = read(table).definition
    altered = rewritten(table, replace(definition, columns=definition.columns[1:], comment=None))
    stored = (range(1, 25), range(24))
    was, now = (
        [parameters[f"flink.schema.{number}.data-type"] for number in numbers]
        for parameters, numbers in zip((table.parameters, altered.parameters), stored, strict=True)
    )
    assert now == was and "flink.schema.24.name" not in altered.parameters
    mended = samples.flink_1_20("mended")
    altered = rewritten(mended, replace(read(mended).definition, comment="c", properties={"team": "ops"}))
    assert altered == replace(mended, parameters=mended.parameters | {"flink.comment": "c", "team": "ops"})


def test_a_comment_of_a_column_leaves_its_type_and_what_glue_says_of_it() -> None:
    table = samples.of_hive()
    definition = read(table).definition
    first = {**definition.columns[0], "comment": "whose"}
    altered = rewritten(table, replace(definition, columns=(first, definition.columns[1])))
    assert altered.columns[0] == replace(table.columns[0], comment="whose")
    flink = samples.of_flink()
    definition = read(flink).definition
    last = {**definition.columns[3], "comment": "how long"}
    altered = rewritten(flink, replace(definition, columns=(*definition.columns[:3], last)))
    assert altered.parameters["flink.schema.3.data-type"] == "INTERVAL DAY(3) TO SECOND(6)"


def test_trino_s_owner_path_and_unknown_fields_stay() -> None:
    table = samples.of_trino()
    altered = rewritten(table, replace(read(table).definition, comment="another"))
    assert trino_data(altered) == TRINO_JSON | {"comment": "another"}
    assert (altered.comment, altered.parameters) == (table.comment, table.parameters)


def test_a_definer_s_view_may_become_an_invoker_s_and_one_of_who_changes_it_back() -> None:
    table = samples.of_trino()
    definition = read(table).definition
    invoker = rewritten(table, replace(definition, security_mode=SecurityMode.INVOKER))
    assert trino_data(invoker)["runAsInvoker"] is True and "owner" not in trino_data(invoker)
    assert trino_data(invoker)["path"] == TRINO_JSON["path"]
    back = rewritten(invoker, definition, owner="mia")
    assert (back.owner, trino_data(back)["owner"], trino_data(back)["runAsInvoker"]) == ("mia", "mia", False)
    assert trino_data(back)["path"] == TRINO_JSON["path"]
    same = rewritten(table, replace(definition, security_mode=None, comment="another"))
    assert read(same).definition.security_mode is SecurityMode.DEFINER


def test_spark_s_query_names_stay_with_its_sql() -> None:
    table = samples.of_spark()
    definition = read(table).definition

    def names(**parts: Any) -> list[str]:
        only = replace(definition.representations[0], sql=parts.pop("sql", samples.SPARK_SQL))
        asked = parts.pop("query_columns", None)
        after = rewritten(table, replace(definition, representations=(only,), **parts), query_columns=asked)
        return [
            after.parameters[f"view.query.out.col.{n}"] for n in range(int(after.parameters["view.query.out.numCols"]))
        ]

    first, second = definition.columns
    assert names(comment="another") == ["id", "n"]
    assert names(columns=(column("key", "long"), second)) == ["id", "n"]
    assert names(columns=(second,)) == ["n"]
    assert names(columns=(second, first)) == ["n", "id"]
    assert names(columns=(second, column("more", "date"))) == ["n", "more"]
    assert names(columns=(first, second, column("more", "date"))) == ["id", "n", "more"]
    assert names(sql="select 1 the_id, 'a' nm") == ["the_id", "nm"]
    assert names(sql="select 1 x, 'a' y", query_columns=["x", "y"]) == ["x", "y"]


def test_what_is_left_out_of_spark_s_place_stays() -> None:
    table = samples.of_spark()
    definition = read(table).definition
    bare = replace(definition.representations[0], default_catalog=None, default_schema=None)
    assert rewritten(table, replace(definition, representations=(bare,))) == table
    moved = replace(definition.representations[0], default_catalog="lake", default_schema="a.b")
    altered = rewritten(table, replace(definition, representations=(moved,)))
    assert {key: value for key, value in altered.parameters.items() if "catalogAndNamespace" in key} == {
        "view.catalogAndNamespace.numParts": "3",
        "view.catalogAndNamespace.part.0": "lake",
        "view.catalogAndNamespace.part.1": "a",
        "view.catalogAndNamespace.part.2": "b",
    }
    assert read(altered).definition.default_schema == "a.b"


def test_a_long_schema_is_stored_in_parts_as_spark_does() -> None:
    many = tuple(column(f"column_{number}", "long") for number in range(100))
    altered = rewritten(samples.of_spark(), replace(read(samples.of_spark()).definition, columns=many))
    assert int(altered.parameters["spark.sql.sources.schema.numParts"]) > 1
    assert "spark.sql.sources.schema" not in altered.parameters and read(altered).definition.columns == many


@each(
    "kind, match, table, parts",
    [
        (Unsupported, "materialized", samples.of_trino_materialized(), {"comment": "x"}),
        (Unsupported, "materialized", samples.of_hive(table_type="MATERIALIZED_VIEW"), {"comment": "x"}),
        (Unsupported, "Lake Formation", samples.of_glue(), {"comment": "x"}),
        (Invalid, "of spark, not of 'trino'", samples.of_spark(), {"representations": wanted("trino").representations}),
        (Invalid, "exactly one", samples.of_spark(), {"representations": wanted().representations * 2}),
        (Invalid, "list them", samples.of_spark(), {"columns": ()}),
        (Unsupported, "securityMode", samples.of_hive(), {"security_mode": SecurityMode.INVOKER}),
        (Invalid, "reserved", samples.of_flink(), {"properties": {"flink.schema.0.name": "x"}}),
    ],
)  # fmt: skip
def test_what_is_not_rewritten_without_loss_is_refused(
    kind: type[MetalakeError], match: str, table: HiveTable, parts: dict[str, Any]
) -> None:
    refused(kind, match, replace(read(table).definition, **parts), table)


def test_a_flink_view_without_columns_is_altered_in_its_other_parts() -> None:
    table = samples.of_flink(parameters={"is_generic": "true"})
    definition = read(table).definition
    assert read(rewritten(table, replace(definition, comment="new"))).definition == replace(definition, comment="new")


def test_columns_of_an_older_flink_are_written_as_newer_ones_do() -> None:
    place = "flink.generic.table.schema.0"
    old = {"is_generic": "true", f"{place}.name": "id", f"{place}.type": "BIGINT"}
    definition = read(samples.of_flink(parameters=old)).definition
    altered = rewritten(samples.of_flink(parameters=old), replace(definition, columns=(column("id", "date"),)))
    new = {"flink.schema.0.name": "id", "flink.schema.0.data-type": "DATE"}
    assert altered.parameters == {"is_generic": "true", **new}


def test_a_broken_view_is_not_rewritten() -> None:
    parameters = without(SPARK_PARAMETERS, "view.query.out.col.0")
    refused(Unreadable, "is missing", wanted(), samples.of_spark(parameters=parameters))
