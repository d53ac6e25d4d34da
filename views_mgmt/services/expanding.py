"""The columns of what views read, as far as our store knows them: no other system is asked, and little of storages."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from authz.actor import system_actor
from authz.objects import locate_all
from catalogs.lookup import by_id
from catalogs.stores import store_for
from formats.native.view_definition import Representation
from formats.sql.results import ColumnsOf, Source
from metalake.errors import MetalakeError
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from views_mgmt import versions
from views_mgmt.services.sources import addresses_of

MOST_SOURCES = 200  # that are looked up at once

Types = Mapping[str, Any]
Wanted = tuple[Located, Representation, Sequence[Source]]
"""A view, one of its dialects and the tables and views that this reads."""


def columns_of_sources(wanted: Sequence[Wanted], until: float) -> list[ColumnsOf]:
    """For each, the native types by column of the sources that are known; until then, of time.monotonic()."""
    named = [{source: _addresses(view, source, each) for source in sources} for view, each, sources in wanted]
    located = _located(wanted, [one for some in named for them in some.values() for one in them][:MOST_SOURCES])
    known = _known({each.id: each for each in located.values()}, until)
    return [
        {source: types for source, them in some.items() if (types := _first(them, located, known))} for some in named
    ]


def _addresses(view: Located, source: Source, each: Representation) -> list[Address]:
    """Where a source may lie, as a table and as a view, whose names are one name space."""
    kinds = (Kind.TABLE, Kind.VIEW)
    return [
        Address(metalake=one.metalake, catalog=one.catalog, schema=one.schema, leaf=one.leaf, leaf_kind=kind)
        for one in addresses_of(view, source, each)
        for kind in kinds
    ]


def _located(wanted: Sequence[Wanted], addresses: Sequence[Address]) -> dict[Address, Located]:
    tops = {view.metalake.name: Located(nodes=view.nodes[:1]) for view, _, _ in wanted}
    located = dict[Address, Located]()
    for name, top in tops.items():
        located |= locate_all(top, [each for each in addresses if each.metalake == name])
    return {address: each for address, each in located.items() if each.kind in (Kind.TABLE, Kind.VIEW)}


def _first(addresses: Iterable[Address], located: Mapping[Address, Located], known: Mapping[int, Types]) -> Types:
    """The columns of the object that the names lead to; none if they are not known."""
    target = next((located[address] for address in addresses if address in located), None)
    return {} if target is None else known.get(target.id, {})


def _known(targets: Mapping[int, Located], until: float) -> dict[int, Types]:
    of_views = versions.present().filter(view_id__in=targets)
    known = {row.view_id: _types(row.columns) for row in of_views}
    for target in targets.values():
        if target.kind is Kind.TABLE and time.monotonic() < until:
            known[target.id] = _of_table(target.id)
    return known


def _of_table(id: int) -> Types:
    """The columns as they are stored here; none where they cannot be read."""
    table = by_id(id)
    if table is None:
        return {}
    try:
        store = store_for(table, Kind.TABLE)
        return _types(store.parts(store.load(system_actor(), table, as_published=True)).get("columns"))
    except MetalakeError:
        return {}


def _types(columns: Sequence[Mapping[str, Any]] | None) -> Types:
    return {column["name"]: column.get("type") for column in columns or ()}
