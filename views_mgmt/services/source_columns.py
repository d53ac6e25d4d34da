"""Columns of the sources of views, as far as our store has them: no remote calls, and few reads of object storage."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from authz.actor import system_actor
from authz.objects import locate_all
from catalogs.lookup import by_id
from catalogs.stores import store_for
from metalake.errors import MetalakeError
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from views_mgmt import versions

MOST_SOURCES = 200  # per look-up


class Columns(NamedTuple):
    """Column names of a table or view, with its id: a caller who may not load it must not see them."""

    of: int
    names: tuple[str, ...]


def columns_at(metalake: Located, addresses: Sequence[Address], until: float) -> dict[Address, Columns]:
    """The known columns of the table or view at each address; stops at `until`, of time.monotonic()."""
    wanted = {
        replace(address, leaf_kind=kind): address
        for address in addresses[:MOST_SOURCES]
        for kind in (Kind.TABLE, Kind.VIEW)  # which share a name space
    }
    located = locate_all(metalake, wanted)
    targets = {wanted[address]: target for address, target in located.items() if address in wanted}
    known = _known({target.id: target for target in targets.values()}, until)
    return {address: Columns(each.id, known[each.id]) for address, each in targets.items() if each.id in known}


def _known(targets: Mapping[int, Located], until: float) -> dict[int, tuple[str, ...]]:
    known = {row.view_id: _names(row.columns) for row in versions.present().filter(view_id__in=targets)}
    for target in targets.values():
        if target.kind is Kind.TABLE and time.monotonic() < until:
            known[target.id] = _of_table(target.id)
    return known


def _of_table(id: int) -> tuple[str, ...]:
    """The columns as stored here; none if they are unreadable."""
    table = by_id(id)
    if table is None:
        return ()
    try:
        store = store_for(table, Kind.TABLE)
        return _names(store.parts(store.load(system_actor(), table, as_published=True)).get("columns"))
    except MetalakeError:
        return ()


def _names(columns: Sequence[Mapping[str, Any]] | None) -> tuple[str, ...]:
    return tuple(column["name"] for column in columns or ())
