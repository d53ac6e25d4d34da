"""Tables: list, load, create, register, alter, rename and drop them, whatever their store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

import orjson

from authz import operations, policy
from authz.actor import Actor
from catalogs.secrets import require_values
from catalogs.services.alterations import require_enabled
from catalogs.services.leaves import LeafList, schema_to_list, visible_names
from catalogs.services.resolution import find, read_or_namesake, require_table, resolve_parent
from catalogs.stores import leaf_kinds, offers_of, store_for
from catalogs.table_stores import PartitionStore, TableDraft, TableRecord
from formats.native.tables import CreateTableRequest
from metalake.errors import Conflict, Invalid, Unsupported
from metalake.hierarchy import check_new_name
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from metalake.privileges import Privilege
from metalake.rest.replies import Audit
from metalake.statements import fetch
from providers.table_shapes import TableShape, shapes_of

OF_HIVE = frozenset({"hive.stored-as", "hive.input-format", "hive.serde"})  # Iceberg's catalog of Spark hands them on


def list_tables(
    actor: Actor,
    address: Address,
    after: str | None = None,
    limit: int | None = None,
    *,
    refresh: bool = False,
    iceberg: bool = False,
) -> LeafList:
    """The names of tables that the actor may load, in order; after `after`, at most `limit`.

    With `iceberg`, outside tables in another format are left out.
    """
    schema = schema_to_list(actor, address, Kind.TABLE)
    listing = store_for(schema, Kind.TABLE).listing(actor, schema, refresh=refresh, iceberg=iceberg)
    return visible_names(actor, schema, Kind.TABLE, listing, after, limit)


def load_table(
    actor: Actor, address: Address, holding: Iterable[Privilege] = (), *, refresh: bool = False
) -> TableRecord:
    """Load a table in one statement, beside those for the caller; metadata that was read before comes from the cache.

    Raises Forbidden unless each privilege in `holding` is effective on the table, as all are for its owners.
    """
    wanted = [operations.LOAD_TABLE, *map(_exercise, holding)]

    def allow(table: Located) -> None:
        for operation in wanted:
            policy.require(actor, operation, table)
        require_enabled(table)

    def read(table: Located) -> TableRecord:
        return store_for(table, Kind.TABLE).load(actor, table, refresh=refresh)

    return read_or_namesake(address, _find(actor, address), allow, read)


def load_iceberg_table(actor: Actor, address: Address, *, refresh: bool = False) -> TableRecord:
    """A table with its Iceberg metadata. Raises NotFound for a table in another format."""
    table = load_table(actor, address, refresh=refresh)
    return store_for(table.published, Kind.TABLE).pointers.read(table)


def _find(actor: Actor, address: Address) -> Located:
    return require_table(actor, find(actor, address))


def _exercise(privilege: Privilege) -> operations.Operation:
    return replace(operations.LOAD_TABLE, name=f"exercise {privilege}", sufficient=operations.any_of(privilege))


def native_parts(table: TableRecord) -> dict[str, Any]:
    """The native API's JSON of a table, without its name and audit information."""
    return store_for(table.published, Kind.TABLE).parts(table)


def load_partitions(actor: Actor, address: Address, *, to_write: bool = False) -> PartitionStore:
    """The partitions of a table that the actor may load. Raises Unsupported if there are none to manage.

    Before a write the table is read anew from its system, since another table may have its name there by now.
    """
    table = load_table(actor, address, refresh=to_write)
    return store_for(table.published, Kind.TABLE).partitions(table)


def load_audit(table: TableRecord) -> Audit:
    """Who created a table and changed it last, in one statement."""
    rows = fetch(_AUDIT, [table.published.id])
    if not rows:
        raise table.published.missing()
    return Audit(*rows[0])


_AUDIT = "SELECT creator, create_time, last_modifier, last_modified_time FROM metalake_securable WHERE id = %s"


def table_exists(actor: Actor, address: Address, *, iceberg: bool = False) -> None:
    """Raise NotFound unless the actor may load the table; with `iceberg`, also for a table in another format."""

    def allow(table: Located) -> None:
        policy.require_seen(actor, table)
        require_enabled(table)

    def read(table: Located) -> None:
        store_for(table, Kind.TABLE).require_there(actor, table, iceberg=iceberg)

    read_or_namesake(address, _find(actor, address), allow, read)


