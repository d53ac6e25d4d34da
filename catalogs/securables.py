"""How authz finds catalogs, schemas and tables by their full names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from authz.objects import Address
from authz.policy import Node
from catalogs.hierarchy import split_logical
from catalogs.lookup import Found, Ident, nearest, schema_keys
from catalogs.models import Catalog, Schema
from metalake.models import Securable, Slot
from metalake.privileges import Kind

KINDS = frozenset({Kind.CATALOG, Kind.SCHEMA, Kind.TABLE, Kind.VIEW})


def find(metalake: str, address: Address) -> Sequence[Node] | None:
    """One statement."""
    if address.kind not in KINDS:
        return None
    found = nearest(Ident(metalake, *address.names))
    return found.nodes if found and found.kind == address.kind else None


def ids_of(metalake_id: int, addresses: Sequence[Address]) -> list[int | None]:
    """At most three statements, however many addresses."""
    catalogs = {
        name: (id, nested)
        for id, name, nested in Catalog.objects.filter(
            parent_id=metalake_id, name__in={address.names[0] for address in addresses}
        ).values_list("id", "name", "nested")
    }
    schemas = _schema_ids(catalogs, {address.names[:2] for address in addresses if len(address.names) > 1})
    leaves = _leaf_ids(schemas, {address.names for address in addresses if len(address.names) > 2})

    def id_of(address: Address) -> int | None:
        if address.kind not in KINDS:
            return None
        if address.kind == Kind.CATALOG:
            return catalogs.get(address.names[0], (None,))[0]
        if address.kind == Kind.SCHEMA:
            return schemas.get(address.names)
        return leaves.get((address.names, address.kind.value))

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
    rows = Schema.objects.filter(
        in_catalog_id__in={id for id, _ in keys.values()}, physical_name__in={key for _, key in keys.values()}
    ).values_list("in_catalog_id", "physical_name", "id")
    ids = {(catalog, physical): id for catalog, physical, id in rows}
    return {name: ids[key] for name, key in keys.items() if key in ids}


def _leaf_ids(
    schemas: dict[tuple[str, ...], int], names: set[tuple[str, ...]]
) -> dict[tuple[tuple[str, ...], str], int]:
    keys = {name: (schemas[name[:2]], name[2]) for name in names if name[:2] in schemas}
    if not keys:
        return {}
    rows = Securable.objects.filter(
        slot=Slot.TABULAR, parent_id__in={id for id, _ in keys.values()}, name__in={leaf for _, leaf in keys.values()}
    ).values_list("parent_id", "name", "kind", "id")
    leaves = {(parent, name): (kind, id) for parent, name, kind, id in rows}
    return {(name, leaves[key][0]): leaves[key][1] for name, key in keys.items() if key in leaves}


def full_name(nodes: Sequence[Node]) -> list[str]:
    return Found(tuple(nodes), "", None, False, None, None).full_name


def levels(schema: str) -> list[str]:
    return list(split_logical(schema))


def catalog_types(catalog_ids: Iterable[int]) -> dict[int, str]:
    return dict(Catalog.objects.filter(pk__in=set(catalog_ids)).values_list("pk", "type"))
