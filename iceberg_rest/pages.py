"""Pagination of lists: a token contains the last name, signed for the caller and the list.

Source: Iceberg REST specification, "PageToken": without the parameter everything is returned; an empty one requests
the first page.
"""

from __future__ import annotations

from collections.abc import Callable

from django.http import QueryDict

from metalake.paging import Page, read_size

DEFAULT_SIZE = 1_000
MAX_SIZE = 10_000  # a page may be smaller than requested

Fetch = Callable[[str | None, int | None], list[str]]
"""Returns the names after the given one (None: from the first), up to a limit (None: all)."""


def page(query: QueryDict, fetch: Fetch, *list_is: str | int | None) -> tuple[list[str], str | None]:
    """The names on the requested page, and the token of the next one. `list_is` identifies the list.

    Raises Invalid for a size below one, and for a token of another list or caller, or one not signed by this server.
    """
    size = min(read_size("pageSize", query.get("pageSize"), DEFAULT_SIZE), MAX_SIZE)
    token = query.get("pageToken")
    if token is None:
        return fetch(None, None), None
    requested = Page(size, token, "iceberg_rest", *list_is)
    return requested.cut(fetch(requested.after or None, size + 1), str)
