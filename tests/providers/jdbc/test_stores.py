"""What both databases do with schemas and tables, and databases that somebody else made."""
# ruff: noqa: F811

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from metalake.errors import AlreadyExists, Conflict, Invalid, NotEmpty, NotFound, Unsupported
from metalake.kinds import Kind
from providers.jdbc.errors import About
from tests.providers.jdbc_tables import (  # noqa: F401 (fixtures)
    NOW,
    SHOP,
    Database,
    column,
    database,
    key,
    literal,
    mariadb_database,
    postgres_database,
    shop,
    update,
)

WORDS = 'it\'s "quoted", `too`, 100% %s \\n; DROP TABLE x'


# Somebody else's databases


def test_a_database_of_others_is_read_as_it_is(shop: Database) -> None:
    listed = shop.listed()
    assert Counter(one.kind for one in listed.values()) == {Kind.TABLE: 19 if shop.is_postgresql else 18, Kind.VIEW: 5}
    names = {one.name: one.kind for one in shop.provider.tables.list([shop.schema]).items}
    assert names == {name: one.kind for name, one in listed.items()}
    of_database = postgres_columns if shop.is_postgresql else mariadb_columns
    for name, one in listed.items():
        assert shop.load(name) == one, "a refresh writes nothing"
        theirs = of_database(shop, name)
        for ours, (spelling, nullable, default, comment) in zip(
            one.definition["columns"], theirs.values(), strict=True
        ):
            where = f"{name}.{ours['name']}"
            assert (ours["spelling"], ours.get("comment")) == (spelling, comment), where
            if one.kind == Kind.VIEW:
                assert ours.get("defaultValue") is None, where
                continue
            assert ours["nullable"] == nullable, where
            if not ours["autoIncrement"]:
                shown = ours.get("defaultValue")
                assert shown is None or shown.get("value", default) == default, where
                assert (shown is None) is (default is None), where
        assert list(theirs) == [ours["name"] for ours in one.definition["columns"]]


def postgres_columns(shop: Database, table: str) -> dict[str, tuple[str, bool, str | None, str | None]]:
    """What psql shows of each column; a default is its value."""
    rows = shop.execute(
        "SET search_path = pg_catalog",
        f"""
        SELECT attname, format_type(atttypid, atttypmod), NOT attnotnull, CASE attgenerated WHEN '' THEN
            pg_get_expr(adbin, adrelid) END, col_description(attrelid, attnum)
        FROM pg_attribute LEFT JOIN pg_attrdef ON (adrelid, adnum) = (attrelid, attnum)
        WHERE attrelid = '{shop.named(table).replace("'", "''")}'::regclass AND attnum > 0 AND NOT attisdropped
        ORDER BY attnum""",
    )
    columns = {}
    for name, spelling, nullable, default, comment in rows:
        value = re.sub(r"^\(?'?(.*?)'?\)?(::[\w .\"\[\]]+)?$", r"\1", default) if default else default
        columns[name] = (spelling, nullable, value, comment)
    return columns


def mariadb_columns(shop: Database, table: str) -> dict[str, tuple[str, bool, str | None, str | None]]:
    """What the mariadb client shows of each column; a default is its value."""
    rows = shop.execute("SET sql_mode = 'NO_BACKSLASH_ESCAPES'", f"SHOW FULL COLUMNS FROM {shop.named(table)}")
    columns = {}
    for name, spelling, _, nullable, _, default, extra, _, comment in rows:
        value = {"1": "true", "0": "false"}.get(default, default) if spelling == "tinyint(1)" else default
        value = None if value is None or "GENERATED" in extra else value.strip("'")  # a default of text has quotes
        columns[name] = (spelling.replace("\\\\", "\\"), nullable == "YES", value, comment or None)
    return columns


def test_reading_takes_few_statements(shop: Database) -> None:
    def sent() -> int:
        with shop.provider.reading(About(Kind.CATALOG, SHOP)) as session:  # the one that every read here reuses
            return session.statements

    before = sent()
    for name in ("film", "film_list"):
        shop.load(name)
        assert sent() - before <= 4, name
        before = sent()
    shop.listed()
    assert sent() - before <= 3


# Tables


