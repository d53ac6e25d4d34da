"""Whether the dialects of a view yield the columns that it declares."""

from __future__ import annotations

from formats.sql.analysis import read
from formats.sql.comparing import Declared, Difference, differences
from formats.sql.results import Reading
from tests.formats.sql.queries import COLUMNS_OF, REVENUE

DECLARED = [Declared("id", "long"), Declared("name", "varchar(20)"), Declared("tags", {"type": "list"})]


def read_all(queries: dict[str, str]) -> dict[str, Reading]:
    return {dialect: read(sql, dialect, "lake", "shop", COLUMNS_OF) for dialect, sql in queries.items()}


def compared(**queries: str) -> list[tuple[str, str, int | None]]:
    answers = differences(DECLARED, read_all(queries))
    return [(each.dialect, each.text, each.position) for each in answers]


def test_dialects_that_agree_do_not_differ() -> None:
    declared = [Declared("name", "string"), Declared("nation", "integer"), Declared("revenue"), Declared("orders")]
    alike = {dialect: REVENUE[dialect] for dialect in ("trino", "spark", "hive", "flink")}
    assert differences(declared, read_all(alike)) == () == differences([], read_all(alike))
    assert differences(declared, read_all(REVENUE)) == ()


def test_each_difference_is_told_apart() -> None:
    assert compared(
        trino="SELECT o_orderkey AS ID, c_name AS name, l_tags AS tags FROM orders, customer, lineitem",
        spark="SELECT o_orderkey AS id, c_name AS title, c_nationkey AS tags FROM orders, customer",
        hive="SELECT o_orderdate AS id, c_name AS name, 1 AS tags FROM orders, customer",
        mysql="SELECT 1 AS id, 2 AS name",
        presto="SELECT 'x' AS name, 1 AS id, 2 AS tags",
        flink="SELECT 1 AS ID, '' AS name, 2 AS tags",
    ) == [
        ("spark", "It yields “title” instead of “name”.", 2),
        ("hive", "“id” is date instead of long.", 1),
        ("mysql", "It yields 2 columns instead of 3.", None),
        ("presto", "It yields the columns in another order: “name”, “id”, “tags”.", None),
        ("flink", "It yields “ID” instead of “id”.", 1),
    ]


def test_what_cannot_be_told_is_no_difference() -> None:
    assert compared(trino="SELECT * FROM elsewhere", spark="SELECT FROM WHERE", hive="SELECT 1, 2, 3") == []


def test_without_declared_columns_the_first_dialect_stands() -> None:
    readings = read_all({"trino": "SELECT * FROM gone", "spark": "SELECT 1 AS a", "hive": "SELECT 1 AS b"})
    assert differences([], readings) == (Difference("hive", "It yields “b” instead of “a”.", 1),)
