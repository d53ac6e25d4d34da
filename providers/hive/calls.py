"""Single calls to a metastore, which return Remotes and raise our errors."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hive_metastore.ttypes import EnvironmentContext, Table

from formats.hive.partitions import partition_values
from formats.hive.tables import MANAGED_TABLE, VIEW_TYPES, HiveColumn
from metalake.errors import AlreadyExists, Conflict, MetalakeError, NotFound, OutcomeUnknown, Unsupported
from metalake.kinds import Kind
from providers.hive.client import Metastore
from providers.hive.errors import About, Refused
from providers.hive.objects import DDL_TIME, hive_table, partition_of, schema_of, table_of
from providers.hive_like.parameters import marker_of
from providers.network.response_budget import LIGHT
from providers.remote_objects import PARTITION, Json, Page, Remote

AT_ONCE = 50  # objects per call, since the whole response is in memory
KEEP_STATISTICS = {"DO_NOT_UPDATE_STATS": "true"}


def part_of(items: Sequence[Any], after: str | None, size: int) -> tuple[list[Any], str | None]:
    """Up to `size` items after the name `after`, and the name to continue after (None at the end).

    An item is a name or a tuple that starts with one; items are sorted by name.
    """

    def name_of(item: Any) -> str:
        return item if isinstance(item, str) else item[0]

    start = bisect_right(items, after, key=name_of) if after is not None else 0
    chosen = list(items[start : start + size])
    return chosen, name_of(chosen[-1]) if start + size < len(items) else None


def read_database(metastore: Metastore, name: str) -> Remote:
    return schema_of(metastore.call("get_database", name, about=About(Kind.SCHEMA, name)))


def find_database(metastore: Metastore, name: str) -> Remote | None:
    try:
        return read_database(metastore, name)
    except NotFound:
        return None


def read_kinds(metastore: Metastore, database: str) -> list[tuple[str, str]]:
    """The names and kinds of a database's tables and views.

    Three calls for names are twenty times faster than the metastore's call for names with kinds.
    """
    about = About(Kind.SCHEMA, database)
    names = metastore.call("get_all_tables", database, about=about)
    views: set[str] = set()
    for view_type in VIEW_TYPES if names else ():
        views.update(metastore.call("get_tables_by_type", database, "*", view_type, about=about))
    return sorted((name, Kind.VIEW if name in views else Kind.TABLE) for name in names if name)


def read_whole(metastore: Metastore, database: str, names: Sequence[str], following: str | None) -> Page:
    """A page of the tables and views with these names, with definitions, ordered by name."""

    def read(batch: Sequence[str]) -> list[Remote]:
        try:
            tables = metastore.call("get_table_objects_by_name", database, batch, about=About(Kind.SCHEMA, database))
        except Refused:
            read_database(metastore, database)  # raises NotFound if the database has been dropped
            raise
        return sorted(map(table_of, tables), key=lambda table: table.name)

    return page_of(metastore, names, following, read)


def page_of(
    metastore: Metastore, names: Sequence[str], following: str | None, read: Callable[[Sequence[str]], list[Remote]]
) -> Page:
    """The objects with these names, read in batches; large objects shorten the page. `following` is the next page."""
    remotes, weight = list[Remote](), 0
    for end in range(AT_ONCE, len(names) + AT_ONCE, AT_ONCE):
        remotes += read(names[end - AT_ONCE : end])
        weight += metastore.weight
        if weight > LIGHT and end < len(names):
            return Page(remotes, names[end - 1])
    return Page(remotes, following)


def read_table(metastore: Metastore, database: str, table: str) -> Table:
    """Raises NotFound."""
    return metastore.call("get_table", database, table, about=About(Kind.TABLE, f"{database}.{table}"))


def read_same(metastore: Metastore, database: str, table: str, identity: str) -> Table:
    """The table's current state. Raises NotFound if another table has its name."""
    there = read_table(metastore, database, table)
    if table_of(there).identity != identity:
        raise NotFound(f"Table {database}.{table} does not exist: another has its name now.", kind=Kind.TABLE)
    return there


