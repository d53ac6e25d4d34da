"""What MySQL and MariaDB alone have: their types, and a DDL that spells a column whole to change it."""
# ruff: noqa: F811

from __future__ import annotations

import pytest

from metalake.errors import Invalid, Unsupported
from providers.jdbc.mysql import MySQL
from providers.jdbc.mysql_ddl import MySQLDdl
from tests.providers.jdbc_tables import NOW, Database, column, external, key, update
from tests.providers.jdbc_tables import mariadb_database as database  # noqa: F401 (a fixture)

NATIVE = {
    "boolean": "tinyint(1)", "byte": "tinyint(4)", "byte unsigned": "tinyint(3) unsigned", "short": "smallint(6)",
    "short unsigned": "smallint(5) unsigned", "integer": "int(11)", "integer unsigned": "int(10) unsigned",
    "long": "bigint(20)", "long unsigned": "bigint(20) unsigned", "float": "float", "double": "double",
    "decimal(10,2)": "decimal(10,2)", "date": "date", "time(0)": "time", "time(3)": "time(3)",
    "timestamp(0)": "datetime", "timestamp(6)": "datetime(6)", "timestamp_tz(3)": "timestamp(3)", "string": "text",
    "varchar(5)": "varchar(5)", "char(3)": "char(3)", "fixed(16)": "binary(16)", "binary": "blob", "uuid": "uuid",
}  # fmt: skip
OWN = [
    "int(5) unsigned zerofill", "mediumint(9)", "decimal(10,2) unsigned", "decimal(65,30)", "float(7,4)", "year(4)",
    "bit(4)", "enum('late','in''time','','a,b')", "set('a','b')", "tinytext", "longtext", "varbinary(9)", "longblob",
    "inet6", "point", "double unsigned",
]  # fmt: skip


def spelled(database: Database, table: str) -> dict[str, str]:
    """The definition of each column, as SHOW CREATE TABLE has it."""
    lines = database.execute(f"SHOW CREATE TABLE {database.named(table)}")[0][1].splitlines()
    return {line.split("`")[1]: line.strip().rstrip(",") for line in lines if line.startswith("  `")}


def types(database: Database, table: str) -> list[str]:
    rows = database.execute(f"SHOW COLUMNS FROM {database.named(table)}")
    return [row[1] for row in rows]


def test_a_native_type_comes_back(database: Database) -> None:
    database.make("delays", *(column(f"c{n}", type_) for n, type_ in enumerate(NATIVE)))
    assert [each["type"] for each in database.columns("delays").values()] == list(NATIVE)
    assert types(database, "delays") == list(NATIVE.values())
    database.make("late", *(column(type_, type_) for type_ in ("time", "timestamp", "timestamp_tz")))
    late = [each["type"] for each in database.columns("late").values()]
    assert late == ["time(6)", "timestamp(6)", "timestamp_tz(6)"]


def test_a_type_of_its_own_comes_back_as_it_was(database: Database) -> None:
    declared = ", ".join(f"c{n} {own}" for n, own in enumerate(OWN))
    database.execute(f"CREATE TABLE theirs ({declared}, flag tinyint(1), tiny tinyint(2), doc json, s enum('a\\\\b'))")
    assert types(database, "theirs")[: len(OWN)] == OWN
    columns = {name: each["type"] for name, each in database.columns("theirs").items()}
    assert list(columns.values())[: len(OWN)] == [external(own) for own in OWN]
    assert (columns["flag"], columns["tiny"]) == ("boolean", "byte")
    assert (columns["doc"], columns["s"]) == (external("longtext"), external("enum('a\\b')"))
    database.make("ours", *(column(f"c{n}", external(own)) for n, own in enumerate(OWN)))
    assert types(database, "ours") == OWN
    database.alter("theirs", update("updateColumnComment", "s", newComment="of one word"))
    assert spelled(database, "theirs")["s"].startswith("`s` enum('a\\\\b') ")
    for text in ("int; DROP TABLE theirs", "int DEFAULT 1", "enum('a\\')", "enum('a'); --')", "int/**/", "int(1,2,3)"):
        with pytest.raises(Invalid, match=r"columns\[0\]\.type\.catalogString"):
            database.make("delays", column("a", external(text)))


