"""Pages of an answer: a token carries where the last one ended, signed for the caller and the question."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TypeVar

import orjson
from django.core.signing import BadSignature, Signer

from metalake.errors import Invalid
from metalake.wire import quote

DEFAULT_SIZE, MAX_SIZE = 100, 1000

T = TypeVar("T")


class Page:
    """One page of what is asked; `after` is where the one before it ended, empty for the first.

    Raises Invalid for a size out of bounds, and for a token of another question, another caller, or not of ours.
    """

    def __init__(self, limit: str | None, token: str | None, *asked: str | None) -> None:
        self.size = _size(limit)
        self._signer = Signer(salt="access.page " + orjson.dumps(asked).decode())
        self.after = self._read(token) if token else ""

    def cut(self, found: Iterator[T], place: Callable[[T], str]) -> tuple[list[T], str | None]:
        """What is on the page, and the token of the next one where there is more; `found` begins behind `after`."""
        some = list(islice(found, self.size + 1))
        if len(some) <= self.size:
            return some, None
        return some[: self.size], self._signer.sign_object(place(some[self.size - 1]))

    def _read(self, token: str) -> str:
        try:
            return str(self._signer.unsign_object(token))
        except (BadSignature, ValueError):
            raise Invalid("The pageToken is not of this question; begin again without it.") from None


def _size(given: str | None) -> int:
    if given is None:
        return DEFAULT_SIZE
    if not (given.isascii() and given.isdigit() and 1 <= int(given[:9]) <= MAX_SIZE):
        raise Invalid(f"limit must be a whole number from 1 to {MAX_SIZE}, not {quote(given)}.")
    return int(given[:9])
