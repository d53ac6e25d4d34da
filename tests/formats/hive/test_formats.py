"""File formats by name and by class, what kind a table is, and the filter that lets it be seen."""

from __future__ import annotations

import pytest

from formats.hive.formats import STORAGE_FORMATS, format_name, storage_format
from formats.hive.tables import formats_of, passes, read_filter
from metalake.errors import Invalid
from tests.cases import each
from tests.formats.hive.samples import airports, spark_sales

OPEN_CSV = "org.apache.hadoop.hive.serde2.OpenCSVSerde"
HUDI_INPUT = "org.apache.hudi.hadoop.HoodieParquetInputFormat"


def stored(name, **parameters):
    return airports(**STORAGE_FORMATS[name]._asdict(), parameters=parameters)


@each("name", ["TEXTFILE", "SEQUENCEFILE", "ORC", "PARQUET", "AVRO", "JSON", "CSV", "RCFILE"])
def test_a_format_is_named_by_its_classes_and_back(name):
    classes = storage_format(name.lower(), "properties.format")
    assert format_name(classes.input_format, classes.serde_lib) == name


def test_the_classes_are_those_of_hive():
    assert storage_format("parquet", "") == (
        "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
        "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
        "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    )
    assert storage_format("CSV", "").serde_lib == OPEN_CSV


def test_the_serde_tells_apart_what_the_input_format_does_not():
    text = STORAGE_FORMATS["TEXTFILE"].input_format
    assert format_name(text, "org.openx.data.jsonserde.JsonSerDe") == "JSON"
    assert format_name(text, "com.example.TheirSerDe") == "TEXTFILE"
    assert format_name(None, OPEN_CSV) == "CSV"
    assert format_name("com.example.TheirInput", None) is None
    assert format_name(None, None) is None


def test_an_unknown_format_is_refused_with_the_known_ones():
    with pytest.raises(Invalid) as caught:
        storage_format("delta", "properties.format")
    assert caught.value.message.startswith("properties.format: 'delta' is none of TEXTFILE, SEQUENCEFILE, ORC, ")


@each(
    "table, formats",
    [
        (airports(parameters={"table_type": "Iceberg"}), {"iceberg"}),
        (airports(parameters={"spark.sql.sources.provider": "DELTA"}), {"delta"}),
        (airports(parameters={"table_type": "delta"}), {"delta"}),
        (airports(parameters={"spark.sql.sources.provider": "hudi"}), {"hudi"}),
        (airports(input_format=HUDI_INPUT), {"hudi"}),
        (airports(input_format=None, output_format=None, serde_lib=None), {"hive"}),
        (airports(parameters={"table_type": "PAIMON"}), {"hive", "text"}),
        (stored("PARQUET"), {"hive", "parquet"}),
        (stored("PARQUET", classification="csv"), {"hive", "parquet"}),
        (stored("ORC"), {"hive", "orc"}),
        (stored("AVRO"), {"hive", "avro"}),
        (stored("JSON"), {"hive", "json"}),
        (stored("CSV"), {"hive", "csv"}),
        (stored("TEXTFILE"), {"hive", "text"}),
        (stored("TEXTFILE", classification="CSV"), {"hive", "csv"}),
        (stored("TEXTFILE", classification="xml"), {"hive", "text"}),
        (stored("SEQUENCEFILE"), {"hive"}),
        (stored("SEQUENCEFILE", classification="parquet"), {"hive", "parquet"}),
        (spark_sales(), {"hive", "json"}),
    ],
)
def test_a_table_is_of_one_kind(table, formats):
    assert formats_of(table) == formats


def test_the_filter_takes_words_in_any_case_and_refuses_others():
    assert read_filter(" Hive, DELTA ,", "table-type-filter") == {"hive", "delta"}
    assert read_filter("", "table-type-filter") == {"all"}
    with pytest.raises(Invalid) as caught:
        read_filter("hive,hudi", "table-type-filter")
    assert caught.value.message == "table-type-filter: 'hudi' is none of all, hive, iceberg, delta, parquet"


def test_the_filter_lets_pass_what_it_names():
    iceberg, delta = airports(parameters={"table_type": "ICEBERG"}), airports(parameters={"table_type": "DELTA"})
    tables = {"iceberg": iceberg, "delta": delta, "hudi": airports(input_format=HUDI_INPUT)}
    tables |= {"parquet": stored("PARQUET"), "text": airports()}

    def seen(text):
        return {name for name, table in tables.items() if passes(read_filter(text, ""), formats_of(table))}

    assert seen("all") == seen("hive,all") == set(tables)
    assert seen("hive") == {"parquet", "text"}
    assert seen("parquet") == {"parquet"}
    assert seen("iceberg,delta") == {"iceberg", "delta"}
