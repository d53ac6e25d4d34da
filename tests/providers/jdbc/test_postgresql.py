"""What PostgreSQL alone has: its types, identities, partitions and foreign tables, and its DDL in transactions."""
# ruff: noqa: F811

from __future__ import annotations

import pytest

from metalake.errors import Invalid, Unsupported
from tests.providers.jdbc_tables import NOW, Database, column, external, key, literal, update
from tests.providers.jdbc_tables import postgres_database as database  # noqa: F401 (a fixture)

NATIVE = [
    "boolean", "short", "integer", "long", "float", "double", "decimal(10,2)", "decimal(38,0)", "date", "time",
    "time(0)", "timestamp", "timestamp(3)", "timestamp_tz", "timestamp_tz(6)", "string", "varchar(5)", "char(3)",
    "binary", "uuid",
]  # fmt: skip
LISTS = [{"type": "list", "elementType": each, "containsNull": True} for each in ("integer", "decimal(5,1)", "uuid")]
OWN = [
    "numeric", "numeric(500,3)", "bit(3)", "bit varying(8)", "interval", "interval(3)", "interval year to month",
    "interval day to second(3)", "inet", "jsonb", "xml", "int4range", "tsvector", "money", '"char"', "name", "oid",
    "time with time zone", "time(2) with time zone", "point", "flights.mood", 'flights."Year ""AD"""', "flights.pair",
    "timestamp(3) without time zone[]", "flights.mood[]", "character varying[]",
]  # fmt: skip


def spelled(database: Database, table: str) -> list[str]:
    """The types of a table's columns as psql shows them."""
    rows = database.execute(
        "SET search_path = pg_catalog",
        "SELECT format_type(atttypid, atttypmod) FROM pg_attribute "
        f"WHERE attrelid = '{database.named(table)}'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
    )
    return [row[0] for row in rows]


def test_a_native_type_comes_back(database: Database) -> None:
    database.make("delays", *(column(f"c{n}", type_) for n, type_ in enumerate([*NATIVE, *LISTS])))
    assert [each["type"] for each in database.columns("delays").values()] == [*NATIVE, *LISTS]
    assert spelled(database, "delays")[5:9] == ["double precision", "numeric(10,2)", "numeric(38,0)", "date"]


def test_a_type_of_its_own_comes_back_as_it_was(database: Database) -> None:
    database.execute(
        "CREATE TYPE flights.mood AS ENUM ('late', 'in''time')",
        'CREATE DOMAIN flights."Year ""AD""" AS integer',
        "CREATE TYPE flights.pair AS (a integer, b text)",
        f"CREATE TABLE flights.theirs ({', '.join(f'c{n} {own}' for n, own in enumerate(OWN))})",
    )
    assert spelled(database, "theirs") == OWN
    types = [each["type"] for each in database.columns("theirs").values()]
    assert types[:-3] == [external(own) for own in OWN[:-3]]
    elements = [each["elementType"] for each in types[-3:]]
    assert elements == ["timestamp(3)", external("flights.mood"), "string"]
    database.make("ours", *(column(f"c{n}", type_) for n, type_ in enumerate(types[:-1])))
    assert spelled(database, "ours") == OWN[:-1]
    for text in ("integer; DROP TABLE theirs", "integer DEFAULT 1", "a.b.c", "numeric(1,2,3)", "text)", "x'--", ""):
        with pytest.raises(Invalid, match=r"columns\[0\]\.type\.catalogString"):
            database.make("delays", column("a", external(text)))
    for text, missing in (("flights.nope", 'type "flights.nope"'), ("nope.mood", 'schema "nope"')):
        with pytest.raises(Invalid, match=f"refused it: {missing} does not exist"):
            database.make("delays", column("a", external(text)))


def test_defaults_are_literals_the_time_or_expressions(database: Database) -> None:
    values = {
        "a text DEFAULT 'now()'": "now()", "b varchar(9) DEFAULT '1'": "1", "c char(9) DEFAULT 'a(b'": "a(b",
        "d text DEFAULT 'it''s \\n'": "it's \\n", "e text DEFAULT ''": "", "f text DEFAULT 'NULL'": "NULL",
        "g integer DEFAULT -3": "-3", "h numeric(9,2) DEFAULT 1e3": "1000", "i boolean DEFAULT true": "true",
        "j jsonb DEFAULT '{\"a\": 1}'": '{"a": 1}', "k integer[] DEFAULT '{1,2}'": "{1,2}", "l real DEFAULT 0.1": "0.1",
        "m date DEFAULT '2013-01-31'": "2013-01-31",
    }  # fmt: skip
    expressions = {
        "n text DEFAULT upper('a')": "upper('a'::text)", "o integer DEFAULT 1 + 2": "(1 + 2)",
        "p uuid DEFAULT gen_random_uuid()": "gen_random_uuid()", "q date DEFAULT CURRENT_DATE": "CURRENT_DATE",
        "r text DEFAULT 'a' || 'b'": "('a'::text || 'b'::text)", "s text DEFAULT CURRENT_USER": "CURRENT_USER",
    }  # fmt: skip
    rest = ["t timestamptz DEFAULT now()", "u timestamp DEFAULT LOCALTIMESTAMP", "w text"]
    database.execute(f"CREATE TABLE flights.delays ({', '.join([*values, *expressions, *rest])})")
    shown = {name: each.get("defaultValue") for name, each in database.columns("delays").items()}
    assert shown.pop("w") is None
    assert {name: one["value"] for name, one in shown.items() if one["type"] == "literal"} == {
        declared[0]: value for declared, value in values.items()
    }
    unparsed = {name: one["unparsedExpression"] for name, one in shown.items() if one["type"] == "unparsed"}
    assert unparsed == {declared[0]: text for declared, text in expressions.items()}
    assert shown["t"] == shown["u"] == NOW


