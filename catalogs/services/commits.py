"""Commits: a client's updates become a new metadata file; the pointer moves to it unless another commit was first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from authz import operations, policy
from authz.actor import Actor
from catalogs.lookup import nearest
from catalogs.services.alterations import require_enabled, resolve_masks
from catalogs.services.pointers import meet_home, now_ms, require_table
from catalogs.services.resolution import find
from catalogs.stores import store_for
from catalogs.table_stores import NewState, PointerStore, TableRecord
from formats.iceberg import builder
from formats.iceberg.alterations import updates_for
from formats.iceberg.requirements import check_requirements
from metalake.errors import AlreadyExists, Conflict, Invalid
from metalake.hierarchy import check_new_name
from metalake.kinds import Kind
from metalake.lineage import Address, Located

COMMIT_ATTEMPTS = 5
Json = dict[str, Any]
Plan = Callable[[TableRecord], tuple[list[Json], list[Json]]]
"""Makes the requirements and updates of a commit from the table as it is now."""


def commit_table(actor: Actor, address: Address, requirements: Sequence[Json], updates: Sequence[Json]) -> TableRecord:
    """Apply a client's updates; after a lost race, again on the new metadata, at most COMMIT_ATTEMPTS times.

    Raises Conflict if a requirement fails or others keep winning, OutcomeUnknown if the commit's answer is lost.
    """
    if any(isinstance(item, dict) and item.get("type") == "assert-create" for item in requirements):
        return _create_by_commit(actor, address, list(requirements), list(updates))
    table = require_table(actor, find(actor, address))
    return commit_to(actor, address, table, lambda current: (list(requirements), list(updates)))


def native_plan(updates: Sequence[Any]) -> Plan:
    """The plan of a commit that applies the native wire's updates to an Iceberg table."""

    def plan(current: TableRecord) -> tuple[list[Json], list[Json]]:
        store = store_for(current.published, Kind.TABLE)
        resolved = resolve_masks(updates, lambda: store.parts(current)["properties"])
        return updates_for(resolved, current.metadata)[:2]

    return plan


def commit_to(
    actor: Actor, address: Address, table: Located, plan: Plan, *, current: TableRecord | None = None
) -> TableRecord:
    """Commit the updates that `plan` makes, from `current` first, if given; after a lost race, from the new state."""
    for _ in range(COMMIT_ATTEMPTS):
        policy.require(actor, operations.COMMIT_TABLE, table)
        require_enabled(table)
        store = store_for(table, Kind.TABLE)
        current = current or store.pointers.read(store.load(actor, table, refresh=True))
        committed = _commit_once(actor, address, store.pointers, current, plan)
        if committed is not None:
            return committed
        table, current = store.pointers.find_again(actor, address, table), None
    name = ".".join((*table.path.segments, table.nodes[-1].name))
    raise Conflict(f"Requirement failed: others keep committing to {name}.", kind=Kind.TABLE)


def _commit_once(
    actor: Actor, address: Address, pointers: PointerStore, current: TableRecord, plan: Plan
) -> TableRecord | None:
    """The new state, or None if another commit came first or another table has the name."""
    new = prepared(actor, pointers, current, plan(current))
    return current if new is None else pointers.swap(actor, address, current, new)


def prepared(
    actor: Actor, pointers: PointerStore, current: TableRecord, plan: tuple[list[Json], list[Json]]
) -> NewState | None:
    """The new state that requirements and updates make, written to its file; None if they change nothing."""
    base, previous = current.metadata, current.metadata_location
    requirements, updates = plan
    check_requirements(requirements, base)
    metadata = builder.apply_updates(base, updates, now_ms=now_ms(), previous_location=previous)
    if metadata is base:
        return None
    files = pointers.files(current)
    files.check_metadata(metadata, base)
    pointers.require_places(actor, current, files, metadata)
    if metadata.get("table-uuid") != base.get("table-uuid"):
        raise Invalid("A table's uuid cannot change.", kind=Kind.TABLE)
    written, content = files.write(metadata, previous)
    return NewState(files, metadata, written, content)


def _create_by_commit(actor: Actor, address: Address, requirements: list[Json], updates: list[Json]) -> TableRecord:
    """Create a table by a commit with assert-create, the second half of a staged creation."""
    check_new_name(address.leaf or "", Kind.TABLE)
    home = meet_home(actor, address)
    there = nearest(address)
    if there is not None and there.kind is Kind.VIEW:
        name = ".".join((*there.path.segments, there.name))
        raise AlreadyExists(f"View with same name already exists: {name}", kind=Kind.TABLE)
    if there is not None and there.kind is Kind.TABLE:
        raise Conflict("Requirement failed: table already exists", kind=Kind.TABLE)
    check_requirements(requirements, None)
    metadata = builder.apply_updates(None, updates, now_ms=now_ms())
    try:
        return store_for(home, Kind.TABLE).pointers.create_from(actor, address, home, metadata)
    except AlreadyExists:
        raise Conflict("Requirement failed: table already exists", kind=Kind.TABLE) from None
