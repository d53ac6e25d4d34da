"""Pagination: a page token contains the end of the last page, signed for the caller and the request."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import TypeVar

import orjson
from django.core.signing import BadSignature, Signer

from metalake.errors import Invalid
from metalake.wire import quote

T = TypeVar("T")


class Page:
    """One page of a list; `after` is the end of the previous page, "" for the first.

    `scope` is the API, the caller and everything the list depends on: a token is valid only for the same scope.
    Raises Invalid for a token of another scope, or not signed by this server.
    """

    def __init__(self, size: int, token: str | None, *scope: str | int | None) -> None:
        self.size = size
        self._signer = Signer(salt="page " + orjson.dumps(scope).decode())
        self.after = self._read(token) if token else ""

    def cut(self, items: Iterable[T], place: Callable[[T], str]) -> tuple[list[T], str | None]:
        """The items of the page, and the token of the next page if there is one; `items` start after `after`."""
        some = list(islice(items, self.size + 1))
        if len(some) <= self.size:
            return some, None
        return some[: self.size], self.token(place(some[self.size - 1]))

    def token(self, place: str) -> str:
        """The token of the page after this position."""
        return self._signer.sign_object(place)

    def _read(self, token: str) -> str:
        try:
            return str(self._signer.unsign_object(token))
        except (BadSignature, ValueError):
            raise Invalid("The pageToken belongs to another request; start again without it.") from None


def read_size(name: str, given: str | None, default: int, at_most: int | None = None) -> int:
    """The size in a query parameter of this name. Raises Invalid unless it is a whole number within bounds."""
    if given is None:
        return default
    size = int(given[:9]) if given.isascii() and given.isdigit() else 0
    if not 1 <= size <= (at_most or size):
        bounds = f"from 1 to {at_most}" if at_most else "of at least 1"
        raise Invalid(f"{name} must be a whole number {bounds}, not {quote(given)}.")
    return size
