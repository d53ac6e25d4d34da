"""Commits: a client's updates become a new metadata file, and the pointer moves there if nobody moved it first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from django.utils import timezone

from authz import operations, policy
from authz.locks import Lock, hold
from authz.policy import Actor
from authz.writing import write
from catalogs.lookup import nearest
from catalogs.models import Table
from catalogs.services import places
from catalogs.services.changes import event, require_enabled
from catalogs.services.claims import move, take_turn
from catalogs.services.opening import store_of
from catalogs.services.pointers import (
    TableRecord,
    a_table,
    current_record,
    find_table,
    insert_table,
    meet_home,
    now_ms,
    or_discard,
)
from formats.iceberg import builder, locations
from formats.iceberg.requirements import check_requirements
from metalake.errors import AlreadyExists, Conflict, Invalid
from metalake.events import record
from metalake.hierarchy import check_segment
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from metalake.models import Securable
from outside import finding
from outside import iceberg as external_iceberg
from outside.calls import is_external
from providers.metadata_files import MetadataFiles

COMMIT_ATTEMPTS = 5


class _FileGone(Exception):
    """The metadata file was taken for an orphan before the pointer moved to it."""


def commit_table(
    actor: Actor, ident: Address, requirements: Sequence[dict[str, Any]], updates: Sequence[dict[str, Any]]
) -> TableRecord:
    """Apply a client's updates; a lost race starts over on the new metadata, at most five times (section 3).

    Raises Conflict where a requirement fails or others keep winning, OutcomeUnknown where the commit's answer is lost.
    """
    if any(isinstance(item, dict) and item.get("type") == "assert-create" for item in requirements):
        return _create_by_commit(actor, ident, list(requirements), list(updates))
    return commit_with(actor, ident, lambda metadata: (list(requirements), list(updates)))


def commit_with(
    actor: Actor, ident: Address, plan: Callable[[dict[str, Any]], tuple[list[dict[str, Any]], list[dict[str, Any]]]]
) -> TableRecord:
    """Commit what `plan` makes of the current metadata; it is asked again after a lost race."""
    found = a_table(actor, finding.find(actor, ident))
    if is_external(found):
        return external_iceberg.commit(actor, found, plan)
    for _ in range(COMMIT_ATTEMPTS):
        policy.require(actor, operations.COMMIT_TABLE, found)
        require_enabled(found)
        current = current_record(found)
        requirements, updates = plan(current.metadata)
        committed = _commit_once(actor, ident, current, requirements, updates)
        if committed:
            return committed
        found = find_table(actor, ident)
    raise Conflict(
        f"Requirement failed: others keep committing to {'.'.join((*found.path.segments, ident.leaf or ''))}.",
        kind=Kind.TABLE,
    )


def _commit_once(
    actor: Actor,
    ident: Address,
    current: TableRecord,
    requirements: list[dict[str, Any]],
    updates: list[dict[str, Any]],
) -> TableRecord | None:
    """The new state, or None where another commit got in between, or another table has the name."""
    base, found = current.metadata, current.found
    assert found is not None
    check_requirements(requirements, base)
    metadata = builder.apply_updates(base, updates, now_ms=now_ms(), previous_location=current.metadata_location)
    if metadata is base:
        return current
    store = store_of(found)
    store.check_metadata(metadata)
    if added := locations.added_locations(base, metadata):
        places.require_ground_of(actor, found, store, added)
    if metadata.get("table-uuid") != base.get("table-uuid"):
        raise Invalid("A table's uuid cannot change.", kind=Kind.TABLE)
    written, content = store.write(metadata, current.metadata_location)
    turn = partial(take_turn, store.catalog_id) if added else None
    try:
        swapped = or_discard(store, written, lambda: _swap(actor, ident, found, store, metadata, written, turn))
    except _FileGone:
        return None
    if not swapped:
        store.discard(written)
        return None
    _forget_old_files(store, base, metadata)
    return TableRecord(found, written, content)


def _swap(
    actor: Actor,
    ident: Address,
    found: Located,
    store: MetadataFiles,
    metadata: dict[str, Any],
    written: str,
    turn: Callable[[], object] | None,
) -> bool:
    """Move the pointer if the table still has its name, and points where it was read.

    One statement more than without the lock: the table was looked for, and the rights asked, when it was read.
    """
    claims = store.claims(metadata)

    def holds() -> None:
        if turn is not None:
            turn()
        hold(Lock.CHANGES, found.id)

    def act(actor: Actor) -> bool:
        fresh = find_table(actor, ident)
        policy.require(actor, operations.COMMIT_TABLE, fresh)
        require_enabled(fresh)
        pointer = Table.objects.filter(pk=fresh.id, metadata_location=found.metadata_location)
        if fresh.id != found.id or not pointer.update(metadata_location=written):
            return False
        # With the row locked, as the vacuum has it: a process may have been stopped for days since it wrote the file.
        if not store.is_there(written):
            raise _FileGone
        move(actor, store, fresh, claims)
        Securable.objects.filter(pk=found.id).update(last_modifier=actor.name, last_modified_time=timezone.now())
        record(event(actor, "table.committed", fresh, metadata_location=written))
        return True

    return write(actor, act, holds=holds, kind=Kind.TABLE)


def _forget_old_files(store: MetadataFiles, base: dict[str, Any], metadata: dict[str, Any]) -> None:
    """Delete the log entries that fell off, where the table asks for it; never data files."""
    if metadata.get("properties", {}).get("write.metadata.delete-after-commit.enabled", "").lower() != "true":
        return
    kept = locations.logged_files(metadata)
    fell_off = [file for file in locations.logged_files(base) if file not in kept]
    owns = locations.owned_by(locations.effective_locations(metadata), store.allowed, store.file_roots)
    store.discard(*filter(owns, fell_off))


def _create_by_commit(actor: Actor, ident: Address, requirements: list, updates: list) -> TableRecord:
    """The second half of a staged creation."""
    name = ident.leaf or ""
    check_segment(name, Kind.TABLE)
    home = meet_home(actor, ident)
    there = nearest(ident)
    if there is not None and there.kind in (Kind.TABLE, Kind.VIEW):
        raise Conflict("Requirement failed: table already exists", kind=Kind.TABLE)
    check_requirements(requirements, None)
    metadata = builder.apply_updates(None, updates, now_ms=now_ms())
    try:
        if is_external(home):
            return external_iceberg.create_from(actor, ident, home, metadata)
        store = store_of(home)
        store.check_metadata(metadata)
        ground = places.folder_of(home, store).ground
        places.require_ground(actor, home, ground, locations.effective_locations(metadata))
        return insert_table(actor, ident, home, store, metadata, "table.created")
    except AlreadyExists:
        raise Conflict("Requirement failed: table already exists", kind=Kind.TABLE) from None
