"""What SQL reads and yields, in the dialects of several engines."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlglot.dialects.dialect import Dialect

from formats.sql.analysis import read
from formats.sql.dialects import KNOWN, dialect_of
from formats.sql.parsing import MOST_TOKENS, TOO_DEEP
from formats.sql.results import OutputColumn, Reading, Source, SourceColumn
from tests.cases import each
from tests.formats.sql.queries import COLUMNS_OF, LINES, ORDERS, REVENUE


def reading(sql: str, dialect: str = "trino", columns_of: Any = COLUMNS_OF) -> Reading:
    return read(sql, dialect, "lake", "shop", columns_of)


def names(sql: str, dialect: str = "trino") -> list[str]:
    sources = reading(sql, dialect).sources
    assert sources is not None
    return sorted(".".join(part or "" for part in (each.catalog, each.schema, each.name)) for each in sources)


def columns(sql: str, dialect: str = "trino", columns_of: Any = COLUMNS_OF) -> tuple[OutputColumn, ...]:
    answer = reading(sql, dialect, columns_of)
    assert answer.columns is not None, answer
    return answer.columns


@pytest.mark.parametrize("dialect", REVENUE)
def test_a_query_reads_tables_and_yields_columns(dialect: str) -> None:
    answer = reading(REVENUE[dialect], dialect, {})
    folded = str.upper if dialect == "snowflake" else str
    assert {source.name for source in answer.sources or ()} == set(map(folded, ("orders", "lineitem", "customer")))
    assert {(source.catalog, source.schema) for source in answer.sources or ()} == {("lake", "shop")}
    assert [column.name for column in answer.columns or ()] == ["name", "nation", "revenue", "orders"]
    assert answer.problems == () and answer.is_generic == (dialect == "flink")


@pytest.mark.parametrize("dialect", ["trino", "spark", "hive", "flink"])
def test_what_each_column_is_made_of(dialect: str) -> None:
    answer = reading(REVENUE[dialect], dialect)
    assert answer.sources is not None and answer.problems == ()
    made_of = [
        {(answer.sources[each.source].name, each.name) for each in column.made_of or ()}
        for column in answer.columns or ()
    ]
    assert made_of[:3] == [
        {("customer", "c_name")},
        {("customer", "c_nationkey")},
        {("lineitem", "l_extendedprice"), ("lineitem", "l_discount")},
    ]
    assert ("orders", "o_orderkey") in made_of[3]
    assert [column.type for column in answer.columns or ()][:3] == ["string", "integer", None]


@each(
    "dialect, sql, tables",
    [
        ("spark", "SELECT * FROM cat.a.b.T JOIN s.u", ["cat.a.b.T", "lake.s.u"]),
        ("trino", 'SELECT * FROM Cat."a.B".T, s.u', ["cat.a.b.t", "lake.s.u"]),
        ("trino", "SELECT * FROM a.t, b.t", ["lake.a.t", "lake.b.t"]),
        ("postgres", 'SELECT * FROM T, "T"', ["lake.shop.T", "lake.shop.t"]),
        ("trino", "WITH t AS (SELECT * FROM t) SELECT * FROM T", ["lake.shop.t"]),
        ("trino", "WITH a AS (SELECT 1), b AS (SELECT * FROM a, c) SELECT * FROM b", ["lake.shop.c"]),
        ("trino", "WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT * FROM r) SELECT * FROM r", []),
        ("trino", "SELECT 1 FROM a UNION (WITH x AS (SELECT 1) TABLE x) UNION TABLE x", ["lake.shop.a", "lake.shop.x"]),
        ("spark", "WITH W AS (SELECT * FROM t) SELECT * FROM w PIVOT (sum(x) FOR y IN (1, 2))", ["lake.shop.t"]),
        ("spark", "SELECT (SELECT max(x) FROM c) FROM a WHERE EXISTS (SELECT 1 FROM d)", None),
        ("spark", "FROM a SELECT * WHERE i IN (SELECT i FROM range(10) JOIN values(1))", ["lake.shop.a"]),
        ("trino", "SELECT * FROM a, UNNEST(a.x) u, LATERAL (SELECT * FROM b WHERE b.i = a.i) c", None),
        ("trino", "VALUES (1, 2)", []),
    ],
)
def test_the_tables_that_are_read(dialect: str, sql: str, tables: list[str] | None) -> None:
    by_itself = {
        "SELECT (S": ["lake.shop.a", "lake.shop.c", "lake.shop.d"],
        "SELECT * ": ["lake.shop.a", "lake.shop.b"],
    }
    assert names(sql, dialect) == (tables if tables is not None else by_itself[sql[:9]])


def test_names_are_completed_only_by_what_is_given() -> None:
    assert read("SELECT * FROM t, s.u, c.s.v", "spark").sources == (
        Source(None, None, "t"),
        Source(None, "s", "u"),
        Source("c", "s", "v"),
    )


def test_a_star_is_expanded_once_its_sources_are_known() -> None:
    sql = (
        "WITH w AS (SELECT * FROM orders) SELECT w.*, l_discount AS off FROM w JOIN lineitem ON o_orderkey = l_orderkey"
    )
    assert reading(sql, columns_of={}).columns is None
    assert [(each.name, each.type) for each in columns(sql)] == [
        ("o_orderkey", "long"),
        ("o_custkey", "long"),
        ("o_totalprice", "decimal"),
        ("o_orderdate", "date"),
        ("off", "double"),
    ]


@each(
    "dialect, sql, stars",
    [
        ("trino", "SELECT x.*, a.*, 1 AS one FROM a, (SELECT b.* FROM b) x", [(1, ()), (0, ())]),
        (
            "spark",
            "SELECT * EXCEPT (I) FROM (SELECT * EXCEPT (at) FROM a) JOIN b USING (k)",
            [(0, ("at", "i")), (1, ("i",))],
        ),
        ("snowflake", "SELECT * EXCLUDE (x) RENAME (y AS z) FROM a", [(0, ("x", "y"))]),
        ("bigquery", "SELECT * REPLACE (1 AS q) FROM a", [(0, ("q",))]),
        ("spark", "SELECT * FROM a LEFT SEMI JOIN b ON a.id = b.id", [(0, ())]),
        ("trino", "SELECT * FROM a UNION ALL SELECT * FROM b", [(0, ())]),
        ("trino", "WITH RECURSIVE r AS (SELECT * FROM a UNION ALL SELECT * FROM r) SELECT * FROM r", [(0, ())]),
        ("trino", "WITH w (k) AS (SELECT * FROM a) SELECT w.*, b.* FROM w, b", [(0, ())]),
        ("spark", "SELECT * FROM a PIVOT (sum(x) FOR y IN (1, 2))", []),
        ("trino", "SELECT id FROM a", []),
        ("spark", "SELECT a.* EXCEPT (x, y), a.* EXCEPT (x, z) FROM a", [(0, ("x",))]),
        ("spark", f"SELECT a.* EXCEPT ({', '.join(f'c{n}' for n in range(101))}) FROM a", []),
    ],
)
def test_a_star_over_unknown_sources_says_which(dialect: str, sql: str, stars: list[Any]) -> None:
    assert [(each.source, each.but) for each in reading(sql, dialect, {}).stars] == stars


@pytest.mark.parametrize(
    "of", ["IDENTIFIER('hr.sal' || 'aries')", "f(TABLE(hr.salaries))", "a, (SELECT 1 FROM IDENTIFIER('b')) x"]
)
def test_a_function_for_a_table_may_read_more_than_is_named(of: str) -> None:
    assert reading(f"SELECT x FROM {of}", "spark").reads_more and not reading("SELECT x FROM a", "spark").reads_more


def test_what_is_named_beside_a_star_is_told() -> None:
    answer = reading("SELECT a.*, b.x AS y, z FROM a, b", columns_of={})
    assert answer.columns is None
    assert answer.beside == (OutputColumn("y", None, (SourceColumn(1, "x"),)), OutputColumn("z"))


def test_columns_are_spelt_as_their_table_has_them() -> None:
    columns_of = {Source("lake", "shop", "t"): {"Id": "long", "at": "timestamp_tz"}}
    assert columns("SELECT * FROM t", "trino", columns_of) == (
        OutputColumn("Id", "long", (SourceColumn(0, "Id"),)),
        OutputColumn("at", "timestamp_tz", (SourceColumn(0, "at"),)),
    )
    assert columns("SELECT ID AS Key, at FROM t", "spark", columns_of) == (
        OutputColumn("Key", "long", (SourceColumn(0, "Id"),)),
        OutputColumn("at", None, (SourceColumn(0, "at"),)),  # Spark's depends on the session
    )


def test_quoted_columns_are_those_of_their_very_case() -> None:
    columns_of = {Source("lake", "shop", "t"): {"Id": "long", "id": "string", "Name": "date"}}
    answer = reading('SELECT "Id", ID, t."Name" FROM t', "postgresql", columns_of)
    assert answer.problems == () and [each.type for each in answer.columns or ()] == ["long", "string", "date"]
    (problem,) = reading("SELECT Name FROM t", "postgresql", columns_of).problems
    assert problem.text == "No table here has a column “name”."


def test_a_type_is_given_only_where_engines_agree() -> None:
    sql = "SELECT count(*) a, sum(o_totalprice) b, CAST(1 AS tinyint) c, 'x' d, 1.5 e, o_custkey > 1 f FROM orders"
    assert [each.type for each in columns(sql)] == ["long", None, "byte", "string", None, "boolean"]


def test_columns_without_a_name_have_none() -> None:
    assert [each.name for each in columns("SELECT 1, count(*), o_custkey + 1, 'a' FROM orders")] == [None] * 4
    assert [each.name for each in columns("VALUES (1, 2)")] == [None, None]


def test_what_cannot_be_told_is_left_open() -> None:
    """Without its sources' columns, a name without a table may be of any; two namesakes are not told apart."""
    unknown, again = columns("SELECT x, o.y FROM orders o JOIN lineitem l ON true", columns_of={})
    assert unknown.made_of is None and again.made_of == (SourceColumn(0, "y"),)
    assert [each.made_of for each in columns("SELECT o_custkey, o_orderkey AS o_custkey FROM orders")] == [None, None]


