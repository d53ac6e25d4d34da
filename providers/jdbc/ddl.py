"""A database's types and its DDL as text, by SQLAlchemy's compiler.

Identifiers and texts are quoted by SQLAlchemy alone, and no text of a request stands in DDL but a quoted name, a quoted
literal, a number, or a type that the dialect's grammar knows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, ClassVar

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import Dialect as SqlDialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import CreateColumn, CreateTable

from metalake.errors import Invalid, Unsupported
from metalake.interfaces import Interface
from metalake.kinds import Kind
from metalake.wire import quote
from providers.jdbc.definitions import PRIMARY, UNIQUE, Json

NUMBERS = frozenset({"byte", "short", "integer", "long", "float", "double", "decimal"})
NOW = frozenset({"current_timestamp", "now", "localtimestamp"})


class Spelt(sa.Integer):
    """A column's type in the database's own words; an Integer, so that it may count by itself."""

    def __init__(self, spelling: str) -> None:
        self.spelling = spelling


@compiles(Spelt)
def _spelling(type_: Spelt, compiler: Any, **_: Any) -> str:
    return type_.spelling


class Ddl(Interface):
    label: str  # of the product
    longest_name: ClassVar[int]
    counts_bytes: ClassVar[bool]  # whether that is in bytes of UTF-8, and not in characters
    sql: ClassVar[SqlDialect]

    # Types

    @abstractmethod
    def native(self, spelling: str) -> Any:
        """The native type of a type in the database's words; external where there is none that says the same."""

    @abstractmethod
    def spelled(self, type_: Any, place: str) -> str:
        """A native type in the database's words. Raises Unsupported and Invalid, naming the place."""

    # Writing: DDL as text

    @abstractmethod
    def create_schema(self, schema: str, comment: str | None) -> list[str]: ...

    @abstractmethod
    def alter_schema(self, schema: str, comment: str | None) -> list[str]: ...

    @abstractmethod
    def drop_schema(self, schema: str, *, cascade: bool) -> list[str]: ...

    @abstractmethod
    def create_table(self, schema: str, table: str, definition: Json) -> list[str]: ...

    @abstractmethod
    def alter_table(self, schema: str, table: str, before: Json, updates: Sequence[Any]) -> list[str]:
        """The DDL of updates of the native wire. Raises Unsupported for what the database cannot do."""

    @abstractmethod
    def rename_table(self, schema: str, table: str, to_schema: str, to_table: str) -> list[str]: ...

    def drop_table(self, schema: str, table: str, definition: Json) -> list[str]:
        return [f"DROP TABLE {self.name(schema, table)}"]

    # Shared

    def name(self, *parts: str) -> str:
        """A quoted name, its parts joined by dots."""
        return ".".join(self.sql.identifier_preparer.quote_identifier(part) for part in parts)

    def text(self, value: str) -> str:
        """A quoted literal."""
        processor = sa.String().literal_processor(self.sql)
        assert processor is not None
        return processor(value)

    def compiled(self, element: sa.schema.ExecutableDDLElement | CreateColumn) -> str:
        return str(element.compile(dialect=self.sql)).strip()

    def check_name(self, name: str, kind: str) -> str:
        """The name. Raises Invalid for one that the database would cut short or refuse."""
        size = len(name.encode() if self.counts_bytes else name)
        if size > self.longest_name:
            unit = "bytes" if self.counts_bytes else "characters"
            raise Invalid(f"{self.label}: a name has at most {self.longest_name} {unit}, not {size}", kind=kind)
        if "\0" in name or not name.isprintable() or name != name.rstrip():
            raise Invalid(f"{self.label}: {quote(name)} has characters that no name can have", kind=kind)
        return name

    def sa_table(self, schema: str, table: str, definition: Json) -> sa.Table:
        """The table as SQLAlchemy's compiler takes it; its primary key and its unique keys are the definition's."""
        keys = [index for index in definition["indexes"] if index["indexType"] == PRIMARY]
        primary = {field[0] for index in keys for field in index["fieldNames"]}
        columns = [self.sa_column(column, column["name"] in primary) for column in definition["columns"]]
        unique = [
            sa.UniqueConstraint(*(field[0] for field in index["fieldNames"]), name=index.get("name"))
            for index in definition["indexes"]
            if index["indexType"] == UNIQUE
        ]
        primaries = [
            sa.PrimaryKeyConstraint(*(field[0] for field in index["fieldNames"]), name=self.primary_name(index))
            for index in keys
        ]
        items = (*columns, *primaries, *unique)
        return sa.Table(
            table, sa.MetaData(), *items, schema=schema, comment=definition["comment"], quote=True, quote_schema=True
        )

    def primary_name(self, index: Json) -> str | None:
        return index.get("name")

    def sa_column(self, column: Json, is_primary: bool = False) -> sa.Column[Any]:
        default = self.column_default(column)
        counting = self.counting(column["autoIncrement"])
        options: dict[str, Any] = {} if counting else {"autoincrement": False}
        return sa.Column(
            column["name"],
            Spelt(self.spelling(column)),
            *counting,
            nullable=column["nullable"] and not is_primary,
            server_default=None if default is None else sa.literal_column(default),
            comment=column.get("comment"),
            quote=True,
            **options,
        )

    def counting(self, is_counting: bool) -> list[sa.Identity]:
        """What makes a column count by itself, where that is not in its spelling."""
        return []

    def spelling(self, column: Json) -> str:
        return str(column["spelling"])

    def column_default(self, column: Json) -> str | None:
        """A column's default in SQL."""
        default = column.get("defaultValue")
        return None if default is None else self.default(default, column["name"])

    def create_table_text(self, schema: str, table: str, definition: Json) -> str:
        return self.compiled(CreateTable(self.sa_table(schema, table, definition)))

    def column_text(self, schema: str, table: str, definition: Json, name: str) -> str:
        """One column of a table as it stands in CREATE TABLE and ADD COLUMN."""
        return self.compiled(CreateColumn(self.sa_table(schema, table, definition).c[name]))

    def default(self, expression: Json, column: str) -> str:
        """A default in SQL. Raises Unsupported for anything but a literal and the time of now, Invalid."""
        match expression:
            case {"type": "literal", "dataType": "null"}:
                return "NULL"
            case {"type": "literal", "dataType": type_, "value": value}:
                return self.literal(type_, str(value), column)
            case {"type": "function", "funcName": name, "funcArgs": []} if name.lower() in NOW:
                return self.now()
        raise Unsupported(
            f"columns.{column}.defaultValue: {self.label} catalogs take a literal or current_timestamp here",
            kind=Kind.TABLE,
        )

    def now(self) -> str:
        return "CURRENT_TIMESTAMP"

    def literal(self, type_: Any, value: str, column: str) -> str:
        plain = type_.partition("(")[0].removesuffix(" unsigned") if isinstance(type_, str) else ""
        if plain in NUMBERS:
            try:
                number = Decimal(value)
            except InvalidOperation:
                number = Decimal("NaN")
            if not number.is_finite() or len(value) > 400:
                raise Invalid(f"columns.{column}.defaultValue: {quote(value)} is no number", kind=Kind.TABLE)
            return str(number)
        if plain == "boolean":
            if value.lower() not in ("true", "false"):
                raise Invalid(f"columns.{column}.defaultValue: a boolean is true or false", kind=Kind.TABLE)
            return value.upper()
        if "\0" in value:
            raise Invalid(f"columns.{column}.defaultValue: must have no NUL character", kind=Kind.TABLE)
        return self.text(value)


def unescaped(dialect: SqlDialect) -> SqlDialect:
    """A dialect of SQLAlchemy whose compiled text is final: it doubles no % for a driver, and no backslash."""
    dialect.identifier_preparer._double_percents = False
    vars(dialect)["_backslash_escapes"] = False  # as the sessions' sql_mode has it
    return dialect
