"""Outside schemas: list, load, create, alter and drop them in their system; writes are intents."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any

from django.utils import timezone

from authz import operations
from authz.actor import Actor
from authz.locks import Lock
from authz.transactions import Stale
from catalogs.lookup import by_id
from catalogs.models import Intent, Mirror, Schema
from catalogs.services import places, schema_paths
from catalogs.services.alterations import Alteration, row_of
from catalogs.services.provider_of import provider_at
from catalogs.services.schema_paths import Chain
from catalogs.services.writes import hold_each
from formats.native import changes
from metalake.errors import AlreadyExists, Conflict, Invalid, NotFound, Unsupported
from metalake.hierarchy import HierarchicalSchema
from metalake.kinds import Kind, Slot
from metalake.lineage import Address, Located, logical
from metalake.models import Securable, new_id
from outside import intents, mirror, nesting
from outside.calls import pages
from outside.emptiness import not_empty, remove_missing_schemas, tables_gone
from outside.intents import Draft, Work, step
from outside.mirror_schemas import import_schemas
from outside.reads import catalog_of, current, listed_since, mirror_of, names_to_show, remove_if_dropped
from outside.write_helpers import (
    alteration,
    alteration_work,
    drop_work,
    dropping,
    files_kept,
    names_on,
    recheck,
    retry_on_conflict,
)
from providers.base import Provider
from providers.remote_objects import Remote


def update_listing(actor: Actor, container: Located, *, force: bool = False) -> tuple[set[int], datetime]:
    """Import a catalog's schemas, unless the last listing is still fresh.

    Returns the ids of rows to hide, which are missing there but too many to look up one by one, and the listing's time.
    """
    catalog = catalog_of(container)
    provider = provider_at(catalog)
    if since := listed_since(catalog.id, catalog.id, provider, force):
        return set(), since
    taken_at, names = timezone.now(), set[str]()
    for page in pages(actor, catalog, provider, "list_schemas"):
        import_schemas(catalog, provider, page, taken_at)
        names |= {remote.name for remote in page}
    names = names_to_show(actor, catalog, provider, names, Kind.SCHEMA, taken_at)
    return _missing(catalog, names), taken_at


def _missing(catalog: Located, names: set[str]) -> set[int]:
    """The schemas with none of these names, except ancestors of a schema that has one."""
    known = mirror.of_schemas(catalog.id).values_list("pk", "wire_name")
    missing = {pk for pk, name in known if name not in names}
    if not missing:
        return missing
    above = dict(Schema.objects.filter(in_catalog_id=catalog.id).values_list("pk", "parent_id"))
    for pk in above.keys() - missing:
        while (pk := above[pk]) in missing:
            missing.remove(pk)
    return missing


def loaded(
    actor: Actor, schema: Located, *, force: bool = False, as_published: bool = False
) -> tuple[Schema, datetime | None]:
    """The row with the system's comment and properties, and their time, None for a schema that exists only here.

    With `as_published`, right after a write, its result is used: another read might fail though the write succeeded.
    Raises NotFound if it is gone.
    """
    row = row_of(Schema, schema)
    if not Mirror.objects.filter(pk=schema.id).exists():
        return row, None
    provider = provider_at(schema)
    mirrored = mirror_of(schema) if as_published else current(actor, schema, provider, force=force)
    shown = provider.schemas.show(mirrored.definition)
    row.comment, row.properties = shown["comment"], shown["properties"]
    return row, mirrored.taken_at


def create(actor: Actor, ident: Address, comment: str | None, properties: dict[str, str]) -> Located:
    """Create a schema outside, with its missing parents there and here. Raises AlreadyExists, Invalid."""
    _require_unspelt(actor, ident)
    _require_place(actor, schema_paths.catalog_at(actor, ident), properties.get("location"))

    locked_id: int | None = None

    def way(actor: Actor) -> Chain:
        catalog = schema_paths.catalog_at(actor, ident)
        places.require_choice(actor, catalog, {}, properties)
        return schema_paths.may_create(actor, catalog, ident.schema or "")

    def holds() -> None:
        nonlocal locked_id
        parent = way(actor).parent
        hold_each([(parent, Lock.MOVES)])
        locked_id = parent.id

    def decide(actor: Actor) -> Draft:
        chain = way(actor)
        if chain.parent.id != locked_id:
            raise Stale
        return _creation(chain, comment, properties)

    try:
        intent = intents.carry(actor, decide, holds=holds)
    except AlreadyExists:  # the system's message may spell it differently
        name = logical(ident.schema or "")
        raise AlreadyExists(f"Schema {name} already exists.", kind=Kind.SCHEMA) from None
    return _made(intent)


def _creation(chain: Chain, comment: str | None, properties: dict[str, str]) -> Draft:
    provider, marker = provider_at(chain.catalog), new_id()
    return Draft(
        id=marker,
        verb="create_schema",
        catalog_id=chain.catalog.id,
        full_name=f"{chain.catalog.catalog.name}.{chain.path.logical()}",
        names=[(chain.parent.id, Slot.SCHEMA, chain.missing[0].leaf)],
        must_stay=names_on(chain.parent),
        steps=_creations(provider, chain.missing, provider.schemas.draft(comment, properties), str(marker)),
        arguments={"segments": chain.path.segments},  # the catalog may be renamed meanwhile
    )


def _require_unspelt(actor: Actor, ident: Address) -> None:
    """Raise AlreadyExists if others created the schema under another spelling, after importing it."""
    catalog = schema_paths.catalog_at(actor, ident)
    path = schema_paths.may_create(actor, catalog, ident.schema or "").path
    provider, asked_at = provider_at(catalog), timezone.now()
    if there := nesting.foreign_place(actor, catalog, provider, path):
        import_schemas(catalog, provider, [there], asked_at)
        message = f"Schema {path.logical()} already exists: {provider.label} has it as {there.name}."
        raise AlreadyExists(message, kind=Kind.SCHEMA)


def _require_place(actor: Actor, catalog: Located, location: str | None) -> None:
    """Raise Invalid for a location that overlaps another schema's, if the system deletes dropped tables' folders."""
    provider = provider_at(catalog)
    if not (location and provider.schemas.deletes_folders):
        return
    for other in mirror.of_schemas(catalog.id).select_related("securable"):
        if not provider.schemas.overlaps(location, Remote(other.wire_name, other.definition, kind=Kind.SCHEMA)):
            continue
        if not remove_if_dropped(actor, catalog, provider, other):
            message = f"properties.location: {location} overlaps the place of another schema; choose another"
            raise Invalid(message, kind=Kind.SCHEMA)


def _creations(
    provider: Provider, missing: list[HierarchicalSchema], definition: dict[str, Any], marker: str
) -> list[dict[str, Any]]:
    """The calls that create the schema: one per missing level if the system nests, else one for the target."""
    *parents, target = missing if provider.names.nests_there else missing[-1:]
    plain, levels_of = provider.schemas.draft(None, {}), provider.names.levels_of
    made = [
        step("create_schema", may_adopt=True, schema=levels_of(each), definition=plain, marker=marker)
        for each in parents
    ]
    return [*made, step("create_schema", schema=levels_of(target), definition=definition, marker=marker)]


def _chain(actor: Actor, intent: Intent) -> Chain:
    """The chain to create, in the intent's catalog, even if that was renamed."""
    catalog = _catalog(intent)
    schema_paths.require_reach(actor, catalog)
    return schema_paths.may_create(actor, catalog, intent.arguments["segments"])


