"""Names go from an engine to Metalake and back without loss, as the engine's own parser reads them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from random import Random

import duckdb
import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from metalake_client.engines import flink, names
from metalake_client.engines.names import SPELLINGS, Name
from metalake_client.engines.quoting import backquoted
from metalake_client.engines.rendered import Refusal
from tests.cases import each
from tests.flink import Flink
from tests.spark import Spark

EVERYDAY, LONG = 2_000, 100_000
SIGNS = "ab_z019 .'\"`:;$@|~-=/\\%,(){}*?!&#éßñжшقش漢字ひ가अ😀"
UPPER = "AZÉЖ"
UNSPEAKABLE = {"trino": ".$@", "duckdb": ".", "pyiceberg": ".", "spark": "{"}
SEPARATOR = "|"

CATALOG_SIGNS = "ab_z09-=/é漢"
AT_ONCE = 100  # names of one seed: what is random about each is cheap, and hypothesis keeps the seed of a failure
AT_ONCE_IN_FLINK = 1000  # columns of a view


def random_names(engine: str, seed: int) -> Iterator[Name]:
    """Names all of which the engine can spell."""
    random = Random(seed)
    signs = SIGNS + ("" if engine == "trino" else UPPER)
    level = [sign for sign in signs if sign not in UNSPEAKABLE.get(engine, "")]
    inner = [sign for sign in level if engine != "flink" or sign != "."]

    def text(alphabet: Sequence[str]) -> str:
        return "".join(random.choices(alphabet, k=random.randint(1, 8)))

    for _ in range(AT_ONCE):
        above = [text(inner) for _ in range(random.randint(0, 3))]
        yield Name("c" + text(CATALOG_SIGNS), (*above, text(level)), text(level))


def some_names(engine: str, number: int) -> list[Name]:
    """So many; each is checked to come back as it went."""
    found: list[Name] = []

    @settings(max_examples=number // AT_ONCE, deadline=None, database=None)
    @given(st.integers(0, 2**64))
    def gather(seed: int) -> None:
        spelling = SPELLINGS[engine]
        for name in random_names(engine, seed):
            text = spelling.spell(name)
            back = spelling.read(text)
            assert back == (replace(name, catalog="") if engine == "pyiceberg" else name), text
            assert spelling.spell(back) == text
            found.append(name)

    gather()
    return found


def parts_of(engine: str, name: Name) -> list[str]:
    """What the engine's parser has to read."""
    if engine == "spark":
        return [name.catalog, *name.schema, name.object]
    if engine == "flink":
        return [".".join((name.catalog, *name.schema[:-1])), name.schema[-1], name.object]
    return [name.catalog, ".".join(name.schema), name.object]


def by_sqlglot(dialect: str) -> Callable[[Sequence[str]], list[list[str]]]:
    def parsed(texts: Sequence[str]) -> list[list[str]]:
        tables = (exp.to_table(text, dialect=dialect) for text in texts)
        return [[part.name for part in table.parts] for table in tables]

    return parsed


def by_duckdb(texts: Sequence[str]) -> list[list[str]]:
    statements = "; ".join(f"SELECT * FROM {text}" for text in texts)
    answer = duckdb.connect().execute("SELECT json_serialize_sql(?)", [statements]).fetchone()
    assert answer is not None
    tables = [each["node"]["from_table"] for each in json.loads(answer[0])["statements"]]
    return [[table["catalog_name"], table["schema_name"], table["table_name"]] for table in tables]


def require_same(engine: str, number: int, parser: Callable[[Sequence[str]], list[list[str]]]) -> None:
    made = some_names(engine, number)
    assert len(made) >= number
    for start in range(0, len(made), 500):
        some = made[start : start + 500]
        assert parser([SPELLINGS[engine].spell(name) for name in some]) == [parts_of(engine, name) for name in some]


PARSERS = {"trino": by_sqlglot("trino"), "duckdb": by_duckdb, "flink": by_sqlglot("spark")}
NUMBERS = [EVERYDAY, pytest.param(LONG, marks=[pytest.mark.long, pytest.mark.timeout(3600)])]


