"""Schemas: one row a level, missing parents made with the target, never dropped while they hold anything."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial

from authz import operations, policy
from authz.locks import Lock, hold_owner
from authz.policy import Actor
from catalogs import lookup
from catalogs.lookup import nearest
from catalogs.models import Schema
from catalogs.secrets import require_values
from catalogs.services import chains, places
from catalogs.services.chains import Chain
from catalogs.services.changes import Alteration, event, remove, require_enabled, row_of, save
from catalogs.services.holding import Held, write_to
from catalogs.services.opening import store_of
from formats.iceberg.guard import check_limits
from metalake.blocking import all_of
from metalake.errors import NotEmpty, NotFound, Unsupported
from metalake.events import gone, record
from metalake.hierarchy import HierarchicalSchema
from metalake.kinds import Kind, Slot
from metalake.lineage import Address, Located
from metalake.models import Securable
from outside import schemas as external
from outside.calls import is_external
from outside.finding import find
from outside.reading import or_namesake


@dataclass(frozen=True)
class SchemaRecord:
    """A schema as its doors show it; `taken_at` says when an outside system was asked for it.

    `folder` is where Iceberg tables go that name no place, if it was asked for and is known.
    """

    path: HierarchicalSchema
    row: Schema
    taken_at: datetime | None = None
    folder: str | None = None


@dataclass(frozen=True)
class SchemaList:
    """The schemas directly below something, by name."""

    paths: list[HierarchicalSchema]
    taken_at: datetime | None = None


def list_schemas(
    actor: Actor, container: Address, after: str | None = None, limit: int | None = None, *, refresh: bool = False
) -> SchemaList:
    """The direct children of a catalog or schema that the actor sees, by name; from behind `after`, at most `limit`."""
    try:
        found = find(actor, container)
    except NotFound:
        _check_parent(actor, container)
        raise
    if not policy.sees(actor, found):
        _check_parent(actor, container)
        raise policy.unseen(actor, found)
    if found.kind == Kind.SCHEMA and not found.nested:
        raise Unsupported(chains.FLAT, kind=Kind.SCHEMA)
    require_enabled(found)
    missing, taken_at = external.take_list(actor, found, force=refresh) if is_external(found) else (set(), None)
    children = Securable.objects.filter(parent_id=found.id, slot=Slot.SCHEMA)
    if after is not None:
        children = children.filter(name__gt=after)
    rows = policy.visible_schemas(actor, found, children).order_by("name").values_list("pk", "name")
    shown = [row for row in all_of(rows) if row[0] not in missing][:limit] if missing else all_of(rows[:limit])
    above = found.path.segments
    return SchemaList([HierarchicalSchema((*above, name)) for _, name in shown], taken_at)


def _check_parent(actor: Actor, container: Address) -> None:
    """Raise what is better than a miss; what a name may be depends on the catalog, so only who sees that is told."""
    catalog = nearest(container.of_catalog())
    if catalog is None or not policy.sees(actor, catalog):
        return
    if catalog.kind == Kind.CATALOG and container.schema is not None:
        if not catalog.nested:
            raise Unsupported(chains.FLAT, kind=Kind.SCHEMA)
        chains.path_in(catalog, container.schema)


def create_schema(actor: Actor, ident: Address, comment: str | None, properties: dict[str, str]) -> SchemaRecord:
    """Make a schema with all its missing parents, all of one owner, in one transaction (decision 5).

    Eight statements at any depth: policy, catalog, chain, two inserts, audit, history, outbox; where rows are locked
    three more: catalog and chain are read before they are held, too.
    """
    check_limits(properties)
    require_values(properties, kind=Kind.SCHEMA)

    def look(actor: Actor) -> Held:
        catalog = chains.catalog_at(actor, ident)
        places.require_choice(actor, catalog, {}, properties)  # before the name, which may be a hidden schema's
        if is_external(catalog):
            return [(catalog, Lock.HANGS)]
        chain = chains.may_create(actor, catalog, ident.schema or "")
        return [(catalog, Lock.HANGS), (chain.parent, Lock.HANGS)]

    def act(actor: Actor, catalog: Located, parent: Located | None = None) -> SchemaRecord | None:
        if parent is None:
            return None
        chain = Chain(catalog, chains.path_in(catalog, ident.schema or ""), parent)
        places.check_choice(catalog, chain.path, {}, properties)
        return SchemaRecord(chain.path, chains.insert(actor, chain, comment, properties)[-1])

    made = write_to(actor, look, act, kind=Kind.SCHEMA, after=partial(hold_owner, actor.id))
    return made or _read(actor, external.create(actor, ident, comment, properties), as_published=True)


def _read(
    actor: Actor, found: Located, *, refresh: bool = False, as_published: bool = False, with_folder: bool = False
) -> SchemaRecord:
    if not is_external(found):
        own = row_of(Schema, found)
        folder = places.folder_of(found, store_of(found), own.properties).folder if with_folder else None
        return SchemaRecord(found.path, own, folder=folder)
    row, taken_at = external.loaded(actor, found, force=refresh, as_published=as_published)
    return SchemaRecord(found.path, row, taken_at, external.folder_of(found) if with_folder else None)


def load_schema(actor: Actor, ident: Address, *, refresh: bool = False, with_folder: bool = False) -> SchemaRecord:
    def allow(found: Located) -> None:
        policy.require(actor, operations.LOAD_SCHEMA, found)
        require_enabled(found)

    read = partial(_read, actor, refresh=refresh, with_folder=with_folder)
    return or_namesake(ident, find(actor, ident), allow, read)


def schema_exists(actor: Actor, ident: Address) -> None:
    """Raise NotFound unless the actor sees the schema, be it only as a way to something below."""

    def allow(found: Located) -> None:
        if not policy.sees(actor, found):
            raise policy.unseen(actor, found)
        require_enabled(found)

    def read(found: Located) -> None:
        if is_external(found):
            external.loaded(actor, found)

    or_namesake(ident, find(actor, ident), allow, read)


def alter_schema(actor: Actor, ident: Address, alteration: Alteration) -> tuple[SchemaRecord, dict[str, str]]:
    """The schema, and its properties as they were before."""
    found = find(actor, ident)
    policy.require(actor, operations.ALTER_SCHEMA, found)
    if is_external(found):
        before = external.alter(actor, found, alteration)
        return _read(actor, found, as_published=True), before

    def look(actor: Actor) -> Held:
        found = lookup.find(actor, ident)
        policy.require(actor, operations.ALTER_SCHEMA, found)
        require_enabled(found)
        return [(found, Lock.CHANGES)]

    def act(actor: Actor, found: Located) -> tuple[SchemaRecord, dict[str, str]]:
        row = row_of(Schema, found)
        before = dict(row.properties)
        fields = alteration.apply_to(row)
        places.require_choice(actor, found, before, row.properties)
        places.check_choice(found, found.path, before, row.properties)
        if fields:
            save(row, actor, fields)
            changed = sorted(set(before) ^ set(row.properties)) or sorted(fields)
            record(event(actor, "schema.altered", found, changed=changed))
        return SchemaRecord(found.path, row), before

    return write_to(actor, look, act, kind=Kind.SCHEMA)


def drop_schema(actor: Actor, ident: Address, *, cascade: bool = False) -> str | None:
    """Refused while it holds anything, seen or unseen; cascade is for flat catalogs only (decision 6).

    Returns why an outside system was not told to delete files of its tables.
    """
    found = find(actor, ident)
    policy.require(actor, operations.DROP_SCHEMA, found)
    if is_external(found):
        return external.drop(actor, found, cascade=cascade)

    def look(actor: Actor) -> Held:
        found = lookup.find(actor, ident)
        policy.require(actor, operations.DROP_SCHEMA, found)
        require_enabled(found)
        chains.check_cascade(found, cascade)
        return [(found, Lock.MOVES)]

    def act(actor: Actor, found: Located) -> None:
        if not cascade and Securable.objects.filter(parent_id=found.id).exists():
            raise NotEmpty(f"Schema {found.path.logical()} is not empty.", kind=Kind.SCHEMA)
        remove(found)
        record(event(actor, "schema.dropped", found, [gone(found.id)], cascade=cascade))

    write_to(actor, look, act, kind=Kind.SCHEMA)
    return None
