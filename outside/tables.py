"""Outside tables: list, load, alter and drop them in their system; writes are intents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from authz import operations
from authz.actor import Actor
from catalogs.models import Mirror
from catalogs.services import places
from catalogs.services.alterations import resolve_masks
from catalogs.services.provider_of import provider_at
from formats.native.changes import as_json
from metalake.full_names import dotted
from metalake.kinds import Kind
from metalake.lineage import Located
from metalake.models import new_id
from outside import intents, mirror, table_places
from outside.calls import levels_of
from outside.intents import Draft, step
from outside.listing import describe, listed_names
from outside.reads import current, mirror_of
from outside.write_helpers import (
    alteration,
    alteration_work,
    drop_work,
    dropping,
    files_kept,
    holding,
    recheck,
    retry_on_conflict,
)
from providers.base import Provider
from providers.remote_objects import METADATA_FILE, Remote


@dataclass(frozen=True)
class ExternalTable:
    """A table as read from its system, and when."""

    located: Located
    provider: Provider
    definition: dict[str, Any]
    taken_at: datetime

    def shown(self) -> dict[str, Any]:
        """The table as JSON of the native API, without name and audit information."""
        return self.provider.tables.show(self.definition)


def update_listing(
    actor: Actor, schema: Located, *, force: bool = False, iceberg: bool = False
) -> tuple[set[str] | None, datetime]:
    """The names of a schema's tables to show, None for all rows, and the time of the listing.

    Includes tables just created here, which a listing may lack. With `iceberg`, other formats are left out.
    """
    names, taken_at = listed_names(actor, schema, Kind.TABLE, force=force)
    provider = provider_at(schema)
    if iceberg and names != set():
        describe(actor, schema, Kind.TABLE, force=force)
    if names != set() and (iceberg or provider.tables.hides_some):
        shown = _shown(schema, provider, iceberg)
        names = shown if names is None else names & shown
    return names, taken_at


def _shown(schema: Located, provider: Provider, iceberg: bool) -> set[str]:
    """The names of tables to show, by their mirrors; those of unknown format are shown, but not with `iceberg`."""
    rows = mirror.of_leaves(schema.id, Kind.TABLE).filter(securable__kind=Kind.TABLE)
    with_formats, without_formats = rows.exclude(formats=""), rows.filter(formats="")
    shows = provider.tables.shows
    listed = (Remote(name, {}, formats=formats) for name, formats in with_formats.values_list("wire_name", "formats"))
    shown = {table.name for table in listed if (not iceberg or METADATA_FILE in table.formats) and shows(table)}
    for name, definition in without_formats.values_list("wire_name", "definition").iterator():
        is_other = iceberg and (not definition or provider.pointers.location(definition) is None)
        if not is_other and (not definition or shows(Remote(name, definition))):
            shown.add(name)
    return shown


def loaded(
    actor: Actor, table: Located, *, force: bool = False, as_published: bool = False, iceberg: bool = False
) -> ExternalTable:
    """A table as its system has it.

    With `as_published`, right after a write, its result is used: another read might fail though the write succeeded.
    Raises NotFound if it is gone, hidden by the catalog's settings or, with `iceberg`, in another format.
    """
    provider = provider_at(table)
    mirrored = mirror_of(table) if as_published else current(actor, table, provider, force=force)
    require_shown(table, provider, mirrored.definition, iceberg=iceberg)
    return ExternalTable(table, provider, mirrored.definition, mirrored.taken_at)


def require_shown(table: Located, provider: Provider, definition: dict[str, Any], *, iceberg: bool = False) -> None:
    """Raise NotFound for a table that the catalog's settings hide or, with `iceberg`, that is in another format."""
    is_shown = provider.tables.shows(Remote(table.name, definition))
    if not is_shown or (iceberg and provider.pointers.location(definition) is None):
        raise table.missing()


def alter(
    actor: Actor,
    table: Located,
    updates: Sequence[Any],
    requires: Callable[[dict[str, Any]], None] | None = None,
) -> None:
    """Alter a table by an intent, based on its current definition; updates that change nothing make no intent.

    `requires` raises for a table that they should not be made on. Raises Forbidden for a new location that the actor
    may not choose.
    """
    recheck(actor, table, operations.ALTER_TABLE)
    provider = provider_at(table)

    def attempt() -> None:
        mirrored = current(actor, table, provider, force=True)
        if requires is not None:
            requires(provider.tables.show(mirrored.definition))
        resolved = resolve_masks(updates, lambda: provider.tables.show(mirrored.definition)["properties"])
        expected = provider.tables.altered(mirrored.definition, resolved)
        if expected != mirrored.definition:
            before, after = (provider.tables.named_places(each) for each in (mirrored.definition, expected))
            table_places.require_new(actor, table, provider, before, after)
            draft = partial(
                _alteration,
                table=table,
                mirrored=mirrored,
                changes=as_json(resolved),
                expected=expected,
                actions=sorted({update.action for update in updates}),
            )
            intents.carry(actor, draft, holds=holding(table))

    retry_on_conflict(attempt)


def _alteration(
    actor: Actor,
    table: Located,
    mirrored: Mirror,
    changes: list[dict[str, Any]],
    expected: dict[str, Any],
    actions: list[str],
) -> Draft:
    fresh, marker = recheck(actor, table, operations.ALTER_TABLE), new_id()
    call = step(
        "alter_table",
        schema=levels_of(fresh.above()),
        table=mirrored.wire_name,
        changes=changes,
        version=mirrored.version,
        expected=expected,
        marker=str(marker),
        by_owner=places.may_choose(actor, fresh),
    )
    return alteration(fresh, "alter_table", dotted(fresh.full_name), marker, call, {"changed": actions})


intents.register("alter_table", alteration_work(operations.ALTER_TABLE))


def drop(actor: Actor, table: Located, *, purge: bool, iceberg: bool = False) -> str | None:
    """Drop a table; returns why its files stay that its system would have deleted, or None.

    Raises NotFound for a table that `loaded` hides.
    """
    recheck(actor, table, operations.DROP_TABLE)
    provider = provider_at(table)
    mirrored = mirror_of(table)
    is_unknown = iceberg and not mirrored.definition
    if is_unknown or provider.target_of(mirrored.definition) is None:  # a link is dropped regardless of its target
        mirrored = current(actor, table, provider, force=True)  # raises if another table has the name there
    require_shown(table, provider, mirrored.definition, iceberg=iceberg)

    def decide(actor: Actor) -> Draft:
        fresh = recheck(actor, table, operations.DROP_TABLE)
        call = step(
            "drop_table",
            schema=levels_of(fresh.above()),
            table=mirrored.wire_name,
            identity=mirrored.identity,
            purge=purge,
            by_owner=places.may_choose(actor, fresh),
        )
        return dropping(fresh, dotted(fresh.full_name), [call], {"purge": purge})

    return files_kept(intents.carry(actor, decide, holds=holding(table)))


intents.register("drop_table", drop_work(operations.DROP_TABLE))