def is_there(metastore: Metastore, database: str, table: str) -> bool:
    try:
        read_table(metastore, database, table)
    except NotFound:
        return False
    return True


def read_partitioned(metastore: Metastore, database: str, table: str) -> tuple[Table, tuple[HiveColumn, ...]]:
    """The table and its partition keys. Raises Unsupported if it has none."""
    there = read_table(metastore, database, table)
    keys = hive_table(there).partition_keys
    if not keys:
        raise Unsupported(f"Table {database}.{table} is not partitioned.", kind=PARTITION)
    return there, keys


def read_partition(metastore: Metastore, table: Table, name: str) -> Remote:
    keys = hive_table(table).partition_keys
    values = partition_values(keys, name)
    about = About(PARTITION, name)
    return partition_of(keys, metastore.call("get_partition", table.dbName, table.tableName, values, about=about))


def require_same(remote: Remote, version: str) -> None:
    """Raise Conflict if the object has changed since `version`."""
    if remote.version != version:
        raise Conflict(f"{remote.kind.capitalize()} {remote.name} was changed meanwhile.", kind=remote.kind)


def alter(metastore: Metastore, changed: Table, last: str, expected: tuple[str, str]) -> Remote:
    """Alter a table; `last` is its DDL_TIME when read, `expected` a parameter with its value at that time.

    A metastore that checks expected parameters (compare-and-swap) rejects the call if the value has changed.
    """
    now = int(time.time())
    changed.parameters[DDL_TIME] = str(max(now, int(last) + 1) if last.isdecimal() else now)
    name, value = expected
    context = {"expected_parameter_key": name, "expected_parameter_value": value} if value else {}
    send_alteration(metastore, changed.dbName, changed.tableName, changed, context)
    with unknown_after_write():
        return table_of(read_table(metastore, changed.dbName, changed.tableName))


def send_alteration(metastore: Metastore, database: str, table: str, changed: Table, context: dict[str, str]) -> None:
    environment = EnvironmentContext(KEEP_STATISTICS | context)
    about = About(Kind.TABLE, f"{database}.{table}")
    metastore.call("alter_table_with_environment_context", database, table, changed, environment, about=about)


def move_path(table: Table, home: str | None, target: str | None, name: str) -> None:
    """Update the `path` where Spark looks for a managed table's files if a rename moves them; a metastore does not.

    A rename moves files in the schema's folder. `path` changes in the same call, as the table would be empty between
    two calls.
    """
    serde = table.sd.serdeInfo if table.sd else None
    path = (serde.parameters or {}).get("path") if serde else None
    is_managed = table.tableType == MANAGED_TABLE and (table.parameters or {}).get("EXTERNAL", "").upper() != "TRUE"
    if serde is None or path is None or path != table.sd.location or not (is_managed and home and target):
        return
    if path.rpartition("/")[0] == home.removesuffix("/"):
        serde.parameters["path"] = f"{target.removesuffix('/')}/{name}"


def drop(metastore: Metastore, database: str, table: str, *, with_files: bool = True, purge: bool = False) -> None:
    """Drop a table or view; `purge` skips the trash. Raises NotFound, OutcomeUnknown."""
    context = EnvironmentContext({"ifPurge": "TRUE"} if purge else {})
    about = About(Kind.TABLE, f"{database}.{table}")
    metastore.call("drop_table_with_environment_context", database, table, with_files, context, about=about)


def require_ours(there: Remote, made: Json) -> Remote:
    """The existing object if our creation made it: a metastore retries its own failed transactions.

    Raises AlreadyExists if it does not have our marker.
    """
    marker = marker_of(made)
    if not marker or marker_of(there.definition) != marker:
        raise AlreadyExists(f"{there.kind.capitalize()} {there.name} already exists.", kind=there.kind)
    return there


@contextmanager
def unknown_after_write(anything: bool = True) -> Iterator[None]:
    """Turn every error into OutcomeUnknown if `anything` was written before, so that none implies that nothing was."""
    try:
        yield
    except MetalakeError as failure:
        raise OutcomeUnknown(failure.message, kind=failure.kind) if anything else failure from None
