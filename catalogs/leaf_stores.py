"""The store of any kind of leaf: what finding, listing and the pages ask of whoever keeps objects that lie in schemas.

A kind's own store extends it by what only that kind is asked (`catalogs.table_stores`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from authz.actor import Actor
from metalake.lineage import Located
from metalake.surface import Surface


class LeafListing(NamedTuple):
    """Names that may be shown of a schema's objects, None where all rows may; when an outside system was asked."""

    names: Collection[str] | None = None
    taken_at: datetime | None = None


@dataclass(frozen=True)
class LeafDescription:
    """An object as people read it; `facts` are labelled values, `columns` have name, type, required and doc."""

    comment: str
    properties: dict[str, str]
    facts: tuple[tuple[str, str], ...] = ()
    columns: tuple[dict[str, Any], ...] = ()


class LeafStore(Surface):
    """The objects of one kind in the schemas of a catalog. Rights on what is named are asked by the caller before."""

    @abstractmethod
    def meet(self, actor: Actor, schema: Located, name: str) -> bool:
        """Look for an object that has no row yet; whether it has one now. Not for use in a transaction."""

    @abstractmethod
    def listing(self, actor: Actor, schema: Located, *, refresh: bool) -> LeafListing:
        """Bring the rows of a schema's objects up to date."""

    @abstractmethod
    def describe(self, actor: Actor, leaf: Located) -> LeafDescription:
        """Raises NotFound where it is gone, and ProviderUnavailable or Unsupported where it cannot be read now."""
