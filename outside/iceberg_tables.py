"""Iceberg tables whose pointer is in an outside system: load, commit and make them by intents.

This server reads and writes the metadata files; the outside system says which of them is current.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar
from uuid import uuid4

from authz import operations
from authz.actor import Actor
from authz.locks import Lock
from catalogs.services import places
from catalogs.services.claims import require_unclaimed
from catalogs.services.pointers import now_ms
from catalogs.services.writes import hold_each
from catalogs.table_stores import TableDraft, TableRecord
from formats.iceberg import builder, metadata_json, table_locations
from formats.iceberg.translate import from_iceberg
from metalake.errors import Conflict, MetalakeError, NotFound, OutcomeUnknown, ProviderUnavailable, Unsupported
from metalake.full_names import dotted
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from metalake.models import new_id
from outside import intents, mirror, table_places
from outside.calls import levels_of
from outside.creation import Defined, make
from outside.intents import Draft
from outside.steps import step
from outside.tables import ExternalTable, loaded
from outside.write_helpers import alteration, alteration_work, recheck, require_own
from providers.base import Provider
from providers.metadata_files import MetadataFiles
from providers.remote_objects import NewTable, Remote

T = TypeVar("T")


def record_of(table: ExternalTable) -> TableRecord:
    """The table with its metadata. Raises NotFound for another format, Invalid if its place is not allowed."""
    location = table.provider.pointers.location(table.definition)
    if location is None:
        raise table.located.missing()
    own_files = files_of(table)
    own_files.allowed_place(location)
    return TableRecord(table.located, location, own_files.read(location), table.taken_at, entry=table)


def metadata_of(table: ExternalTable) -> dict[str, Any] | None:
    """The metadata of an Iceberg table; None for another format, or if it cannot be read."""
    if table.provider.pointers.location(table.definition) is None:
        return None
    try:
        return record_of(table).metadata
    except MetalakeError:
        return None


def native_parts(table: ExternalTable, metadata: dict[str, Any] | None) -> dict[str, Any]:
    """The native wire's JSON of a table, without its name and audit information.

    Columns and layout of an Iceberg table come from its metadata or, without it, from the outside entry, which repeats
    only a part of them.
    """
    parts = table.shown()
    if metadata is None:
        return parts
    try:
        described = from_iceberg(metadata)
    except MetalakeError:
        return parts
    return described | {"comment": parts["comment"], "properties": described["properties"] | parts["properties"]}


def files_of(table: ExternalTable) -> MetadataFiles:
    """The table's metadata files; its location in the outside entry is allowed, beside the catalog's places."""
    place = table.shown()["properties"].get("location")  # as the entry says
    own_files = table.provider.pointers.files(*([place] if place else []))
    require_unclaimed(table.provider, place)
    return own_files


def require_own_pointer(table: ExternalTable) -> None:
    """Raise Unsupported for a link, or a table of a linked schema, whose commits are made where it leads."""
    require_own(table.located.above())
    target = table.provider.target_of(table.definition)
    if target is not None:
        raise Unsupported(f"This is a resource link to {target}: it is changed there.", kind=Kind.TABLE)


def create(actor: Actor, ident: Address, home: Located, draft: TableDraft, *, stage: bool) -> TableRecord:
    """Make a table; with `stage`, only describe it and make its folder."""

    def defined(provider: Provider, schema: Remote) -> NewTable:
        name = provider.names.folded(ident.leaf or "")
        metadata = builder.new_table_metadata(
            table_uuid=str(uuid4()),
            location=provider.pointers.place(schema, name, draft.location),
            schema=draft.schema,
            partition_spec=draft.partition_spec,
            sort_order=draft.sort_order,
            properties=draft.properties,
            now_ms=now_ms(),
        )
        new = provider.pointers.draft(schema, name, metadata)
        if stage:
            table_places.require_named(actor, home, schema, provider, table_locations.effective_locations(metadata))
            if not draft.location:  # a chosen place is checked, and its folder made, with the table
                provider.pointers.files(metadata["location"]).make_folders(metadata["location"])
            raise _OnlyStaged(metadata_json.dump(metadata))
        return new

    try:
        return _made(actor, ident, home, defined)
    except _OnlyStaged as staged:
        return TableRecord(None, None, staged.content)


class _OnlyStaged(Exception):
    """The table is only described by the JSON of its metadata, and not to be made."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.content = content


def create_from(actor: Actor, ident: Address, home: Located, metadata: dict[str, Any]) -> TableRecord:
    """Make a table from the metadata at the end of a staged creation."""

    def defined(provider: Provider, schema: Remote) -> NewTable:
        name = provider.names.folded(ident.leaf or "")
        provider.pointers.place(schema, name, metadata["location"])
        return provider.pointers.draft(schema, name, metadata)

    return _made(actor, ident, home, defined)


def register(actor: Actor, ident: Address, home: Located, location: str) -> TableRecord:
    """Make a table from an existing metadata file, in a place that the catalog allows."""

    def defined(provider: Provider, schema: Remote) -> NewTable:
        return provider.pointers.draft(schema, provider.names.folded(ident.leaf or ""), {}, location)

    return _made(actor, ident, home, defined)


def _made(actor: Actor, ident: Address, home: Located, defined: Defined) -> TableRecord:
    made = make(actor, ident, home, defined)
    return after_making(Kind.TABLE, lambda: record_of(loaded(actor, made, as_published=True)))


def after_making(kind: Kind, load: Callable[[], T]) -> T:
    """What `load` returns for an object that was just made. Raises OutcomeUnknown if it cannot be read now."""
    try:
        return load()
    except ProviderUnavailable as failure:
        message = f"{failure.message} The {kind} was made all the same; load it."
        raise OutcomeUnknown(message, kind=kind) from failure


def point(
    actor: Actor, located: Located, own_files: MetadataFiles, written: str, decide: Callable[[Actor], Draft]
) -> bool:
    """Point a table or view to a written metadata file, by the intent that `decide` drafts; False if it points
    elsewhere by now.

    The file is removed unless the object may point to it. Raises OutcomeUnknown.
    """
    try:
        intents.carry(actor, decide, holds=partial(hold_each, [(located, Lock.CHANGES)]))
    except (OutcomeUnknown, NotFound):
        raise  # the object may point to the file, under another name or in a catalog that was dropped here
    except Conflict:
        own_files.discard(written)
        return False
    except MetalakeError:
        own_files.discard(written)
        raise
    return True


def pointing(actor: Actor, table: ExternalTable, location: str, previous: str) -> Draft:
    """The draft of the intent that points a table to new metadata."""
    fresh = recheck(actor, table.located, operations.COMMIT_TABLE)
    schema, name = levels_of(fresh.above()), mirror.wire_name_at(fresh.id)
    call = step(
        "commit_table",
        schema=schema,
        table=name,
        location=location,
        previous=previous,
        by_owner=places.may_choose(actor, fresh),
    )
    return alteration(fresh, "commit_table", dotted(fresh.full_name), new_id(), call, {"metadata_location": location})


intents.register("commit_table", alteration_work(operations.COMMIT_TABLE, "committed"))