@pytest.mark.slow
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("engine", PARSERS)
def test_names_come_back_as_they_went(engine: str, number: int) -> None:
    require_same(engine, number, PARSERS[engine])


@pytest.mark.slow
@pytest.mark.parametrize("number", NUMBERS)
def test_names_of_spark_come_back_as_they_went(iceberg_spark: Spark, number: int) -> None:
    require_same("spark", number, iceberg_spark.parsed)


@pytest.mark.slow
@pytest.mark.parametrize("number", NUMBERS)
def test_names_of_pyiceberg_come_back_as_they_went(number: int) -> None:
    from pyiceberg.catalog import Catalog

    made = some_names("pyiceberg", number)
    assert len(made) >= number
    for name in made:
        read = Catalog.identifier_to_tuple(SPELLINGS["pyiceberg"].spell(name))
        assert read == (*name.schema, name.object)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_flink_reads_parts_as_they_were_written(flink: Flink) -> None:
    """By the names of a view's columns, since that is where its parser shows what it read."""
    parts = {part for name in some_names("flink", LONG) for part in parts_of("flink", name)}
    ordered = sorted(parts)
    for start in range(0, len(ordered), AT_ONCE_IN_FLINK):
        some = ordered[start : start + AT_ONCE_IN_FLINK]
        columns = ", ".join(f"1 AS {backquoted(part)}" for part in some)
        flink.sql(f"CREATE TEMPORARY VIEW v{start} AS SELECT {columns}")
        assert [row[0] for row in flink.sql(f"DESCRIBE v{start}")] == some


@given(st.lists(st.text(alphabet=SIGNS.replace(SEPARATOR, ""), min_size=1, max_size=8), min_size=1, max_size=5))
def test_a_schema_goes_over_the_native_wire_and_back(levels: list[str]) -> None:
    assert names.levels_of(names.logical(levels, SEPARATOR), SEPARATOR) == tuple(levels)


def test_a_separator_in_a_level_is_refused() -> None:
    with pytest.raises(Refusal, match="'a:b'"):
        names.logical(["x", "a:b"], ":")


@each(
    "engine, name, why",
    [
        ("spark", Name("c", ("a${b",), "c}"), "variable"),
        ("trino", Name("c", ("a.b",), "t"), r"'a\.b'.*dots"),
        ("trino", Name("c", ("a", "B"), "t"), "lower-case"),
        ("trino", Name("c", ("a",), "T"), "lower-case"),
        ("trino", Name("c", ("a",), "t$files"), "metadata"),
        ("trino", Name("c", ("information_schema",), "t"), "its own"),
        ("duckdb", Name("c", ("a", "x.y"), "t"), r"'x\.y'.*dots"),
        ("pyiceberg", Name("c", ("a",), "x.y"), "tuple"),
        ("flink", Name("c", ("a.b", "leaf"), "t"), r"'a\.b'.*dot"),
        ("flink", Name("c", ("a",), "t" * 257), "256"),
        ("flink", Name("c", ("a" * 200, "b" * 200, "leaf"), "t"), "256"),
    ],
)
def test_what_an_engine_cannot_spell_is_refused_by_a_sentence(engine: str, name: Name, why: str) -> None:
    with pytest.raises(Refusal, match=why) as refused:
        SPELLINGS[engine].spell(name)
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize("text", ["", "a", "`a`.`b", "a..b.c", "`a` `b`.c.d", ".a.b.c", "a.b.c."])
def test_what_is_no_name_is_refused(text: str) -> None:
    for engine in ("spark", "flink"):
        with pytest.raises(Refusal):
            SPELLINGS[engine].read(text)


def test_a_name_of_flink_is_of_the_catalog_that_was_made_for_it() -> None:
    assert flink.name_of("lake", ("sales", "emea")) == "lake.sales.emea"
    assert SPELLINGS["flink"].spell(Name("lake", ("sales", "emea", "2026"), "t")) == "`lake.sales.emea`.`2026`.`t`"


def test_sqlglot_is_another_parser_than_ours() -> None:
    assert by_sqlglot("trino")(['lake."a.b"."t""x"']) == [["lake", "a.b", 't"x']]
    assert sqlglot.parse_one("SELECT 1") is not None
