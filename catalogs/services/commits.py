"""Commits to tables and views: updates become a new metadata file; a compare-and-swap moves the pointer to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from authz import operations, policy
from authz.actor import Actor
from catalogs.lookup import nearest
from catalogs.pointer_stores import Change, NewState, PointerStore, PreparedCommit, R, now_ms
from catalogs.services.alterations import require_enabled, resolve_masks
from catalogs.services.resolution import find, require_table, resolve_parent
from catalogs.stores import store_for
from catalogs.table_stores import TableRecord
from formats.iceberg import builder
from formats.iceberg.alterations import updates_for
from formats.iceberg.requirements import check_requirements
from metalake.errors import AlreadyExists, Conflict, Invalid
from metalake.hierarchy import check_new_name
from metalake.kinds import Kind
from metalake.lineage import Address, Located

COMMIT_ATTEMPTS = 5
Json = dict[str, Any]


def commit(actor: Actor, address: Address, located: Located, change: Change[R], *, current: R | None = None) -> R:
    """Change a table or view, from `current` first, if given; after a lost race, again from the new state.

    Raises Conflict if a requirement fails or others win COMMIT_ATTEMPTS times, OutcomeUnknown if the commit's answer is
    lost, NotFound for an object that is not Iceberg's. Source: Iceberg REST specification, "CommitTableRequest" and
    "CommitViewRequest".
    """
    for _ in range(COMMIT_ATTEMPTS):
        policy.require(actor, change.operation, located)
        pointers: PointerStore[R, Any] | None = store_for(located, located.kind).pointers
        if pointers is None:
            raise located.missing()
        require_enabled(located)
        current = current or pointers.current(actor, located)
        prepared = prepare(actor, pointers, address, current, change)
        if prepared is None:
            return pointers.unchanged(actor, address, current, change)
        if committed := pointers.swap(actor, prepared):
            return committed
        located, current = pointers.find_again(actor, prepared), None
    name = ".".join((*located.path.segments, located.name))
    raise Conflict(f"Requirement failed: others keep committing to {name}.", kind=located.kind)


def prepare(
    actor: Actor, pointers: PointerStore[R, Any], address: Address, current: R, change: Change[R]
) -> PreparedCommit[R] | None:
    """Write the new metadata file; None if the change is a no-op."""
    base, kind = current.metadata, current.published.kind
    metadata = change.updated(current)
    if metadata is base:
        return None
    files = pointers.files(current)
    files.check_metadata(metadata, base)
    pointers.require_allowed(actor, current, files, metadata)
    if metadata.get(f"{kind}-uuid") != base.get(f"{kind}-uuid"):
        raise Invalid(f"A {kind}'s uuid cannot change.", kind=kind)
    new = NewState(files, metadata, *files.write(metadata, current.metadata_location))
    return PreparedCommit(address, current, change, new)


# Of tables


def commit_table(actor: Actor, address: Address, requirements: Sequence[Json], updates: Sequence[Json]) -> TableRecord:
    """Apply a client's updates to a table, or create it by them, as `commit` does."""
    if any(isinstance(item, dict) and item.get("type") == "assert-create" for item in requirements):
        return _create_by_commit(actor, address, list(requirements), list(updates))
    table = require_table(actor, find(actor, address))
    return commit(actor, address, table, table_change(requirements, updates))


def table_change(requirements: Sequence[Json], updates: Sequence[Json]) -> Change[TableRecord]:
    """A client's updates to a table, if the requirements hold."""
    return planned_change(lambda current: (list(requirements), list(updates)))


def native_change(updates: Sequence[Any], requires: Callable[[Json], None] | None = None) -> Change[TableRecord]:
    """The native API's updates to an Iceberg table; `requires` raises for one that it should not be made on."""

    def plan(current: TableRecord) -> tuple[list[Json], list[Json]]:
        store = store_for(current.published, Kind.TABLE)
        if requires is not None:
            requires(store.parts(current))
        resolved = resolve_masks(updates, lambda: store.parts(current)["properties"])
        return updates_for(resolved, current.metadata)[:2]

    return planned_change(plan)


def planned_change(plan: Callable[[TableRecord], tuple[list[Json], list[Json]]]) -> Change[TableRecord]:
    """A change by the requirements and updates that `plan` makes of the table as it is now."""

    def updated(current: TableRecord) -> Json:
        requirements, updates = plan(current)
        check_requirements(requirements, current.metadata)
        previous = current.metadata_location
        return builder.apply_updates(current.metadata, updates, now_ms=now_ms(), previous_location=previous)

    return Change(operations.COMMIT_TABLE, "table.committed", updated)


def _create_by_commit(actor: Actor, address: Address, requirements: list[Json], updates: list[Json]) -> TableRecord:
    """Create a table by a commit with assert-create, the second half of a staged creation."""
    check_new_name(address.leaf or "", Kind.TABLE)
    home = resolve_parent(actor, address)
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