LITERALS = {
    "a varchar(20) DEFAULT 'now()'": "now()", "b varchar(9) DEFAULT '1'": "1", "c varchar(9) DEFAULT 'a(b'": "a(b",
    "d varchar(9) DEFAULT 'NULL'": "NULL", "e varchar(20) DEFAULT 'current_timestamp'": "current_timestamp",
    "f varchar(20) DEFAULT 'it''s \\\\n %s'": "it's \\n %s", "g varchar(9) DEFAULT 'new\\nline'": "new\nline",
    "h varchar(9) DEFAULT ''": "", "i varchar(9) DEFAULT \"b'101'\"": "b'101'", "j text DEFAULT 'x'": "x",
    "k int DEFAULT -3": "-3", "l decimal(9,2) DEFAULT 1e3": "1000.00", "m boolean DEFAULT false": "false",
    "n float DEFAULT 0.1": "0.1", "o date DEFAULT '2013-01-31'": "2013-01-31", "p enum('1','2') DEFAULT '2'": "2",
    "q year DEFAULT 2013": "2013", "r varchar(9) DEFAULT '\\'\\''": "''",
}  # fmt: skip
EXPRESSIONS = {
    "s int DEFAULT (1 + 2)": "(1 + 2)", "t varchar(40) DEFAULT (uuid())": "uuid()",
    "u date DEFAULT curdate()": "curdate()",
    "v bit(3) DEFAULT b'101'": "b'101'", "w varchar(9) DEFAULT (concat('a', 'b'))": "concat('a','b')",
}  # fmt: skip
TIMES = ["x timestamp NOT NULL DEFAULT now()", "y datetime(3) DEFAULT current_timestamp(3)"]


def test_defaults_outlive_an_alteration(database: Database) -> None:
    """They are literals, the time or expressions; a comment is set by spelling the column with its default."""
    database.execute(f"CREATE TABLE delays ({', '.join([*LITERALS, *EXPRESSIONS, *TIMES])}, z int)")
    before = spelled(database, "delays")
    shown = {name: each.get("defaultValue") for name, each in database.columns("delays").items()}
    assert shown.pop("z") is None
    assert {name: one["value"] for name, one in shown.items() if one["type"] == "literal"} == {
        declared[0]: value for declared, value in LITERALS.items()
    }
    unparsed = {name: one["unparsedExpression"] for name, one in shown.items() if one["type"] == "unparsed"}
    assert unparsed == {declared[0]: text for declared, text in EXPRESSIONS.items()}
    assert shown["x"] == shown["y"] == NOW
    database.alter("delays", *(update("updateColumnComment", name, newComment="c") for name in before))
    assert spelled(database, "delays") == {name: f"{line} COMMENT 'c'" for name, line in before.items()}


MYSQL = {  # what MySQL 8 says of a default: the type, the default, EXTRA, and what it is here
    "now()": ("varchar(9)", "", ("literal", "'now()'")),
    "CURRENT_TIMESTAMP":
        ("datetime", "DEFAULT_GENERATED on update CURRENT_TIMESTAMP", ("function", "CURRENT_TIMESTAMP")),
    "it's \\n": ("varchar(9)", "", ("literal", "'it''s \\n'")),
    "NULL": ("varchar(9)", "", ("literal", "'NULL'")),
    "'quoted'": ("varchar(9)", "", ("literal", "'''quoted'''")),
    "-1.50": ("decimal(9,2)", "", ("literal", "-1.50")),
    "b'101'": ("bit(3)", "", ("unparsed", "(b'101')")),
    "uuid()": ("varchar(40)", "DEFAULT_GENERATED", ("unparsed", "(uuid())")),
}  # fmt: skip


@pytest.mark.parametrize("text", MYSQL)
def test_mysql_has_its_literals_without_quotes(text: str) -> None:
    type_, extra, wanted = MYSQL[text]
    read = MySQL()._column(["a", type_, "YES", text, extra, "", None, None, ""], is_mariadb=False)
    assert (read["defaultValue"]["type"], read["restated"]["default"]) == wanted
    assert read["defaultValue"].get("value", text) == text


SPELLED = {
    "id": "int unsigned NOT NULL AUTO_INCREMENT UNIQUE",
    "word": "varchar(9) CHARACTER SET latin1 COLLATE latin1_bin NOT NULL DEFAULT '1'",
    "changed": "timestamp(3) NULL DEFAULT current_timestamp(3) ON UPDATE current_timestamp(3)",
    "at": "timestamp NULL DEFAULT NULL",
    "touched": "datetime NOT NULL ON UPDATE current_timestamp()",
    "wage": "int DEFAULT 5 CHECK (wage > 0)",
    "doc": "json CHECK (json_valid(doc))",
    "mood": "enum('a','b') CHARACTER SET latin1 DEFAULT 'b'",
}


