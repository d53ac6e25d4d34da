"""What a query would be in another dialect, and that nothing is left out without a word."""

from __future__ import annotations

import json
from itertools import permutations

from formats.sql.analysis import read
from formats.sql.parsing import TOO_DEEP
from formats.sql.results import Translation
from formats.sql.translating import translate
from tests.cases import each
from tests.formats.sql.queries import REVENUE


@each("dialect, into", list(permutations(["trino", "spark", "hive", "snowflake"], 2)))
def test_a_suggestion_reads_and_yields_the_same(dialect: str, into: str) -> None:
    suggestion = translate(REVENUE[dialect], dialect, into)
    assert suggestion.sql is not None and not suggestion.problems and not suggestion.is_generic
    before, after = read(REVENUE[dialect], dialect), read(suggestion.sql, into)
    assert after.problems == ()
    assert {each.name.lower() for each in after.sources or ()} == {each.name.lower() for each in before.sources or ()}
    assert [each.name for each in after.columns or ()] == ["name", "nation", "revenue", "orders"]


@each(
    "dialect, into, sql, note",
    [
        (
            "trino",
            "spark",
            "SELECT array_agg(a ORDER BY b) FROM t",
            "ORDER BY is missing in it, or is written otherwise.",
        ),
        ("trino", "spark", "SELECT array_agg(a ORDER BY b) FROM t", "The column “b” is missing in it."),
        (
            "spark",
            "trino",
            "SELECT a FROM t DISTRIBUTE BY b",
            "DISTRIBUTE BY is missing in it, or is written otherwise.",
        ),
        ("spark", "trino", "SELECT /*+ BROADCAST(t) */ a FROM t", "Hints are not supported."),
        ("spark", "trino", "SELECT * FROM t PIVOT (sum(x) FOR y IN (1, 2))", "PIVOT unsupported."),
        ("spark", "trino", "SELECT ours(a) FROM t", "The function “ours” is not known here; it stands as it was."),
        ("trino", "hive", "SELECT try(a / b) FROM t", "Unsupported TRY function."),
        (
            "trino",
            "spark",
            "SELECT * FROM t MATCH_RECOGNIZE (MEASURES b AS c PATTERN (A) DEFINE A AS true)",
            "It has something that is no SQL of this dialect.",
        ),
    ],
)
def test_what_is_not_carried_over_is_marked(dialect: str, into: str, sql: str, note: str) -> None:
    assert note in translate(sql, dialect, into).not_carried_over


def test_a_plain_query_has_no_marks() -> None:
    assert translate("SELECT a, count(*) AS n FROM t WHERE b > 1 GROUP BY a", "trino", "spark").not_carried_over == ()


def test_nested_schemas_are_written_as_the_engine_does() -> None:
    assert 'FROM c."a.b".t' in (translate("SELECT * FROM c.a.b.t", "spark", "trino").sql or "")
    assert "FROM c.a.b.t" in (translate('SELECT * FROM c."a.b".t', "trino", "spark").sql or "")
    assert "FROM c.s.t" in (translate("SELECT * FROM c.s.t", "spark", "trino").sql or "")


def test_generic_sql_says_so_and_is_quoted_as_the_engine_does() -> None:
    suggestion = translate('SELECT "a b" FROM t', "trino", "flink")
    assert suggestion.is_generic and "`a b`" in (suggestion.sql or "")


def test_what_cannot_be_read_has_no_suggestion() -> None:
    assert translate("SELECT FROM", "trino", "spark").problems
    deep = translate(f"SELECT {'(' * 3000}1{')' * 3000}", "trino", "spark")
    assert deep.sql is None and [each.text for each in deep.problems] == [TOO_DEEP]
    assert Translation.from_json(json.loads(json.dumps(deep.as_json()))) == deep
