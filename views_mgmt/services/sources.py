"""Resolves the tables and views named in SQL to addresses in Metalake."""

from __future__ import annotations

from collections.abc import Iterator

from formats.native.view_definition import Representation
from formats.sql.results import Source
from metalake.hierarchy import configured_separator
from metalake.lineage import Address, Located

SESSION_CATALOG = "spark_catalog"  # Spark's name for the catalog of its metastore


def addresses_of(view: Located, source: Source, each: Representation) -> Iterator[Address]:
    """A source's possible addresses, likeliest first; a missing catalog or schema defaults to the view's."""
    own = view.catalog.name
    catalog = source.catalog or own
    if catalog.casefold() in (own.casefold(), SESSION_CATALOG):
        catalog = own
    schema = view.path.logical() if source.schema is None else source.schema
    metalake = view.metalake.name
    yield Address(metalake=metalake, catalog=catalog, schema=_levels(schema), leaf=source.name)
    if source.catalog not in (None, each.default_catalog):  # in Spark the first of three names may be a schema
        schema = f"{source.catalog}.{source.schema}"
        yield Address(metalake=metalake, catalog=own, schema=_levels(schema), leaf=source.name)


def _levels(schema: str) -> str | tuple[str, ...]:
    """The schema's levels if written as engines do (`a.b`), else its logical name."""
    return schema if configured_separator() in schema else tuple(schema.split("."))
