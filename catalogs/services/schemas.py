"""Schemas: one row a level, missing parents made with the target, never dropped while they hold anything."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.db import connection
from django.utils import timezone

from authz import operations, policy
from authz.policy import Actor, Node
from authz.writing import write
from catalogs.hierarchy import HierarchicalSchema, SeparatorPolicy, check_strict, configured_separator
from catalogs.iceberg.guard import check_limits
from catalogs.lookup import Found, Ident, SchemaName, find, nearest
from catalogs.models import Schema
from catalogs.services.changes import Alteration, event, event_of, hold, remove, require_enabled, row_of, save
from metalake.errors import AlreadyExists, Forbidden, Invalid, NotEmpty, NotFound, Unsupported
from metalake.events import Event, gone, record, stands
from metalake.models import Securable, Slot, new_id
from metalake.privileges import Kind

FLAT = "This catalog has no schemas inside schemas."


@dataclass(frozen=True)
class SchemaRecord:
    """A schema as its doors show it."""

    path: HierarchicalSchema
    row: Schema


def path_in(catalog: Found, name: SchemaName) -> HierarchicalSchema:
    """The checked path of a name in this catalog, which is nested or flat. Raises Invalid or Unsupported."""
    if catalog.nested:
        if isinstance(name, str):
            return HierarchicalSchema.parse(name)
        return HierarchicalSchema.of(name)
    if not isinstance(name, str) and len(name) != 1:
        raise Unsupported(FLAT, kind=Kind.SCHEMA)
    plain = name if isinstance(name, str) else name[0]
    _check_flat(plain)
    return HierarchicalSchema.flat(plain)


def _check_flat(name: str) -> None:
    """Decision 2: the restricted policy keeps the separator out of flat names, the other takes it as plain text."""
    mark = configured_separator()
    if mark in name:
        if settings.METALAKE_SEPARATOR_POLICY is SeparatorPolicy.RESTRICTED:
            raise Invalid(f"A schema name must not contain {mark!r}, which divides levels elsewhere.", kind=Kind.SCHEMA)
        name = name.replace(mark, "_")
    check_strict(name, Kind.SCHEMA)


def list_schemas(
    actor: Actor, container: Ident, after: str | None = None, limit: int | None = None
) -> list[HierarchicalSchema]:
    """The direct children of a catalog or schema that the actor sees, by name; from behind `after`, at most `limit`."""
    try:
        found = find(actor, container)
    except NotFound:
        _check_parent(actor, container)
        raise
    if not policy.sees(actor, found):
        raise policy.unseen(actor, found)
    if found.kind == Kind.SCHEMA and not found.nested:
        raise Unsupported(FLAT, kind=Kind.SCHEMA)
    require_enabled(found)
    children = Securable.objects.filter(parent_id=found.id, slot=Slot.SCHEMA)
    if after is not None:
        children = children.filter(name__gt=after)
    names = policy.visible_schemas(actor, found, children).order_by("name").values_list("name", flat=True)[:limit]
    above = found.path.segments
    return [HierarchicalSchema((*above, name)) for name in names]


def _check_parent(actor: Actor, container: Ident) -> None:
    """Raise what is better than a miss; what a name may be depends on the catalog, so only who sees that is told."""
    catalog = nearest(Ident(container.metalake, container.catalog))
    if catalog is None or not policy.sees(actor, catalog):
        return
    if catalog.kind == Kind.CATALOG and container.schema is not None:
        if not catalog.nested:
            raise Unsupported(FLAT, kind=Kind.SCHEMA)
        path_in(catalog, container.schema)


def create_schema(actor: Actor, ident: Ident, comment: str | None, properties: dict[str, str]) -> SchemaRecord:
    """Make a schema with all its missing parents, all of one owner, in one transaction (decision 5).

    Eight statements at any depth: policy, catalog, chain, two inserts, audit, history, outbox.
    """
    check_limits(properties)

    def act(actor: Actor) -> SchemaRecord:
        catalog = find(actor, Ident(ident.metalake, ident.catalog))
        if not policy.sees(actor, catalog):
            raise policy.unseen(actor, catalog)
        require_enabled(catalog)
        path = path_in(catalog, ident.schema or "")
        parent, is_there = _nearest_parent(catalog, path)
        missing = len(path.segments) - len(parent.path.segments) - 1
        _require_create(actor, parent, missing, path)
        if is_there:
            raise AlreadyExists(f"Schema {path.logical()} already exists.", kind=Kind.SCHEMA)
        return SchemaRecord(path, _insert_chain(actor, parent, path, comment, properties))

    return write(actor, act, kind=Kind.SCHEMA)


def _nearest_parent(catalog: Found, path: HierarchicalSchema) -> tuple[Found, bool]:
    """The nearest existing strict ancestor, and whether the schema itself exists."""
    rows = {
        physical: (Node(id_, kind, name, user_id, group_id), lineage)
        for physical, lineage, id_, kind, name, user_id, group_id in Schema.objects.filter(
            in_catalog_id=catalog.id, physical_name__in=[scope.physical for scope in path.scopes]
        ).values_list("physical_name", "lineage", "id", "kind", "name", "owner_user_id", "owner_group_id")
    }
    nodes, lineage = list(catalog.nodes), catalog.lineage
    for ancestor in path.ancestors:
        if ancestor.physical in rows:
            node, lineage = rows[ancestor.physical]
            nodes.append(node)
    parent = Found(tuple(nodes), lineage, catalog.disabled, catalog.nested, None, catalog.provider)
    return parent, path.physical in rows


def _require_create(actor: Actor, parent: Found, missing: int, path: HierarchicalSchema) -> None:
    """Every missing level inherits from the nearest existing parent, so one check there answers for all (rule 5)."""
    if policy.permits(actor, operations.CREATE_SCHEMA, parent):
        return
    if missing and policy.may_bootstrap(policy.rights(actor, parent), parent.kind):
        return
    raise Forbidden(f"{actor.name} may not create schema {path.logical()}.", kind=Kind.SCHEMA)


def _insert_chain(
    actor: Actor, parent: Found, path: HierarchicalSchema, comment: str | None, properties: dict[str, str]
) -> Schema:
    """Two inserts, whatever the depth: Django cannot insert several rows of an inherited model at once."""
    now = timezone.now()
    rows: list[Schema] = []
    above, lineage = parent.id, parent.lineage
    for level in [*path.ancestors, path][len(parent.path.segments) :]:
        is_target = level == path
        row = Schema(
            id=new_id(),
            kind=Kind.SCHEMA,
            slot=Slot.SCHEMA,
            name=level.leaf,
            parent_id=above,
            owner_user_id=actor.id,
            creator=actor.name,
            create_time=now,
            comment=comment if is_target else None,
            properties=properties if is_target else {},
            in_catalog_id=parent.catalog.id,
            physical_name=level.physical,
        )
        row.lineage = lineage = f"{lineage}/{row.id}"
        above = row.id
        rows.append(row)
    fields = [field.attname for field in Securable._meta.concrete_fields]
    Securable.objects.bulk_create([Securable(**{field: getattr(row, field) for field in fields}) for row in rows])
    places = ", ".join(["(%s, %s, %s)"] * len(rows))
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO catalogs_schema (securable_ptr_id, catalog_id, physical_name) VALUES {places}",  # noqa: S608
            [value for row in rows for value in (row.id, row.in_catalog_id, row.physical_name)],
        )
    record(*(_created(actor, parent, row) for row in rows))
    target = rows[-1]
    target.securable_ptr_id = target.id
    return target


def _created(actor: Actor, parent: Found, row: Schema) -> Event:
    full_name = [parent.catalog.name, row.path.logical()]
    metalake_id, facts = parent.metalake.id, [stands(row)]
    return event_of(actor, "schema.created", Kind.SCHEMA, row.id, full_name, metalake_id, facts, owner=actor.name)


def load_schema(actor: Actor, ident: Ident) -> SchemaRecord:
    found = find(actor, ident)
    policy.require(actor, operations.LOAD_SCHEMA, found)
    require_enabled(found)
    return SchemaRecord(found.path, row_of(Schema, found))


def schema_exists(actor: Actor, ident: Ident) -> None:
    """Raise NotFound unless the actor sees the schema, be it only as a way to something below."""
    found = find(actor, ident)
    if not policy.sees(actor, found):
        raise policy.unseen(actor, found)
    require_enabled(found)


def alter_schema(actor: Actor, ident: Ident, alteration: Alteration) -> tuple[SchemaRecord, dict[str, str]]:
    """The schema, and its properties as they were before."""

    def act(actor: Actor) -> tuple[SchemaRecord, dict[str, str]]:
        found = find(actor, ident)
        policy.require(actor, operations.ALTER_SCHEMA, found)
        require_enabled(found)
        row = row_of(Schema, found)
        before = dict(row.properties)
        fields = alteration.apply_to(row)
        if fields:
            save(row, actor, fields)
            changed = sorted(set(before) ^ set(row.properties)) or sorted(fields)
            record(event(actor, "schema.altered", found, changed=changed))
        return SchemaRecord(found.path, row), before

    return write(actor, act, kind=Kind.SCHEMA)


def drop_schema(actor: Actor, ident: Ident, *, cascade: bool = False) -> None:
    """Refused while it holds anything, seen or unseen; cascade is for flat catalogs only (decision 6)."""

    def act(actor: Actor) -> None:
        found = find(actor, ident)
        policy.require(actor, operations.DROP_SCHEMA, found)
        require_enabled(found)
        if cascade and found.nested:
            raise Unsupported("Cascade is not supported: drop what the schema holds first.", kind=Kind.SCHEMA)
        hold(found)
        if not cascade and Securable.objects.filter(parent_id=found.id).exists():
            raise NotEmpty(f"Schema {found.path.logical()} is not empty.", kind=Kind.SCHEMA)
        remove(found)
        record(event(actor, "schema.dropped", found, [gone(found.id)], cascade=cascade))

    write(actor, act, kind=Kind.SCHEMA)
