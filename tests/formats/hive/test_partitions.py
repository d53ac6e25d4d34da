"""Hive partitions: their names, and native identity partitions."""

from __future__ import annotations

import json

import pytest
from gravitino.dto.rel.partitions.json_serdes.partition_dto_serdes import PartitionDTOSerdes
from hypothesis import given
from hypothesis import strategies as st

from formats.hive.partitions import (
    NULL_VALUE,
    escape,
    native_partition,
    partition_name,
    partition_values,
    stored_values,
    unescape,
)
from formats.hive.tables import HiveColumn
from formats.native.partitions import IdentityPartition
from metalake.errors import Invalid, MetalakeError, Unsupported
from metalake.wire import read
from tests.cases import each
from tests.catalogs.native import literal

KEYS = (HiveColumn("Day", "date"), HiveColumn("carrier", "string"))
NULL = {"type": "literal", "dataType": "null", "value": "NULL"}


def body(*values, names=("day", "carrier"), **more):
    return {"type": "identity", "fieldNames": [[name] for name in names], "values": list(values), **more}


def kept(keys, *values, **more):
    return stored_values(keys, read(IdentityPartition, body(*values, **more)))


def refused(error, keys, *values, **more):
    with pytest.raises(MetalakeError) as caught:
        kept(keys, *values, **more)
    assert type(caught.value) is error
    assert caught.value.kind == "partition"
    return caught.value.message


def test_special_characters_are_escaped_as_hive_does():
    assert escape("a/b=c:d") == "a%2Fb%3Dc%3Ad"
    assert escape("\x00\t\n\x1f\x7f\"#%'*?\\{[]^") == "%00%09%0A%1F%7F%22%23%25%27%2A%3F%5C%7B%5B%5D%5E"
    assert escape("Az09 -_.~!@$&()+,;<>|}`é€😀\x80") == "Az09 -_.~!@$&()+,;<>|}`é€😀\x80"
    assert unescape("%2f%2F%zz%4") == "//%zz%4"


@given(st.text(max_size=20))
def test_escaping_is_undone(text):
    assert unescape(escape(text)) == text


VALUES = st.text(min_size=1, max_size=10)


@given(st.lists(st.tuples(st.text(min_size=1, max_size=5).map(str.lower), VALUES), min_size=1, max_size=3))
def test_names_come_back_as_values(pairs):
    keys = [HiveColumn(name, "string") for name, _ in pairs]
    values = [value for _, value in pairs]
    assert partition_values(keys, partition_name(keys, values)) == values


def test_a_name_says_keys_in_lower_case_and_null_in_a_word():
    assert partition_name(KEYS, ["2026-11-21", "A/B"]) == "day=2026-11-21/carrier=A%2FB"
    assert partition_name(KEYS, ["2026-11-21", ""]) == "day=2026-11-21/carrier=__HIVE_DEFAULT_PARTITION__"
    assert partition_values(KEYS, "DAY=2026-11-21/carrier=A=B") == ["2026-11-21", "A=B"]


@each(
    "name",
    [
        "",
        "day",
        "day=1",
        "day=1/carrier=",
        "day=1/carrier=2/x=3",
        "carrier=2/day=1",
        "day=1/Carriers=2",
        "day=1//carrier=2",
    ],
)
def test_a_name_that_does_not_fit_the_keys_is_refused(name):
    with pytest.raises(Invalid) as caught:
        partition_values(KEYS, name)
    assert caught.value.message.endswith("names no partition of this table; use the form day=.../carrier=...")


def test_a_native_partition_says_values_of_the_keys_types():
    assert native_partition(KEYS, ["2026-11-21", NULL_VALUE], {"numRows": "3"}) == {
        "type": "identity",
        "name": "day=2026-11-21/carrier=__HIVE_DEFAULT_PARTITION__",
        "fieldNames": [["Day"], ["carrier"]],
        "values": [literal("2026-11-21", "date"), NULL],
        "properties": {"numRows": "3"},
    }
    odd = (HiveColumn("at", "geometry"), HiveColumn("n", "decimal(5,1)"))
    assert [value["dataType"] for value in native_partition(odd, ["x", "1.5"], {})["values"]] == [
        "string",
        "decimal(5,1)",
    ]