def test_columns_that_count_or_are_generated(database: Database) -> None:
    database.execute(
        "CREATE TABLE flights.delays (a serial, b integer GENERATED ALWAYS AS IDENTITY, c smallint, "
        "d integer GENERATED ALWAYS AS (c * 2) STORED, PRIMARY KEY (a, b))"
    )
    columns = database.columns("delays")
    assert [name for name, each in columns.items() if each["autoIncrement"]] == ["a", "b"]
    assert not any("defaultValue" in each for each in columns.values())
    assert database.load("delays").definition["properties"] == {"generated.d": "(c * 2)"}
    database.make("counted", column("id", "long", autoIncrement=True))
    assert database.columns("counted")["id"]["autoIncrement"] and not database.columns("counted")["id"]["nullable"]
    for name, reason in (("a", "counts by itself"), ("d", "generated column")):
        with pytest.raises(Invalid, match=reason):
            database.alter("delays", update("updateColumnDefaultValue", name, newDefaultValue=literal("integer", "1")))
    with pytest.raises(Invalid, match="must be declared NOT NULL"):
        database.alter("delays", update("updateColumnAutoIncrement", "c", autoIncrement=True))
    still = [update("updateColumnAutoIncrement", name, autoIncrement=False) for name in "ab"]
    assert not any(each["autoIncrement"] for each in database.columns(database.alter("delays", *still).name).values())


def test_partitioned_and_foreign_tables(database: Database) -> None:
    database.execute(
        "CREATE TABLE flights.delays (day date NOT NULL, by integer) PARTITION BY RANGE (day)",
        "CREATE TABLE flights.\"of 2013\" PARTITION OF flights.delays FOR VALUES FROM ('2013-01-01') TO ('2014-01-01')",
        "CREATE FOREIGN DATA WRAPPER nothing",
        "CREATE SERVER there FOREIGN DATA WRAPPER nothing",
        "CREATE FOREIGN TABLE flights.far (id integer) SERVER there",
    )
    kinds = {name: one.definition["properties"] for name, one in database.listed().items()}
    assert kinds == {
        "delays": {"kind": "partitioned table", "partitioned-by": "RANGE (day)"},
        "of 2013": {"partition-of": "flights.delays"},
        "far": {"kind": "foreign table", "foreign-server": "there"},
    }
    database.alter("delays", update("addColumn", "carrier", type="string"), update("updateComment", newComment="x"))
    assert list(database.columns("of 2013")) == ["day", "by", "carrier"]
    with pytest.raises(Invalid, match="cannot drop inherited column"):
        database.alter("of 2013", update("deleteColumn", "by"))
    database.alter("far", update("updateColumnComment", "id", newComment="of the old shop"))
    database.provider.tables.drop(["flights"], "far", database.load("far").identity)
    assert list(database.listed()) == ["delays", "of 2013"]


def test_columns_have_no_position(database: Database) -> None:
    before = database.make("delays", column("a", "date"), column("b", "date"))
    added = update("addColumn", "c", type="date", position={"after": "a"})
    for refused in (update("updateColumnPosition", "b", newPosition="first"), added):
        with pytest.raises(Unsupported, match="position: PostgreSQL adds columns at the end"):
            database.alter("delays", refused)
    assert database.load("delays") == before


def test_a_new_type_leaves_the_collation(database: Database) -> None:
    database.execute('CREATE TABLE flights.delays (a varchar(5) COLLATE "C", b varchar(5) COLLATE "C")')
    database.alter("delays", update("updateColumnType", "a", newType="varchar(9)"))
    collations = "SELECT column_name, collation_name FROM information_schema.columns WHERE table_name = 'delays'"
    assert database.execute(collations) == [("a", "C"), ("b", "C")]
    database.alter("delays", update("updateColumnType", "b", newType=external("name")), update("deleteColumn", "a"))
    assert database.execute(collations) == [("b", "C")]


def test_an_index_that_is_no_constraint_is_a_key_and_is_dropped(database: Database) -> None:
    database.execute(
        "CREATE TABLE flights.delays (a integer, b integer, c text)",
        'CREATE UNIQUE INDEX "by a" ON flights.delays (a) INCLUDE (b)',
        "CREATE UNIQUE INDEX lowered ON flights.delays (lower(c))",
        "CREATE UNIQUE INDEX part ON flights.delays (b) WHERE a > 0",
        "CREATE INDEX plain ON flights.delays (b)",
    )
    shown = database.provider.tables.show(database.load("delays").definition)["indexes"]
    assert shown == [key("a", name="by a", sort="UNIQUE_KEY") | {"properties": {"constraint": "false"}}]
    after = database.alter("delays", update("deleteTableIndex", name="by a"))
    assert after.definition["indexes"] == []
