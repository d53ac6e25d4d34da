"""Changes of Iceberg views: a new metadata file, to which the view's row points unless another change was first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from authz import operations, policy
from authz.actor import Actor
from authz.locks import Lock
from catalogs.services import claims, places
from catalogs.services.changes import event, require_enabled
from catalogs.services.commits import COMMIT_ATTEMPTS
from catalogs.services.holding import Locks, write_to
from catalogs.services.opening import files_of
from catalogs.services.pointers import FileGone, located_now, move_pointer, now_ms, publish_or_discard
from catalogs.table_stores import NewState
from formats.iceberg.requirements import check_view_requirements
from formats.iceberg.table_locations import added_locations
from formats.iceberg.views.builder import apply_view_updates
from metalake.errors import Conflict, Invalid
from metalake.events import record
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from metalake.names import dotted
from views_mgmt import versions
from views_mgmt.delegated.metadata import ICEBERG, present_state, record_of
from views_mgmt.models import View
from views_mgmt.services import definer, rows
from views_mgmt.stores import ViewRecord

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


def commit(actor: Actor, address: Address, view: Located, change: Change) -> ViewRecord:
    """Make a change; after a lost race, again on the new metadata, at most COMMIT_ATTEMPTS times.

    Raises Conflict if a requirement fails or others keep winning, OutcomeUnknown if the commit's answer is lost.
    """
    for _ in range(COMMIT_ATTEMPTS):
        policy.require(actor, operations.ALTER_VIEW, view)
        require_enabled(view)
        if committed := _commit_once(actor, address, record_of(view), change):
            return committed
        view = rows.find_view(actor, address)
    name = dotted((*view.path.segments, view.name))
    raise Conflict(f"Requirement failed: others keep committing to {name}.", kind=Kind.VIEW)


def _commit_once(actor: Actor, address: Address, current: ViewRecord, change: Change) -> ViewRecord | None:
    """The view after the change, or None if another commit came first or another view has the name."""
    base = current.metadata
    check_view_requirements(list(change.requirements), base)
    updates = change.updates_of(current)
    metadata = apply_view_updates(base, updates, now_ms=now_ms(), may_drop_dialects=change.may_drop_dialects)
    if metadata is base:
        return current if change.target is None else record_of(rows.rename(actor, address, change.target))
    if metadata["view-uuid"] != base["view-uuid"]:
        raise Invalid("A view's uuid cannot change.", kind=Kind.VIEW)
    files = files_of(current.view)
    files.check_metadata(metadata)
    if added := added_locations(base, metadata):
        places.require_ground_of(actor, current.view, files, added)
    present_state(metadata, "")  # refused before a file is written
    location, content = files.write(metadata, current.metadata_location)
    new = NewState(files, metadata, location, content)
    try:
        view = publish_or_discard(files, location, lambda: _swap(actor, address, current, new, change))
    except FileGone:
        return None
    if view is None:
        files.discard(location)
        return None
    return record_of(view, content)


def _swap(actor: Actor, address: Address, current: ViewRecord, new: NewState, change: Change) -> Located | None:
    """Move the pointer, and store the version, if the view is still as it was read; the view, or None if it is not."""
    state = present_state(new.metadata, new.location)

    def locate(actor: Actor) -> Locks:
        if change.target is not None:
            return rows.locate_for_rename(actor, address, change.target)
        fresh = rows.find_view(actor, address)
        policy.require(actor, operations.ALTER_VIEW, fresh)
        require_enabled(fresh)
        return [(fresh, Lock.CHANGES)]

    def act(actor: Actor, *targets: Located) -> Located | None:
        fresh = targets[-1]
        definer.require_may_change(actor, fresh, current.definition, state.definition)
        if fresh.id != current.view.id or not move_pointer(actor, View, fresh, current.metadata_location, new):
            return None
        if change.target is not None:
            fresh = rows.move_row(actor, targets[0], fresh, change.target.leaf or "")
        number = versions.add(fresh, state.definition, actor.name, ICEBERG, state.stored_as)
        changed, location = state.definition.differences(current.definition), new.location
        record(event(actor, change.event, fresh, version=number, changed=changed, metadata_location=location))
        return located_now(fresh)

    adds = bool(added_locations(current.metadata, new.metadata))
    turn = partial(claims.lock_claims, new.files.catalog_id) if adds else None
    return write_to(actor, locate, act, kind=Kind.VIEW, before=turn)