def _catalog(intent: Intent) -> Located:
    catalog = by_id(intent.in_catalog_id)
    if catalog is None:
        raise NotFound("The catalog was dropped meanwhile.", kind=Kind.CATALOG)
    return catalog


def _made(intent: Intent) -> Located:
    path = schema_paths.path_in(_catalog(intent), intent.arguments["segments"])
    rows = Schema.objects.filter(in_catalog_id=intent.in_catalog_id, physical_name=path.physical)
    schema = next((schema for pk in rows.values_list("pk", flat=True) if (schema := by_id(pk))), None)
    if schema is None:
        raise NotFound(f"Schema {path.logical()} was made, and dropped meanwhile.", kind=Kind.SCHEMA)
    return schema


def _publish_creation(actor: Actor, intent: Intent) -> None:
    """Insert the rows; adopted parents, which others created in the system, belong to the catalog's owner."""
    now, chain = timezone.now(), _chain(actor, intent)
    provider = provider_at(chain.catalog)
    adopted = [Remote(**each["result"]) for each in intent.steps if each["status"] == intents.ADOPTED]
    if adopted:
        import_schemas(chain.catalog, provider, adopted, now)
        chain = _chain(actor, intent)
    answers = {mirror.wire_name(each["arguments"]["schema"]): each["result"] for each in intent.steps}
    for row in schema_paths.make(actor, chain, None, {}):
        name = mirror.wire_name(provider.names.levels_of(row.path))
        if name in answers:
            mirror.store_answer(row.id, chain.catalog.id, name, Remote(**answers[name]), now)


