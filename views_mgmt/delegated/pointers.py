"""Iceberg views to which our rows point: made, registered and changed."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import uuid4

from authz import operations, policy
from authz.actor import Actor
from authz.locks import Lock
from catalogs.services import claims, places
from catalogs.services.alterations import event, require_enabled
from catalogs.services.free_names import require_free
from catalogs.services.pointers import (
    FileGone,
    NewPointer,
    current_content,
    located_now,
    make,
    move_pointer,
    now_ms,
    open_foreign,
    publish,
    publish_or_discard,
)
from catalogs.services.provider_of import files_of
from catalogs.services.writes import Locks, write_located
from catalogs.table_stores import NewState
from formats.iceberg.locations import canonical
from formats.iceberg.table_locations import added_locations, effective_locations
from formats.iceberg.views.builder import new_view_metadata
from formats.iceberg.views.metadata_json import parse_view_metadata
from formats.iceberg.views.translate import is_respelled
from metalake.events import record
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from providers.metadata_files import MetadataFiles
from views_mgmt import versions
from views_mgmt.iceberg_commits import Change, CommittedPointers
from views_mgmt.models import View
from views_mgmt.services import definer, rows
from views_mgmt.states import ICEBERG, present_state, states_in
from views_mgmt.stores import ViewDraft, ViewRecord

Json = dict[str, Any]


def record_of(view: Located, content: bytes | None = None) -> ViewRecord:
    """The view by the metadata file that its row points to."""
    content = current_content(view) if content is None else content
    return ViewRecord(view, *ICEBERG, metadata_location=view.metadata_location, content=content)


class DelegatedPointers(CommittedPointers):
    """A column of the view's row is the pointer; each change of it stores one version in the same transaction."""

    def create(self, actor: Actor, address: Address, home: Located, draft: ViewDraft) -> ViewRecord:
        """Make a view; if two race for a name, the unique row decides, and the loser's metadata file is removed."""
        require_free(home, address.leaf or "", Kind.VIEW)
        own_files = files_of(home)
        lies, uuid = places.folder_of(home, own_files), uuid4()
        metadata = new_view_metadata(
            view_uuid=str(uuid),
            location=own_files.place(lies.folder, address.leaf or "", uuid, draft.location),
            schema=draft.schema,
            version=draft.version,
            properties=draft.properties,
            now_ms=now_ms(),
        )
        own_files.check_metadata(metadata)
        places.require_ground(actor, home, lies.ground, effective_locations(metadata))
        # Refused before a file is written.
        definer.require_may_run_as(actor, home, present_state(metadata, "").definition)
        fresh = [] if draft.location else [canonical(metadata["location"])]

        def add_version(actor: Actor, view: Located) -> None:
            state = present_state(metadata, view.metadata_location or "")
            versions.add(view, state.definition, actor.name, ICEBERG, state.stored_as)

        new = NewPointer(View, own_files, metadata, "view.created", fresh, then=add_version)
        return record_of(*make(actor, address, home, new))

    def register(self, actor: Actor, address: Address, home: Located, location: str) -> ViewRecord:
        """Register a view whose metadata file lies in an allowed place that nothing else claims, with its versions."""
        require_free(home, address.leaf or "", Kind.VIEW)
        own_files, content, metadata = open_foreign(actor, home, location, parse_view_metadata, Kind.VIEW)
        states = states_in(metadata, location)
        definer.require_may_run_as(actor, home, states[-1].definition)

        def add_versions(actor: Actor, view: Located) -> None:
            versions.add_past(view, states, actor.name, ICEBERG)

        new = NewPointer(View, own_files, metadata, "view.registered", then=add_versions)
        return record_of(publish(actor, address, home, new, location), content)

    def read(self, record: ViewRecord) -> ViewRecord:
        return record

    # Commits

    def current(self, actor: Actor, view: Located) -> ViewRecord:
        return record_of(view)

    def files(self, record: ViewRecord) -> MetadataFiles:
        return files_of(record.view)

    def require_places(self, actor: Actor, current: ViewRecord, files: MetadataFiles, metadata: Json) -> None:
        if added := added_locations(current.metadata, metadata):
            places.require_ground_of(actor, current.view, files, added)

    def swap(
        self, actor: Actor, address: Address, current: ViewRecord, new: NewState, change: Change
    ) -> ViewRecord | None:
        try:
            view = publish_or_discard(new.files, new.location, lambda: _swap(actor, address, current, new, change))
        except FileGone:
            return None
        if view is None:
            new.files.discard(new.location)
            return None
        return record_of(view, new.content)

    def find_again(self, actor: Actor, address: Address, view: Located) -> Located:
        return rows.view_at(actor, address)

    def unchanged(self, actor: Actor, address: Address, current: ViewRecord, change: Change) -> ViewRecord:
        return current if change.target is None else record_of(rows.rename(actor, address, change.target))


def _swap(actor: Actor, address: Address, current: ViewRecord, new: NewState, change: Change) -> Located | None:
    """Move the pointer, and store the version, if the view is still as it was read; the view, or None if it is not."""
    state = present_state(new.metadata, new.location)

    def locate(actor: Actor) -> Locks:
        if change.target is not None:
            return rows.locate_for_rename(actor, address, change.target)
        fresh = rows.view_at(actor, address)
        policy.require(actor, operations.ALTER_VIEW, fresh)
        require_enabled(fresh)
        return [(fresh, Lock.CHANGES)]

    def act(actor: Actor, *targets: Located) -> Located | None:
        fresh = targets[-1]
        respelled = is_respelled(current.metadata, new.metadata)
        definer.require_may_change(actor, fresh, current.definition, state.definition, is_respelled=respelled)
        if fresh.id != current.view.id or not move_pointer(actor, View, fresh, current.metadata_location, new):
            return None
        if change.target is not None:
            fresh = rows.move_row(actor, targets[0], fresh, change.target.leaf or "")
        return note_state(actor, fresh, current, new, change.event)

    adds = bool(added_locations(current.metadata, new.metadata))
    turn = partial(claims.lock_claims, new.files.catalog_id) if adds else None
    return write_located(actor, locate, act, kind=Kind.VIEW, before=turn)


def note_state(actor: Actor, view: Located, before: ViewRecord, new: NewState, what: str) -> Located:
    """Store the version of a view that points to its new state, with its event, in the caller's transaction."""
    state = present_state(new.metadata, new.location)
    number = versions.add(view, state.definition, actor.name, ICEBERG, state.stored_as)
    changed = state.definition.differences(before.definition)
    record(event(actor, what, view, version=number, changed=changed, metadata_location=new.location))
    return located_now(view)
