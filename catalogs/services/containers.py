"""What enabling and dropping a metalake and a catalog have in common."""

from __future__ import annotations

from collections.abc import Callable

from authz import policy
from authz.actor import Actor
from authz.locks import Lock
from authz.operations import OPERATIONS
from catalogs.lookup import find
from catalogs.models import Catalog
from catalogs.services import reserved_denies
from catalogs.services.alterations import event, require_enabled, require_settled, row_of
from catalogs.services.cascade import remove
from catalogs.services.writes import Locks, write_to
from metalake.errors import InUse, NotEmpty, NotFound
from metalake.events import gone, record
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from metalake.models import Metalake

Container = type[Metalake] | type[Catalog]


def _locate(actor: Actor, address: Address, verb: str) -> Located:
    """The container, if the actor may do this to it. Raises NotInUse if what it lies in is disabled."""
    located = find(actor, address)
    policy.require(actor, OPERATIONS[f"{verb}_{address.kind}"], located)
    if address.kind is not Kind.METALAKE:
        require_enabled(located.above())
    return located


def set_enabled(actor: Actor, address: Address, model: Container, enabled: bool, *, lock: Lock) -> None:
    def locate(actor: Actor) -> Locks:
        return [(_locate(actor, address, "enable"), lock)]

    def act(actor: Actor, located: Located) -> None:
        if model.objects.filter(pk=located.id).exclude(enabled=enabled).update(enabled=enabled):
            record(event(actor, f"{address.kind}.{'enabled' if enabled else 'disabled'}", located))

    write_to(actor, locate, act, kind=address.kind)


def drop(actor: Actor, address: Address, model: Container, *, force: bool, holds_others: Callable[[int], bool]) -> bool:
    """Drop a container; False if there is none that the caller may see. Without force it must be disabled and empty.

    Raises InUse while a write to an outside system is under way in it, even with `force`: it could not be ended.
    """
    kind = address.kind

    def locate(actor: Actor) -> Locks:
        try:
            return [(_locate(actor, address, "drop"), Lock.MOVES)]
        except NotFound as miss:
            if miss.kind != kind:
                raise
            return []

    def act(actor: Actor, located: Located | None = None) -> bool:
        if located is None:
            return False
        row = row_of(model, located)
        require_settled(located)
        if not force:
            what = f"{kind.capitalize()} {located.name}"
            if row.enabled:
                raise InUse(f"{what} is in use; disable it first, or drop it by force.", kind=kind)
            if holds_others(located.id):
                raise NotEmpty(f"{what} is not empty.", kind=kind)
        if kind is Kind.CATALOG:
            reserved_denies.require_lift_on(actor, located, f"Dropping catalog {located.name}")
        remove(located)
        record(event(actor, f"{kind}.dropped", located, [gone(located.id)], force=force))
        return True

    return write_to(actor, locate, act, kind=kind)
