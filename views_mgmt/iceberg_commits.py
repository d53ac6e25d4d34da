"""Changes of Iceberg views: a new metadata file, to which the pointer moves unless another change was first."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from authz import operations, policy
from authz.actor import Actor
from catalogs.services.alterations import require_enabled
from catalogs.services.commits import COMMIT_ATTEMPTS
from catalogs.services.pointers import now_ms
from catalogs.table_stores import NewState
from formats.iceberg.requirements import check_view_requirements
from formats.iceberg.views.builder import apply_view_updates
from formats.iceberg.views.security import with_noted_mode
from formats.iceberg.views.translate import updates_for
from metalake.errors import Conflict, Invalid
from metalake.full_names import dotted
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from providers.metadata_files import MetadataFiles
from views_mgmt.states import present_state
from views_mgmt.stores import Plan, ViewPointers, ViewRecord

Json = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """What one request asks for: `updates_of` makes the updates from the view as it is now.

    `event` is what it is recorded as; the view gets the name `target`, if there is one, in the same transaction.
    """

    event: str
    updates_of: Callable[[ViewRecord], list[Json]]
    requirements: tuple[Json, ...] = ()
    may_drop_dialects: bool = False
    target: Address | None = None


class CommittedPointers(ViewPointers):
    """Views that a commit changes: we write the metadata files, wherever the pointer to them is stored."""

    @abstractmethod
    def current(self, actor: Actor, view: Located) -> ViewRecord:
        """The view as it is now, with its metadata. Raises NotFound for a view in another format."""

    @abstractmethod
    def files(self, record: ViewRecord) -> MetadataFiles:
        """The metadata files of the view, to read and write."""

    @abstractmethod
    def require_places(self, actor: Actor, current: ViewRecord, files: MetadataFiles, metadata: Json) -> None:
        """Raise Forbidden for places in new metadata that are new to the view and that it may not use."""

    @abstractmethod
    def swap(
        self, actor: Actor, address: Address, current: ViewRecord, new: NewState, change: Change
    ) -> ViewRecord | None:
        """Point the view to its new state; None if it is not in its `current` state any more.

        The new file is removed unless the view points to it, or may do so: then OutcomeUnknown is raised.
        """

    @abstractmethod
    def find_again(self, actor: Actor, address: Address, view: Located) -> Located:
        """The view as it is after a lost race. Raises NotFound."""

    def unchanged(self, actor: Actor, address: Address, current: ViewRecord, change: Change) -> ViewRecord:
        """The view after a change that changes nothing of its metadata."""
        return current

    def replace(
        self, actor: Actor, address: Address, view: Located, requirements: Sequence[Json], updates: Sequence[Json]
    ) -> ViewRecord:
        change = Change("view.replaced", lambda current: list(updates), tuple(requirements))
        return self.commit(actor, address, view, change)

    def alter(
        self, actor: Actor, address: Address, view: Located, plan: Plan, *, target: Address | None = None
    ) -> ViewRecord:
        """Make a change of the native wire, as `ViewStore.alter` does."""

        def updates_of(current: ViewRecord) -> list[Json]:
            now = current.definition
            return updates_for(now, with_noted_mode(plan(now), now, actor.name), current.metadata)

        change = Change(plan.event, updates_of, may_drop_dialects=True, target=target)
        return self.commit(actor, address, view, change)

    def commit(self, actor: Actor, address: Address, view: Located, change: Change) -> ViewRecord:
        """Make a change; after a lost race, again on the new metadata, at most COMMIT_ATTEMPTS times.

        Raises Conflict if a requirement fails or others keep winning, OutcomeUnknown if the commit's answer is lost.
        """
        for _ in range(COMMIT_ATTEMPTS):
            policy.require(actor, operations.ALTER_VIEW, view)
            require_enabled(view)
            if committed := self._commit_once(actor, address, self.current(actor, view), change):
                return committed
            view = self.find_again(actor, address, view)
        name = dotted((*view.path.segments, view.name))
        raise Conflict(f"Requirement failed: others keep committing to {name}.", kind=Kind.VIEW)

    def _commit_once(self, actor: Actor, address: Address, current: ViewRecord, change: Change) -> ViewRecord | None:
        """The view after the change, or None if another commit came first or another view has the name."""
        base = current.metadata
        check_view_requirements(list(change.requirements), base)
        updates = change.updates_of(current)
        metadata = apply_view_updates(base, updates, now_ms=now_ms(), may_drop_dialects=change.may_drop_dialects)
        if metadata is base:
            return self.unchanged(actor, address, current, change)
        if metadata["view-uuid"] != base["view-uuid"]:
            raise Invalid("A view's uuid cannot change.", kind=Kind.VIEW)
        files = self.files(current)
        files.check_metadata(metadata, base)
        self.require_places(actor, current, files, metadata)
        present_state(metadata, "")  # refused before a file is written
        location, content = files.write(metadata, current.metadata_location)
        return self.swap(actor, address, current, NewState(files, metadata, location, content), change)