def test_a_type_that_it_lacks_is_refused(database: Database) -> None:
    words = {"type": "list", "elementType": "string", "containsNull": True}
    absent: list[Any] = ["interval_year", "variant", "time(9)", "timestamp(7)"]
    absent += (
        ["byte", "integer unsigned", "fixed(3)", words | {"elementType": words}] if database.is_postgresql else [words]
    )
    absent += [{"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": True}]
    for each in absent:
        with pytest.raises(Unsupported, match=r"columns\[1\]\.type: (PostgreSQL|MySQL)"):
            database.make("delays", column("a", "date"), column("b", each))
    assert not database.listed()


def test_keys_and_defaults_come_back(database: Database) -> None:
    made = database.make(
        "delays",
        column("id", "long", autoIncrement=True),
        column("carrier", "varchar(9)", nullable=False, defaultValue=literal("varchar(9)", WORDS[:9])),
        column("day", "date", defaultValue=literal("date", "2013-01-31")),
        column("late", "boolean", defaultValue=literal("boolean", "true")),
        column("by", "decimal(5,2)", defaultValue=literal("decimal(5,2)", "-1.50")),
        column("at", "timestamp", defaultValue=NOW, comment=WORDS),
        indexes=[key("id", "carrier", name="pk"), key("day", "by", name="once", sort="UNIQUE_KEY")],
        comment=WORDS,
    )
    shown = database.provider.tables.show(made.definition)
    assert shown["comment"] == WORDS
    columns = {each["name"]: each for each in shown["columns"]}
    assert columns["id"]["autoIncrement"] and not columns["id"]["nullable"] and not columns["carrier"]["nullable"]
    values = {name: each["defaultValue"].get("value") for name, each in columns.items() if "defaultValue" in each}
    assert values == {"carrier": WORDS[:9], "day": "2013-01-31", "late": "true", "by": "-1.50", "at": None}
    assert columns["at"]["defaultValue"] == NOW and columns["at"]["comment"] == WORDS
    primary = "pk" if database.is_postgresql else "PRIMARY"
    assert shown["indexes"] == [key("id", "carrier", name=primary), key("day", "by", name="once", sort="UNIQUE_KEY")]
    database.execute(f"INSERT INTO {database.named('delays')} (late) VALUES (false)")
    assert database.execute(f"SELECT id, carrier, late FROM {database.named('delays')}") == [(1, WORDS[:9], False)]


@pytest.mark.parametrize("name", ["select", 'it\'s "a`b"; 100%s \\ Größe.x'])
def test_a_name_that_needs_quotes_is_a_name(database: Database, name: str) -> None:
    where = [f"{database.schema}{name}"]
    database.provider.schemas.create(where, database.provider.schemas.draft(WORDS, {}))
    assert database.provider.schemas.load(where).definition == {"comment": WORDS}
    database.provider.schemas.drop(where, database.provider.schemas.load(where).identity)
    database.make(name, column(name, "integer", comment=WORDS), indexes=[key(name, name="k", sort="UNIQUE_KEY")])
    database.alter(name, update("updateColumnComment", name, newComment=name), update("updateComment", newComment=name))
    database.alter(name, {"@type": "renameColumn", "oldFieldName": [name], "newFieldName": f"{name}2"})
    assert list(database.columns(name)) == [f"{name}2"] and list(database.listed()) == [name]
    database.provider.tables.drop([database.schema], name, database.load(name).identity)
    assert not database.listed()


