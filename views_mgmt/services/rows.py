"""Rename, move and drop views whose names exist only in our rows: managed and delegated ones."""

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
    """The name as the schema's catalog stores it: in lower case if the catalog folds case."""
    return name.lower() if offers_of(home)[Kind.SCHEMA].folds_case else name


def to_alter(address: Address, target: Address | None) -> Sequence[Target]:
    """The write targets for altering a view and, with `target`, renaming or moving it at once."""
    return [Target(address, operations.ALTER_VIEW)] if target is None else renames.to_rename(address, target)


def move_row(actor: Actor, home: Located, fresh: Located, name: str) -> Located:
    """Rename and move a view in the caller's transaction; returns it under its new name."""
    return renames.move(actor, fresh, home, name_in(home, name))


def rename(actor: Actor, source: Address, target: Address) -> Located:
    """Rename or move a view, which adds a version as any other change."""
    return write_to(actor, renames.to_rename(source, target), _rename, target.leaf or "")


def _rename(write: Write, name: str) -> Located:
    view, by = write.located, write.actor.name
    before = versions.current(view)
    moved = move_row(write.actor, write.home, view, name)
    versions.add(moved, before.definition, by, Form(before.view.engine, before.view.format), before.stored_as)
    return moved


def drop(actor: Actor, address: Address) -> None:
    """Delete a view's row and its grants; its versions are kept."""
    write_to(actor, Target(address, operations.DROP_VIEW, Lock.MOVES), _drop)


def _drop(write: Write) -> None:
    remove(write.located)
    record(event(write.actor, "view.dropped", write.located, [gone(write.located.id)]))
