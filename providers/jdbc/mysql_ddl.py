"""MySQL's and MariaDB's types as column_type spells them, and their DDL, of which each statement is a transaction."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from sqlalchemy.dialects import mysql
from sqlalchemy.engine.interfaces import Dialect as SqlDialect

from formats.native import tables as native
from formats.native.columns import parse_primitive
from metalake.errors import Invalid, Unsupported
from metalake.kinds import Kind
from metalake.wire import quote
from providers.jdbc.changes import changed
from providers.jdbc.ddl import Ddl, unescaped
from providers.jdbc.definitions import PRIMARY, Json

INTEGERS = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}
PLAIN = {
    "boolean": "tinyint(1)", "byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint",
    "float": "float", "double": "double", "date": "date", "string": "text", "binary": "blob",
    "time": "time(6)", "timestamp": "datetime(6)", "timestamp_tz": "timestamp(6)", "uuid": "uuid",
}  # fmt: skip
NUMBERED = {
    "decimal": "decimal", "varchar": "varchar", "char": "char", "fixed": "binary",
    "time": "time", "timestamp": "datetime", "timestamp_tz": "timestamp",
}  # fmt: skip
READ_PLAIN = {"float": "float", "double": "double", "date": "date", "text": "string", "blob": "binary", "uuid": "uuid"}
_INTEGER = re.compile(r"(tinyint|smallint|int|bigint)(\(\d+\))?( unsigned)?")
_NUMBERS = re.compile(r"(decimal|varchar|char|binary|time|datetime|timestamp)(?:\((\d+(?:,\d+)?)\))?")
_LIST = r"\( ?(?:'(?:[^'\\\0]|'')*'(?: ?, ?'(?:[^'\\\0]|'')*')*|\d{1,9}(?: ?, ?\d{1,9})?) ?\)"
_TEXT = re.compile(r"char|varchar|\w*text|enum|set", re.IGNORECASE)
EXTERNAL = re.compile(rf"[A-Za-z][A-Za-z0-9]*(?: precision)?(?: ?{_LIST})?(?: unsigned)?(?: zerofill)?", re.IGNORECASE)


class MySQLDdl(Ddl):
    longest_name, counts_bytes = 64, False
    sql: ClassVar[SqlDialect] = unescaped(mysql.dialect())

    def __init__(self, label: str) -> None:
        self.label = label

    # Types

    def native(self, spelling: str) -> Any:
        return native_type(spelling)

    def spelled(self, type_: Any, place: str) -> str:
        match type_:
            case {"type": "external", "catalogString": text} if EXTERNAL.fullmatch(text):
                return str(text)
            case {"type": "external"}:
                raise Invalid(f"{place}.catalogString: is no type of {self.label}", kind=Kind.TABLE)
            case str() if parsed := parse_primitive(type_):
                numbers = ",".join(map(str, parsed.arguments))
                name, _, unsigned = parsed.name.partition(" ")
                if numbers and name in NUMBERED and not (name.startswith("time") and int(parsed.arguments[0]) > 6):
                    return f"{NUMBERED[name]}({numbers})"
                if not numbers and name in PLAIN:
                    return PLAIN[name] + (f" {unsigned}" if unsigned else "")
        raise Unsupported(f"{place}: {self.label} has no type {quote(str(type_))}", kind=Kind.TABLE)

    # Writing

    def create_schema(self, schema: str, comment: str | None) -> list[str]:
        return [f"CREATE DATABASE {self.name(schema)}" + (f" COMMENT {self.text(comment)}" if comment else "")]

    def alter_schema(self, schema: str, comment: str | None) -> list[str]:
        return [f"ALTER DATABASE {self.name(schema)} COMMENT {self.text(comment or '')}"]

    def drop_schema(self, schema: str, *, cascade: bool) -> list[str]:
        return [f"DROP DATABASE {self.name(schema)}"]

    def create_table(self, schema: str, table: str, definition: Json) -> list[str]:
        return [self.create_table_text(schema, table, definition)]

    def primary_name(self, index: Json) -> str | None:
        return None

    def rename_table(self, schema: str, table: str, to_schema: str, to_table: str) -> list[str]:
        return [f"RENAME TABLE {self.name(schema, table)} TO {self.name(to_schema, to_table)}"]

    def column_default(self, column: Json) -> str | None:
        """A column's default; one that was not changed as the database has it."""
        repeated, wanted = column.get("kept") or {}, column.get("defaultValue")
        if wanted and repeated.get("shown") == wanted and wanted["type"] != "function":
            return str(repeated["default"])
        default = super().column_default(column)
        return default + _fraction(column) if default == self.now() else default

    def spelling(self, column: Json) -> str:
        """Its type with all else that is no default, comment or NOT NULL: a column that changes is spelled whole."""
        repeated, spelling = column.get("kept") or {}, str(column["spelling"])
        words = [spelling]
        if "collation" in repeated and _TEXT.match(spelling):
            words.append(repeated["collation"])
        if spelling.startswith("timestamp") and column["nullable"]:
            words.append("NULL")  # without it, older servers make it NOT NULL
        if "on_update" in repeated:
            words.append(f"ON UPDATE {self.now()}{_fraction(column)}")
        return " ".join(words + ["AUTO_INCREMENT"] * column["autoIncrement"])

    def column_text(self, schema: str, table: str, definition: Json, name: str) -> str:
        column = next(column for column in definition["columns"] if column["name"] == name)
        check = (column.get("kept") or {}).get("check")
        return super().column_text(schema, table, definition, name) + (f" CHECK ({check})" if check else "")

    def alter_table(self, schema: str, table: str, before: Json, updates: Sequence[Any]) -> list[str]:
        origin = {column["name"]: column["name"] for column in before["columns"]}
        now, moved = before, set[str]()
        for update in updates:
            now = changed(self, now, update)
            match update:
                case native.RenameColumn():
                    old, new = update.old_field_name[0], update.new_field_name
                    origin[new] = origin.pop(old, "")
                    moved = {new if name == old else name for name in moved}
                case native.DeleteColumn():
                    origin.pop(update.field_name[0], None)
                case native.AddColumn() if update.position != "default":
                    moved.add(update.field_name[0])
                case native.UpdateColumnPosition():
                    moved.add(update.field_name[0])
        was = {column["name"]: column for column in before["columns"]}
        clauses = [f"DROP COLUMN {self.name(name)}" for name in was if name not in origin.values()]
        above = " FIRST"
        for column in now["columns"]:  # in their order, so that each goes after one that has its place
            place = above if column["name"] in moved else ""
            clauses += self._column_clauses(schema, table, now, column, was.get(origin.get(column["name"], "")), place)
            above = f" AFTER {self.name(column['name'])}"
        clauses += self._key_clauses(before, now, {old: new for new, old in origin.items()})
        if now["comment"] != before["comment"]:
            clauses.append(f"COMMENT = {self.text(now['comment'] or '')}")
        return [f"ALTER TABLE {self.name(schema, table)} {', '.join(clauses)}"] if clauses else []

    def _column_clauses(
        self, schema: str, table: str, now: Json, column: Json, was: Json | None, place: str
    ) -> list[str]:
        name = column["name"]
        if was is None:
            return [f"ADD COLUMN {self.column_text(schema, table, now, name)}{place}"]
        if {**was, "name": name} == column and not place:
            return [] if was["name"] == name else [f"RENAME COLUMN {self.name(was['name'])} TO {self.name(name)}"]
        if fixed := (was.get("kept") or {}).get("fixed"):
            raise Unsupported(f"Column {quote(name)} is {fixed}; change it in the database.", kind=Kind.COLUMN)
        return [f"CHANGE COLUMN {self.name(was['name'])} {self.column_text(schema, table, now, name)}{place}"]

    def _key_clauses(self, before: Json, now: Json, names: Mapping[str, str]) -> list[str]:
        """`names` are today's of the columns that were there before."""
        clauses, known = [], []
        for index in before["indexes"]:
            known.append(index | {"fieldNames": [[names.get(field[0], "")] for field in index["fieldNames"]]})
            if known[-1] not in now["indexes"]:
                primary = index["indexType"] == PRIMARY
                clauses.append("DROP PRIMARY KEY" if primary else f"DROP INDEX {self.name(index['name'])}")
        for index in now["indexes"]:
            if index not in known:
                fields = ", ".join(self.name(field[0]) for field in index["fieldNames"])
                named = f"UNIQUE KEY {self.name(index['name'])}" if index["name"] else "UNIQUE KEY"
                clauses.append(f"ADD {'PRIMARY KEY' if index['indexType'] == PRIMARY else named} ({fields})")
        return clauses


def native_type(spelling: str) -> Any:
    """The native type of a column_type; external where there is none that says the same."""
    if spelling == "tinyint(1)":
        return "boolean"
    if match := _INTEGER.fullmatch(spelling):
        return INTEGERS[match[1]] + (match[3] or "")
    if spelling in READ_PLAIN:
        return READ_PLAIN[spelling]
    if match := _NUMBERS.fullmatch(spelling):
        name = {own: native for native, own in NUMBERED.items()}[match[1]]
        try:
            if parsed := parse_primitive(f"{name}({match[2] or 0})"):
                return str(parsed)
        except ValueError:
            pass
    return {"type": "external", "catalogString": spelling}


def _fraction(column: Json) -> str:
    """The digits of a time's seconds, in brackets, which its default must repeat."""
    digits = re.search(r"^(?:datetime|timestamp)(\([1-6]\))", column["spelling"])
    return digits[1] if digits else ""
