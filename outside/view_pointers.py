"""Iceberg views whose pointer is in an outside system: made, registered and changed by intents."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any
from uuid import uuid4

from authz import operations
from authz.actor import Actor
from catalogs.services import places
from catalogs.services.pointers import now_ms
from catalogs.table_stores import NewState
from formats.iceberg.table_locations import effective_locations
from formats.iceberg.views.builder import new_view_metadata
from formats.iceberg.views.metadata_json import parse_view_metadata
from metalake.full_names import dotted
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from metalake.models import new_id
from outside import creation, iceberg_tables, intents, mirror, table_places, views
from outside.calls import levels_of
from outside.creation import Defined
from outside.intents import Draft
from outside.steps import step
from outside.view_versions import as_arguments
from outside.write_helpers import alteration, alteration_work, recheck
from providers.base import Provider
from providers.metadata_files import MetadataFiles
from providers.remote_objects import NewTable, Remote
from views_mgmt.iceberg_commits import Change, CommittedPointers
from views_mgmt.services import definer
from views_mgmt.states import present_state, states_in
from views_mgmt.stores import ViewDraft, ViewRecord
from views_mgmt.versions import State

Json = dict[str, Any]


class OutsideViewPointers(CommittedPointers):
    """Views whose entry in another system points to an Iceberg view metadata file.

    Raises Unsupported for writes where the system's Iceberg views are only read.
    """

    def create(self, actor: Actor, address: Address, home: Located, draft: ViewDraft) -> ViewRecord:
        def defined(provider: Provider, schema: Remote) -> NewTable:
            name = provider.names.folded(address.leaf or "")
            metadata = new_view_metadata(
                view_uuid=str(uuid4()),
                location=provider.view_pointers.place(schema, name, draft.location),
                schema=draft.schema,
                version=draft.version,
                properties=draft.properties,
                now_ms=now_ms(),
            )
            present_state(metadata, "")  # refused before anything is promised
            return provider.view_pointers.draft(schema, name, metadata)

        def states_of(provider: Provider, new: NewTable) -> Sequence[State]:
            return [present_state((new.plan or {})["write"], provider.view_pointers.location(new.definition) or "")]

        return self._made(actor, address, home, defined, states_of, "created")

    def register(self, actor: Actor, address: Address, home: Located, location: str) -> ViewRecord:
        """Make a view from an existing metadata file, in a place that the catalog allows, with its versions."""

        def defined(provider: Provider, schema: Remote) -> NewTable:
            return provider.view_pointers.draft(schema, provider.names.folded(address.leaf or ""), {}, location)

        def states_of(provider: Provider, new: NewTable) -> Sequence[State]:
            own_files = provider.view_pointers.files(*(new.plan or {})["places"])
            return states_in(parse_view_metadata(own_files.read_foreign(location)), location)

        return self._made(actor, address, home, defined, states_of, "registered")

    def _made(
        self,
        actor: Actor,
        address: Address,
        home: Located,
        defined: Defined,
        states_of: creation.StatesOf,
        fact: str,
    ) -> ViewRecord:
        def allowed_states(provider: Provider, new: NewTable) -> Sequence[State]:
            states = states_of(provider, new)
            definer.require_may_run_as(actor, home, states[-1].definition)
            return states

        made = creation.make(actor, address, home, defined, Kind.VIEW, states_of=allowed_states, fact=fact)
        return iceberg_tables.after_making(Kind.VIEW, lambda: views.loaded(actor, made, as_published=True))

    def read(self, record: ViewRecord) -> ViewRecord:
        if record.metadata_location is None:
            raise record.view.missing()
        return record

    # Commits

    def current(self, actor: Actor, view: Located) -> ViewRecord:
        return views.loaded(actor, view, force=True, iceberg=True)

    def files(self, record: ViewRecord) -> MetadataFiles:
        return record.entry.provider.view_pointers.files(*views.own_places(record.entry))

    def require_places(self, actor: Actor, current: ViewRecord, files: MetadataFiles, metadata: Json) -> None:
        before, after = (effective_locations(each) for each in (current.metadata, metadata))
        table_places.require_new(actor, current.view, current.entry.provider, before, after)

    def swap(
        self, actor: Actor, address: Address, current: ViewRecord, new: NewState, change: Change
    ) -> ViewRecord | None:
        state = present_state(new.metadata, new.location)
        decide = partial(_pointing, current=current, state=state, change=change)
        if not iceberg_tables.point(actor, current.view, new.files, new.location, decide):
            return None
        new.files.forget(current.metadata_location or "")
        return views.loaded(actor, current.view, as_published=True)

    def find_again(self, actor: Actor, address: Address, view: Located) -> Located:
        return recheck(actor, view, operations.ALTER_VIEW)


def _pointing(actor: Actor, current: ViewRecord, state: State, change: Change) -> Draft:
    fresh, marker = recheck(actor, current.view, operations.ALTER_VIEW), new_id()
    definer.require_may_change(actor, fresh, current.definition, state.definition)
    location = state.stored_as["metadata-location"]
    call = step(
        "commit_view",
        schema=levels_of(fresh.above()),
        view=mirror.wire_name_at(fresh.id),
        location=location,
        previous=current.metadata_location,
        marker=str(marker),
        by_owner=places.may_choose(actor, fresh),
    )
    return alteration(
        fresh,
        "commit_view",
        dotted(fresh.full_name),
        marker,
        call,
        {"changed": state.definition.differences(current.definition), "metadata_location": location},
        fact=change.event.removeprefix("view."),
        states=as_arguments([state]),
    )


intents.register("commit_view", alteration_work(operations.ALTER_VIEW))
