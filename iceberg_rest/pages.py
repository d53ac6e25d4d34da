"""Pages of a list: a token carries the last name, signed for the caller and the list it came from.

Source: Iceberg REST specification, "PageToken": without the parameter everything is returned; empty, it asks for
the first page.
"""

from __future__ import annotations

from collections.abc import Callable

import orjson
from django.core.signing import BadSignature, Signer
from django.http import QueryDict

from metalake.errors import Invalid

DEFAULT_SIZE = 1_000
MAX_SIZE = 10_000  # a page may be smaller than asked

Fetch = Callable[[str | None, int | None], list[str]]
"""The names behind one, at most so many."""


def page(query: QueryDict, fetch: Fetch, *list_is: str | int | None) -> tuple[list[str], str | None]:
    """The names of the page that is asked for, and the token of the next one. `list_is` says what the list is of.

    Raises Invalid for a size below one and for a token of another list, another caller, or not of ours.
    """
    size = _size(query.get("pageSize"))
    token = query.get("pageToken")
    if token is None:
        return fetch(None, None), None
    signer = Signer(salt="iceberg_rest.page " + orjson.dumps(list_is).decode())
    names = fetch(_last_name(signer, token) if token else None, size + 1)
    if len(names) <= size:
        return names, None
    return names[:size], signer.sign_object(names[size - 1])


def _size(given: str | None) -> int:
    if given is None:
        return DEFAULT_SIZE
    if not (given.isascii() and given.isdigit() and int(given[:9]) >= 1):
        raise Invalid(f"pageSize must be a whole number of at least 1, not {given!r:.40}.")
    return min(int(given[:9]), MAX_SIZE)


def _last_name(signer: Signer, token: str) -> str:
    try:
        name = signer.unsign_object(token)
    except (BadSignature, ValueError):
        raise Invalid("The pageToken is not of this list; begin again with an empty one.") from None
    return str(name)
