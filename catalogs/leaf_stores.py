"""Base class of leaf stores (objects in schemas and metalakes): what lookups, listings and pages need of every kind.

The store of a kind adds the methods of that kind (`catalogs.table_stores`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from math import inf
from typing import Any, NamedTuple, TypeVar

from authz.actor import Actor
from formats.native.outlines import ColumnOutline, KeyOutline
from metalake.interfaces import Interface
from metalake.lineage import Located

T = TypeVar("T")
_answers: ContextVar[dict[Hashable, Any] | None] = ContextVar("answers", default=None)
listed_until: ContextVar[float] = ContextVar("listed_until", default=inf)


@contextmanager
def asking_once() -> Iterator[None]:
    """Within the block, kinds that their system returns in one listing are listed by a single call."""
    token = _answers.set({})
    try:
        yield
    finally:
        _answers.reset(token)


def asked_once(listing: Hashable, ask: Callable[[], T]) -> T:
    """The result of `ask`, cached per listing within an `asking_once` block."""
    answers = _answers.get()
    if answers is None:
        return ask()
    if listing not in answers:
        answers[listing] = ask()
    answer: T = answers[listing]
    return answer


@contextmanager
def listing_until(moment: float) -> Iterator[None]:
    """Listings of outside systems in the block fetch no page after this time.monotonic() and are refused instead."""
    token = listed_until.set(moment)
    try:
        yield
    finally:
        listed_until.reset(token)


class LeafListing(NamedTuple):
    """The objects of a schema that may be shown, None for all rows; and when an outside system returned them."""

    names: Collection[str] | None = None
    taken_at: datetime | None = None


@dataclass(frozen=True)
class LeafDescription:
    """An object for display; `details` are labelled values, `metadata` is an Iceberg table's, if it could be read.

    `keys` are those of a table.
    """

    comment: str
    properties: dict[str, str]
    details: tuple[tuple[str, str], ...] = ()
    columns: tuple[ColumnOutline, ...] = ()
    keys: tuple[KeyOutline, ...] = ()
    metadata: dict[str, Any] | None = None


class LeafStore(Interface):
    """The leaves of one kind in the schemas of a catalog, or in metalakes. The caller has checked the rights."""

    @abstractmethod
    def discover(self, actor: Actor, schema: Located, name: str) -> bool:
        """Import an object that has no row; returns whether it has one now. Do not call in a transaction."""

    @abstractmethod
    def listing(self, actor: Actor, schema: Located, *, refresh: bool) -> LeafListing:
        """Refresh the rows of a schema's objects."""

    @abstractmethod
    def describe(self, actor: Actor, leaf: Located) -> LeafDescription:
        """Describe an object. Raises NotFound if it is gone, ProviderUnavailable or Unsupported if it is unreadable."""
