"""Commits to several tables at once: one database transaction publishes all of them or none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from authz import operations, policy
from authz.actor import Actor
from catalogs.pointer_stores import PreparedCommit, discard_on_failure
from catalogs.services.alterations import require_enabled
from catalogs.services.commits import COMMIT_ATTEMPTS, prepare, table_change
from catalogs.services.resolution import find, require_table
from catalogs.stores import store_for
from catalogs.table_stores import TablePointers, TableRecord
from metalake.errors import Conflict, Invalid, Unsupported
from metalake.kinds import Kind
from metalake.lineage import Address

MOST_TABLES = 100
Json = dict[str, Any]


class TableCommit(NamedTuple):
    """The updates of a transaction to one table."""

    address: Address
    requirements: Sequence[Json]
    updates: Sequence[Json]


def commit_tables(actor: Actor, commits: Sequence[TableCommit]) -> None:
    """Apply a client's updates to tables of one catalog; after a lost race, again on what is there then.

    Takes the right to commit to each. Raises Invalid for a table that is named twice, Unsupported where another system
    has the pointers of the tables or a table is to be made, Conflict if a requirement fails or others keep winning.
    """
    _check(commits)
    for _ in range(COMMIT_ATTEMPTS):
        pointers, prepared = _prepare_all(actor, commits)
        if not prepared or pointers.swap_all(actor, prepared):
            return
    raise Conflict("Requirement failed: others keep committing to these tables.", kind=Kind.TABLE)


def _check(commits: Sequence[TableCommit]) -> None:
    if not 1 <= len(commits) <= MOST_TABLES:
        raise Invalid(f"A transaction commits to 1 to {MOST_TABLES} tables, not to {len(commits)}.", kind=Kind.TABLE)
    if len({each.address for each in commits}) < len(commits):
        raise Invalid("table-changes: a table is listed twice; merge its changes into one.", kind=Kind.TABLE)
    if any(one.get("type") == "assert-create" for each in commits for one in each.requirements):
        raise Unsupported(
            "A transaction cannot create tables: create them first, then commit to them.", kind=Kind.TABLE
        )


def _prepare_all(
    actor: Actor, commits: Sequence[TableCommit]
) -> tuple[TablePointers, list[PreparedCommit[TableRecord]]]:
    """The commits that change their tables; where one is refused, the files of those before it are removed."""
    prepared: list[PreparedCommit[TableRecord]] = []
    with discard_on_failure(each.new for each in prepared):  # of those at the time of the failure
        for each in commits:
            pointers, state = _prepared(actor, each)
            prepared.extend([state] if state else [])
    return pointers, prepared


def _prepared(actor: Actor, commit: TableCommit) -> tuple[TablePointers, PreparedCommit[TableRecord] | None]:
    """A commit whose file is written and not published; None if the updates change nothing."""
    table = require_table(actor, find(actor, commit.address))
    policy.require(actor, operations.COMMIT_TABLE, table)
    require_enabled(table)
    pointers = store_for(table, Kind.TABLE).pointers
    if not pointers.commits_together:
        raise Unsupported(
            f"Tables of catalog {table.catalog.name} are committed one at a time: another system keeps their pointers.",
            kind=Kind.TABLE,
        )
    change = table_change(commit.requirements, commit.updates)
    return pointers, prepare(actor, pointers, commit.address, pointers.current(actor, table), change)
