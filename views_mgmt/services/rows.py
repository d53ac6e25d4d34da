"""Rename, move and drop views whose rows here are all there is to their names: managed and delegated ones."""

from __future__ import annotations

from collections.abc import Sequence

from authz import operations
from authz.actor import Actor
from authz.locks import Lock
from catalogs.services import renames
from catalogs.services.alterations import event
from catalogs.services.cascade import remove
from catalogs.services.writes import Target, Write, write_to
from catalogs.stores import offers_of
from metalake.events import gone, record
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from views_mgmt import versions
from views_mgmt.versions import Form


def name_in(home: Located, name: str) -> str:
    """The name as the schema's catalog stores it, in lower case where that folds names."""
    return name.lower() if offers_of(home)[Kind.SCHEMA].folds_case else name


def to_alter(address: Address, target: Address | None) -> Sequence[Target]:
    """The view that is to be altered and, with a `target`, renamed at once, or moved there."""
    return [Target(address, operations.ALTER_VIEW)] if target is None else renames.to_rename(address, target)


def move_row(actor: Actor, home: Located, fresh: Located, name: str) -> Located:
    """Give a view its new name and schema, in the caller's transaction; the view under its new name."""
    return renames.move(actor, fresh, home, name_in(home, name))


def rename(actor: Actor, source: Address, target: Address) -> Located:
    """Rename a view, or move it; that is a new version as any other change."""
    return write_to(actor, renames.to_rename(source, target), _rename, target.leaf or "")


def _rename(write: Write, name: str) -> Located:
    view, by = write.located, write.actor.name
    before = versions.current(view)
    moved = move_row(write.actor, write.home, view, name)
    versions.add(moved, before.definition, by, Form(before.view.engine, before.view.format), before.stored_as)
    return moved


def drop(actor: Actor, address: Address) -> None:
    """Drop a view's row now, with its grants; its versions stay."""
    write_to(actor, Target(address, operations.DROP_VIEW, Lock.MOVES), _drop)


def _drop(write: Write) -> None:
    remove(write.located)
    record(event(write.actor, "view.dropped", write.located, [gone(write.located.id)]))