def shapes(schema: Located) -> dict[str, TableShape]:
    """What new tables in a schema may have, by format; none if its catalog has no tables."""
    if schema.kind != Kind.SCHEMA or Kind.TABLE not in leaf_kinds(schema):
        return {}
    offer = offers_of(schema).get(Kind.TABLE)
    return shapes_of(offer) if offer else {}


def create_native_table(actor: Actor, address: Address, asked: CreateTableRequest) -> TableRecord:
    """Create a table from a native request."""
    require_values(asked.properties, kind=Kind.TABLE)
    home = resolve_parent(actor, address)
    return store_for(home, Kind.TABLE).create(actor, address, home, asked)


def alter_native_table(actor: Actor, address: Address, updates: Sequence[Any], since: str | None = None) -> TableRecord:
    """Apply the native API's updates to a table, all or none.

    With `since`, a version of its columns, raises Conflict if they are others by now.
    """
    table = _find(actor, address)
    policy.require(actor, operations.ALTER_TABLE, table)

    def require_unchanged(parts: dict[str, Any]) -> None:
        if columns_version(parts) != since:
            raise Conflict("The columns were changed meanwhile.", kind=Kind.TABLE)

    requires = None if since is None else require_unchanged
    return store_for(table, Kind.TABLE).alter(actor, address, table, updates, requires)


def columns_version(parts: dict[str, Any]) -> str:
    """A text that differs whenever the columns do, of the native API's JSON of a table."""
    return sha256(orjson.dumps(parts["columns"], option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]


def create_table(actor: Actor, address: Address, draft: TableDraft, *, stage: bool = False) -> TableRecord:
    """Create an Iceberg table; a staged one is described, but not stored. Raises Invalid for what asks for another."""
    check_new_name(address.leaf or "", Kind.TABLE)
    for name in OF_HIVE.intersection(draft.properties):
        raise Invalid(
            f"Property {name} is what Spark makes of STORED AS or ROW FORMAT, which are of Hive's tables, and this is "
            "an Iceberg table: leave them out. The table property write.format.default sets its file format",
            kind=Kind.TABLE,
        )
    home = resolve_parent(actor, address)
    pointers = store_for(home, Kind.TABLE).pointers
    return (pointers.stage if stage else pointers.create)(actor, address, home, draft)


def register_table(actor: Actor, address: Address, metadata_location: str, *, overwrite: bool = False) -> TableRecord:
    """Register an Iceberg table by its existing metadata file."""
    if overwrite:
        raise Unsupported("Registering over an existing table is not supported; drop it first.", kind=Kind.TABLE)
    check_new_name(address.leaf or "", Kind.TABLE)
    home = resolve_parent(actor, address, operations.REGISTER_TABLE)
    return store_for(home, Kind.TABLE).pointers.register(actor, address, home, metadata_location)


def rename_table(actor: Actor, source: Address, target: Address, *, iceberg: bool = False) -> Located:
    """Rename a table; returns it with its new name.

    Who may alter it may rename it in its schema; its owner may move it to a schema where they may create tables. With
    `iceberg`, raises NotFound for an outside table in another format.
    """
    check_new_name(target.leaf or "", Kind.TABLE)
    if (source.metalake, source.catalog) != (target.metalake, target.catalog):
        raise Unsupported("A table cannot move to another catalog.", kind=Kind.TABLE)
    table = _find(actor, source)
    return store_for(table, Kind.TABLE).rename(actor, source, table, target, iceberg=iceberg)


def rename_native_table(actor: Actor, source: Address, target: Address) -> TableRecord:
    """Rename a table and load it; its rights are not checked again for that, since they may be lost by the move."""
    table = rename_table(actor, source, target)
    return store_for(table, Kind.TABLE).load(actor, table, as_published=True)


def drop_table(actor: Actor, address: Address, *, purge: bool = False, iceberg: bool = False) -> str | None:
    """Drop a table; with `purge`, the files of a managed one are deleted in the background.

    Returns why files stay that an outside system would have deleted, or None. With `iceberg`, raises NotFound for an
    outside table in another format.
    """
    table = _find(actor, address)
    policy.require(actor, operations.DROP_TABLE, table)
    return store_for(table, Kind.TABLE).drop(actor, address, table, purge=purge, iceberg=iceberg)
