"""Iceberg tables and views whose pointer is in an outside system: created, registered and committed to by intents.

This server reads and writes the metadata files; the pointer in the outside system says which one is current.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar
from uuid import uuid4

from authz import operations
from authz.actor import Actor
from authz.locks import Lock
from catalogs.pointer_stores import D, PointerStore, PreparedCommit, R
from catalogs.services import places
from catalogs.services.provider_of import provider_at
from catalogs.services.writes import hold_each
from catalogs.table_stores import TableDraft, TablePointers, TableRecord
from formats.iceberg import metadata_json
from formats.iceberg.table_locations import effective_locations
from formats.iceberg.views.metadata_json import parse_view_metadata
from metalake.errors import Conflict, MetalakeError, NotFound, OutcomeUnknown, ProviderUnavailable, Unsupported
from metalake.full_names import dotted
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from metalake.models import new_id
from outside import creation, iceberg_tables, intents, mirror, schema_places, table_places, tables, views
from outside.calls import levels_of
from outside.creation import Defined
from outside.intents import Draft
from outside.steps import step
from outside.view_versions import as_arguments
from outside.write_helpers import alteration, alteration_work, recheck
from providers.base import Provider
from providers.metadata_files import MetadataFiles
from providers.remote_objects import NewTable, Remote
from providers.stores import RemotePointed
from views_mgmt.services import definer
from views_mgmt.states import present_state, states_in
from views_mgmt.stores import ViewDraft, ViewRecord
from views_mgmt.versions import State

Json = dict[str, Any]


class OutsidePointers(PointerStore[R, D]):
    """Objects whose entry in another system is the pointer; subclasses define what else is stored per kind."""

    kind: ClassVar[Kind]

    # What differs by kind

    @abstractmethod
    def remote(self, provider: Provider) -> RemotePointed:
        """The remote store of the kind's pointers."""

    @abstractmethod
    def as_published(self, actor: Actor, located: Located) -> R:
        """The object right after a write, without another remote read."""

    def require_may_make(self, metadata: Json) -> None:
        """Reject a new object with this metadata, before anything is promised."""

    def states_of(
        self, actor: Actor, home: Located, location: str | None, provider: Provider, new: NewTable
    ) -> Sequence[State]:
        """The view states of a new object, or of the one to register from `location`, oldest first."""
        return ()

    def promise(self, actor: Actor, fresh: Located, commit: PreparedCommit[R]) -> tuple[Json, Json]:
        """Event details and extra arguments of a commit's intent, read in its transaction. Raises Forbidden."""
        return {}, {}

    # Creation

    def create(self, actor: Actor, address: Address, home: Located, draft: D) -> R:
        def defined(provider: Provider, schema: Remote) -> NewTable:
            return self.drafted(provider, schema, address, draft)[0]

        return self.make(actor, address, home, defined)

    def drafted(self, provider: Provider, schema: Remote, address: Address, draft: D) -> tuple[NewTable, Json]:
        """The entry and first metadata for a draft."""
        remote, name = self.remote(provider), provider.names.folded(address.leaf or "")
        metadata = draft.metadata(uuid4(), remote.place(schema, name, draft.location))
        self.require_may_make(metadata)
        return remote.draft(schema, name, metadata), metadata

    def register(self, actor: Actor, address: Address, home: Located, location: str) -> R:
        """Create an object from an existing metadata file, in a location that the catalog allows."""

        def defined(provider: Provider, schema: Remote) -> NewTable:
            name = provider.names.folded(address.leaf or "")
            return self.remote(provider).draft(schema, name, {}, location)

        return self.make(actor, address, home, defined, location)

    def make(self, actor: Actor, address: Address, home: Located, defined: Defined, location: str | None = None) -> R:
        # A table that is registered outside is recorded as created.
        fact = "registered" if location is not None and self.kind is Kind.VIEW else "created"
        states_of = partial(self.states_of, actor, home, location)
        made, _ = creation.make(actor, address, home, provider_at(home), defined, self.kind, states_of, fact)
        try:
            return self.as_published(actor, made)
        except ProviderUnavailable as failure:
            message = f"{failure.message} The {self.kind} was made all the same; load it."
            raise OutcomeUnknown(message, kind=self.kind) from failure

    # Commits

    def swap(self, actor: Actor, commit: PreparedCommit[R]) -> R | None:
        located, new = commit.current.published, commit.new
        decide = partial(self._pointing, commit=commit)
        try:
            intents.carry(actor, decide, holds=partial(hold_each, [(located, Lock.CHANGES)]))
        except (OutcomeUnknown, NotFound):
            raise  # the object may point to the file, under another name or in a catalog that was dropped here
        except Conflict:
            new.files.discard(new.location)
            return None
        except MetalakeError:
            new.files.discard(new.location)
            raise
        new.files.forget(commit.current.metadata_location or "")
        return self.swapped(actor, commit)

    @abstractmethod
    def swapped(self, actor: Actor, commit: PreparedCommit[R]) -> R:
        """The object right after its pointer was swapped."""

    def _pointing(self, actor: Actor, commit: PreparedCommit[R]) -> Draft:
        """The draft of the intent that swaps an object's pointer to new metadata."""
        fresh, marker = recheck(actor, commit.current.published, commit.change.operation), new_id()
        details, arguments = self.promise(actor, fresh, commit)
        verb, location = f"commit_{self.kind}", commit.new.location
        call: Json = {
            "schema": levels_of(fresh.above()),
            str(self.kind): mirror.wire_name_at(fresh.id),
            "location": location,
            "previous": commit.current.metadata_location or "",
            "by_owner": places.may_choose(actor, fresh),
        }
        if self.kind is Kind.VIEW:  # a table's metadata log lists earlier files, which prove the outcome
            call["marker"] = str(marker)
        details = {**details, "metadata_location": location}
        return alteration(fresh, verb, dotted(fresh.full_name), marker, step(verb, **call), details, **arguments)

    def find_again(self, actor: Actor, commit: PreparedCommit[R]) -> Located:
        return recheck(actor, commit.current.published, commit.change.operation)


