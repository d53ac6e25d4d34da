"""What a power cut leaves, in the moment that a pointer moves: only what the disk was asked to keep by then."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection

from authz.actor import Actor
from authz.callers.identity import actor_of
from authz.models import User
from catalogs.services import commits, schemas, tables
from catalogs.table_stores import TableDraft
from formats.iceberg import durable_files
from formats.iceberg.metadata_json import parse_metadata
from metalake.lineage import Address
from tests.catalogs.callers import Caller

pytestmark = [pytest.mark.store, pytest.mark.django_db]

COLUMNS = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
TABLE = Address(metalake="demo", catalog="lake", schema="s", leaf="t")


class Disk:
    """What os.fsync has asked to be kept: the bytes of files, the names in folders."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bytes: dict[str, bytes] = {}
        self.names: dict[str, list[str]] = {}
        self.real = os.fsync
        monkeypatch.setattr(os, "fsync", self.keep)
        durable_files._synced.clear()  # as in a process that has just started

    def keep(self, handle: int) -> None:
        self.real(handle)
        path = os.readlink(f"/proc/self/fd/{handle}")
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            self.names[path] = os.listdir(path)
        else:
            self.bytes[path] = Path(path).read_bytes()

    def after_a_power_cut(self, path: str) -> bytes | None:
        """A file's bytes, None where no entries lead to it."""
        home = os.path.realpath(settings.METALAKE_HOME)
        step = path
        while step != home:
            above, name = os.path.split(step)
            if name not in self.names.get(above, ()):
                return None
            step = above
        return self.bytes.get(path, b"")


@pytest.fixture
def actor(admin: Caller) -> Actor:
    made = actor_of(User.objects.get(username="admin"))
    schemas.create_schema(made, Address(metalake="demo", catalog="lake", schema="s"), None, {})
    return made


@contextmanager
def cut_when_a_pointer_moves(kept: Disk) -> Iterator[list[bytes | None]]:
    """What is left of each file when the statement that names it is sent, which is before its commit."""
    left: list[bytes | None] = []

    def look(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        moves = sql.startswith("UPDATE") and '"catalogs_table"' in sql
        if moves or 'INSERT INTO "catalogs_table"' in sql:  # on PostgreSQL one of several in a statement
            named = next(value for value in params if isinstance(value, str) and value.endswith(".metadata.json"))
            left.append(kept.after_a_power_cut(os.path.realpath(named.removeprefix("file://"))))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(look):
        yield left


def test_no_pointer_names_a_file_that_a_power_cut_would_take(actor: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    with cut_when_a_pointer_moves(Disk(monkeypatch)) as left:
        made = tables.create_table(actor, TABLE, TableDraft(COLUMNS, None, None, {}))
        update = {"action": "set-properties", "updates": {"n": "1"}}
        moved = commits.commit_table(actor, TABLE, [], [update])
        aside = {"write.metadata.path": f"{made.metadata['location']}/aside/of-it"}
        elsewhere = commits.commit_table(actor, TABLE, [], [{"action": "set-properties", "updates": aside}])
    assert left == [made.content, moved.content, elsewhere.content]


def test_nor_one_in_folders_that_the_engine_made_for_a_staged_table(
    actor: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = tables.create_table(actor, TABLE, TableDraft(COLUMNS, None, None, {}), stage=True).metadata
    folder = Path(staged["location"].removeprefix("file://"))
    for name in ("data", "metadata"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    updates: list[dict[str, Any]] = [
        {"action": "assign-uuid", "uuid": staged["table-uuid"]},
        {"action": "set-location", "location": staged["location"]},
        {"action": "add-schema", "schema": COLUMNS},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
    ]
    with cut_when_a_pointer_moves(Disk(monkeypatch)) as left:
        made = commits.commit_table(actor, TABLE, [{"type": "assert-create"}], updates)
    assert left == [made.content]
    assert parse_metadata(made.content)["table-uuid"] == staged["table-uuid"]


def test_nor_one_that_somebody_else_wrote(actor: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    made = tables.create_table(actor, TABLE, TableDraft(COLUMNS, None, None, {}))
    tables.drop_table(actor, TABLE)
    copy = f"{made.metadata['location']}/metadata/00007-copy.metadata.json"
    Path(copy.removeprefix("file://")).write_bytes(made.content)
    with cut_when_a_pointer_moves(Disk(monkeypatch)) as left:
        tables.register_table(actor, TABLE, copy)
    assert left == [made.content]
