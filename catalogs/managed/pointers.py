"""The pointers of managed tables: made, registered and swapped in one transaction with the claims of their places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from uuid import uuid4

from authz import operations, policy
from authz.actor import Actor
from authz.locks import Lock, hold
from authz.transactions import write
from catalogs.lookup import refreshed_at
from catalogs.models import Table
from catalogs.services import claims, places
from catalogs.services.alterations import event, require_enabled
from catalogs.services.free_names import require_free
from catalogs.services.pointers import (
    FileGone,
    NewPointer,
    find_table,
    make,
    move_pointer,
    now_ms,
    open_foreign,
    publish,
    publish_or_discard,
    publish_or_discard_all,
)
from catalogs.services.provider_of import files_of
from catalogs.table_stores import NewState, PointerStore, Prepared, TableDraft, TableRecord
from formats.iceberg import builder, metadata_json, table_locations
from formats.iceberg.locations import canonical
from formats.iceberg.table_locations import effective_locations
from metalake.events import record
from metalake.hierarchy import check_new_name
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from providers.metadata_files import MetadataFiles


class ManagedPointers(PointerStore):
    """A column of the table's row is the pointer."""

    commits_together = True

    def create(self, actor: Actor, address: Address, home: Located, draft: TableDraft, *, stage: bool) -> TableRecord:
        """Make a table; if two race for a name, the unique row decides, and the loser's metadata file is removed.

        Staging leaves nothing but empty local folders, to which the client writes before it commits.
        """
        name = address.leaf or ""
        check_new_name(name, Kind.TABLE)
        require_free(home, name)
        own_files = files_of(home)
        lies = places.folder_of(home, own_files)
        uuid = uuid4()
        metadata = builder.new_table_metadata(
            table_uuid=str(uuid),
            location=own_files.place(lies.folder, name, uuid, draft.location),
            schema=draft.schema,
            partition_spec=draft.partition_spec,
            sort_order=draft.sort_order,
            properties=draft.properties,
            now_ms=now_ms(),
        )
        own_files.check_metadata(metadata)
        places.require_ground(actor, home, lies.ground, effective_locations(metadata))
        fresh = [] if draft.location else [canonical(metadata["location"])]
        if stage:
            claims.require_claimable(actor, own_files.claims(metadata), home, fresh=fresh)
            own_files.make_folders(*effective_locations(metadata))
            return TableRecord(None, None, metadata_json.dump(metadata))
        return _made(actor, address, home, NewPointer(Table, own_files, metadata, "table.created", fresh, is_new=True))

    def create_from(self, actor: Actor, address: Address, home: Located, metadata: dict[str, Any]) -> TableRecord:
        own_files = files_of(home)
        own_files.check_metadata(metadata)
        ground = places.folder_of(home, own_files).ground
        places.require_ground(actor, home, ground, effective_locations(metadata))
        return _made(actor, address, home, NewPointer(Table, own_files, metadata, "table.created"))

    def register(self, actor: Actor, address: Address, home: Located, location: str) -> TableRecord:
        """Register a table whose metadata file lies in an allowed place that no other table claims."""
        require_free(home, address.leaf or "")
        own_files, content, metadata = open_foreign(actor, home, location, metadata_json.parse_metadata, Kind.TABLE)
        table = publish(actor, address, home, NewPointer(Table, own_files, metadata, "table.registered"), location)
        return TableRecord(table, location, content)

    def read(self, record: TableRecord) -> TableRecord:
        return record

    def files(self, record: TableRecord) -> MetadataFiles:
        return files_of(record.published)

    def require_places(
        self, actor: Actor, current: TableRecord, files: MetadataFiles, metadata: dict[str, Any]
    ) -> None:
        if added := table_locations.added_locations(current.metadata, metadata):
            places.require_ground_of(actor, current.published, files, added)

    def swap(self, actor: Actor, address: Address, current: TableRecord, new: NewState) -> TableRecord | None:
        try:
            swapped = publish_or_discard(new.files, new.location, lambda: _swap(actor, address, current, new))
        except FileGone:
            return None
        if not swapped:
            new.files.discard(new.location)
            return None
        _forget_old_files(new.files, current.metadata, new.metadata)
        return TableRecord(current.table, new.location, new.content)

    def swap_all(self, actor: Actor, states: Sequence[Prepared]) -> bool:
        try:
            publish_or_discard_all(states, lambda: _swap_all(actor, states))
        except (FileGone, Raced):
            return False
        for state in states:
            _forget_old_files(state.new.files, state.current.metadata, state.new.metadata)
        return True

    def home_of(self, actor: Actor, schema: Located, properties: Mapping[str, str]) -> str | None:
        return places.folder_of(schema, files_of(schema), properties).folder

    def find_again(self, actor: Actor, address: Address, table: Located) -> Located:
        return find_table(actor, address)

    def require_claims(self, table: Located) -> None:
        pass


def _made(actor: Actor, address: Address, home: Located, new: NewPointer) -> TableRecord:
    table, content = make(actor, address, home, new)
    return TableRecord(table, table.metadata_location, content)


def _swap(actor: Actor, address: Address, current: TableRecord, new: NewState) -> bool:
    """Move the pointer if the table still has its name and still points to the metadata that was read.

    Finds the table again under its row lock, though it was found, and the rights checked, when it was read.
    """
    table = current.published

    def holds() -> None:
        if _adds_places(current, new):
            claims.lock_claims(new.files.catalog_id)
        hold(Lock.CHANGES, table.id)

    def act(actor: Actor) -> bool:
        return _moved(actor, address, current, new)

    return write(actor, act, holds=holds, kind=Kind.TABLE, refresh=partial(refreshed_at, address))


class Raced(Exception):
    """One of several tables was not in the state any more that its new one was made from."""


def _swap_all(actor: Actor, states: Sequence[Prepared]) -> None:
    """Move all pointers in one transaction. Raises Raced, which undoes it."""

    def holds() -> None:
        if any(_adds_places(state.current, state.new) for state in states):
            claims.lock_claims(states[0].new.files.catalog_id)
        hold(Lock.CHANGES, *(state.current.published.id for state in states))

    def act(actor: Actor) -> None:
        for state in states:
            if not _moved(actor, state.address, state.current, state.new):
                raise Raced

    write(actor, act, holds=holds, kind=Kind.TABLE)


def _adds_places(current: TableRecord, new: NewState) -> bool:
    return bool(table_locations.added_locations(current.metadata, new.metadata))


def _moved(actor: Actor, address: Address, current: TableRecord, new: NewState) -> bool:
    """Move one pointer in the caller's transaction, if the table is still the one that was read."""
    fresh = find_table(actor, address)
    policy.require(actor, operations.COMMIT_TABLE, fresh)
    require_enabled(fresh)
    is_same = fresh.id == current.published.id
    if not is_same or not move_pointer(actor, Table, fresh, current.metadata_location, new):
        return False
    record(event(actor, "table.committed", fresh, metadata_location=new.location))
    return True


def _forget_old_files(own_files: MetadataFiles, base: dict[str, Any], metadata: dict[str, Any]) -> None:
    """Delete the metadata files that are no longer in the log, if the table's properties say so; never data files."""
    if metadata.get("properties", {}).get("write.metadata.delete-after-commit.enabled", "").lower() != "true":
        return
    logged = table_locations.logged_files(metadata)
    fell_off = [file for file in table_locations.logged_files(base) if file not in logged]
    owns = table_locations.owned_by(effective_locations(metadata), own_files.allowed, own_files.file_roots)
    own_files.discard(*filter(owns, fell_off))
