"""Configuration and namespaces: one endpoint per path of the Iceberg REST specification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from authz import operations
from catalogs.secrets import mask
from catalogs.services import catalogs, schemas
from catalogs.services.alterations import Alteration
from catalogs.stores import SchemaRecord, offers_of
from iceberg_rest.names import SEPARATOR, Levels, checked_levels, checked_name, dotted, prefix_of, readings_of_parent
from iceberg_rest.pages import page
from iceberg_rest.replies import Reply, done, reply
from iceberg_rest.routes import ROUTES, Call, Route, route
from iceberg_rest.wire import CreateNamespace, UpdateNamespaceProperties
from metalake.errors import AlreadyExists, Invalid, NotEmpty, NotFound, NotInUse, Unprocessable, Unsupported
from metalake.kinds import Kind
from metalake.lineage import Address
from providers.base import Offer
from providers.registry import provider_class as require_installed


def _warehouse(call: Call) -> Address:
    name = call.query.get("warehouse")
    return Address(metalake=call.metalake, catalog=checked_name(name, Kind.CATALOG) if name else None)


@route("GET /v1/config", operations.LOAD_CATALOG, needs=None, looks_up=_warehouse)
def load_config(call: Call) -> Reply:
    warehouse = call.query.get("warehouse")
    if not warehouse:
        raise Invalid("Name a catalog: send its name as the query parameter warehouse (a client's property warehouse).")
    call.subject = call.about_warehouse(checked_name(warehouse, Kind.CATALOG))
    catalog = catalogs.locate_catalog(call.actor, call.metalake, warehouse)
    if catalog.disabled:
        raise NotInUse(f"Catalog {warehouse} is disabled; enable it first.", kind=Kind.CATALOG)
    offers = offers_of(catalog)
    if not offers:
        require_installed(catalog.provider or "")
    return reply(
        {
            "defaults": {},
            "overrides": {"prefix": prefix_of(catalog.name), "namespace-separator": SEPARATOR},
            "endpoints": [str(each) for each in ROUTES if _is_offered(each, offers)],
        }
    )


def _is_offered(route: Route, offers: Mapping[Kind, Offer]) -> bool:
    offer = offers.get(route.needs) if route.needs else None
    if offer is None:
        return False
    if route.of_several and not offer.commits_together:
        return False
    return route.needs is Kind.SCHEMA or "iceberg" in offer.formats


def _parent(call: Call) -> Address:
    parent = call.query.get("parent")
    levels = readings_of_parent(parent)[0] if parent else None
    return Address(metalake=call.metalake, catalog=call.catalog, schema=levels)


@route("GET /v1/{prefix}/namespaces", operations.LIST_SCHEMAS, looks_up=_parent)
def list_namespaces(call: Call) -> Reply:
    parent = call.query.get("parent") or ""
    readings: list[Levels] = readings_of_parent(parent) if parent else [()]
    if parent:
        call.subject = call.about_namespace(readings[0])
    above: list[Levels] = []

    def fetch(after: str | None, limit: int | None) -> list[str]:
        levels, names = _children(call, readings, after, limit)
        above.append(levels)
        return names

    names, token = page(call.query, fetch, "namespaces", call.actor.name, call.metalake, call.catalog, parent)
    return reply({"namespaces": [[*above[0], name] for name in names], "next-page-token": token})


def _children(call: Call, readings: list[Levels], after: str | None, limit: int | None) -> tuple[Levels, list[str]]:
    """The first reading of the parent that exists, and its child names."""
    for levels in readings[:-1]:
        try:
            return levels, _names_below(call, levels, after, limit)
        except NotFound:
            continue
    return readings[-1], _names_below(call, readings[-1], after, limit)


def _names_below(call: Call, levels: Levels, after: str | None, limit: int | None) -> list[str]:
    parent = Address(metalake=call.metalake, catalog=call.catalog, schema=levels or None)
    try:
        listed = schemas.list_schemas(call.actor, parent, after, limit, refresh=call.refresh)
    except Unsupported:
        # A flat catalog: its schemas have no children, so engines that list them get an empty list.
        schemas.schema_exists(call.actor, parent)
        return []
    call.taken_at = listed.taken_at
    return [path.leaf for path in listed.paths]


@route("POST /v1/{prefix}/namespaces", operations.CREATE_SCHEMA, body=CreateNamespace)
def create_namespace(call: Call, body: CreateNamespace) -> Reply:
    """Create a namespace with its missing parents."""
    levels = checked_levels(body.namespace)
    try:
        made = schemas.create_schema(call.actor, call.ident(levels), None, body.properties or {})
    except AlreadyExists:
        raise AlreadyExists(f"Namespace already exists: {dotted(levels)}", kind=Kind.SCHEMA) from None
    return reply(_as_json(made))


def _as_json(record: SchemaRecord) -> dict[str, Any]:
    return {"namespace": record.path.segments, "properties": mask(record.row.properties)}


@route("GET /v1/{prefix}/namespaces/{namespace}", operations.LOAD_SCHEMA)
def load_namespace(call: Call) -> Reply:
    """Load a namespace with its location, which Trino needs before it creates a table."""
    loaded = schemas.load_schema(call.actor, call.ident(), refresh=call.refresh, with_folder=True)
    call.taken_at = loaded.taken_at
    namespace = _as_json(loaded)
    if loaded.folder:
        namespace["properties"] |= mask({"location": loaded.folder})
    return reply(namespace)


@route("HEAD /v1/{prefix}/namespaces/{namespace}", operations.LOAD_SCHEMA, looks_up=Call.ident)
def namespace_exists(call: Call) -> Reply:
    schemas.schema_exists(call.actor, call.ident())
    return done()


@route("DELETE /v1/{prefix}/namespaces/{namespace}", operations.DROP_SCHEMA)
def drop_namespace(call: Call) -> Reply:
    try:
        schemas.drop_schema(call.actor, call.ident())
    except NotEmpty:
        raise NotEmpty(f"Namespace {dotted(call.levels)} is not empty.", kind=Kind.SCHEMA) from None
    return done()


@route("POST /v1/{prefix}/namespaces/{namespace}/properties", operations.ALTER_SCHEMA, body=UpdateNamespaceProperties)
def update_namespace_properties(call: Call, body: UpdateNamespaceProperties) -> Reply:
    updates = body.updates or {}
    removals = list(dict.fromkeys(body.removals or ()))
    if both := sorted(updates.keys() & set(removals)):
        raise Unprocessable(f"To be set and to be removed at once: {', '.join(both)}.", kind="property")
    changes = (*updates.items(), *((key, None) for key in removals))
    _, before = schemas.alter_schema(call.actor, call.ident(), Alteration(properties=changes))
    return reply(
        {
            "updated": list(updates),
            "removed": [key for key in removals if key in before],
            "missing": [key for key in removals if key not in before],
        }
    )