def test_an_alteration_of_a_column_loses_nothing(database: Database) -> None:
    database.execute(f"CREATE TABLE delays ({', '.join(f'`{name}` {rest}' for name, rest in SPELLED.items())})")
    before = spelled(database, "delays")
    database.alter("delays", *(update("updateColumnComment", name, newComment="c") for name in SPELLED))
    for name, line in spelled(database, "delays").items():
        assert line.replace(" COMMENT 'c'", "") == before[name]
    database.alter(
        "delays",
        update("updateColumnType", "word", newType="varchar(20)"),
        update("updateColumnType", "changed", newType="timestamp_tz(6)"),
        update("updateColumnNullability", "at", nullable=False),
        {"@type": "renameColumn", "oldFieldName": ["wage"], "newFieldName": "pay"},
    )
    after = spelled(database, "delays")
    assert "varchar(20) CHARACTER SET latin1 COLLATE latin1_bin NOT NULL DEFAULT '1'" in after["word"]
    assert "DEFAULT current_timestamp(6) ON UPDATE current_timestamp(6)" in after["changed"]
    assert "CHECK (`pay` > 0)" in after["pay"] and "timestamp NOT NULL" in after["at"]
    database.alter("delays", update("updateColumnType", "word", newType="long"))
    assert types(database, "delays")[1] == "bigint(20)"


def test_what_cannot_be_spelled_again_is_refused(database: Database) -> None:
    database.execute(
        "CREATE TABLE delays (a int, b int AS (a * 2) STORED, c int AS (a + 1), d int INVISIBLE DEFAULT 5, "
        "e varbinary(3) DEFAULT x'ff00', f varchar(9) DEFAULT (concat('\\\\', 'b')), "
        "g varchar(9) CHECK (g <> '\\\\'))"
    )
    before = database.load("delays")
    properties = before.definition["properties"]
    assert (properties["generated.b"], properties["generated.c"]) == ("`a` * 2", "`a` + 1")
    for name in "bcdefg":
        with pytest.raises(Unsupported, match=f"Column '{name}' is .*; change it in the database"):
            database.alter("delays", update("updateColumnComment", name, newComment="x"))
    assert database.load("delays") == before
    database.alter("delays", update("deleteColumn", "c"), update("deleteColumn", "g"))


def test_columns_have_positions(database: Database) -> None:
    database.make("delays", *(column(name, "integer") for name in "abcde"))
    database.alter("delays", *(update("updateColumnPosition", name, newPosition="first") for name in "cab"))
    database.alter(
        "delays",
        update("addColumn", "f", type="date", position={"after": "b"}),
        update("addColumn", "g", type="date"),
        {"@type": "renameColumn", "oldFieldName": ["f"], "newFieldName": "h"},
        update("updateColumnPosition", "g", newPosition={"after": "h"}),
        {"@type": "renameColumn", "oldFieldName": ["a"], "newFieldName": "z"},
    )
    assert list(database.columns("delays")) == list("bhgzcde")


def test_what_is_replaced_by_a_namesake_is_another(database: Database) -> None:
    keys = [key("a", name="once", sort="UNIQUE_KEY"), key("b", name="twice", sort="UNIQUE_KEY")]
    made = database.make("delays", column("a", "varchar(9)"), column("b", "integer"), indexes=keys)
    database.execute("INSERT INTO delays VALUES ('5', 5)")
    after = database.alter(
        "delays",
        update("deleteTableIndex", name="once"),
        update("addTableIndex", index=key("b", "a", name="once", sort="UNIQUE_KEY")),
        {"@type": "renameColumn", "oldFieldName": ["b"], "newFieldName": "c"},
    )
    keys = [key("c", "a", name="once", sort="UNIQUE_KEY"), key("c", name="twice", sort="UNIQUE_KEY")]
    assert after.definition["indexes"] == keys
    assert after.version != made.version
    database.alter("delays", update("deleteTableIndex", name="once"))
    database.alter("delays", update("deleteColumn", "a"), update("addColumn", "a", type="integer"))
    assert database.execute("SELECT c, a FROM delays") == [(5, None)]


def test_an_index_of_a_part_of_a_column_is_no_key(database: Database) -> None:
    database.execute("CREATE TABLE delays (a varchar(90), b int, UNIQUE part (a(9)), UNIQUE whole (a, b), KEY (b))")
    assert database.load("delays").definition["indexes"] == [key("a", "b", name="whole", sort="UNIQUE_KEY")]


def test_a_timestamp_suits_stricter_servers() -> None:
    """Without explicit_defaults_for_timestamp it would be NOT NULL; MySQL wants the fraction of its default."""
    at = {"name": "at", "spelling": "timestamp(6)", "nullable": True, "autoIncrement": False, "restated": {}}
    at["defaultValue"] = NOW
    (statement, *_) = MySQLDdl("MySQL").create_table("s", "t", {"comment": None, "indexes": [], "columns": [at]})
    assert "`at` timestamp(6) NULL DEFAULT CURRENT_TIMESTAMP(6)" in statement
