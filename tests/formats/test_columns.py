"""The native type encoding: every type, expression and column, and how wrong ones are refused."""

from __future__ import annotations

import pytest
from gravitino.api.rel.types.json_serdes.type_serdes import TypeSerdes
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from formats.native.columns import Column, DataType, FunctionArg, Primitive, UnparsedType, parse_primitive
from metalake.errors import Invalid
from metalake.wire import nests_deeper_than, read
from tests.cases import each
from tests.catalogs.native import ALL_PRIMITIVES, call, field, literal, types_of
from tests.profiles import weighing

TYPES = TypeAdapter(DataType)
EXPRESSIONS = TypeAdapter(FunctionArg)
KNOWN_TO_CLIENT = [name for name in ALL_PRIMITIVES if not name.startswith(("geo", "variant", "binary"))]


def written(data_type: object) -> object:
    return TYPES.dump_python(TYPES.validate_python(data_type), by_alias=True, exclude_none=True)


def refusal(body: object) -> str:
    with pytest.raises(Invalid) as caught:
        read(Column, body, kind="column")
    assert caught.value.kind == "column"
    return caught.value.message


@each("name", ALL_PRIMITIVES)
def test_a_primitive_reads_back_as_written(name):
    assert written(name) == name


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("DECIMAL( 10 , 2 )", "decimal(10,2)"),
        (" Long ", "long"),
        ("Integer Unsigned", "integer unsigned"),
        ("VarChar(5)", "varchar(5)"),
        ("Geometry( srid:3857 )", "geometry(srid:3857)"),
        ("geography(EPSG:4326, KARNEY)", "geography(EPSG:4326,karney)"),
    ],
)
def test_case_and_spaces_do_not_matter(text, canonical):
    assert written(text) == canonical


def test_a_primitive_comes_apart():
    assert parse_primitive("decimal(10,2)") == Primitive("decimal", (10, 2))
    assert parse_primitive("timestamp_tz") == Primitive("timestamp_tz")
    assert parse_primitive("geography(a:1,thomas)") == Primitive("geography", ("a:1", "thomas"))


@each(
    "text",
    ["hllsketch", "decimal", "decimal(10)", "varchar(1,2)", "boolean(3)", "fixed()", "struct", "time(-1)", "int",
     "geometry()", "geometry(a,b)", "decimal(10,2", "fixed(٣)"],
)  # fmt: skip
def test_an_unknown_string_is_kept_as_unparsed(text):
    read_type = TYPES.validate_python(text)
    assert isinstance(read_type, UnparsedType)
    assert read_type.unparsed_type == text


@each(
    "text, complaint",
    [
        ("decimal(0,0)", "precision of a decimal is between 1 and 38"),
        ("decimal(39,0)", "precision of a decimal is between 1 and 38"),
        ("decimal(5,6)", "scale of a decimal is between 0 and its precision 5"),
        ("time(13)", "precision of a time is between 0 and 12"),
        ("timestamp(13)", "precision of a timestamp is between 0 and 12"),
        ("varchar(0)", "length of a varchar is at least 1"),
        ("fixed(0)", "length of a fixed is at least 1"),
        ("geography(a,rhumb)", "algorithm of a geography is one of spherical"),
        ("  ", "must not be blank"),
    ],
)
def test_a_known_type_out_of_range_is_refused(text, complaint):
    message = refusal({"name": "c", "type": text})
    assert message.startswith("type: ")
    assert complaint in message


@pytest.mark.parametrize(
    "data_type",
    [
        {"type": "struct", "fields": [{"name": "x", "type": "integer", "nullable": False, "comment": "c"}]},
        {"type": "struct", "fields": []},
        {"type": "list", "elementType": "string", "containsNull": False},
        {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True},
        {"type": "union", "types": ["string", {"type": "list", "elementType": "long", "containsNull": True}]},
        {"type": "unparsed", "unparsedType": "weird<thing>"},
        {"type": "external", "catalogString": "MEDIUMTEXT"},
    ],
)
def test_an_object_type_reads_back_as_written(data_type):
    assert written(data_type) == data_type


def test_nested_fields_may_hold_nulls_unless_told_otherwise():
    for bare, key in [
        ({"type": "list", "elementType": "long"}, "containsNull"),
        ({"type": "list", "elementType": "long", "containsNull": None}, "containsNull"),
        ({"type": "map", "keyType": "long", "valueType": "long"}, "valueContainsNull"),
    ]:
        assert written(bare)[key] is True
    assert written({"type": "struct", "fields": [{"name": "x", "type": "long"}]})["fields"][0]["nullable"] is True


