"""A database's types and its DDL as text, by SQLAlchemy's compiler.

Identifiers and texts are quoted by SQLAlchemy alone, and no text of a request stands in DDL but a quoted name, a quoted
literal, a number, or a type that the dialect's grammar knows.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import Any, ClassVar

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import Dialect as SqlDialect
from sqlalchemy.schema import AddConstraint, CreateColumn, CreateTable

from formats.native.columns import parse_primitive
from metalake.errors import Invalid, Unsupported
from metalake.interfaces import Interface
from metalake.kinds import Kind
from metalake.wire import quote
from providers.jdbc.definitions import PRIMARY, Json

NUMBERS = frozenset({"byte", "short", "integer", "long", "float", "double", "decimal"})
CURRENT_TIMESTAMP = "CURRENT_TIMESTAMP"
NOW = frozenset({"current_timestamp", "now", "localtimestamp"})


class Spelled(sa.types.UserDefinedType[Any]):
    """A column's type as the database spells it."""

    def __init__(self, spelling: str) -> None:
        self.spelling = spelling

    def get_col_spec(self, **_: Any) -> str:
        return self.spelling


class Ddl(Interface):
    label: str  # of the product
    longest_name: ClassVar[int]
    counts_bytes: ClassVar[bool]  # whether that is in bytes of UTF-8, and not in characters
    names_primary: ClassVar[bool]  # whether a primary key has a name of its own
    sql: ClassVar[SqlDialect]
    # Native types by their spelling, and spellings by their native type; `*` stands for the numbers in brackets.
    natives: ClassVar[Mapping[str, str]]
    spellings: ClassVar[Mapping[str, str]]
    external: ClassVar[re.Pattern[str]]  # the grammar of all other spellings

    # Types

    def native(self, spelling: str) -> Any:
        """The native type of a spelling; external where there is none that says the same."""
        numbers = re.search(r"\(([\d,]+)\)", spelling)
        shape = spelling.replace(numbers[0], "(*)") if numbers else spelling
        native = self.natives.get(spelling) or self.natives.get(shape, "")
        with suppress(ValueError):  # numbers out of range
            if parsed := parse_primitive(native.replace("*", numbers[1]) if numbers else native):
                return str(parsed)
        return {"type": "external", "catalogString": spelling}

    def spelled(self, type_: Any, place: str) -> str:
        """The spelling of a native type. Raises Unsupported and Invalid, naming the place."""
        match type_:
            case {"type": "external", "catalogString": text} if self.external.fullmatch(text):
                return str(text)
            case {"type": "external"}:
                raise Invalid(f"{place}.catalogString: is no type of {self.label}", kind=Kind.TABLE)
            case str() if parsed := parse_primitive(type_):
                numbers = ",".join(map(str, parsed.arguments))
                spelling = self.spellings.get(f"{parsed.name}(*)" if numbers else parsed.name)
                is_too_fine = parsed.name.startswith("time") and numbers and int(numbers) > 6
                if spelling and not is_too_fine:
                    return spelling.replace("*", numbers)
        raise Unsupported(f"{place}: {self.label} has no type {quote(str(type_))}", kind=Kind.TABLE)

    # Writing: DDL as text

    @abstractmethod
    def create_schema(self, schema: str, comment: str | None) -> list[str]: ...

    @abstractmethod
    def alter_schema(self, schema: str, comment: str | None) -> list[str]: ...

    @abstractmethod
    def alter_table(self, schema: str, table: str, before: Json, updates: Sequence[Any]) -> tuple[list[str], Json]:
        """The DDL of updates of the native wire, and the definition after them.

        Raises Invalid, and Unsupported for what the database cannot do.
        """

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

    def check_name(self, name: str, kind: str) -> str:
        """The name. Raises Invalid for one that the database would cut short or refuse."""
        size = len(name.encode() if self.counts_bytes else name)
        if size > self.longest_name:
            unit = "bytes" if self.counts_bytes else "characters"
            raise Invalid(f"{self.label}: a name has at most {self.longest_name} {unit}, not {size}", kind=kind)
        if "\0" in name or not name.isprintable() or name != name.rstrip():
            raise Invalid(f"{self.label}: {quote(name)} has characters that no name can have", kind=kind)
        return name

    def create_table(self, schema: str, table: str, definition: Json) -> list[str]:
        items = [*map(self._sa_column, definition["columns"]), *map(self._sa_key, definition["indexes"])]
        options = {"schema": schema, "comment": definition["comment"], "quote": True, "quote_schema": True}
        return [self._compiled(CreateTable(sa.Table(table, sa.MetaData(), *items, **options)))]

    def column_text(self, column: Json) -> str:
        """A column as it stands in CREATE TABLE and ADD COLUMN."""
        return self._compiled(CreateColumn(self._sa_column(column)))

    def key_text(self, index: Json) -> str:
        """A key as it stands behind ADD."""
        key = self._sa_key(index)
        sa.Table("", sa.MetaData(), *(sa.Column(field[0], quote=True) for field in index["fieldNames"]), key)
        return self.sql.ddl_compiler(self.sql, AddConstraint(key)).process(key)

    def _compiled(self, element: sa.schema.ExecutableDDLElement | CreateColumn) -> str:
        return str(element.compile(dialect=self.sql)).strip()

    def _sa_column(self, column: Json) -> sa.Column[Any]:
        default = self.column_default(column)
        return sa.Column(
            column["name"],
            Spelled(self.spelling(column)),
            nullable=column["nullable"],
            server_default=None if default is None else sa.literal_column(default),
            comment=column.get("comment"),
            quote=True,
            autoincrement=False,  # its spelling says it
        )

    def _sa_key(self, index: Json) -> sa.PrimaryKeyConstraint | sa.UniqueConstraint:
        is_primary = index["indexType"] == PRIMARY
        constraint = sa.PrimaryKeyConstraint if is_primary else sa.UniqueConstraint
        name = index["name"] if self.names_primary or not is_primary else None
        return constraint(*(field[0] for field in index["fieldNames"]), name=sa.quoted_name.construct(name, True))

    @abstractmethod
    def spelling(self, column: Json) -> str:
        """A column's type, with what else of it is no default, comment or NOT NULL."""

    def column_default(self, column: Json) -> str | None:
        """A column's default in SQL."""
        default = column.get("defaultValue")
        return None if default is None else self.default(default, column["name"])

    def default(self, expression: Json, column: str) -> str:
        """A default in SQL. Raises Unsupported for anything but a literal and the time of now, Invalid."""
        match expression:
            case {"type": "literal", "dataType": "null"}:
                return "NULL"
            case {"type": "literal", "dataType": type_, "value": value}:
                return self.literal(type_, str(value), column)
            case {"type": "function", "funcName": name, "funcArgs": []} if name.lower() in NOW:
                return CURRENT_TIMESTAMP
        raise Unsupported(
            f"columns.{column}.defaultValue: {self.label} catalogs take a literal or current_timestamp here",
            kind=Kind.TABLE,
        )

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