intents.register("commit_table", alteration_work(operations.COMMIT_TABLE, "committed"))
intents.register("commit_view", alteration_work(operations.ALTER_VIEW))


class OutsideTablePointers(OutsidePointers[TableRecord, TableDraft], TablePointers):
    """Tables, of which only the cached copy of their entry is stored here."""

    kind = Kind.TABLE

    def remote(self, provider: Provider) -> RemotePointed:
        return provider.pointers

    def as_published(self, actor: Actor, located: Located) -> TableRecord:
        return iceberg_tables.record_of(tables.loaded(actor, located, as_published=True))

    def stage(self, actor: Actor, address: Address, home: Located, draft: TableDraft) -> TableRecord:
        def defined(provider: Provider, schema: Remote) -> NewTable:
            _, metadata = self.drafted(provider, schema, address, draft)
            table_places.require_named(actor, home, schema, provider, effective_locations(metadata))
            if not draft.location:  # a chosen location is checked, and its folder created, with the table
                provider.pointers.files(metadata["location"]).make_folders(metadata["location"])
            raise _OnlyStaged(metadata_json.dump(metadata))

        try:
            return self.make(actor, address, home, defined)
        except _OnlyStaged as staged:
            return TableRecord(None, None, staged.content)

    def create_from(self, actor: Actor, address: Address, home: Located, metadata: Json) -> TableRecord:
        def defined(provider: Provider, schema: Remote) -> NewTable:
            name = provider.names.folded(address.leaf or "")
            provider.pointers.place(schema, name, metadata["location"])
            return provider.pointers.draft(schema, name, metadata)

        return self.make(actor, address, home, defined)

    def read(self, record: TableRecord) -> TableRecord:
        return iceberg_tables.record_of(record.entry)

    def current(self, actor: Actor, located: Located) -> TableRecord:
        return iceberg_tables.record_of(tables.loaded(actor, located, force=True))

    def files(self, record: TableRecord) -> MetadataFiles:
        return iceberg_tables.files_of(record.entry)

    def require_allowed(self, actor: Actor, current: TableRecord, files: MetadataFiles, metadata: Json) -> None:
        iceberg_tables.require_own_pointer(current.entry)
        before, after = (effective_locations(each) for each in (current.metadata, metadata))
        table_places.require_new(actor, current.published, current.entry.provider, before, after)

    def swapped(self, actor: Actor, commit: PreparedCommit[TableRecord]) -> TableRecord:
        return TableRecord(commit.current.table, commit.new.location, commit.new.content)

    def home_of(self, actor: Actor, schema: Located, properties: Mapping[str, str]) -> str | None:
        return schema_places.home_of(actor, schema)

    def require_claims(self, table: Located) -> None:
        raise Unsupported("What an outside table had before is its own system's to say.", kind=Kind.TABLE)


class _OnlyStaged(Exception):
    """Ends a staged creation: carries the JSON of the metadata, and no table is created."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.content = content


class OutsideViewPointers(OutsidePointers[ViewRecord, ViewDraft]):
    """Views, whose versions are stored here.

    Raises Unsupported for writes where the system's Iceberg views are read-only.
    """

    kind = Kind.VIEW

    def remote(self, provider: Provider) -> RemotePointed:
        return provider.view_pointers

    def as_published(self, actor: Actor, located: Located) -> ViewRecord:
        return views.loaded(actor, located, as_published=True)

    def require_may_make(self, metadata: Json) -> None:
        present_state(metadata, "")

    def states_of(
        self, actor: Actor, home: Located, location: str | None, provider: Provider, new: NewTable
    ) -> Sequence[State]:
        remote, plan = provider.view_pointers, new.plan or {}
        if location is None:
            states = [present_state(plan["write"], remote.location(new.definition) or "")]
        else:
            states = states_in(parse_view_metadata(remote.files(*plan["places"]).read_foreign(location)), location)
        definer.require_may_run_as(actor, home, states[-1].definition)
        return states

    def current(self, actor: Actor, located: Located) -> ViewRecord:
        return views.loaded(actor, located, force=True, iceberg=True)

    def files(self, record: ViewRecord) -> MetadataFiles:
        return record.entry.provider.view_pointers.files(*views.own_places(record.entry))

    def require_allowed(self, actor: Actor, current: ViewRecord, files: MetadataFiles, metadata: Json) -> None:
        before, after = (effective_locations(each) for each in (current.metadata, metadata))
        table_places.require_new(actor, current.view, current.entry.provider, before, after)
        present_state(metadata, "")  # rejected before a file is written

    def promise(self, actor: Actor, fresh: Located, commit: PreparedCommit[ViewRecord]) -> tuple[Json, Json]:
        before, state = commit.current.definition, present_state(commit.new.metadata, commit.new.location)
        definer.require_may_change(actor, fresh, before, state.definition)
        fact = commit.change.event.removeprefix("view.")
        return {"changed": state.definition.differences(before)}, {"fact": fact, "states": as_arguments([state])}

    def swapped(self, actor: Actor, commit: PreparedCommit[ViewRecord]) -> ViewRecord:
        return self.as_published(actor, commit.current.view)
