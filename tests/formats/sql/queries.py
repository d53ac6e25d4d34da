"""Queries as analysts write them, each in the dialects of several engines, on one warehouse of orders."""

from __future__ import annotations

from typing import Any

from formats.sql.results import Source

ORDERS: dict[str, Any] = {
    "o_orderkey": "long",
    "o_custkey": "long",
    "o_totalprice": "decimal(15,2)",
    "o_orderdate": "date",
}
LINES: dict[str, Any] = {
    "l_orderkey": "long",
    "l_extendedprice": "decimal(15,2)",
    "l_discount": "double",
    "l_tags": {"type": "list"},
}
CUSTOMERS: dict[str, Any] = {"c_custkey": "long", "c_name": "string", "c_nationkey": "integer"}

COLUMNS_OF: dict[Source, dict[str, Any]] = {
    Source("lake", "shop", "orders"): ORDERS,
    Source("lake", "shop", "lineitem"): LINES,
    Source("lake", "shop", "customer"): CUSTOMERS,
}

# By what it asks: the SQL in each dialect, and the names of the tables it reads.
REVENUE = {
    "trino": """
        WITH recent AS (
            SELECT o_orderkey, o_custkey FROM orders WHERE o_orderdate >= DATE '2020-01-01' - INTERVAL '3' MONTH
        )
        SELECT c.c_name AS name, c.c_nationkey AS nation, sum(l.l_extendedprice * (1 - l.l_discount)) AS revenue,
               count(DISTINCT r.o_orderkey) FILTER (WHERE l.l_discount > 0) AS orders
        FROM recent r
        JOIN lineitem l ON l.l_orderkey = r.o_orderkey
        JOIN "lake"."shop".customer c ON c.c_custkey = r.o_custkey
        CROSS JOIN UNNEST(l.l_tags) AS tags (tag)
        WHERE c.c_nationkey IN (SELECT c_nationkey FROM customer GROUP BY c_nationkey HAVING count(*) > 10)
        GROUP BY c.c_name, c.c_nationkey
        ORDER BY revenue DESC
        FETCH FIRST 10 ROWS ONLY
    """,
    "spark": """
        WITH recent AS (SELECT o_orderkey, o_custkey FROM orders WHERE o_orderdate >= add_months(DATE'2020-01-01', -3))
        SELECT /*+ BROADCAST(c) */ c.c_name AS name, c.c_nationkey AS nation,
               sum(l.l_extendedprice * (1 - l.l_discount)) AS revenue, count(DISTINCT r.o_orderkey) AS orders
        FROM recent r
        JOIN `shop`.lineitem l ON l.l_orderkey = r.o_orderkey
        JOIN lake.shop.customer c ON c.c_custkey = r.o_custkey
        LATERAL VIEW OUTER explode(l.l_tags) tags AS tag
        LEFT SEMI JOIN customer big ON big.c_nationkey = c.c_nationkey
        GROUP BY c.c_name, c.c_nationkey
        SORT BY revenue DESC LIMIT 10
    """,
    "hive": """
        SELECT c.c_name AS name, c.c_nationkey AS nation, sum(l.l_extendedprice * (1 - l.l_discount)) AS revenue,
               count(DISTINCT r.o_orderkey) AS orders
        FROM Orders r JOIN lineitem l ON (l.l_orderkey = r.o_orderkey) JOIN customer c ON (c.c_custkey = r.o_custkey)
        LATERAL VIEW explode(l.l_tags) tags AS tag
        WHERE r.o_orderdate >= '2019-10-01'
        GROUP BY c.c_name, c.c_nationkey DISTRIBUTE BY name
    """,
    "flink": """
        SELECT c.c_name AS name, c.c_nationkey AS nation, SUM(l.l_extendedprice * (1 - l.l_discount)) AS revenue,
               COUNT(DISTINCT r.o_orderkey) AS orders
        FROM `orders` AS r
        JOIN `lake`.`shop`.`lineitem` AS l ON l.l_orderkey = r.o_orderkey
        JOIN customer FOR SYSTEM_TIME AS OF r.o_orderdate AS c ON c.c_custkey = r.o_custkey
        GROUP BY c.c_name, c.c_nationkey
    """,
    "snowflake": """
        SELECT c.c_name AS "name", c.c_nationkey AS "nation", sum(l.l_extendedprice * (1 - l.l_discount)) "revenue",
               count(DISTINCT r.o_orderkey) AS "orders"
        FROM orders r, lineitem l, customer c
        WHERE l.l_orderkey = r.o_orderkey AND c.c_custkey = r.o_custkey
        GROUP BY 1, 2 QUALIFY row_number() OVER (ORDER BY sum(l.l_extendedprice) DESC) <= 10
    """,
}
