"""The storage endpoints of catalogs: bucket names are unique only within one (docs/decisions/places.md).

A storage is identified by words such as `s3://host:port`; AWS's and Google's own have none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from catalogs.models import Catalog
from metalake.errors import Invalid
from providers.network.storage import storages_named

Words = Collection[str] | None  # None: unknown


def of(row: Catalog) -> Words:
    """The words of a catalog, as of its registration or, for older rows, from its properties."""
    return of_properties(row.properties) if row.storages is None else row.storages


def of_properties(properties: Mapping[str, str]) -> Words:
    try:
        return storages_named(properties)
    except Invalid:
        return None


def of_catalog(catalog_id: int) -> Words:
    """As `of`, by id; None for a dropped catalog."""
    row = Catalog.objects.filter(pk=catalog_id).first()
    return of(row) if row else None


def may_be_same(place: str, mine: Words, theirs: Words) -> bool:
    """Whether a canonical place may be in the same storage for both; True when in doubt."""
    if mine is None or theirs is None:
        return True
    scheme = f"{place.partition('://')[0]}://"
    one, other = ({word for word in words if word.startswith(scheme)} for words in (mine, theirs))
    return one == other or not one.isdisjoint(other)
