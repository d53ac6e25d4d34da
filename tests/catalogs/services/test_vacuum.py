"""`manage.py vacuum` removes what a kill left, and nothing that anybody could still want."""

from __future__ import annotations

import io
import itertools
import os
import shutil
import threading
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection

from authz.actor import Actor
from authz.callers.identity import actor_of
from authz.models import AuditEntry, User
from catalogs.managed import pointers as managed_pointers
from catalogs.models import Catalog, Table
from catalogs.services import commits, schemas, tables, vacuum
from catalogs.services.tables import TableDraft
from catalogs.table_stores import TableRecord
from metalake.lineage import Address
from providers.metadata_files import METADATA, MetadataFiles
from tests.catalogs.callers import Caller
from tests.catalogs.services.test_tables import metadata_file

pytestmark = [pytest.mark.store, pytest.mark.django_db]

COLUMNS = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
DELETES_OLD = "write.metadata.delete-after-commit.enabled"
TWO_DAYS = 2 * 86_400


@pytest.fixture
def actor(admin: Caller) -> Actor:
    made = actor_of(User.objects.get(username="admin"))
    schemas.create_schema(made, Address(metalake="demo", catalog="lake", schema="A"), None, {})
    return made


def at(name: str) -> Address:
    return Address(metalake="demo", catalog="lake", schema="A", leaf=name)


def made(actor: Actor, name: str = "t", location: str | None = None, **properties: str) -> TableRecord:
    return tables.create_table(actor, at(name), TableDraft(COLUMNS, None, None, properties, location))


def commit(actor: Actor, name: str = "t", **properties: str) -> TableRecord:
    return commits.commit_table(actor, at(name), [], [{"action": "set-properties", "updates": properties}])


def path_of(location: str | None) -> Path:
    return Path((location or "").removeprefix("file://"))


def folder_of(table: TableRecord) -> Path:
    return path_of(table.metadata["location"])


def aged(path: Path, seconds: float = TWO_DAYS) -> Path:
    then = vacuum.now() - seconds
    os.utime(path, (then, then))
    return path