def test_the_native_client_reads_it():
    native = native_partition((HiveColumn("n", "int"), HiveColumn("c", "string")), ["7", "A/B"], {"k": "v"})
    theirs = PartitionDTOSerdes.deserialize(json.loads(json.dumps(native)))
    assert (theirs.name(), theirs.field_names(), theirs.properties()) == ("n=7/c=A%2FB", [["n"], ["c"]], {"k": "v"})
    assert [value.value() for value in theirs.values()] == ["7", "A/B"]


TYPED = [
    ("int", "integer", "007", "7"),
    ("tinyint", "byte", "-128", "-128"),
    ("bigint", "long", "9223372036854775807", "9223372036854775807"),
    ("boolean", "boolean", "TRUE", "true"),
    ("date", "date", "2026-11-21", "2026-11-21"),
    ("timestamp", "timestamp", "2026-11-21T01:02:03.5", "2026-11-21 01:02:03.5"),
    ("decimal(5,2)", "decimal(5,2)", "1.50", "1.50"),
    ("double", "double", "1e3", "1e3"),
    ("float", "float", "-.5", "-.5"),
    ("varchar(5)", "varchar(5)", "A/B", "A/B"),
    ("geometry", "string", "x", "x"),
]


@each("hive, native, sent, stored", TYPED)
def test_values_are_kept_as_text(hive, native, sent, stored):
    keys = (HiveColumn("k", hive),)
    assert kept(keys, literal(sent, native), names=["k"]) == [stored]
    assert kept(keys, literal(sent, "string"), names=["K"]) == [stored]
    assert kept(keys, NULL, names=["k"]) == [NULL_VALUE]


def test_what_is_shown_can_be_sent_back():
    values = ["2026-11-21", "a b/c"]
    shown = native_partition(KEYS, values, {"k": "v"})
    assert stored_values(KEYS, read(IdentityPartition, shown)) == values


def test_values_come_in_the_order_of_the_keys():
    assert kept(KEYS, literal("AA", "string"), literal("2026-11-21", "date"), names=["Carrier", "day"]) == [
        "2026-11-21",
        "AA",
    ]


@each(
    "hive, native, value",
    [
        ("int", "integer", "x"),
        ("int", "integer", "2147483648"),
        ("tinyint", "byte", "128"),
        ("bigint", "long", "1.5"),
        ("boolean", "boolean", "yes"),
        ("date", "date", "2026-02-30"),
        ("decimal(5,2)", "decimal(5,2)", "NaN"),
        ("timestamp", "timestamp", "2026-11-21T00:00:00+01:00"),
        ("timestamp", "timestamp", "now"),
        ("timestamp", "timestamp", "2026-11-21T25:00:00"),
        ("timestamp", "timestamp", "20261121T000000"),
        ("double", "double", "one"),
        ("double", "double", "1_0"),
        ("decimal(5,2)", "decimal(5,2)", " 1"),
        ("int", "integer", "\uff11"),
    ],
)
def test_a_value_that_is_none_of_its_type_is_refused(hive, native, value):
    message = refused(Invalid, (HiveColumn("k", hive),), literal(value, native), names=["k"])
    assert message == f"values[0]: {value!r} is no {native}"


def test_other_partitions_are_refused():
    day, carrier = literal("2026-11-21", "date"), literal("AA", "string")
    assert refused(Invalid, KEYS, day) == "values: give one value for each of fieldNames"
    expected = "fieldNames: name each partition column once: Day, carrier"
    assert refused(Invalid, KEYS, day, names=["day"]) == expected
    assert refused(Invalid, KEYS, day, day, names=["day", "day"]) == expected
    assert refused(Invalid, KEYS, day, carrier, names=["day", "x"]) == expected
    wrong = literal("1", "integer")
    assert refused(Invalid, KEYS, wrong, carrier) == "values[0]: the literal is not of the type of 'Day', date"
    empty = literal("", "string")
    assert refused(Invalid, KEYS, day, empty) == "values[1]: Hive keeps no empty partition value; use the null literal"
    name = "day=2026-11-21/carrier=AA"
    assert kept(KEYS, day, carrier, name=name) == kept(KEYS, day, carrier, name="")
    message = refused(Invalid, KEYS, day, carrier, name="p1")
    assert message == f"name: Hive calls this partition {name!r}; leave the name out"
    assert refused(Unsupported, (), day, carrier) == "The table is not partitioned"
