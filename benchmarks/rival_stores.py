"""The same tables and namespaces in every catalog that benchmarks/rivals.py measures."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any, NamedTuple

from benchmarks.peers import Side

TABLES, MANY, SNAPSHOTS = 180, 10_000, (300, 5_000)
FIELDS = [{"id": n, "name": f"column_{n}", "type": "string", "required": False} for n in range(1, 31)]
COLUMNS = {"type": "struct", "schema-id": 0, "fields": FIELDS}
BATCH = 500  # snapshots in one commit


class Ours(NamedTuple):
    owner: Side
    one_percent: Side


def fill_ours(stack: ExitStack, serve: Callable[..., Any]) -> Ours:
    """Metalake, asked by the owner of everything, and by somebody who sees 1 % of the lists and the tables to load."""
    from authz.callers.identity import issue_token
    from authz.models import User
    from benchmarks.population import CATALOG, METALAKE, children, first_catalog, grant, member, role, schema
    from metalake.kinds import Kind
    from metalake.models import Securable
    from metalake.privileges import Privilege

    owner = first_catalog()
    admin, reader = User.objects.get(username="admin"), member("reader")
    base = f"/iceberg/{METALAKE}/v1/{CATALOG}"
    with ExitStack() as first:
        server = serve(first)
        fill_tables(Side("ours", server.url, base, f"Bearer {issue_token(admin, 'fill')}"))
    many = schema(owner, "many")
    children(many, (f"table_{n:05}" for n in range(MANY)), Kind.TABLE, admin)
    everyone = role("readers", reader)
    rows = Securable.objects.filter(kind__in=["table", "schema"])
    catalog = Securable.objects.get(kind="catalog")
    some = [row for row in rows if row.name.endswith(("00", "50"))]
    homes = rows.filter(name__in=["hot", "many"])
    grant(everyone, Privilege.USE_CATALOG, [catalog.pk])
    grant(everyone, Privilege.USE_SCHEMA, [*homes.values_list("pk", flat=True)])
    grant(everyone, Privilege.USE_SCHEMA, [row.pk for row in some if row.kind == "schema"])
    grant(everyone, Privilege.SELECT_TABLE, [row.pk for row in some if row.kind == "table"])
    url = serve(stack).url
    return Ours(
        Side("ours", url, base, f"Bearer {issue_token(admin, 'bench')}"),
        Side("1 %", url, base, f"Bearer {issue_token(reader, 'bench')}"),
    )


def fill_tables(side: Side) -> None:
    """The namespaces and tables that a client makes."""
    fill_lists(side)
    side.must("POST", side.namespaces, {"namespace": ["made"]})
    for count in SNAPSHOTS:
        make_table(side, "made", f"snapshots_{count}", count)
    for n in range(50):
        make_table(side, "made", f"table_{n:03}", 0)


def fill_lists(side: Side) -> None:
    for name in ("hot", *(f"n_{n:03}" for n in range(TABLES))):
        side.must("POST", side.namespaces, {"namespace": [name]})
    for n in range(TABLES):
        make_table(side, "hot", f"table_{n:03}", 3 if n == 0 else 0)


def fill_fixture(side: Side) -> None:
    """The same for Iceberg's fixture, the many tables as rows, whose lists read nothing else."""
    fill_tables(side)
    side.must("POST", side.namespaces, {"namespace": ["many"]})
    assert side.folder is not None
    with closing(sqlite3.connect(side.folder / "catalog.db", timeout=30)) as store, store:
        columns = "catalog_name, table_namespace, table_name, metadata_location, previous_metadata_location"
        (name,) = store.execute("SELECT DISTINCT catalog_name FROM iceberg_tables").fetchone()
        rows = ((name, "many", f"table_{n:05}", "file:///nowhere", None) for n in range(MANY))
        store.executemany(f"INSERT INTO iceberg_tables ({columns}) VALUES (?, ?, ?, ?, ?)", rows)


def make_table(side: Side, namespace: str, name: str, snapshots: int) -> None:
    tables = f"{side.namespaces}/{namespace}/tables"
    made = side.must("POST", tables, {"name": name, "schema": COLUMNS, "stage-create": False})
    updates = list(_snapshots(made["metadata"]["location"], snapshots))
    for start in range(0, len(updates), BATCH):
        some = updates[start : start + BATCH]
        last = some[-1]["snapshot"]["snapshot-id"]
        some.append({"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": last})
        side.must("POST", f"{tables}/{name}", {"requirements": [], "updates": some})


def _snapshots(location: str, count: int) -> Iterator[dict[str, Any]]:
    now = int(time.time() * 1000)
    for n in range(1, count + 1):
        summary = {"operation": "append", "added-data-files": "1", "added-records": "1000", "total-records": f"{n}000"}
        snapshot = {
            "snapshot-id": n,
            "sequence-number": n,
            "timestamp-ms": now + n,
            "manifest-list": f"{location}/metadata/snap-{n}-1-00000000-0000-4000-8000-{n:012}.avro",
            "summary": summary,
            "schema-id": 0,
        }
        yield {"action": "add-snapshot", "snapshot": snapshot | ({"parent-snapshot-id": n - 1} if n > 1 else {})}
