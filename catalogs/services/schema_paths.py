"""Create a schema with its missing parents: check name and rights, insert the rows."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.utils import timezone

from authz import operations, policy
from authz.actor import Actor
from authz.callers.accounts import account_of
from catalogs.lookup import by_id, find
from catalogs.models import Schema
from catalogs.services.alterations import require_enabled
from catalogs.services.creation_hooks import check_home
from catalogs.stores import offers_of
from metalake.bulk_insert import insert
from metalake.errors import AlreadyExists, Forbidden, Invalid, Unsupported
from metalake.events import Event, event_of, record, stands
from metalake.hierarchy import HierarchicalSchema, SeparatorPolicy, check_new_name, check_strict, configured_separator
from metalake.kinds import Kind
from metalake.lineage import Address, Located, Node, SchemaName
from metalake.models import Securable
from metalake.statements import fetch

FLAT = "This catalog has no schemas inside schemas."


@dataclass(frozen=True)
class Chain:
    """A schema to be created, and the nearest schema or catalog above it that exists."""

    catalog: Located
    path: HierarchicalSchema
    parent: Located

    @property
    def missing(self) -> list[HierarchicalSchema]:
        """Every missing level, outermost first, the schema itself last."""
        return [*self.path.ancestors, self.path][len(self.parent.path.segments) :]


def may_create(actor: Actor, catalog: Located, name: SchemaName) -> Chain:
    """The chain of a new schema. Raises Forbidden, Invalid, Unsupported; AlreadyExists only if the actor may create."""
    path = path_in(catalog, name)
    parent, rows = _rows_of(catalog, path)
    chain = Chain(catalog, path, parent)
    _require_create(actor, chain)
    if path.physical in rows:
        raise AlreadyExists(f"Schema {path.logical()} already exists.", kind=Kind.SCHEMA)
    for level in chain.missing:
        check_new_name(level.leaf, Kind.SCHEMA)
        if twin := next((twin for twin in level.twins if twin.physical in rows), None):
            raise _refusal(actor, level, twin, by_id(rows[twin.physical].id))
    return chain


def _refusal(actor: Actor, level: HierarchicalSchema, twin: HierarchicalSchema, there: Located | None) -> Invalid:
    """The error for a twin; not AlreadyExists, which CREATE ... IF NOT EXISTS would take for this schema."""
    says = f"The name {list(level.segments)} collides with another when levels are joined with dots"
    if there is not None and policy.sees(actor, there):
        says = f"Schema {list(twin.segments)} exists, and engines that join levels with dots cannot tell "
        says += f"{list(level.segments)} from it"
    return Invalid(f"{says}: choose another name.", kind=Kind.SCHEMA)


def catalog_at(actor: Actor, ident: Address) -> Located:
    """The catalog of an address. Raises unless it is in use and the actor sees it."""
    catalog = find(actor, ident.of_catalog())
    require_reach(actor, catalog)
    return catalog


def require_reach(actor: Actor, catalog: Located) -> None:
    """Raise unless the catalog is in use and the actor sees it."""
    if not policy.sees(actor, catalog):
        raise policy.hidden(actor, operations.CREATE_SCHEMA, catalog)
    require_enabled(catalog)


def check_cascade(located: Located, cascade: bool) -> None:
    """Raise Unsupported for a cascading drop in a nested catalog."""
    if cascade and located.nested:
        raise Unsupported("Cascade is not supported: drop the schema's contents first.", kind=Kind.SCHEMA)


def folds_case(located: Located) -> bool:
    """Whether the catalog lowercases names."""
    offered = offers_of(located).get(Kind.SCHEMA)
    return offered is not None and offered.folds_case


def path_in(catalog: Located, name: SchemaName) -> HierarchicalSchema:
    """The checked path of a name in this catalog, which is nested or flat. Raises Invalid or Unsupported."""
    if folds_case(catalog):
        name = name.lower() if isinstance(name, str) else [level.lower() for level in name]
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
    """Check a name in a flat catalog; the restricted policy refuses the separator, the other one accepts it."""
    mark = configured_separator()
    if mark in name:
        if settings.METALAKE_SEPARATOR_POLICY is SeparatorPolicy.RESTRICTED:
            raise Invalid(
                f"A schema name must not contain {mark!r}, the separator of nested schemas.", kind=Kind.SCHEMA
            )
        name = name.replace(mark, "_")
    check_strict(name, Kind.SCHEMA)


def _rows_of(catalog: Located, path: HierarchicalSchema) -> tuple[Located, dict[str, Node]]:
    """The nearest existing strict ancestor; the schema and all above it, with their twins, as far as they exist."""
    twins = [twin for scope in path.scopes for twin in scope.twins] if catalog.nested else []
    names = [each.physical for each in (*path.scopes, *twins)]
    statement = _SCHEMAS.replace("{names}", ", ".join(["%s"] * len(names)))
    rows = {physical: Node(*values) for physical, *values in fetch(statement, [catalog.id, *names])}
    nodes = (rows[ancestor.physical] for ancestor in path.ancestors if ancestor.physical in rows)
    return catalog.below(*nodes), rows


# Raw SQL: the ORM takes longer to build this query than the database to run it.
_SCHEMAS = (
    f"SELECT physical_name, {', '.join(Node._fields)} "  # noqa: S608
    "FROM catalogs_schema JOIN metalake_securable ON id = securable_ptr_id "
    "WHERE catalog_id = %s AND physical_name IN ({names})"
)


def _require_create(actor: Actor, chain: Chain) -> None:
    """Check the right to create; missing levels inherit from the nearest existing parent, so it is checked there."""
    asked = [operations.CREATE_SCHEMA, *[operations.BOOTSTRAP_SCHEMA] * (len(chain.missing) > 1)]
    if not any(policy.uses(actor, operation, chain.parent) for operation in asked):
        raise Forbidden(f"{actor.name} may not create schema {chain.path.logical()}.", kind=Kind.SCHEMA)
    check_home(actor, chain.parent)


def make(actor: Actor, chain: Chain, comment: str | None, properties: dict[str, str]) -> list[Schema]:
    """Insert the missing schemas; the number of statements does not depend on the depth."""
    now, parent, owner_id = timezone.now(), chain.parent, account_of(actor)
    rows: list[Schema] = []
    for level in chain.missing:
        is_target = level == chain.path
        row = Schema.made(
            Kind.SCHEMA,
            level.leaf,
            rows[-1] if rows else parent,
            owner_user_id=owner_id,
            creator=actor.name,
            create_time=now,
            comment=comment if is_target else None,
            properties=properties if is_target else {},
            in_catalog_id=parent.catalog.id,
            physical_name=level.physical,
        )
        rows.append(row)
    insert((Securable, rows), (Schema, rows))
    record(*(_created(actor, parent, row) for row in rows))
    return rows


def _created(actor: Actor, parent: Located, row: Schema) -> Event:
    full_name = [parent.catalog.name, row.path.logical()]
    metalake_id, facts = parent.metalake.id, [stands(row)]
    return event_of(actor, "schema.created", Kind.SCHEMA, row.id, full_name, metalake_id, facts, owner=actor.name)