@weighing(1.5)
@given(types_of(KNOWN_TO_CLIENT))
def test_the_client_and_we_agree_on_every_type(data_type):
    seen_by_client = TypeSerdes.serialize(TypeSerdes.deserialize(data_type))
    assert TypeSerdes.serialize(TypeSerdes.deserialize(written(data_type))) == seen_by_client
    assert written(seen_by_client) == seen_by_client


@pytest.mark.parametrize(
    "expression",
    [
        literal("4"),
        literal("NULL", "null"),
        field("a", "b"),
        call("bucket", literal("4"), field("a")),
        call("now"),
        call("f", call("g", field("x")), {"type": "unparsed", "unparsedExpression": "a + b"}),
        {"type": "unparsed", "unparsedExpression": ""},
    ],
)
def test_an_expression_reads_back_as_written(expression):
    read_expression = EXPRESSIONS.validate_python(expression)
    assert EXPRESSIONS.dump_python(read_expression, by_alias=True) == expression


def test_a_column_has_the_wire_s_defaults():
    column = read(Column, {"name": "c", "type": "long", "comment": None, "nullable": None, "defaultValue": None})
    assert column.to_wire() == {"name": "c", "type": "long", "nullable": True, "autoIncrement": False}


@each(
    "body, message",
    [
        ({"type": "long"}, "name: is required"),
        ({"name": "c"}, "type: is required"),
        ({"name": "c", "type": None}, "type: must be the name of a type, or an object"),
        ({"name": " ", "type": "long"}, "name: must not be blank"),
        ({"name": "c", "type": "long", "nulable": True}, "body: unknown field 'nulable'"),
        ({"name": "c", "type": "long", "nullable": "true"}, "nullable: must be true or false"),
        ({"name": "c", "type": 3}, "type: must be the name of a type, or an object"),
        ({"name": "c", "type": {"elementType": "long"}}, "type: 'type' is required"),
        ({"name": "c", "type": {"type": "list"}}, "type.elementType: is required"),
        ({"name": "c", "type": {"type": "list", "elementType": {"type": "map", "keyType": "long"}}},
         "type.elementType.valueType: is required"),
        ({"name": "c", "type": {"type": "struct", "fields": [{"name": "x", "type": "time(99)"}]}},
         "type.fields[0].type: the precision of a time is between 0 and 12, not 99"),
        ({"name": "c", "type": {"type": "struct", "fields": [{"name": "x", "type": "long", "id": 1}]}},
         "type.fields[0]: unknown field 'id'"),
        ({"name": "c", "type": "long", "defaultValue": {"type": "function", "funcName": "f", "funcArgs": [{}]}},
         "defaultValue.funcArgs[0]: 'type' is required"),
        ({"name": "c", "type": "long", "defaultValue": literal(4)},
         "defaultValue.value: must be a string"),
        ({"name": "c", "type": "long", "defaultValue": {"type": "field", "fieldName": []}},
         "defaultValue.fieldName: must have 1 or more items"),
        ("c", "body: must be an object"),
        ([], "body: must be an object"),
        (None, "body: must be an object"),
    ],
)  # fmt: skip
def test_a_wrong_column_is_refused_with_its_place(body, message):
    assert refusal(body) == message


def test_a_required_column_has_no_null_default():
    body = {"name": "c", "type": "long", "nullable": False, "defaultValue": literal("NULL", "null")}
    assert "its default cannot be null" in refusal(body)


def test_a_refusal_counts_the_other_mistakes_and_shortens_what_it_quotes():
    message = refusal({"name": "c", "type": "long", "x" * 5000: 1, "y": 2})
    assert message.endswith("(and 1 more)")
    assert len(message) < 150


def test_a_body_nested_too_deep_is_refused_however_deep():
    data_type: object = "long"
    for _ in range(50_000):
        data_type = {"type": "list", "elementType": data_type}
    assert "nests deeper than" in refusal({"name": "c", "type": data_type})


def test_nesting_is_counted_exactly():
    assert not nests_deeper_than(2, {"a": [1]})
    assert nests_deeper_than(1, {"a": [1]})
    assert not nests_deeper_than(0, "flat")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["type", "name", "fields", "elementType", "keyType", "valueType", "types", "defaultValue",
                         "dataType", "value", "funcArgs", "fieldName", "x"]), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@weighing(3)
@given(JSON)
def test_whatever_arrives_is_read_or_refused_in_our_words(body):
    try:
        column = read(Column, body)
    except Invalid as refused:
        assert refused.message
    else:
        assert read(Column, column.to_wire()) == column
