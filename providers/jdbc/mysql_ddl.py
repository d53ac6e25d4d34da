"""MySQL's and MariaDB's types as column_type spells them, and their DDL, of which each statement is a transaction."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from sqlalchemy.dialects import mysql
from sqlalchemy.engine.interfaces import Dialect as SqlDialect

from metalake.errors import Unsupported
from metalake.kinds import Kind
from metalake.wire import quote
from providers.jdbc.changes import changed, column_of, is_placed
from providers.jdbc.ddl import CURRENT_TIMESTAMP, Ddl, unescaped
from providers.jdbc.definitions import PRIMARY, Json

INTEGERS = {
    f"{own}{sign}": f"{native}{sign}"
    for own, native in {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}.items()
    for sign in ("", " unsigned")
}
TYPES = INTEGERS | {
    "tinyint(1)": "boolean", "float": "float", "double": "double", "date": "date", "text": "string", "blob": "binary",
    "uuid": "uuid", "decimal(*)": "decimal(*)", "varchar(*)": "varchar(*)", "char(*)": "char(*)",
    "binary(*)": "fixed(*)", "time(*)": "time(*)", "datetime(*)": "timestamp(*)", "timestamp(*)": "timestamp_tz(*)",
}  # fmt: skip
WIDE = {own.replace("int", "int(*)"): native for own, native in INTEGERS.items()}  # with the width of their display
WHOLE_SECONDS = {"time": "time(0)", "datetime": "timestamp(0)", "timestamp": "timestamp_tz(0)"}
FINEST = {"time": "time(6)", "timestamp": "datetime(6)", "timestamp_tz": "timestamp(6)"}
_LIST = r"\( ?(?:'(?:[^'\\\0]|'')*'(?: ?, ?'(?:[^'\\\0]|'')*')*|\d{1,9}(?: ?, ?\d{1,9})?) ?\)"
_TEXT = re.compile(r"char|varchar|\w*text|enum|set", re.IGNORECASE)


class MySQLDdl(Ddl):
    longest_name, counts_bytes = 64, False
    names_primary = False
    sql: ClassVar[SqlDialect] = unescaped(mysql.dialect())
    natives = TYPES | WIDE | WHOLE_SECONDS
    spellings: ClassVar[Mapping[str, str]] = {native: own for own, native in TYPES.items()} | FINEST
    external = re.compile(
        rf"[A-Za-z][A-Za-z0-9]*(?: precision)?(?: ?{_LIST})?(?: unsigned)?(?: zerofill)?", re.IGNORECASE
    )

    def __init__(self, label: str) -> None:
        self.label = label

    # Writing

    def create_schema(self, schema: str, comment: str | None) -> list[str]:
        return [f"CREATE DATABASE {self.name(schema)}" + (f" COMMENT {self.text(comment)}" if comment else "")]

    def alter_schema(self, schema: str, comment: str | None) -> list[str]:
        return [f"ALTER DATABASE {self.name(schema)} COMMENT {self.text(comment or '')}"]

    def rename_table(self, schema: str, table: str, to_schema: str, to_table: str) -> list[str]:
        return [f"RENAME TABLE {self.name(schema, table)} TO {self.name(to_schema, to_table)}"]

    def column_default(self, column: Json) -> str | None:
        """A column's default; one that was not changed as the database has it."""
        restated, wanted = column["restated"], column.get("defaultValue")
        if wanted and restated.get("shown") == wanted and wanted["type"] != "function":
            return str(restated["default"])
        default = super().column_default(column)
        return default + _fraction(column) if default == CURRENT_TIMESTAMP else default

    def spelling(self, column: Json) -> str:
        """A column that changes is spelled whole, with what `restated` has."""
        restated, spelling = column["restated"], str(column["spelling"])
        words = [spelling]
        if "collation" in restated and _TEXT.match(spelling):
            words.append(restated["collation"])
        if spelling.startswith("timestamp") and column["nullable"]:
            words.append("NULL")  # without it, older servers make it NOT NULL
        if "on_update" in restated:
            words.append(f"ON UPDATE {CURRENT_TIMESTAMP}{_fraction(column)}")
        return " ".join(words + ["AUTO_INCREMENT"] * column["autoIncrement"])

    def column_text(self, column: Json) -> str:
        check = column["restated"].get("check")
        return super().column_text(column) + (f" CHECK ({check})" if check else "")

    def alter_table(self, schema: str, table: str, before: Json, updates: Sequence[Any]) -> tuple[list[str], Json]:
        """One statement; for its time each column has the name that it had (`was`), and whether it is `moved`."""
        after = before | {"columns": [column | {"was": column["name"]} for column in before["columns"]]}
        for update in updates:
            after = changed(self, after, update)
            if is_placed(update):
                column_of(after, update.field_name[0])["moved"] = True
        was, now_of = {column["name"]: column for column in before["columns"]}, dict[str, str]()
        clauses, above = list[str](), " FIRST"
        for column in after["columns"]:  # in their order, so that each goes after one that has its place
            old, is_moved = column.pop("was", ""), column.pop("moved", False)
            now_of[old] = column["name"]
            clauses += self._column_clauses(column, was.get(old), above if is_moved else "")
            above = f" AFTER {self.name(column['name'])}"
        dropped = [f"DROP COLUMN {self.name(name)}" for name in was if name not in now_of]
        clauses = [*dropped, *clauses, *self._key_clauses(before, after, now_of)]
        if after["comment"] != before["comment"]:
            clauses.append(f"COMMENT = {self.text(after['comment'] or '')}")
        return ([f"ALTER TABLE {self.name(schema, table)} {', '.join(clauses)}"] if clauses else []), after

    def _column_clauses(self, column: Json, was: Json | None, place: str) -> list[str]:
        name = column["name"]
        if was is None:
            return [f"ADD COLUMN {self.column_text(column)}{place}"]
        if {**was, "name": name} == column and not place:
            return [] if was["name"] == name else [f"RENAME COLUMN {self.name(was['name'])} TO {self.name(name)}"]
        if fixed := was["restated"].get("fixed"):
            raise Unsupported(f"Column {quote(name)} is {fixed}; change it in the database.", kind=Kind.COLUMN)
        return [f"CHANGE COLUMN {self.name(was['name'])} {self.column_text(column)}{place}"]

    def _key_clauses(self, before: Json, after: Json, now_of: Mapping[str, str]) -> list[str]:
        """`now_of` are the present names of columns by their former."""
        clauses, there = [], []
        for index in before["indexes"]:
            there.append(index | {"fieldNames": [[now_of.get(field[0], "")] for field in index["fieldNames"]]})
            if there[-1] not in after["indexes"]:
                is_primary = index["indexType"] == PRIMARY
                clauses.append("DROP PRIMARY KEY" if is_primary else f"DROP INDEX {self.name(index['name'])}")
        return clauses + [f"ADD {self.key_text(index)}" for index in after["indexes"] if index not in there]


def _fraction(column: Json) -> str:
    """The digits of a time's seconds, in brackets, which its default must repeat."""
    digits = re.search(r"^(?:datetime|timestamp)(\([1-6]\))", column["spelling"])
    return digits[1] if digits else ""
