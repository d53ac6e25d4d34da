"""Hive's type strings to native types and back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from formats.hive.types import MAX_NESTING, hive_type, native_type, type_of_iceberg
from formats.native.columns import DataType
from metalake.errors import Invalid, MetalakeError, Unsupported
from tests.cases import each
from tests.profiles import weighing

NATIVE = TypeAdapter(DataType)
SPELLINGS = {
    "boolean": "boolean", "tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long",
    "float": "float", "double": "double", "string": "string", "binary": "binary", "date": "date",
    "timestamp": "timestamp", "timestamp with local time zone": "timestamp_tz", "void": "null",
    "interval_year_month": "interval_year", "interval_day_time": "interval_day", "decimal(10,2)": "decimal(10,2)",
    "decimal(38,38)": "decimal(38,38)", "varchar(65535)": "varchar(65535)", "char(255)": "char(255)",
}  # fmt: skip
OTHER_SPELLINGS = {
    "integer": "integer", "INT": "integer", " BigInt ": "long", "double precision": "double",
    "DOUBLE \t PRECISION": "double", "decimal": "decimal(10,0)", "decimal(5)": "decimal(5,0)",
    "DECIMAL ( 5 , 1 )": "decimal(5,1)", "numeric": "decimal(10,0)", "numeric(6,3)": "decimal(6,3)",
    "dec(7)": "decimal(7,0)", "Timestamp  With Local\nTime Zone": "timestamp_tz", "VARCHAR( 7 )": "varchar(7)",
}  # fmt: skip
NOT_HIVE = [
    "",
    " ",
    "geometry",
    "int unsigned",
    "int(4)",
    "varchar",
    "varchar(0)",
    "varchar(65536)",
    "char(256)",
    "char(1,2)",
    "decimal(39,0)",
    "decimal(0)",
    "decimal(5,6)",
    "decimal()",
    "decimal(1,2,3)",
    "decimal(-1)",
    "timestamp(3)",
    "timestamp with local time zone('UTC')",
    "timestamp with time zone",
    "array",
    "array<>",
    "array<int",
    "array<int>>",
    "array<int,int>",
    "map<int>",
    "map<int,int,int>",
    "struct",
    "struct<a>",
    "struct<a:>",
    "struct<:int>",
    "struct<a:int,>",
    "struct<a:int b:int>",
    "struct<`a:int>",
    "struct<` `:int>",
    "uniontype<>",
    "uniontype<int,>",
    "list<int>",
    "int,int",
    "array<struct<a:int,b:xml>>",
    "struct<a:int comment x>",
    "struct<a:int comment 'x>",
    "größe",
    "<",
    "struct<a<b:int>",
]


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": [{"nullable": True, **field} for field in fields]}


def listed(element: Any) -> dict[str, Any]:
    return {"type": "list", "elementType": element, "containsNull": True}


def mapped(key: Any, value: Any) -> dict[str, Any]:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


def written(native: Any, where: str = "columns[0].type") -> str:
    return hive_type(NATIVE.validate_python(native), where)


def not_written(error: type[MetalakeError], native: Any) -> str:
    with pytest.raises(MetalakeError) as caught:
        written(native)
    assert type(caught.value) is error
    assert caught.value.kind == "column"
    return caught.value.message


@each("hive, native", SPELLINGS.items())
def test_a_primitive_has_one_spelling_in_each(hive, native):
    assert native_type(hive) == native
    assert written(native) == hive


@each("hive, native", OTHER_SPELLINGS.items())
def test_other_spellings_are_read(hive, native):
    assert native_type(hive) == native


@each("text", NOT_HIVE)
def test_what_hive_does_not_define_travels_whole(text):
    assert native_type(text) == {"type": "external", "catalogString": text}


@pytest.mark.parametrize("text", ["geometry", "variant(8)", "matrix<double(2), int>", "my_type", "array<hyperloglog>"])
def test_a_type_that_others_define_comes_back(text):
    assert written(native_type(text)) == text


@each(
    "text",
    ["weird<<", "array<", "array<>", "decimal()", "struct<a:>", "uniontype<int,>", "int>", "<", "a<b)", "3d", "x,"],
)
def test_a_type_that_does_not_parse_is_not_written(text):
    assert f"{text!r} is no type" in not_written(Invalid, {"type": "external", "catalogString": text})


@each(
    "hive, native",
    [
        ("Array < Int >", listed("integer")),
        ("map<string,array<bigint>>", mapped("string", listed("long"))),
        ("uniontype< int , string >", {"type": "union", "types": ["integer", "string"]}),
        ("struct<>", struct()),
        ("struct< a : int , B:string >", struct({"name": "a", "type": "integer"}, {"name": "B", "type": "string"})),
        ("struct<a-b c.d$:int>", struct({"name": "a-b c.d$", "type": "integer"})),
        ("struct<`a:``b,<>`:int>", struct({"name": "a:`b,<>", "type": "integer"})),
        ("struct<größe:int>", struct({"name": "größe", "type": "integer"})),
        (
            "struct<a:int COMMENT 'it\\'s, a>b', b:string comment \"\">",
            struct(
                {"name": "a", "type": "integer", "comment": "it's, a>b"}, {"name": "b", "type": "string", "comment": ""}
            ),
        ),
        (
            "struct<comment:struct<int:double precision comment 'x'>>",
            struct({"name": "comment", "type": struct({"name": "int", "type": "double", "comment": "x"})}),
        ),
    ],
)
def test_nested_types_are_read(hive, native):
    assert native_type(hive) == native


FIELD_NAMES = (
    st.text(st.characters(blacklist_characters=",:;<>`", blacklist_categories=["Cc", "Cs"]), min_size=1, max_size=5)
    .map(str.strip)
    .filter(bool)
)


def _struct(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    field = st.fixed_dictionaries({"name": FIELD_NAMES, "type": inner})
    fields = st.lists(field, max_size=3, unique_by=lambda item: item["name"].lower())
    return fields.map(lambda some: struct(*some))


NATIVE_TYPES = st.recursive(
    st.sampled_from(list(SPELLINGS.values())),
    lambda inner: st.one_of(
        _struct(inner),
        inner.map(listed),
        st.builds(mapped, st.sampled_from(list(SPELLINGS.values())), inner),
        st.lists(inner, min_size=1, max_size=3).map(lambda types: {"type": "union", "types": types}),
    ),
    max_leaves=8,
)


@weighing(3)
@given(NATIVE_TYPES)
def test_native_types_come_back_as_they_went(native):
    assert native_type(written(native)) == native


@weighing(3)
@given(NATIVE_TYPES, st.sampled_from([" ", "\t", "  "]))
def test_type_strings_come_back_as_they_went_in_any_case_and_spacing(native, space):
    text = written(native)
    assert written(native_type(text)) == text
    if "struct" not in text:
        spaced = text.replace("<", f"{space}<{space}").replace(",", f"{space},{space}").replace(">", f"{space}>")
        assert native_type(spaced) == native
        assert native_type(text.upper()) == native


@weighing(3)
@given(st.text("array<>mpstruct:,()` int'\\19é\n", max_size=60))
def test_any_text_is_read_as_a_type_that_the_wire_can_carry(text):
    native = native_type(text)
    json.dumps(NATIVE.dump_python(NATIVE.validate_python(native), by_alias=True))


@each(
    "native, advice",
    [
        ("byte unsigned", "; use short"),
        ("long unsigned", "; use decimal(20,0)"),
        ("uuid", "; use string"),
        ("time(6)", "; use string"),
        ("timestamp(6)", "; use timestamp, whose precision is 9"),
        ("fixed(16)", "; use binary"),
        ("varchar(65536)", ", the longest varchar is varchar(65535); use string"),
        ("char(256)", ", the longest char is char(255); use varchar(256)"),
        ("char(70000)", ", the longest char is char(255); use string"),
        ("geography(EPSG:4326,karney)", "; use binary"),
    ],
)
def test_a_type_that_hive_lacks_is_refused_with_what_to_use_instead(native, advice):
    assert not_written(Unsupported, native) == f"columns[0].type: Hive has no type {native}{advice}"


@each(
    "error, native, complaint",
    [
        (Unsupported, listed(mapped("string", "uuid")), "columns[0].type.elementType.valueType: Hive has no type uuid"),
        (Unsupported, {**listed("long"), "containsNull": False}, "columns[0].type.containsNull: everything"),
        (Unsupported, {**mapped("long", "long"), "valueContainsNull": False}, "columns[0].type.valueContainsNull: "),
        (Unsupported, mapped(listed("long"), "long"), "columns[0].type.keyType: the keys of a Hive map are primitive"),
        (Unsupported, struct({"name": "a", "type": "long", "nullable": False}), "columns[0].type.fields[0].nullable: "),
        (Unsupported, struct({"name": "a", "type": "long", "comment": "x"}), "columns[0].type.fields[0].comment: "),
        (Invalid, struct({"name": "a,b", "type": "long"}), "columns[0].type.fields[0].name: Hive cannot keep ','"),
        (Invalid, struct({"name": " a", "type": "long"}), "columns[0].type.fields[0].name: Hive keeps no white space"),
        (
            Invalid,
            struct({"name": "A", "type": "long"}, {"name": "a", "type": "long"}),
            "columns[0].type.fields[1].name: 'a' is there already",
        ),
        (Invalid, {"type": "union", "types": []}, "columns[0].type.types: a union has at least one type"),
        (Unsupported, {"type": "unparsed", "unparsedType": "xml"}, "columns[0].type: unknown type 'xml'"),
        (Invalid, {"type": "external", "catalogString": " "}, "columns[0].type.catalogString: must not be blank"),
    ],
)
def test_a_nested_refusal_names_the_place(error, native, complaint):
    assert not_written(error, native).startswith(complaint)


def nested(levels: int) -> str:
    return "array<" * levels + "int" + ">" * levels


def test_nesting_ends_at_a_limit_and_not_in_a_recursion_error():
    deepest = native_type(nested(MAX_NESTING))
    assert json.dumps(deepest).count("list") == MAX_NESTING
    assert written(deepest) == nested(MAX_NESTING)
    for levels in (MAX_NESTING + 1, 100_000):
        assert native_type(nested(levels)) == {"type": "external", "catalogString": nested(levels)}
    assert not_written(Invalid, listed(deepest)) == f"columns[0].type: nests deeper than {MAX_NESTING} levels"


@pytest.mark.parametrize(
    "text",
    [
        "array<" * 200_000,
        "struct<a:" * 100_000,
        "struct<" + " " * 1_000_000,
        "struct<" + "`" * 1_000_001,
        "double" + " " * 1_000_000 + "x",
        "struct<a:int comment '" + "\\'" * 500_000,
        "decimal(" + " " * 1_000_000,
        "struct<" + ",".join(f"a{n}:int" for n in range(50_000)),
        "map<" * 200_000,
        "struct<" + "a " * 500_000 + ":int>",
    ],
)
@pytest.mark.timeout(30)
def test_hostile_text_is_read(text):
    assert native_type(text)


@pytest.mark.timeout(30)
def test_a_wide_struct_is_read_and_written():
    text = f"struct<{','.join(f'c{n}:array<bigint>' for n in range(20_000))}>"
    native = native_type(text)
    assert len(native["fields"]) == 20_000
    assert written(native) == text


# Of Iceberg


@each(
    "iceberg, hive",
    [
        ("int", "int"),
        ("long", "bigint"),
        ("decimal(9, 2)", "decimal(9,2)"),
        ("fixed[16]", "binary"),
        ("uuid", "string"),
        ("time", "string"),
        ("timestamptz", "timestamp"),
        ("timestamptz_ns", "timestamp"),
        ({"type": "list", "element": "long"}, "array<bigint>"),
        (
            {
                "type": "map",
                "key": "string",
                "value": {
                    "type": "struct",
                    "fields": [{"name": "gate", "type": "uuid"}, {"name": "at", "type": "time"}],
                },
            },
            "map<string,struct<gate:string,at:string>>",
        ),
    ],
)
def test_an_iceberg_type_is_kept_as_iceberg_s_own_catalogs_do(iceberg: Any, hive: str) -> None:
    assert type_of_iceberg(iceberg) == hive
    assert "external" not in json.dumps(native_type(hive)), "whoever reads the entry knows the type"
