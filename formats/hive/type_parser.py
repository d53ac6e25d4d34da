"""Tokenizer and parser for one-line type strings: the common part of Hive's, Trino's and Flink's syntax."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from formats.native.columns import MAX_DECIMAL_PRECISION

MAX_NESTING = 50

_COMMA = re.compile(r"\s*,", re.ASCII)
_NUMBERS = re.compile(r"\s*\(\s*([0-9]{1,10})\s*(?:,\s*([0-9]{1,10})\s*)?\)", re.ASCII)
_END = re.compile(r"\s*\Z", re.ASCII)


class NotAType(Exception):
    """The text is not a type in this syntax."""


class TypeReader:
    """The text of a type and the parser's position."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def take(self, token: re.Pattern[str]) -> re.Match[str] | None:
        """Consume a token if it is next."""
        token_match = token.match(self.text, self.position)
        if token_match:
            self.position = token_match.end()
        return token_match

    def need(self, token: re.Pattern[str]) -> re.Match[str]:
        """Consume a token. Raises NotAType if it is not next."""
        token_match = self.take(token)
        if token_match is None:
            raise NotAType
        return token_match

    def numbers(self) -> list[int]:
        """Consume one or two numbers in parentheses; none if something else is next."""
        numbers = self.take(_NUMBERS)
        return [int(number) for number in numbers.groups() if number is not None] if numbers else []

    def end(self) -> None:
        """Raises NotAType unless at the end."""
        self.need(_END)


class Typed(NamedTuple):
    """A native type as JSON, and whether it is nullable."""

    native: str | dict[str, Any]
    nullable: bool = True


class NestedReader(TypeReader):
    """A Trino or Flink type; their arrays, maps and rows differ only in brackets and quotes."""

    opening: ClassVar[re.Pattern[str]]
    closing: ClassVar[re.Pattern[str]]
    quote: ClassVar[str]  # around a name, doubled inside it
    quoted_name: ClassVar[re.Pattern[str]]
    plain_name: ClassVar[re.Pattern[str]]
    comment: ClassVar[re.Pattern[str] | None] = None  # of a row's field

    def whole(self) -> Typed:
        """Parse the whole text as a type. Raises NotAType."""
        typed = self.read(1)
        self.end()
        return typed

    def read(self, level: int) -> Typed:
        if level > MAX_NESTING:
            raise NotAType
        return self.typed(level)

    def typed(self, level: int) -> Typed:
        """Parse the next type, at this nesting level. Raises NotAType."""
        raise NotImplementedError

    def container(self, word: str, level: int) -> dict[str, Any]:
        """Parse the contents of an `array`, `map` or `row`, one level deeper."""
        self.need(self.opening)
        native: dict[str, Any]
        if word == "row":
            native = {"type": "struct", "fields": self._fields(level + 1)}
        elif word == "array":
            element = self.read(level + 1)
            native = {"type": "list", "elementType": element.native, "containsNull": element.nullable}
        else:
            key = self.read(level + 1).native
            self.need(_COMMA)
            value = self.read(level + 1)
            native = {"type": "map", "keyType": key, "valueType": value.native, "valueContainsNull": value.nullable}
        self.need(self.closing)
        return native

    def _fields(self, level: int) -> list[dict[str, Any]]:
        """The fields of a row. Raises NotAType for one without a name, which has no native equivalent."""
        fields: list[dict[str, Any]] = []
        while not fields or self.take(_COMMA):
            quoted = self.take(self.quoted_name)
            name = quoted[1].replace(self.quote * 2, self.quote) if quoted else self.need(self.plain_name)[1]
            if not name.strip():
                raise NotAType
            type = self.read(level)
            field = {"name": name, "type": type.native, "nullable": type.nullable}
            if self.comment and (comment := self.take(self.comment)):
                field["comment"] = comment[1].replace("''", "'")
            fields.append(field)
        return fields


def decimal(arguments: Sequence[int], precision: int) -> str:
    """The native decimal with these arguments; `precision` is the default. Raises NotAType."""
    precision, scale = [*arguments, *(precision, 0)[len(arguments) :]]
    if not 1 <= precision <= MAX_DECIMAL_PRECISION or scale > precision:
        raise NotAType
    return f"decimal({precision},{scale})"