def test_a_union_is_made_of_all_its_parts() -> None:
    (key,) = columns("SELECT o_orderkey AS key FROM orders UNION ALL SELECT l_orderkey FROM lineitem")
    assert key == OutputColumn("key", "long", (SourceColumn(0, "o_orderkey"), SourceColumn(1, "l_orderkey")))


def test_columns_that_are_gone_are_named_with_their_place() -> None:
    sql = 'SELECT o_orderkey,\n  gone, o.lost, "$path"\nFROM orders o WHERE o_custkey > old'
    assert [(each.text, each.line, each.column) for each in reading(sql).problems] == [
        ("No table here has a column “gone”.", 2, 3),
        ("“o” has no column “lost”.", 2, 11),
        ("No table here has a column “old”.", 3, 33),
    ]
    both = {**COLUMNS_OF, Source("lake", "shop", "lineitem"): {**LINES, **ORDERS}}
    twice = reading("SELECT o_orderkey FROM orders, lineitem", columns_of=both).problems
    assert [each.text for each in twice] == ["“o_orderkey” is a column of several tables."]
    some = {Source("lake", "shop", "orders"): ORDERS}
    assert reading("SELECT gone FROM orders, lineitem", columns_of=some).problems == ()


@each(
    "sql, text, place",
    [
        ("select a\nfrom b\nwhere c == = d", "Something is missing at “=”.", (3, 12)),
        ("select count(a from t", "“)” is expected at “from”.", (1, 16)),
        ("select a b c from x", "“c” is not expected.", (1, 12)),
        ("select\n  'it", "What begins with “'” here has no end.", (2, 3)),
        ("select `a", "What begins with “`” here has no end.", (1, 8)),
        ("select 1; select 2", "There is more than one statement; a view has one query.", (None, None)),
        ("drop table x", "It is no query: a view's SQL begins with SELECT, WITH, VALUES or the like.", (None, None)),
        ("-- nothing", "It is no query: a view's SQL begins with SELECT, WITH, VALUES or the like.", (None, None)),
        ("select /* a", "A text, a name or a comment in it has no end.", None),
        (
            "select " + "1," * MOST_TOKENS + "1",
            "It has 100,002 words and signs; more than 50,000 are not read here.",
            None,
        ),
    ],
)
def test_what_cannot_be_read_has_a_reason_and_a_place(
    sql: str, text: str, place: tuple[int | None, int | None] | None
) -> None:
    answer = reading(sql, "spark")
    (problem,) = answer.problems
    assert problem.text == text and (problem.line, problem.column) == (place or (None, None))
    assert answer.sources is None and answer.columns is None


