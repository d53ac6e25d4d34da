"""The finder of catalogs, schemas and tables by full name, for authz."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from django.db import connection

from authz.actor import Actor
from catalogs.lookup import miss, nearest
from catalogs.lookup_statement import schema_keys
from catalogs.models import Catalog
from catalogs.services import resolution
from metalake.hierarchy import configured_separator, split_logical
from metalake.kinds import IN_CATALOGS, LEAVES, Kind, slot_of
from metalake.lineage import Address, Node

_HERE = frozenset({Kind.CATALOG, *IN_CATALOGS})


def find(address: Address, asker: Actor | None = None) -> Sequence[Node] | None:
    """The lineage of an object, or None, in one statement.

    With an asker, an object that exists only in an outside system is imported, and a miss executes the statements of a
    refusal too, so that timing does not tell them apart.
    """
    if address.kind not in _HERE:
        return None
    located = nearest(address)
    if located and located.kind == address.kind:
        return located.nodes
    if asker is not None:
        if not connection.in_atomic_block:
            with resolution.naming_catalog(address):
                if resolution.look_outside(asker, address, located):
                    return find(address)
        miss(asker, address, located)
    return None


def discover(actor: Actor, addresses: Sequence[Address]) -> bool:
    if is_asked := not connection.in_atomic_block:
        resolution.discover(actor, addresses)
    return is_asked


def ids_of(metalake_id: int, addresses: Sequence[Address]) -> list[int | None]:
    """The ids of the objects at these addresses, None for a missing one; at most three statements in total."""
    catalogs = {
        name: (id, nested)
        for id, name, nested in Catalog.objects.filter(
            parent_id=metalake_id, name__in={address.names[0] for address in addresses}
        ).values_list("id", "name", "nested")
    }
    schemas = _schema_ids(catalogs, {address.names[:2] for address in addresses if len(address.names) > 1})
    leaves = _leaf_ids(schemas, {(address.names, address.kind) for address in addresses if address.kind in LEAVES})

    def id_of(address: Address) -> int | None:
        if address.kind not in _HERE:
            return None
        if address.kind == Kind.CATALOG:
            return catalogs.get(address.names[0], (None,))[0]
        if address.kind == Kind.SCHEMA:
            return schemas.get(address.names)
        return leaves.get((address.names, address.kind))

    return [id_of(address) for address in addresses]


def _schema_ids(catalogs: dict[str, tuple[int, bool]], names: set[tuple[str, ...]]) -> dict[tuple[str, ...], int]:
    keys = {}
    for catalog, schema in names:
        if catalog in catalogs:
            id, is_nested = catalogs[catalog]
            nested, flat = schema_keys(schema)
            keys[catalog, schema] = (id, nested if is_nested else flat)
    if not keys:
        return {}
    rows = _at(
        "parent, name",
        {(catalog, physical) for catalog, physical in keys.values() if physical is not None},
        "SELECT s.catalog_id, s.physical_name, s.securable_ptr_id FROM wanted "
        "JOIN catalogs_schema s ON s.catalog_id = wanted.parent AND s.physical_name = wanted.name",
    )
    ids = {(catalog, physical): id for catalog, physical, id in rows}
    return {name: ids[key] for name, key in keys.items() if key in ids}


def _leaf_ids(
    schemas: dict[tuple[str, ...], int], wanted: set[tuple[tuple[str, ...], Kind]]
) -> dict[tuple[tuple[str, ...], str], int]:
    keys = {(schemas[names[:2]], slot_of(kind), names[2]): names for names, kind in wanted if names[:2] in schemas}
    rows = _at(
        "parent, slot, name",
        keys.keys(),
        "SELECT s.parent_id, s.slot, s.name, s.kind, s.id FROM wanted JOIN metalake_securable s "
        "ON s.parent_id = wanted.parent AND s.slot = wanted.slot AND s.name = wanted.name",
    )
    return {(keys[parent, slot, name], kind): id for parent, slot, name, kind, id in rows}


def _at(columns: str, keys: Collection[tuple], sql: str) -> list[tuple]:
    """The rows of `sql`, which joins the keys as the table `wanted`, so that no parent meets another's names."""
    if not keys:
        return []
    marks = ", ".join(["%s"] * len(columns.split(", ")))
    values = ", ".join([f"({marks})"] * len(keys))
    with connection.cursor() as cursor:
        cursor.execute(f"WITH wanted({columns}) AS (VALUES {values}) {sql}", [part for key in keys for part in key])
        return cursor.fetchall()


def levels(schema: str) -> list[str]:
    return list(split_logical(schema))


def separator() -> str:
    return configured_separator()


def catalog_types(catalog_ids: Iterable[int]) -> dict[int, str]:
    return dict(Catalog.objects.filter(pk__in=set(catalog_ids)).values_list("pk", "type"))