def orphan(actor: Actor, monkeypatch: pytest.MonkeyPatch, name: str = "t") -> Path:
    """What is left of a process that was killed between its file and its pointer."""
    before = set(everything())
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(managed_pointers.ManagedPointers, "swap", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        commit(actor, name, killed="yes")
    (left,) = set(everything()) - before
    return left


def everything() -> list[Path]:
    return sorted(path for path in warehouse().rglob("*") if path.is_file())


def warehouse() -> Path:
    return path_of(Catalog.objects.get(name="lake").properties["warehouse"])


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("vacuum", *arguments, stdout=out)
    return out.getvalue()


def test_an_orphan_is_listed_and_with_delete_removed(actor: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    made(actor)
    left = aged(orphan(actor, monkeypatch))
    last = commit(actor, n="1")
    others = set(everything()) - {left}
    told = run()
    assert f"found    {left}  {left.stat().st_size:,} bytes  2.0 days  table demo: lake.A.t\n" in told
    assert "Found 1 metadata files" in told and "vacuum --delete" in told
    assert left.exists(), "shown, not removed"
    assert f"removed  {left}" in run("--delete")
    assert set(everything()) == others
    METADATA._entries.clear()
    assert tables.load_iceberg_table(actor, at("t")).content == last.content
    (entry,) = AuditEntry.objects.filter(event="table.orphan_removed")
    assert (entry.actor, entry.details["file"]) == ("manage.py", str(left))
    assert run() == "Nothing is to be removed.\n"


@pytest.mark.parametrize("days", ["0", "0.99", "-1", "nan"])
def test_no_setting_makes_it_take_younger_files(days: str) -> None:
    with pytest.raises(CommandError, match="1 or more"):
        run("--days", days)
    assert vacuum.Vacuum(5).age == vacuum.DAY


def test_a_young_file_stays(actor: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    made(actor)
    left = aged(orphan(actor, monkeypatch), vacuum.DAY - 60)
    assert run("--delete").endswith("Removed 0 metadata files (0 bytes) and 0 empty folders.\n")
    aged(left)
    assert "Nothing" in run("--days", "3")
    assert "Found 1 " in run("--days", "1.5")
    with monkeypatch.context() as behind:
        behind.setattr(vacuum.time, "time", lambda: left.stat().st_mtime + vacuum.DAY - 1)
        assert "Nothing" in run(), "the machine's clock is behind the store's"


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="not offered: the clock of SQLite is the machine's")
def test_a_machine_whose_clock_is_ahead_takes_no_young_file(actor: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    made(actor)
    orphan(actor, monkeypatch)
    real = vacuum.time.time
    monkeypatch.setattr(vacuum.time, "time", lambda: real() + 30 * vacuum.DAY)
    assert "Nothing" in run()


def test_the_past_of_a_table_stays_where_its_log_has_forgotten_it(
    actor: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(actor, **{"write.metadata.previous-versions-max": "1"})
    for number in range(4):
        last = commit(actor, n=str(number))
    files = [aged(path) for path in everything()]
    named = {path_of(entry["metadata-file"]) for entry in last.metadata["metadata-log"]}
    assert (len(files), len(named)) == (5, 1)
    run("--delete")
    assert everything() == files
    made(actor, "tidy", **{"write.metadata.previous-versions-max": "1", DELETES_OLD: "true"})
    commit(actor, "tidy", n="1")
    with monkeypatch.context() as killed:
        killed.setattr(managed_pointers, "_forget_old_files", lambda *_: None)
        second = path_of(commit(actor, "tidy", n="2").metadata_location)
        third = path_of(commit(actor, "tidy", n="3").metadata_location)
        commit(actor, "tidy", n="4")
    for path in everything():
        aged(path)
    run("--delete")
    assert not second.exists(), "the table asked for it, and a kill came first"
    assert third.exists(), "the log names it"


def test_a_part_of_a_file_goes_and_whole_files_of_others_stay(actor: Actor) -> None:
    table = made(actor)
    folder = folder_of(table) / "metadata"
    part = aged(written(folder / f"00001-{uuid4()}.metadata.json", table.content[:40]))
    empty = aged(written(folder / f"00001-{uuid4()}.metadata.json", b""))
    theirs = orjson.dumps(table.metadata | {"table-uuid": str(uuid4())})
    kept = [
        aged(written(folder / f"00001-{uuid4()}.metadata.json", theirs)),
        aged(written(folder / f"00001-{uuid4()}.metadata.json", b'{"format-version": 9}')),
        aged(written(folder / "v1.metadata.json", b"")),
        aged(written(folder.parent / "data" / "name='x'" / f"00001-{uuid4()}.metadata.json", b"")),
        aged(written(folder / f"00001-{uuid4()}.metadata.json.bak", b"")),
        aged(written(folder / f"snap-1-{uuid4()}.avro", b"")),
    ]
    run("--delete")
    assert not part.exists() and not empty.exists()
    assert all(path.exists() for path in kept)


def written(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_what_a_registered_table_brought_stays(actor: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = warehouse() / "A" / "of-others"
    source = path_of(metadata_file(f"file://{folder}"))
    content = source.read_bytes()
    source.unlink()
    registered = aged(written(folder / "metadata" / f"00007-{uuid4()}.metadata.json", content))
    beside = [
        aged(written(folder / "metadata" / f"0000{number}-{uuid4()}.metadata.json", content)) for number in (6, 8)
    ]
    beside.append(aged(written(folder / "metadata" / f"00009-{uuid4()}.metadata.json", content[:30])))
    tables.register_table(actor, at("t"), f"file://{registered}")
    assert "Nothing" in run()
    early = aged(orphan(actor, monkeypatch))  # it follows what others wrote, and so might a file of theirs
    commit(actor, n="1")
    ours = aged(orphan(actor, monkeypatch))
    run("--delete")
    assert not ours.exists()
    assert registered.exists() and early.exists() and all(path.exists() for path in beside)


def test_nothing_is_removed_through_a_link(actor: Actor, tmp_path: Path) -> None:
    table, other = made(actor), made(actor, "linked")
    content, name = table.content[:40], f"00001-{uuid4()}.metadata.json"
    away = aged(written(tmp_path / "elsewhere" / name, content))
    (folder_of(table) / "linked").symlink_to(away.parent)
    (folder_of(table) / "metadata" / f"00001-{uuid4()}.metadata.json").symlink_to(away)
    moved = warehouse() / "moved"
    shutil.move(folder_of(other), moved)
    folder_of(other).symlink_to(moved)
    inside = aged(written(moved / "metadata" / name, content))
    told = run("--delete")
    assert "table demo: lake.A.linked: a link leads there." in told
    assert "Removed 0 metadata files" in told
    assert away.exists() and inside.exists()


def test_what_lies_in_no_table_s_place_stays(actor: Actor) -> None:
    dropped = made(actor, "dropped")
    commit(actor, "dropped", n="1")
    tables.drop_table(actor, at("dropped"))
    beside = warehouse() / "A" / "loose" / "metadata"
    files = [*everything(), written(beside / f"00000-{uuid4()}.metadata.json", dropped.content)]
    for path in files:
        aged(path)
    assert "Nothing" in run()


def test_a_table_that_cannot_be_read_is_left_and_told(actor: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(actor)
    left = aged(orphan(actor, monkeypatch))
    path_of(table.metadata_location).unlink()
    made(actor, "other")
    gone = aged(orphan(actor, monkeypatch, "other"))
    told = run("--delete")
    assert "left     table demo: lake.A.t: " in told
    assert left.exists() and not gone.exists()


def test_what_cannot_be_removed_is_told_and_keeps_nothing_else(actor: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    made(actor), made(actor, "other")
    first, second = aged(orphan(actor, monkeypatch)), aged(orphan(actor, monkeypatch, "other"))
    real = os.unlink

    def unlink(name: str, **how: Any) -> None:
        if name == first.name:
            raise PermissionError(13, "Permission denied")
        real(name, **how)

    monkeypatch.setattr(os, "unlink", unlink)
    told = run("--delete")
    assert f"kept     {first}" in told and "Permission denied" in told
    assert not second.exists()
    assert [entry.details["file"] for entry in AuditEntry.objects.filter(event="table.orphan_removed")] == [str(second)]


def test_what_changed_since_it_was_found_stays(actor: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(actor)
    left = aged(orphan(actor, monkeypatch))
    cleaner = vacuum.Vacuum()
    (found,) = cleaner.find()
    assert isinstance(found, vacuum.Orphan)
    Table.objects.update(metadata_location=f"file://{left}")
    assert not cleaner.remove(found), "a pointer names it now"
    Table.objects.update(metadata_location=table.metadata_location)
    os.utime(left)
    assert not cleaner.remove(found), "it is young again"
    aged(left)
    tables.drop_table(actor, at("t"))
    assert not cleaner.remove(found), "the place is reserved now"
    assert left.exists()


def test_a_commit_whose_file_was_taken_writes_another(actor: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process was stopped for two days, between its file and its pointer."""
    made(actor)
    real, stopped = MetadataFiles.write, list[Path]()

    def write(self: MetadataFiles, *asked: Any) -> tuple[str, bytes]:
        location, content = real(self, *asked)
        if not stopped:
            stopped.append(aged(path_of(location)))
            assert "Removed 1 metadata files" in run("--delete")
        return location, content

    monkeypatch.setattr(MetadataFiles, "write", write)
    committed = commit(actor, n="1")
    assert not stopped[0].exists()
    assert path_of(committed.metadata_location).read_bytes() == committed.content
    assert tables.load_iceberg_table(actor, at("t")).metadata["properties"]["n"] == "1"


@pytest.mark.django_db(transaction=True)
def test_commits_and_the_vacuum_at_once_lose_nothing(actor: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second file looks two days old, as if its process had been stopped in the midst of the commit."""
    made(actor)
    monkeypatch.setattr(MetadataFiles, "write", ages_what_it_writes(MetadataFiles.write))
    done, failed = threading.Event(), list[Exception]()

    def clean() -> None:
        try:
            while not done.is_set():
                cleaner = vacuum.Vacuum()
                for found in cleaner.find():
                    assert isinstance(found, vacuum.Orphan)
                    cleaner.remove(found)
        except Exception as failure:
            failed.append(failure)
        finally:
            connection.close()

    thread = threading.Thread(target=clean)
    thread.start()
    try:
        for number in range(15):
            commit(actor, n=str(number))
            pointer = Table.objects.values_list("metadata_location", flat=True).get()
            assert path_of(pointer).exists()
    finally:
        done.set()
        thread.join()
    assert not failed
    METADATA._entries.clear()
    record = tables.load_iceberg_table(actor, at("t"))
    assert record.metadata["properties"]["n"] == "14"
    assert all(path_of(entry["metadata-file"]).exists() for entry in record.metadata["metadata-log"])


def ages_what_it_writes(real: Any) -> Any:
    count = itertools.count()

    def write(self: MetadataFiles, *asked: Any) -> tuple[str, bytes]:
        location, content = real(self, *asked)
        if next(count) % 2:  # or a commit would lose each of its tries
            aged(path_of(location))
            time.sleep(0.03)
        return location, content

    return write


# Folders


def empty_folder(name: str, *parts: str) -> Path:
    folder = warehouse() / "A" / name
    for part in parts:
        (folder / part).mkdir(parents=True)
    for path in (*folder.iterdir(), folder):
        aged(path)
    return folder


def test_what_a_staged_creation_made_goes_if_nothing_came_of_it(actor: Actor) -> None:
    gone = empty_folder(f"t-{uuid4()}", "data", "metadata")
    young = empty_folder(f"young-{uuid4()}", "data", "metadata")
    os.utime(young / "data")
    kept = [
        young,
        empty_folder("other-names", "data", "else"),
        empty_folder("with-a-file", "data", "metadata"),
        empty_folder("deeper", "data/x", "metadata"),
        folder_of(made(actor)),
    ]
    aged(written(kept[2] / "data" / "1.parquet", b"1"))
    aged(kept[2] / "data")
    shutil.rmtree(kept[4] / "metadata")
    for name in ("data", "metadata"):
        aged_folder = kept[4] / name
        aged_folder.mkdir()
        aged(aged_folder)
    aged(kept[4])
    told = run()
    assert f"found    {gone}  empty  2.0 days  catalog lake\n" in told
    assert gone.exists()
    assert told.count("found ") == 1
    run("--delete")
    assert not gone.exists() and gone.parent.exists()
    assert all(path.is_dir() for path in kept)


def test_a_folder_that_is_filled_or_claimed_meanwhile_stays(actor: Actor) -> None:
    first, second = (empty_folder(f"{name}-{uuid4()}", "data", "metadata") for name in "ab")
    cleaner = vacuum.Vacuum()
    found = {item.path: item for item in cleaner.find() if isinstance(item, vacuum.EmptyFolder)}
    assert set(found) == {str(first), str(second)}
    made(actor, location=f"file://{first}")
    written(second / "data" / "1.parquet", b"1")
    assert [cleaner.remove(item) for item in found.values()] == [False, False]
    assert first.is_dir() and (second / "metadata").is_dir()


def test_the_warehouse_is_the_test_s_own() -> None:
    assert Path(settings.METALAKE_HOME).name.startswith("metalake-tests-")