def test_alterations_of_every_kind(database: Database) -> None:
    """But those of properties, which are refused, and of positions, which only MySQL has."""
    database.make(
        "delays",
        column("id", "integer", nullable=False),
        column("carrier", "varchar(9)", nullable=False, comment="who"),
        column("by", "integer", defaultValue=literal("integer", "1")),
        column("gone", "date"),
        indexes=[key("by", name="once", sort="UNIQUE_KEY")],
    )
    after = database.alter(
        "delays",
        update("updateComment", newComment="how late"),
        update("addColumn", "day", type="date", comment="when", defaultValue=literal("date", "2013-01-31")),
        update("deleteColumn", "gone"),
        update("deleteColumn", "never", ifExists=True),
        {"@type": "renameColumn", "oldFieldName": ["carrier"], "newFieldName": "airline"},
        update("updateColumnType", "airline", newType="varchar(20)"),
        update("updateColumnComment", "airline", newComment=None),
        update("updateColumnNullability", "airline", nullable=True),
        update("updateColumnDefaultValue", "by", newDefaultValue=literal("integer", "-5")),
        update("deleteTableIndex", name="once"),
        update("addTableIndex", index=key("airline", "day", name="once", sort="UNIQUE_KEY")),
        update("addTableIndex", index=key("id", name="pk")),
        update("updateColumnAutoIncrement", "id", autoIncrement=True),
    )
    keys = [each["fieldNames"] for each in database.provider.tables.show(after.definition)["indexes"]]
    assert keys == [[["id"]], [["airline"], ["day"]]]
    database.alter("delays", update("updateColumnAutoIncrement", "id", autoIncrement=False))
    database.alter("delays", update("deleteColumn", "by"), update("addColumn", "by", type="string"))
    for refused in (update("setProperty", property="a", value="b"), update("removeProperty", property="a")):
        with pytest.raises(Unsupported, match=r"properties\.a"):
            database.alter("delays", refused)


def test_several_updates_are_made_all_or_none(database: Database) -> None:
    database.make("delays", column("carrier", "varchar(9)"), column("by", "varchar(9)"))
    database.execute(f"INSERT INTO {database.named('delays')} VALUES ('AA', 'late')")
    before = database.load("delays")
    with pytest.raises(Invalid, match="The database refused it"):
        database.alter(
            "delays",
            update("updateComment", newComment="half"),
            update("addColumn", "day", type="date"),
            update("updateColumnType", "by", newType="integer"),
        )
    assert database.load("delays") == before


def test_a_table_goes_to_another_schema(database: Database) -> None:
    """Each of the two has a table of one of the names that it might bear on its way."""
    other = [f"{database.schema}_other"]
    database.provider.schemas.create(other, database.provider.schemas.draft(None, {}))
    made = database.make("delays", column("id", "integer"))
    database.make("late", column("id", "date"))
    database.execute(f"CREATE TABLE {other[0]}.delays (id date)")
    move = database.provider.tables.rename
    with pytest.raises(AlreadyExists):
        move([database.schema], "delays", other, "delays", made.identity)
    moved = move([database.schema], "delays", other, "late", made.identity)
    assert (moved.name, moved.identity, moved.version) == ("late", made.identity, made.version)
    with pytest.raises(NotFound):
        database.load("delays")
    assert database.provider.tables.show(database.load("late").definition)["columns"][0]["type"] == "date"
    with pytest.raises(NotFound):
        move(other, "late", [f"{other[0]}_none"], "late", made.identity)
    with pytest.raises(NotFound, match=f"^Schema {other[0]}_none does not exist"):
        database.provider.tables.create([f"{other[0]}_none"], "late", made.definition)
    database.provider.schemas.drop(other, database.provider.schemas.load(other).identity, cascade=True)


def test_what_others_need_is_not_dropped(database: Database) -> None:
    made = database.make("airlines", column("id", "integer", nullable=False), indexes=[key("id")])
    database.execute(
        f"CREATE TABLE {database.named('delays')} "
        f"(id integer, FOREIGN KEY (id) REFERENCES {database.named('airlines')} (id))"
    )
    with pytest.raises(Conflict, match="is still used in the database"):
        database.provider.tables.drop([database.schema], "airlines", made.identity)
    assert database.load("airlines") == made


@pytest.mark.parametrize("inside", ["FUNCTION", "SEQUENCE"])
def test_a_schema_with_something_else_in_it_is_not_empty(database: Database, inside: str) -> None:
    body = {"FUNCTION": "one() RETURNS int LANGUAGE SQL RETURN 1", "SEQUENCE": "one"}[inside]
    if not database.is_postgresql:
        body = body.replace("LANGUAGE SQL ", "DETERMINISTIC ")
    database.execute(f"CREATE {inside} {database.schema}.{body}")
    assert not database.listed() and not database.provider.tables.list([database.schema]).items
    identity = database.provider.schemas.load([database.schema]).identity
    with pytest.raises(NotEmpty):
        database.provider.schemas.drop([database.schema], identity)
    assert database.execute(f"SELECT {database.schema}.one()" if inside == "FUNCTION" else "SELECT 1") == [(1,)]