intents.register("create_schema", Work(_publish_creation, allowed=_chain))


def alter(actor: Actor, schema: Located, alteration: Alteration) -> dict[str, str]:
    """Alter a schema; returns its previous properties. Raises Unsupported for one that exists only here."""
    recheck(actor, schema, operations.ALTER_SCHEMA)
    provider = provider_at(schema)

    def attempt() -> dict[str, str]:
        if not Mirror.objects.filter(pk=schema.id).exists():
            raise Unsupported(
                f"Schema {schema.path.logical()} only leads to others; it has no properties.", kind="schema"
            )
        mirrored = current(actor, schema, provider, force=True)
        row, shown = row_of(Schema, schema), provider.schemas.show(mirrored.definition)
        row.comment, row.properties = shown["comment"], dict(shown["properties"])
        before = dict(row.properties)
        fields = alteration.apply_to(row)
        places.require_choice(actor, schema, before, row.properties)
        if fields:
            made = changes.of_schema(before, row.properties, (shown["comment"], row.comment))
            expected = provider.schemas.altered(mirrored.definition, made)
            draft = partial(
                _alteration, schema=schema, mirrored=mirrored, made=made, expected=expected, fields=sorted(fields)
            )
            intents.carry(actor, draft, holds=partial(hold_each, [(schema, Lock.CHANGES)]))
        return before

    return retry_on_conflict(attempt)


def _alteration(
    actor: Actor,
    schema: Located,
    mirrored: Mirror,
    made: list[dict[str, Any]],
    expected: dict[str, Any],
    fields: list[str],
) -> Draft:
    fresh, marker = recheck(actor, schema, operations.ALTER_SCHEMA), new_id()
    call = step(
        "alter_schema",
        schema=mirrored.levels,
        changes=made,
        version=mirrored.version,
        expected=expected,
        marker=str(marker),
    )
    return alteration(fresh, "alter_schema", ".".join(fresh.full_name), marker, call, {"changed": fields})


intents.register("alter_schema", alteration_work(operations.ALTER_SCHEMA))


def drop(actor: Actor, schema: Located, *, cascade: bool) -> str | None:
    """Drop a schema; returns why files of its tables stay that its system would have deleted, or None.

    Raises NotEmpty while it contains anything, here or there, unless `cascade`, which only flat catalogs support. Rows
    of objects that are gone outside do not count: they are looked up there.
    """
    recheck(actor, schema, operations.DROP_SCHEMA)
    schema_paths.check_cascade(schema, cascade)
    provider, steps, gone, alone = provider_at(schema), [], list[int](), False
    if not cascade:
        remove_missing_schemas(actor, schema, provider)
    if Mirror.objects.filter(pk=schema.id).exists():
        mirrored = current(actor, schema, provider, force=True)  # never another one of this name
        alone = provider.target_of(mirrored.definition) is not None  # a resource link; its target's tables stay
        if not (cascade or alone):
            gone = tables_gone(actor, schema, provider, mirrored.levels)
        cascades = cascade and not alone
        steps = [step("drop_schema", schema=mirrored.levels, identity=mirrored.identity, cascade=cascades)]

    def decide(actor: Actor) -> Draft:
        fresh = recheck(actor, schema, operations.DROP_SCHEMA)
        for each in steps:
            each["arguments"]["by_owner"] = places.may_choose(actor, fresh)
        if not (cascade or alone) and Securable.objects.filter(parent_id=fresh.id).exclude(pk__in=gone).exists():
            raise not_empty(fresh)
        if Mirror.objects.filter(pk=fresh.id).exists() != bool(steps):
            raise Conflict(f"Schema {fresh.path.logical()} was given its place meanwhile; try again.", kind="schema")
        return dropping(fresh, ".".join(fresh.full_name), steps, {"cascade": cascade}, must_be_still=[fresh.id])

    return files_kept(intents.carry(actor, decide, holds=partial(hold_each, [(schema, Lock.MOVES)])))


intents.register("drop_schema", drop_work(operations.DROP_SCHEMA))
