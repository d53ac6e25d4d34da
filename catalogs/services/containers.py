"""Enable, disable and drop metalakes and catalogs."""

from __future__ import annotations

from authz.actor import Actor
from authz.locks import Lock
from authz.operations import OPERATIONS
from catalogs.models import Catalog
from catalogs.services import reserved_denies
from catalogs.services.alterations import event, require_settled, row_of
from catalogs.services.cascade import remove
from catalogs.services.writes import Target, Write, write_to
from metalake.errors import InUse, NotEmpty, NotFound
from metalake.events import gone, record
from metalake.kinds import Kind
from metalake.lineage import Address
from metalake.models import Metalake, Securable

_MODELS: dict[Kind, type[Metalake] | type[Catalog]] = {Kind.METALAKE: Metalake, Kind.CATALOG: Catalog}


def set_enabled(actor: Actor, address: Address, enabled: bool, *, lock: Lock) -> None:
    target = Target(address, OPERATIONS[f"enable_{address.kind}"], lock, while_disabled=True)
    write_to(actor, target, _set_enabled, enabled)


def _set_enabled(write: Write, enabled: bool) -> None:
    located = write.located
    rows = _MODELS[located.kind].objects.filter(pk=located.id)
    if rows.exclude(enabled=enabled).update(enabled=enabled):
        record(event(write.actor, f"{located.kind}.{'enabled' if enabled else 'disabled'}", located))


def drop(actor: Actor, address: Address, *, force: bool) -> bool:
    """Drop a container; False if there is none that the caller may see. Without force it must be disabled and empty.

    Raises InUse while a write to an outside system is pending in it, even with `force`: it could never complete.
    """
    target = Target(address, OPERATIONS[f"drop_{address.kind}"], Lock.MOVES, while_disabled=True)
    try:
        write_to(actor, target, _drop, force)
    except NotFound as miss:
        if miss.kind != address.kind:
            raise
        return False
    return True


def _drop(write: Write, force: bool) -> None:
    located, kind = write.located, write.located.kind
    row = row_of(_MODELS[kind], located)
    require_settled(located)
    if not force:
        what = f"{kind.capitalize()} {located.name}"
        if row.enabled:
            raise InUse(f"{what} is in use; disable it first, or drop it by force.", kind=kind)
        if Securable.objects.filter(parent_id=located.id, kind__in=(Kind.CATALOG, Kind.SCHEMA)).exists():
            raise NotEmpty(f"{what} is not empty.", kind=kind)
    if kind is Kind.CATALOG:
        reserved_denies.require_lift_on(write.actor, located, f"Dropping catalog {located.name}")
    remove(located)
    record(event(write.actor, f"{kind}.dropped", located, [gone(located.id)], force=force))
