"""PostgreSQL's types as format_type spells them, and its DDL, which is transactional."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine.interfaces import Dialect as SqlDialect
from sqlalchemy.schema import SetColumnComment, SetTableComment

from formats.native import tables as native
from formats.native.columns import parse_primitive
from metalake.errors import Invalid, Unsupported
from metalake.kinds import Kind
from metalake.wire import quote
from providers.jdbc.changes import changed
from providers.jdbc.ddl import Ddl, unescaped
from providers.jdbc.definitions import PRIMARY, Json

# Types as format_type spells them, and the native ones; `*` stands for the numbers in brackets.
PLAIN = {
    "boolean": "boolean", "smallint": "short", "integer": "integer", "bigint": "long", "real": "float",
    "double precision": "double", "date": "date", "time without time zone": "time", "text": "string",
    "timestamp without time zone": "timestamp", "timestamp with time zone": "timestamp_tz", "bytea": "binary",
    "uuid": "uuid",
}  # fmt: skip
NUMBERED = {
    "numeric(*)": "decimal(*)", "character varying(*)": "varchar(*)", "character(*)": "char(*)",
    "time(*) without time zone": "time(*)", "timestamp(*) without time zone": "timestamp(*)",
    "timestamp(*) with time zone": "timestamp_tz(*)",
}  # fmt: skip
READ = PLAIN | NUMBERED | {"character varying": "string"}
WRITTEN = {native: own for own, native in (PLAIN | NUMBERED).items()}
_WORD = r'(?:[A-Za-z_][A-Za-z0-9_$]*|"(?:[^"\0]|"")+")'
_SPAN = "(?:year|month|day|hour|minute|second)"  # of an interval
EXTERNAL = re.compile(
    rf"{_WORD}(?:\.{_WORD})?(?: varying| precision| {_SPAN}(?: to {_SPAN})?)?"
    r"(?: ?\( ?[A-Za-z0-9-]{1,20} ?(?:, ?-?\d{1,9} ?)?\))?"
    r"(?: with(?:out)? time zone)?(?: ?\[\])*"
)


class PostgreSQLDdl(Ddl):
    label = "PostgreSQL"
    longest_name, counts_bytes = 63, True
    sql: ClassVar[SqlDialect] = unescaped(postgresql.dialect())

    # Types

    def native(self, spelling: str) -> Any:
        return native_type(spelling)

    def spelled(self, type_: Any, place: str) -> str:
        match type_:
            case {"type": "list", "elementType": element}:
                if isinstance(element, dict) and element.get("type") == "list":
                    raise Unsupported(f"{place}: PostgreSQL's arrays have no type for their depth", kind=Kind.TABLE)
                return f"{self.spelled(element, place)}[]"
            case {"type": "external", "catalogString": text} if EXTERNAL.fullmatch(text):
                return str(text)
            case {"type": "external"}:
                raise Invalid(f"{place}.catalogString: is no name of a type of PostgreSQL", kind=Kind.TABLE)
            case str() if parsed := parse_primitive(type_):
                numbers = ",".join(map(str, parsed.arguments))
                own = WRITTEN.get(f"{parsed.name}(*)" if numbers else parsed.name)
                if own and not (parsed.name.startswith("time") and numbers and parsed.arguments[0] > 6):  # type: ignore[operator]
                    return own.replace("*", numbers)
        raise Unsupported(f"{place}: PostgreSQL has no type {quote(str(type_))}", kind=Kind.TABLE)

    # Writing

    def create_schema(self, schema: str, comment: str | None) -> list[str]:
        made = [f"CREATE SCHEMA {self.name(schema)}"]
        return made + (self.alter_schema(schema, comment) if comment else [])

    def alter_schema(self, schema: str, comment: str | None) -> list[str]:
        return [f"COMMENT ON SCHEMA {self.name(schema)} IS {self.text(comment) if comment else 'NULL'}"]

    def drop_schema(self, schema: str, *, cascade: bool) -> list[str]:
        return [f"DROP SCHEMA {self.name(schema)} {'CASCADE' if cascade else 'RESTRICT'}"]

    def create_table(self, schema: str, table: str, definition: Json) -> list[str]:
        made = self.sa_table(schema, table, definition)
        comments = [self.compiled(SetColumnComment(column)) for column in made.columns if column.comment]
        if made.comment:
            comments.insert(0, self.compiled(SetTableComment(made)))
        return [self.create_table_text(schema, table, definition), *comments]

    def counting(self, is_counting: bool) -> list[sa.Identity]:
        return [sa.Identity()] if is_counting else []

    def rename_table(self, schema: str, table: str, to_schema: str, to_table: str) -> list[str]:
        """A table that gets both passes under a name that nobody has: either schema may know one of the two."""
        steps, between = [], to_table
        if to_schema != schema:
            between = table if table == to_table else f"metalake_{uuid4().hex}"
        if between != table:
            steps.append(f"ALTER TABLE {self.name(schema, table)} RENAME TO {self.name(between)}")
        if to_schema != schema:
            steps.append(f"ALTER TABLE {self.name(schema, between)} SET SCHEMA {self.name(to_schema)}")
        if between != to_table:
            steps.append(f"ALTER TABLE {self.name(to_schema, between)} RENAME TO {self.name(to_table)}")
        return steps

    def drop_table(self, schema: str, table: str, definition: Json) -> list[str]:
        foreign = "FOREIGN " if definition["properties"].get("kind") == "foreign table" else ""
        return [f"DROP {foreign}TABLE {self.name(schema, table)}"]

    def alter_table(self, schema: str, table: str, before: Json, updates: Sequence[Any]) -> list[str]:
        statements, now = list[str](), before
        for update in updates:
            after = changed(self, now, update)
            statements += self._alteration(schema, table, now, after, update) if after != now else ()
            now = after
        return statements

    def _alteration(self, schema: str, table: str, before: Json, after: Json, update: Any) -> list[str]:
        named = self.name(schema, table)
        match update:
            case native.UpdateComment():
                comment = self.text(update.new_comment) if update.new_comment else "NULL"
                return [f"COMMENT ON TABLE {named} IS {comment}"]
            case native.AddColumn():
                if update.position != "default":
                    raise _no_positions()
                name = update.field_name[0]
                added = f"ALTER TABLE {named} ADD COLUMN {self.column_text(schema, table, after, name)}"
                return [added, *(self._comment(named, name, update.comment) if update.comment else ())]
            case native.DeleteColumn():
                return [f"ALTER TABLE {named} DROP COLUMN {self.name(update.field_name[0])}"]
            case native.RenameColumn():
                old, new = self.name(update.old_field_name[0]), self.name(update.new_field_name)
                return [f"ALTER TABLE {named} RENAME COLUMN {old} TO {new}"]
            case native.UpdateColumnPosition():
                raise _no_positions()
            case native.UpdateColumnComment():
                return self._comment(named, update.field_name[0], update.new_comment)
            case native.AddTableIndex():
                index = after["indexes"][-1]
                name = f"CONSTRAINT {self.name(index['name'])} " if index["name"] else ""
                fields = ", ".join(self.name(field[0]) for field in index["fieldNames"])
                sort = "PRIMARY KEY" if index["indexType"] == PRIMARY else "UNIQUE"
                return [f"ALTER TABLE {named} ADD {name}{sort} ({fields})"]
            case native.DeleteTableIndex():
                index = next(each for each in before["indexes"] if each["name"] == update.name)
                if "properties" in index:
                    return [f"DROP INDEX {self.name(schema, update.name)}"]
                return [f"ALTER TABLE {named} DROP CONSTRAINT {self.name(update.name)}"]
        name = update.field_name[0]
        column = next(column for column in after["columns"] if column["name"] == name)
        return [f"ALTER TABLE {named} ALTER COLUMN {self.name(name)} {self._column_change(column, update)}"]

    def _column_change(self, column: Json, update: Any) -> str:
        match update:
            case native.UpdateColumnType():
                collation = (column.get("kept") or {}).get("collation")
                is_text = column["spelling"].startswith(("text", "character"))
                return f"TYPE {column['spelling']}" + (f" COLLATE {collation}" if collation and is_text else "")
            case native.UpdateColumnNullability():
                return "DROP NOT NULL" if column["nullable"] else "SET NOT NULL"
            case native.UpdateColumnDefaultValue():
                return f"SET DEFAULT {self.default(column['defaultValue'], column['name'])}"
            case native.UpdateColumnAutoIncrement():
                if column["autoIncrement"]:
                    return "ADD GENERATED BY DEFAULT AS IDENTITY"
                return (
                    f"DROP IDENTITY IF EXISTS, ALTER COLUMN {self.name(column['name'])} DROP DEFAULT"  # or a serial's
                )
        raise Unsupported("updates: PostgreSQL catalogs cannot do that", kind=Kind.TABLE)

    def _comment(self, named: str, column: str, comment: str | None) -> list[str]:
        return [f"COMMENT ON COLUMN {named}.{self.name(column)} IS {self.text(comment) if comment else 'NULL'}"]


def native_type(spelling: str) -> Any:
    """The native type of a type as format_type spells it; external where there is none that says the same."""
    if spelling.endswith("[]"):
        element = native_type(spelling.removesuffix("[]"))
        return {"type": "list", "elementType": element, "containsNull": True}
    numbers = re.search(r"\(([\d,]+)\)", spelling)
    native = READ.get(spelling.replace(numbers[1], "*") if numbers else spelling)
    if native is not None:
        whole = native.replace("*", numbers[1]) if numbers else native
        try:
            if parsed := parse_primitive(whole):
                return str(parsed)
        except ValueError:
            pass
    return {"type": "external", "catalogString": spelling}


def _no_positions() -> Unsupported:
    return Unsupported("position: PostgreSQL adds columns at the end, and moves none", kind=Kind.TABLE)
