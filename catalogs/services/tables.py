"""Tables: listed, loaded, created, registered, altered, renamed and dropped, whichever store keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from authz import operations, policy
from authz.actor import Actor
from catalogs.secrets import require_values
from catalogs.services.changes import require_enabled
from catalogs.services.finding import find, or_namesake
from catalogs.services.leaves import LeafList, schema_to_list, visible_names
from catalogs.services.pointers import a_table, meet_home
from catalogs.stores import store_for
from catalogs.table_stores import PartitionStore, TableDraft, TableRecord
from formats.native.tables import CreateTableRequest
from metalake.errors import Unsupported
from metalake.hierarchy import check_segment
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from metalake.models import AuditInfo, Securable
from metalake.privileges import Privilege


def list_tables(
    actor: Actor,
    address: Address,
    after: str | None = None,
    limit: int | None = None,
    *,
    refresh: bool = False,
    iceberg: bool = False,
) -> LeafList:
    """The names that the actor may load, in order; from behind `after`, at most `limit`.

    With `iceberg`, those of an outside catalog that are in another format are left out.
    """
    schema = schema_to_list(actor, address)
    listing = store_for(schema, Kind.TABLE).listing(actor, schema, refresh=refresh, iceberg=iceberg)
    return visible_names(actor, schema, Kind.TABLE, listing, after, limit)


def load_table(
    actor: Actor, address: Address, holding: Iterable[Privilege] = (), *, refresh: bool = False
) -> TableRecord:
    """One statement beside the caller's identity; the metadata comes from memory where it was read before.

    Raises Forbidden unless each privilege in `holding` is effective on the table, as all are for its owners.
    """
    wanted = [operations.LOAD_TABLE, *map(_exercise, holding)]

    def allow(table: Located) -> None:
        for operation in wanted:
            policy.require(actor, operation, table)
        require_enabled(table)

    def read(table: Located) -> TableRecord:
        return store_for(table, Kind.TABLE).load(actor, table, refresh=refresh)

    return or_namesake(address, _find(actor, address), allow, read)


def load_iceberg_table(actor: Actor, address: Address, *, refresh: bool = False) -> TableRecord:
    """A table with its Iceberg metadata. Raises NotFound for one that is in another format."""
    table = load_table(actor, address, refresh=refresh)
    return store_for(table.published, Kind.TABLE).pointers.read(table)


def _find(actor: Actor, address: Address) -> Located:
    return a_table(actor, find(actor, address))


def _exercise(privilege: Privilege) -> operations.Operation:
    return replace(operations.LOAD_TABLE, name=f"exercise {privilege}", sufficient=operations.any_of(privilege))


def native_parts(table: TableRecord) -> dict[str, Any]:
    """The native wire's table without its name and audit."""
    return store_for(table.published, Kind.TABLE).parts(table)


def load_partitions(actor: Actor, address: Address, *, to_write: bool = False) -> PartitionStore:
    """The partitions of a table that the actor may load; before a write the table is asked for anew, since a namesake
    made outside may have its place by now. Raises Unsupported where its tables have none to manage.
    """
    table = load_table(actor, address, refresh=to_write)
    return store_for(table.published, Kind.TABLE).partitions(table)


def load_audit(table: TableRecord) -> AuditInfo:
    """Who made a table and changed it last, in one statement."""
    row = Securable.objects.filter(pk=table.published.id).first()
    if row is None:
        raise table.published.missing()
    return row


def table_exists(actor: Actor, address: Address, *, iceberg: bool = False) -> None:
    """Raise NotFound unless the actor may load the table; with `iceberg`, of one in another format, too."""

    def allow(table: Located) -> None:
        if not policy.sees(actor, table):
            raise policy.unseen(actor, table)
        require_enabled(table)

    def read(table: Located) -> None:
        store_for(table, Kind.TABLE).require_there(actor, table, iceberg=iceberg)

    or_namesake(address, _find(actor, address), allow, read)


def create_native_table(actor: Actor, address: Address, asked: CreateTableRequest) -> TableRecord:
    """A table as the native wire describes it."""
    require_values(asked.properties, kind=Kind.TABLE)
    home = meet_home(actor, address)
    return store_for(home, Kind.TABLE).create(actor, address, home, asked)


def alter_native_table(actor: Actor, address: Address, updates: Sequence[Any]) -> TableRecord:
    """The native wire's changes, all or none."""
    table = _find(actor, address)
    policy.require(actor, operations.ALTER_TABLE, table)
    return store_for(table, Kind.TABLE).alter(actor, address, table, updates)


def create_table(actor: Actor, address: Address, draft: TableDraft, *, stage: bool = False) -> TableRecord:
    """An Iceberg table; one that is staged is described and not kept."""
    check_segment(address.leaf or "", Kind.TABLE)
    home = meet_home(actor, address)
    return store_for(home, Kind.TABLE).pointers.create(actor, address, home, draft, stage=stage)


def register_table(actor: Actor, address: Address, metadata_location: str, *, overwrite: bool = False) -> TableRecord:
    """Take over an Iceberg table whose metadata file is there already."""
    if overwrite:
        raise Unsupported("Registering over an existing table is not supported; drop it first.", kind=Kind.TABLE)
    check_segment(address.leaf or "", Kind.TABLE)
    home = meet_home(actor, address, operations.REGISTER_TABLE)
    return store_for(home, Kind.TABLE).pointers.register(actor, address, home, metadata_location)


def rename_table(actor: Actor, source: Address, target: Address, *, iceberg: bool = False) -> Located:
    """In its schema by whoever may alter it; to another schema by its owner, who may create there.

    With `iceberg`, an outside table in another format is none. Returns the table as it is called then.
    """
    check_segment(target.leaf or "", Kind.TABLE)
    if (source.metalake, source.catalog) != (target.metalake, target.catalog):
        raise Unsupported("A table cannot move to another catalog.", kind=Kind.TABLE)
    table = _find(actor, source)
    return store_for(table, Kind.TABLE).rename(actor, source, table, target, iceberg=iceberg)


def rename_native_table(actor: Actor, source: Address, target: Address) -> TableRecord:
    """The same, and the table as it was then: no right is asked for that again, which may be lost meanwhile."""
    table = rename_table(actor, source, target)
    return store_for(table, Kind.TABLE).load(actor, table, as_published=True)


def drop_table(actor: Actor, address: Address, *, purge: bool = False, iceberg: bool = False) -> str | None:
    """The table goes now; with purge, the files of one of ours follow in the background.

    With `iceberg`, an outside table in another format is none. Returns why an outside system was not told to delete
    files that go with the table there.
    """
    table = _find(actor, address)
    policy.require(actor, operations.DROP_TABLE, table)
    return store_for(table, Kind.TABLE).drop(actor, address, table, purge=purge, iceberg=iceberg)