@pytest.mark.parametrize("deep", ["(" * 3000 + "1" + ")" * 3000, "case when 1 then " * 3000 + "1" + " end" * 3000])
def test_deep_nesting_is_no_crash(deep: str) -> None:
    assert [each.text for each in reading(f"select {deep} as a").problems] == [TOO_DEEP]


@each("odd", ["\x00", "\ud800", "\u202e", "😀", "\ufeff", "''''", "`", '"', "$$", "\\"])
@each("dialect", ["trino", "spark", "hive", "flink", "nonsense", "mysql", "bigquery"])
def test_odd_characters_lead_to_an_answer(odd: str, dialect: str) -> None:
    answer = reading(f"select a{odd} from {odd} where x = '{odd}'", dialect)
    assert Reading.from_json(json.loads(json.dumps(answer.as_json()))) == answer
    assert answer.problems or answer.sources is not None


def test_each_dialect_that_is_offered_is_there() -> None:
    for name in KNOWN:
        assert Dialect.get_or_raise(name) and not dialect_of(name).is_generic
        assert names("SELECT a FROM t", name) in (["lake.shop.t"], ["lake.shop.T"])
    assert dialect_of(" PostgreSQL ").name == "postgres" and dialect_of("Flink").is_generic
    assert names('SELECT "a", `b` FROM "T"', "of our own") == ["lake.shop.T"]
