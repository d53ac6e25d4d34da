"""Views on the native wire and as Iceberg metadata: what fits goes both ways, what does not is refused by its place."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.iceberg.views.builder import apply_view_updates, new_view_metadata
from formats.iceberg.views.security import with_noted_mode
from formats.iceberg.views.translate import from_iceberg_view, to_iceberg_view, updates_for
from formats.native.view_definition import Representation, SecurityMode, ViewDefinition
from formats.native.views import ViewUpdatesRequest, altered
from metalake.errors import Invalid, MetalakeError, Unsupported
from metalake.wire import read
from tests.catalogs.native import ICEBERG_2_PRIMITIVES, ICEBERG_3_PRIMITIVES, columns, columns_of
from tests.formats.iceberg.metadata import as_wire
from tests.formats.iceberg.table_samples import NOW, UUID, Json, column, schema
from tests.formats.iceberg.views.view_samples import LATER, SPARK_CREATE, query, replaced, view
from tests.profiles import weighing

ID = {"name": "id", "type": "integer", "nullable": False, "autoIncrement": False, "comment": "unique ID"}
DATA = {"name": "data", "type": "string", "nullable": True, "autoIncrement": False}


def definition(*representations: Representation, **more: Any) -> ViewDefinition:
    return ViewDefinition(representations=representations or (in_dialect("spark"),), **more)


def in_dialect(dialect: str, sql: str = "select 1", **more: Any) -> Representation:
    return Representation(dialect=dialect, sql=sql, **more)


def stored(wanted: ViewDefinition) -> Json:
    """The metadata of a new view."""
    columns_, version, properties = to_iceberg_view(wanted)
    return new_view_metadata(
        view_uuid=UUID, location="s3://lake/v", schema=columns_, version=version, properties=properties, now_ms=NOW
    )


def changed(metadata: Json, after: ViewDefinition) -> Json:
    """The metadata after the one commit that makes the view what it is to be."""
    updates = updates_for(from_iceberg_view(metadata), after, metadata)
    made = apply_view_updates(metadata, updates, now_ms=LATER, may_drop_dialects=True)
    assert replace(from_iceberg_view(made), columns=()) == replace(after, columns=())
    assert as_wire(list(from_iceberg_view(made).columns)) == as_wire(list(after.columns))
    return made


def refusal(error: type[MetalakeError], wanted: ViewDefinition) -> str:
    """The message of refusing both to create such a view and to make one such."""
    with pytest.raises(error) as creating:
        to_iceberg_view(wanted)
    metadata = stored(definition())
    with pytest.raises(error) as changing:
        updates_for(from_iceberg_view(metadata), wanted, metadata)
    assert creating.value.message == changing.value.message
    return creating.value.message


# Reading


def test_what_spark_wrote() -> None:
    metadata = new_view_metadata(
        view_uuid=UUID,
        location="s3://lake/v1",
        schema=SPARK_CREATE["schema"],
        version=SPARK_CREATE["view-version"],
        properties=SPARK_CREATE["properties"],
        now_ms=NOW,
    )
    assert from_iceberg_view(metadata) == ViewDefinition(
        representations=(
            in_dialect("spark", "select 1 as x", default_catalog="spark_catalog", default_schema="default"),
        ),
        columns=({"name": "a", "type": "integer", "nullable": False, "autoIncrement": False, "comment": "c1"},),
        comment="vc",
        properties={
            "k": "v",
            "engine_version": "Spark 3.5.8",
            "create_engine_version": "Spark 3.5.8",
            "spark.query-column-names": "x",
        },
    )


def test_a_version_of_the_history_has_its_own_queries_and_columns() -> None:
    named: Json = {"default-namespace": ["a", "b"]}
    metadata = replaced(view(query("select 1")), query("select 2"), **named)
    before, after = (from_iceberg_view(metadata, each) for each in metadata["versions"])
    assert after == from_iceberg_view(metadata)
    assert [each.representations[0].sql for each in (before, after)] == ["select 1", "select 2"]
    assert [each.default_schema for each in (before, after)] == ["ns", "a:b"]
    assert before.columns == (ID, DATA)


@pytest.mark.parametrize("namespace", [None, []])
def test_a_view_without_namespace_schemas_and_properties_is_read(namespace: Any) -> None:
    bare = {key: value for key, value in view().items() if key not in ("schemas", "version-log", "properties")}
    bare["versions"] = [{"version-id": 1, "default-namespace": namespace, "representations": [query()]}]
    assert from_iceberg_view(bare) == definition(in_dialect("spark", "select * from ns.tbl"))


def test_a_view_whose_current_version_is_missing_says_so() -> None:
    with pytest.raises(Invalid, match="no version 7"):
        from_iceberg_view(view() | {"current-version-id": 7})


@pytest.mark.parametrize("field", [{"id": 1}, {"name": 5}, {"id": "1"}, {"required": None}, {"doc": {}}, {"type": 3}])
def test_a_malformed_schema_says_so(field: Json) -> None:
    wrong = {**column(1, "a"), **field} if field != {"id": 1} else {"id": 1}
    with pytest.raises(Invalid, match="schema is malformed"):
        from_iceberg_view(view() | {"schemas": [{"schema-id": 0, "fields": [wrong]}]})


def test_a_type_of_a_newer_engine_is_shown_as_it_is() -> None:
    metadata = view() | {"schemas": [schema(column(1, "a", "vector[3]"), **{"schema-id": 0})]}
    assert from_iceberg_view(metadata).columns[0]["type"] == {"type": "external", "catalogString": "vector[3]"}
    after = changed(metadata, replace(from_iceberg_view(metadata), representations=(in_dialect("spark"),)))
    assert after["schemas"] == metadata["schemas"] and after["versions"][1]["schema-id"] == 0


# Creation


def test_a_native_view_as_iceberg() -> None:
    defaults = {"default_catalog": "lake", "default_schema": "a:b"}
    wanted = definition(
        in_dialect("spark", "select `id` from t", **defaults),
        in_dialect("trino", 'select "id" from t', **defaults),
        columns=(ID,),
        comment="all of them",
        properties={"team": "x"},
    )
    metadata = stored(wanted)
    assert metadata["schemas"] == [
        {"schema-id": 0, **schema({"id": 1, "name": "id", "required": True, "type": "int", "doc": "unique ID"})}
    ]
    assert metadata["versions"] == [
        {
            "version-id": 1,
            "schema-id": 0,
            "timestamp-ms": NOW,
            "summary": {"engine-name": "metalake"},
            "default-catalog": "lake",
            "default-namespace": ["a", "b"],
            "representations": [query("select `id` from t"), query('select "id" from t', "trino")],
        }
    ]
    assert metadata["properties"] == {"team": "x", "comment": "all of them"}
    assert from_iceberg_view(metadata) == wanted


def test_a_view_may_have_no_columns_and_no_defaults() -> None:
    metadata = stored(definition())
    assert metadata["schemas"][0]["fields"] == [] and metadata["versions"][0]["default-namespace"] == []
    assert "default-catalog" not in metadata["versions"][0] and metadata["properties"] == {}
    assert from_iceberg_view(metadata) == definition()


def test_columns_of_every_shape_are_numbered_level_by_level() -> None:
    wanted = definition(columns=tuple(as_wire(columns())))
    assert from_iceberg_view(stored(wanted)) == wanted


PRIMITIVES = [each for each in [*ICEBERG_2_PRIMITIVES, *ICEBERG_3_PRIMITIVES] if each != "null"]  # never required
NAMES = st.text("abé_", min_size=1, max_size=5)
QUERIES = st.text("select 1;\n'\"`é\t", min_size=1, max_size=20).filter(str.strip)


@st.composite
def definitions(draw: st.DrawFn) -> ViewDefinition:
    dialects = draw(st.lists(st.sampled_from(["spark", "Trino", "hive", "flink", "my own"]), min_size=1, unique=True))
    defaults = {
        "default_catalog": draw(st.none() | NAMES),
        "default_schema": draw(st.none() | st.lists(NAMES, min_size=1, max_size=3).map(":".join)),
    }
    return ViewDefinition(
        representations=tuple(in_dialect(each, draw(QUERIES), **defaults) for each in dialects),
        columns=tuple(as_wire(draw(columns_of(PRIMITIVES)))),
        comment=draw(st.none() | NAMES),
        properties=draw(st.dictionaries(NAMES, NAMES, max_size=3)),
    )


@weighing(0.3)
@given(wanted=definitions())
def test_whatever_fits_goes_there_and_back(wanted: ViewDefinition) -> None:
    assert from_iceberg_view(stored(wanted)) == wanted


@weighing(0.3)
@given(before=definitions(), after=definitions())
def test_any_view_becomes_any_other_in_one_commit(before: ViewDefinition, after: ViewDefinition) -> None:
    metadata = stored(before)
    untouched = deepcopy(metadata)
    changed(metadata, after)
    assert metadata == untouched


# What does not fit


@pytest.mark.parametrize("mode", list(SecurityMode))
def test_a_security_mode_is_refused(mode: SecurityMode) -> None:
    message = refusal(Invalid, definition(security_mode=mode))
    assert message.startswith("securityMode: an Iceberg view has none") and "leave it out" in message


def test_a_view_that_trino_runs_with_its_owners_rights_is_a_definer_view() -> None:
    """Trino writes this property for CREATE VIEW, whose default is SECURITY DEFINER."""
    metadata = view(query(dialect="trino"), properties={"trino.run-as-owner": "ada", "comment": "c"})
    was = from_iceberg_view(metadata)
    assert was.security_mode is SecurityMode.DEFINER and was.properties == {"trino.run-as-owner": "ada"}
    after = changed(metadata, replace(was, comment="d", representations=(in_dialect("trino", "select 2"),)))
    assert after["properties"] == {"trino.run-as-owner": "ada", "comment": "d"}
    with pytest.raises(Invalid, match="securityMode"):
        updates_for(was, replace(was, security_mode=None), metadata)
    invoker = with_noted_mode(replace(was, security_mode=SecurityMode.INVOKER), was, "mia")
    assert changed(metadata, invoker)["properties"] == {"comment": "c"} and not invoker.is_definer
    definer = with_noted_mode(replace(invoker, security_mode=SecurityMode.DEFINER), invoker, "mia")
    assert changed(metadata, definer)["properties"] == {"trino.run-as-owner": "mia", "comment": "c"}
    assert with_noted_mode(replace(was, properties={}), was, "mia") == invoker, "as set-properties says it"


def test_nobody_names_trinos_owner_on_the_native_wire() -> None:
    with pytest.raises(Invalid, match=r"properties.trino.run-as-owner: is Trino's"):
        to_iceberg_view(definition(properties={"trino.run-as-owner": "root"}))
    with pytest.raises(Invalid, match=r"properties.TRINO.Run-As-Owner: is Trino's"):
        to_iceberg_view(definition(properties={"TRINO.Run-As-Owner": "root"}))


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        ({"default_catalog": "a"}, {"default_catalog": "b"}, "representations[1].defaultCatalog: is 'b', and that of"),
        ({"default_schema": "a"}, {"default_schema": "b"}, "representations[1].defaultSchema: is 'b', and that of"),
        ({"default_schema": "a"}, {}, "representations[1].defaultSchema: is none, and that of 'spark' is 'a'"),
    ],
)
def test_one_default_for_all_dialects(one: Json, other: Json, words: str) -> None:
    message = refusal(Invalid, definition(in_dialect("spark", **one), in_dialect("trino", **other)))
    assert words in message and "one for all of its dialects" in message


@pytest.mark.parametrize(
    ("parts", "error", "words"),
    [
        ({"properties": {"comment": "c"}}, Invalid, "properties.comment: is reserved"),
        ({"columns": ({"name": "a", "type": "varchar(3)"},)}, Unsupported, "columns[0].type: Iceberg has no type"),
        ({"columns": ({"name": "a", "type": 5},)}, Invalid, "columns[0]: type"),
        ({"columns": ({"name": "a", "type": "nonsense("},)}, Unsupported, "columns[0].type: unknown type"),
        ({"columns": ({"name": "a", "type": "long", "autoIncrement": True},)}, Unsupported, "columns[0].autoIncrement"),
        (
            {
                "columns": (
                    ID,
                    {
                        "name": "a",
                        "type": "integer",
                        "defaultValue": {"type": "literal", "dataType": "integer", "value": "1"},
                    },
                )
            },
            Invalid,
            "columns[1].defaultValue: a view's columns have no default",
        ),
    ],
)
def test_other_things_that_do_not_fit(parts: Json, error: type[MetalakeError], words: str) -> None:
    assert words in refusal(error, definition(**parts))


@pytest.mark.parametrize("name", ["a::b", "", "a:" * 17 + "a", "*"])
def test_a_default_schema_that_is_no_name_is_refused_with_its_place(name: str) -> None:
    assert "representations[0].defaultSchema: " in refusal(
        Invalid, definition(in_dialect("spark", default_schema=name))
    )


# Changes


def test_nothing_changes_without_a_change() -> None:
    metadata = view(query(), properties={"comment": "c", "a": "b"})
    same = from_iceberg_view(metadata)
    assert updates_for(same, same, metadata) == []


def test_comment_and_properties_make_no_version_in_iceberg() -> None:
    metadata = view(query(), properties={"comment": "c", "a": "b", "x": "y"})
    was = from_iceberg_view(metadata)
    after = changed(metadata, replace(was, comment=None, properties={"a": "c", "n": "m"}))
    assert after["properties"] == {"a": "c", "n": "m"}
    assert after["versions"] == metadata["versions"]


def test_a_changed_query_keeps_what_other_engines_wrote_into_the_version() -> None:
    table = {"namespace": ["n"], "name": "st"}
    metadata = view(
        query(hint="fast"), query(dialect="Trino"), **{"storage-table": table, "default-namespace": ["a:b"]}
    )
    was = from_iceberg_view(metadata)
    assert was.default_schema == "a:b", "one level, that looks like two"
    spark, trino = was.representations
    after = changed(metadata, replace(was, representations=(replace(spark, sql="select 2"), trino)))
    new = after["versions"][1]
    assert new["representations"] == [query("select 2", hint="fast"), query(dialect="Trino")]
    assert new["storage-table"] == table and new["default-namespace"] == ["a:b"]
    assert new["schema-id"] == 0 and after["schemas"] == metadata["schemas"]
    assert (after["current-version-id"], new["timestamp-ms"], new["summary"]) == (2, LATER, {"engine-name": "metalake"})


def test_defaults_change_for_all_dialects_at_once() -> None:
    metadata = view(query(), query(dialect="trino"))
    was = from_iceberg_view(metadata)
    moved = tuple(replace(each, default_catalog="lake", default_schema="a:b") for each in was.representations)
    after = changed(metadata, replace(was, representations=moved))
    new = after["versions"][1]
    assert (new["default-catalog"], new["default-namespace"]) == ("lake", ["a", "b"])
    back = changed(after, was)
    assert "default-catalog" not in back["versions"][2] and back["versions"][2]["default-namespace"] == ["ns"]


def test_the_native_updates_together_are_one_version() -> None:
    metadata = view(query(), properties={"comment": "c"})
    body = {
        "updates": [
            {"@type": "updateComment", "newComment": "d"},
            {"@type": "addRepresentation", "representation": {"type": "sql", "dialect": "trino", "sql": "select 2"}},
            {"@type": "removeRepresentation", "dialect": "SPARK"},
            {"@type": "setProperty", "property": "a", "value": "b"},
        ]
    }
    after = changed(metadata, altered(from_iceberg_view(metadata), read(ViewUpdatesRequest, body).updates))
    assert [each["version-id"] for each in after["versions"]] == [1, 2]
    assert after["versions"][1]["representations"] == [query("select 2", "trino")]
    assert after["versions"][1]["default-namespace"] == ["ns"], "of the view, which the new dialect takes over"
    assert after["properties"] == {"comment": "d", "a": "b"}


def test_columns_keep_their_ids_by_name() -> None:
    metadata = view(query())
    was = from_iceberg_view(metadata)
    new = {"name": "new", "type": "date", "nullable": True, "autoIncrement": False}
    after = changed(metadata, replace(was, columns=({**DATA, "comment": "text"}, new, {**ID, "type": "long"})))
    assert after["schemas"][1]["fields"] == [
        {"id": 4, "name": "data", "required": False, "type": "string", "doc": "text"},
        {"id": 5, "name": "new", "required": False, "type": "date"},
        {"id": 3, "name": "id", "required": True, "type": "long", "doc": "unique ID"},
    ]
    assert after["versions"][1]["schema-id"] == 1
    back = changed(after, was)
    assert len(back["schemas"]) == 2 and back["versions"][2]["schema-id"] == 0, "an equal schema is used again"


def test_an_id_of_a_column_that_was_removed_is_not_given_again() -> None:
    metadata = view(query())
    was = from_iceberg_view(metadata)
    without = changed(metadata, replace(was, columns=(ID,)))
    after = changed(without, replace(was, columns=(ID, {**DATA, "name": "other"})))
    assert [field["id"] for field in after["schemas"][-1]["fields"]] == [3, 5]


def test_nested_columns_that_do_not_change_keep_every_id_and_unknown_field() -> None:
    deep = column(7, "s", {"type": "struct", "fields": [column(9, "x", "int", future=1)]}, future={"a": 1})
    metadata = view(query()) | {"schemas": [schema(deep, column(8, "y"), **{"schema-id": 0, "note": "mine"})]}
    was = from_iceberg_view(metadata)
    struct, y = was.columns
    after = changed(metadata, replace(was, columns=({**struct, "comment": "deep"}, y)))
    assert after["schemas"][1]["fields"] == [{**deep, "doc": "deep"}, column(8, "y")]
    assert after["schemas"][1]["note"] == "mine"
    grown = deepcopy(struct)
    grown["type"]["fields"].append({"name": "z", "type": "date", "nullable": True})
    other = changed(after, replace(was, columns=(grown, y)))["schemas"][2]["fields"][0]
    assert other["id"] == 7 and [each["id"] for each in other["type"]["fields"]] == [10, 11]


def test_identifier_columns_may_be_removed() -> None:
    identified = schema(column(1, "a", required=True), column(2, "b"), **{"schema-id": 0, "identifier-field-ids": [1]})
    metadata = view(query()) | {"schemas": [identified]}
    was = from_iceberg_view(metadata)
    assert "identifier-field-ids" not in changed(metadata, replace(was, columns=was.columns[1:]))["schemas"][1]


def test_a_representation_that_is_no_query_is_not_dropped_in_silence() -> None:
    metadata = deepcopy(view(query()))
    metadata["versions"][0]["representations"].append({"type": "graph"})
    was = from_iceberg_view(metadata)
    assert was.dialects == ["spark"]
    updates = updates_for(was, replace(was, representations=(in_dialect("spark", "select 2"),)), metadata)
    with pytest.raises(Invalid, match="must be 'sql', not 'graph'"):
        apply_view_updates(metadata, updates, now_ms=LATER)
