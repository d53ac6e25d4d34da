"""Iceberg views that our rows point to; each pointer swap stores one version in the same transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from authz.actor import Actor
from catalogs.managed.pointers import RowPointers, adds_places, move_pointer
from catalogs.pointer_stores import Change, NewState, PreparedCommit
from catalogs.services import claims
from catalogs.services.alterations import event
from catalogs.services.renames import to_rename
from catalogs.services.writes import Write, write_to
from formats.iceberg.views.metadata_json import parse_view_metadata
from formats.iceberg.views.translate import is_respelled
from metalake.events import record
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from providers.metadata_files import MetadataFiles
from views_mgmt import versions
from views_mgmt.models import View
from views_mgmt.services import definer, rows
from views_mgmt.states import ICEBERG, present_state, states_in
from views_mgmt.stores import ViewDraft, ViewRecord

Json = dict[str, Any]


class DelegatedPointers(RowPointers[ViewRecord, ViewDraft]):
    """Pointers of views, whose versions are stored as well."""

    model, kind = View, Kind.VIEW

    def record_of(self, located: Located, content: bytes) -> ViewRecord:
        return ViewRecord(located, *ICEBERG, metadata_location=located.metadata_location, content=content)

    def parse(self, content: bytes) -> Json:
        return parse_view_metadata(content)

    def require_may_make(self, actor: Actor, home: Located, metadata: Json) -> None:
        definer.require_may_run_as(actor, home, present_state(metadata, "").definition)

    def note_made(self, actor: Actor, made: Located, metadata: Json, *, is_new: bool) -> None:
        states = states_in(metadata, made.metadata_location or "")
        if is_new:
            versions.add(made, states[-1].definition, actor.name, ICEBERG, states[-1].stored_as)
        else:
            versions.add_past(made, states, actor.name, ICEBERG)

    def require_allowed(self, actor: Actor, current: ViewRecord, files: MetadataFiles, metadata: Json) -> None:
        super().require_allowed(actor, current, files, metadata)
        present_state(metadata, "")  # raises before a file is written

    def unchanged(self, actor: Actor, address: Address, current: ViewRecord, change: Change[ViewRecord]) -> ViewRecord:
        if change.target is None:
            return current
        return self.current(actor, rows.rename(actor, address, change.target))

    def move_all(self, actor: Actor, commits: Sequence[PreparedCommit[ViewRecord]]) -> list[Located]:
        """As for any kind; a commit that also renames takes the locks of a rename."""
        (commit,) = commits
        if commit.change.target is None:
            return super().move_all(actor, commits)
        view, home = to_rename(commit.address, commit.change.target)
        turn = partial(claims.lock_claims, commit.new.files.catalog_id) if adds_places(commit) else None
        return write_to(actor, (replace(view, first=turn), home), self._move_to, commit)

    def _move_to(self, write: Write, commit: PreparedCommit[ViewRecord]) -> list[Located]:
        return [self.move(write.actor, write.located, commit, write.home)]

    def move(
        self, actor: Actor, fresh: Located, commit: PreparedCommit[ViewRecord], home: Located | None = None
    ) -> Located:
        current, new, change = commit.current, commit.new, commit.change
        after = present_state(new.metadata, new.location).definition
        respelled = is_respelled(current.metadata, new.metadata)
        definer.require_may_change(actor, fresh, current.definition, after, is_respelled=respelled)
        move_pointer(actor, View, fresh, current, new)
        if home is not None and change.target is not None:
            fresh = rows.move_row(actor, home, fresh, change.target.leaf or "")
        return note_state(actor, fresh, current, new, change.event)


def note_state(actor: Actor, view: Located, before: ViewRecord, new: NewState, what: str) -> Located:
    """Store a view's new version and its event in the caller's transaction, after the pointer swap."""
    state = present_state(new.metadata, new.location)
    number = versions.add(view, state.definition, actor.name, ICEBERG, state.stored_as)
    changed = state.definition.differences(before.definition)
    record(event(actor, what, view, version=number, changed=changed, metadata_location=new.location))
    return replace(view, metadata_location=new.location)
