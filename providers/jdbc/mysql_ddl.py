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
    "time": "time(6)", "timestamp": "datetime(6)", "timestamp_tz": "timestamp(6)",
}  # fmt: skip
NUMBERED = {
    "decimal": "decimal", "varchar": "varchar", "char": "char", "fixed": "binary",
    "time": "time", "timestamp": "datetime", "timestamp_tz": "timestamp",
}  # fmt: skip
READ_PLAIN = {"float": "float", "double": "double", "date": "date", "text": "string", "blob": "binary", "uuid": "uuid"}
_INTEGER = re.compile(r"(tinyint|smallint|int|bigint)(\(\d+\))?( unsigned)?")
_NUMBERS = re.compile(r"(decimal|varchar|char|binary|time|datetime|timestamp)(?:\((\d+(?:,\d+)?)\))?")
_LIST = r"\( ?(?:'(?:[^'\\\0]|'')*'(?: ?, ?'(?:[^'\\\0]|'')*')*|\d{1,9}(?: ?, ?\d{1,9})?) ?\)"
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
        """A column's default; one that was not changed as the database has it, with what it does on updates."""
        kept = column.get("kept") or {}
        if "default" in kept and kept["shown"] == column.get("defaultValue"):
            default = kept["default"]
        else:
            default = super().column_default(column)
        on_update = kept.get("on_update")
        return f"{default or 'NULL'} {on_update}" if on_update else default

    def spelling(self, column: Json) -> str:
        return str(column["spelling"] + (column.get("kept") or {}).get("collation", ""))

    def alter_table(self, schema: str, table: str, before: Json, updates: Sequence[Any]) -> list[str]:
        origin = {column["name"]: column["name"] for column in before["columns"]}
        now, moved, comment = before, dict[str, Any](), before["comment"]
        for update in updates:
            now = changed(self, now, update)
            match update:
                case native.RenameColumn():
                    origin[update.new_field_name] = origin.pop(update.old_field_name[0], "")
                    if update.old_field_name[0] in moved:
                        raise _apart()
                case native.AddColumn() if update.position != "default":
                    moved[update.field_name[0]] = update.position
                case native.UpdateColumnPosition():
                    moved[update.field_name[0]] = update.new_position
        was = {column["name"]: column for column in before["columns"]}
        names = {column["name"] for column in now["columns"]}
        kept = {old for new, old in origin.items() if new in names}
        clauses = [f"DROP COLUMN {self.name(name)}" for name in was if name not in kept]
        for column in now["columns"]:
            clauses += self._column_clauses(schema, table, now, column, was.get(origin.get(column["name"], "")), moved)
        clauses += self._key_clauses(before, now)
        if now["comment"] != comment:
            clauses.append(f"COMMENT = {self.text(now['comment'] or '')}")
        return [f"ALTER TABLE {self.name(schema, table)} {', '.join(clauses)}"] if clauses else []

    def _column_clauses(
        self, schema: str, table: str, now: Json, column: Json, was: Json | None, moved: Mapping[str, Any]
    ) -> list[str]:
        name = column["name"]
        place = self._place(moved[name]) if name in moved else ""
        if was is None:
            return [f"ADD COLUMN {self.column_text(schema, table, now, name)}{place}"]
        if {**was, "name": name} == column and not place:
            return [] if was["name"] == name else [f"RENAME COLUMN {self.name(was['name'])} TO {self.name(name)}"]
        if fixed := (was.get("kept") or {}).get("fixed"):
            raise Unsupported(f"Column {quote(name)} is {fixed}; change it in the database.", kind=Kind.COLUMN)
        return [f"CHANGE COLUMN {self.name(was['name'])} {self.column_text(schema, table, now, name)}{place}"]

    def _place(self, position: Any) -> str:
        return f" AFTER {self.name(position.after)}" if isinstance(position, native.After) else " FIRST"

    def _key_clauses(self, before: Json, now: Json) -> list[str]:
        clauses = []
        names = [index["name"] for index in now["indexes"]]
        for index in before["indexes"]:
            if index["name"] not in names:
                primary = index["indexType"] == PRIMARY
                clauses.append("DROP PRIMARY KEY" if primary else f"DROP INDEX {self.name(index['name'])}")
        known = [index["name"] for index in before["indexes"]]
        for index in now["indexes"]:
            if index["name"] is None or index["name"] not in known:
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


def _apart() -> Unsupported:
    return Unsupported("updates: rename a column and move it in two requests", kind=Kind.TABLE)
