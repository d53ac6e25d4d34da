"""Read a type that is one line of text, token by token: what Hive's, Trino's and Flink's spellings have in common."""

from __future__ import annotations

import re
from collections.abc import Sequence

from formats.native.columns import MAX_DECIMAL_PRECISION

_NUMBERS = re.compile(r"\s*\(\s*([0-9]{1,10})\s*(?:,\s*([0-9]{1,10})\s*)?\)", re.ASCII)
_END = re.compile(r"\s*\Z", re.ASCII)


class NotAType(Exception):
    """The text is not a type of this spelling."""


class TypeReader:
    """The text of a type and how far it is read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def take(self, token: re.Pattern[str]) -> re.Match[str] | None:
        """Read a token if it is next."""
        token_match = token.match(self.text, self.position)
        if token_match:
            self.position = token_match.end()
        return token_match

    def need(self, token: re.Pattern[str]) -> re.Match[str]:
        """Read a token. Raises NotAType if another one is next."""
        token_match = self.take(token)
        if token_match is None:
            raise NotAType
        return token_match

    def numbers(self) -> list[int]:
        """Read one or two numbers in parentheses; none if something else is next."""
        numbers = self.take(_NUMBERS)
        return [int(number) for number in numbers.groups() if number is not None] if numbers else []

    def end(self) -> None:
        """Raises NotAType if something is left."""
        self.need(_END)


def decimal(arguments: Sequence[int], precision: int) -> str:
    """The native decimal of these arguments; `precision` is that of a decimal without any. Raises NotAType."""
    precision, scale = [*arguments, *(precision, 0)[len(arguments) :]]
    if not 1 <= precision <= MAX_DECIMAL_PRECISION or scale > precision:
        raise NotAType
    return f"decimal({precision},{scale})"
