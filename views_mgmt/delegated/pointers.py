"""Iceberg views on the Iceberg wire: made, registered and replaced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from authz.actor import Actor
from catalogs.services import places
from catalogs.services.free_names import require_free
from catalogs.services.opening import files_of
from catalogs.services.pointers import NewPointer, insert, now_ms, open_foreign, publish
from formats.iceberg.locations import canonical
from formats.iceberg.table_locations import effective_locations
from formats.iceberg.views.builder import new_view_metadata
from formats.iceberg.views.metadata_json import parse_view_metadata
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from views_mgmt import versions
from views_mgmt.delegated.commits import Change, commit
from views_mgmt.delegated.metadata import ICEBERG, present_state, record_of, states_in
from views_mgmt.models import View
from views_mgmt.stores import ViewDraft, ViewPointers, ViewRecord

Json = dict[str, Any]


class DelegatedPointers(ViewPointers):
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
        present_state(metadata, "")  # refused before a file is written
        fresh = [] if draft.location else [canonical(metadata["location"])]

        def add_version(actor: Actor, view: Located) -> None:
            state = present_state(metadata, view.metadata_location or "")
            versions.add(view, state.definition, actor.name, ICEBERG, state.stored_as)

        new = NewPointer(View, own_files, metadata, "view.created", fresh, then=add_version)
        return record_of(*insert(actor, address, home, new))

    def register(self, actor: Actor, address: Address, home: Located, location: str) -> ViewRecord:
        """Register a view whose metadata file lies in an allowed place that nothing else claims, with its versions."""
        require_free(home, address.leaf or "", Kind.VIEW)
        own_files, content, metadata = open_foreign(actor, home, location, parse_view_metadata, Kind.VIEW)
        states = states_in(metadata, location)

        def add_versions(actor: Actor, view: Located) -> None:
            versions.add_past(view, states, actor.name, ICEBERG)

        new = NewPointer(View, own_files, metadata, "view.registered", then=add_versions)
        return record_of(publish(actor, address, home, new, location), content)

    def replace(
        self, actor: Actor, address: Address, view: Located, requirements: Sequence[Json], updates: Sequence[Json]
    ) -> ViewRecord:
        change = Change("view.replaced", lambda current: list(updates), tuple(requirements))
        return commit(actor, address, view, change)

    def read(self, record: ViewRecord) -> ViewRecord:
        return record
