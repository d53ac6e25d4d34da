"""Rename, move and drop views whose rows here are all there is to their names: managed and delegated ones."""

from __future__ import annotations

from authz import operations, policy
from authz.actor import Actor
from authz.locks import Lock
from authz.services import ownership_rules
from catalogs import lookup
from catalogs.services import resolution
from catalogs.services.alterations import event, require_enabled
from catalogs.services.cascade import remove
from catalogs.services.free_names import require_free_for_rename
from catalogs.services.renames import rename_row
from catalogs.services.resolution import as_home
from catalogs.services.writes import Locks, write_to
from catalogs.stores import offers_of
from metalake.events import gone, record
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from views_mgmt import versions
from views_mgmt.versions import Form


def name_in(home: Located, name: str) -> str:
    """The name as the schema's catalog stores it, in lower case where that folds names."""
    return name.lower() if offers_of(home)[Kind.SCHEMA].folds_case else name


def view_at(actor: Actor, address: Address) -> Located:
    """The view of an address that has a row, in a transaction: no other system is asked. Raises NotFound."""
    return resolution.of_kind(actor, lookup.find(actor, address), Kind.VIEW)


def locate_for_rename(actor: Actor, source: Address, target: Address) -> Locks:
    """The target's schema and the view, after checking the rights to rename it, or to move it there."""
    fresh, moves = view_at(actor, source), source.schema != target.schema
    # Before the target is looked up, so that only who may move the view learns whether it exists.
    policy.require(actor, operations.MOVE_VIEW if moves else operations.ALTER_VIEW, fresh)
    require_enabled(fresh)
    home = lookup.find(actor, target.of_schema())
    if moves:
        as_home(actor, home, operations.CREATE_VIEW)
    return [(home, Lock.HANGS), (fresh, Lock.MOVES)]


def move_row(actor: Actor, home: Located, fresh: Located, name: str) -> Located:
    """Give a view its new name and schema, in the caller's transaction; the view under its new name."""
    name = name_in(home, name)
    if home.id != fresh.above().id:
        ownership_rules.require_no_escape(actor, fresh, home)
    require_free_for_rename(fresh, home, name)
    return rename_row(actor, fresh, home, name)


def rename(actor: Actor, source: Address, target: Address) -> Located:
    """Rename a view, or move it; that is a new version as any other change."""

    def act(actor: Actor, home: Located, fresh: Located) -> Located:
        before = versions.current(fresh)
        moved = move_row(actor, home, fresh, target.leaf or "")
        versions.add(
            moved, before.definition, actor.name, Form(before.view.engine, before.view.format), before.stored_as
        )
        return moved

    return write_to(actor, lambda actor: locate_for_rename(actor, source, target), act, kind=Kind.VIEW)


def drop(actor: Actor, address: Address) -> None:
    """Drop a view's row now, with its grants; its versions stay."""

    def locate(actor: Actor) -> Locks:
        fresh = view_at(actor, address)
        policy.require(actor, operations.DROP_VIEW, fresh)
        require_enabled(fresh)
        return [(fresh, Lock.MOVES)]

    def act(actor: Actor, fresh: Located) -> None:
        remove(fresh)
        record(event(actor, "view.dropped", fresh, [gone(fresh.id)]))

    write_to(actor, locate, act, kind=Kind.VIEW)
