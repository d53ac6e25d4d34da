"""Files of this machine: on the disk when they are said to be written, and nothing left of what did not fit."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from formats.iceberg import durable_files
from formats.iceberg.files import new_location, read_metadata, write_metadata, write_metadata_at
from formats.iceberg.storage import file_io
from metalake.database_errors import log_text
from metalake.errors import ProviderUnavailable
from tests.formats.iceberg.test_files import metadata_in

CONTENT = b"some words, " * 1_000


def full(*_: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_the_file_is_asked_for_before_the_entries_that_lead_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    real = os.fsync

    def fsync(handle: int) -> None:
        asked.append(os.readlink(f"/proc/self/fd/{handle}"))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    path = tmp_path / "s" / "t" / "metadata" / "1.json"
    durable_files.write_new(str(path), CONTENT)
    assert path.read_bytes() == CONTENT
    above = [str(folder) for folder in path.parents]
    assert asked == [str(path), *above[: len(asked) - 1]], "the file, then each entry once"
    assert str(tmp_path) in asked


def test_a_folder_that_was_removed_and_made_again_is_seen_to_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s" / "t" / "1.json"
    durable_files.write_new(str(path), CONTENT)
    path.unlink()
    path.parent.rmdir()
    path.parent.parent.rmdir()
    asked = []
    monkeypatch.setattr(os, "fsync", lambda handle: asked.append(os.readlink(f"/proc/self/fd/{handle}")))
    durable_files.write_new(str(path), CONTENT)
    assert asked == [str(path), str(path.parent), str(path.parent.parent), str(tmp_path)]


def test_what_an_engine_made_of_the_folders_is_seen_to_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "t" / "metadata"
    folder.mkdir(parents=True)
    asked = []
    monkeypatch.setattr(os, "fsync", lambda handle: asked.append(os.readlink(f"/proc/self/fd/{handle}")))
    durable_files.write_new(str(folder / "1.json"), CONTENT)
    assert {str(folder), str(folder.parent), str(tmp_path)} <= set(asked)
    asked.clear()
    durable_files.write_new(str(folder / "2.json"), CONTENT)
    assert asked == [str(folder / "2.json"), str(folder)]


def test_a_write_that_takes_several_calls_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda handle, content: real(handle, content[:1_000]))
    durable_files.write_new(str(tmp_path / "1.json"), CONTENT)
    assert (tmp_path / "1.json").read_bytes() == CONTENT


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_nothing_is_left_of_a_file_that_the_disk_does_not_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    (tmp_path / "t" / "metadata").mkdir(parents=True)
    monkeypatch.setattr(os, call, full)
    with pytest.raises(ProviderUnavailable, match=r"takes no more at the moment, not file:.*00003-") as told:
        write_metadata(file_io({}), metadata_in(tmp_path), version=3)
    assert log_text(told.value.__cause__) == "ENOSPC: No space left on device"  # in the log alone
    assert not any((tmp_path / "t" / "metadata").iterdir())


def test_nothing_is_left_of_a_file_whose_entry_the_disk_does_not_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync

    def fsync(handle: int) -> None:
        real(handle) if os.path.isfile(f"/proc/self/fd/{handle}") else full()

    (tmp_path / "t" / "metadata").mkdir(parents=True)
    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(ProviderUnavailable, match="takes no more"):
        write_metadata(file_io({}), metadata_in(tmp_path), version=0)
    assert not any((tmp_path / "t" / "metadata").iterdir())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB, for who may mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("only root mounts a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_is_full_refuses_and_takes_the_file_once_it_has_room(small_disk: Path) -> None:
    io, metadata = file_io({}), metadata_in(small_disk)
    first, content = write_metadata(io, metadata, version=0)
    ballast = small_disk / "ballast"
    with pytest.raises(OSError), ballast.open("wb", buffering=0) as stream:
        while True:
            stream.write(b"x" * 4_096)
    with pytest.raises(ProviderUnavailable, match="takes no more"):
        write_metadata(io, metadata | {"more": "x" * 20_000}, version=1)
    assert [path.name for path in (small_disk / "t" / "metadata").iterdir()] == [first.rpartition("/")[2]]
    ballast.unlink()
    second, more = write_metadata(io, metadata | {"more": "x" * 20_000}, version=1)
    assert (read_metadata(io, first), read_metadata(io, second)) == (content, more)


def test_a_folder_that_goes_in_the_same_moment_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, tries = os.mkdir, []

    def make(folder: str) -> None:
        real(folder)
        tries.append(folder)
        if len(tries) == 1:
            os.rmdir(folder)

    monkeypatch.setattr(os, "mkdir", make)
    durable_files.write_new(str(tmp_path / "t" / "1.json"), CONTENT)
    assert (tmp_path / "t" / "1.json").read_bytes() == CONTENT


@pytest.mark.parametrize("left", [b"", b'{"format-ver', None])
def test_what_an_earlier_try_left_is_made_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: bytes) -> None:
    """A process that was killed while it wrote leaves a part; one killed afterwards, a file that is only promised."""
    io, metadata = file_io({}), metadata_in(tmp_path)
    location = new_location(metadata, version=0)
    path = Path(location.removeprefix("file://"))
    path.parent.mkdir(parents=True)
    path.write_bytes(orjson.dumps(metadata) if left is None else left)
    asked = []
    monkeypatch.setattr(os, "fsync", lambda handle: asked.append(os.readlink(f"/proc/self/fd/{handle}")))
    write_metadata_at(io, location, metadata)
    assert orjson.loads(path.read_bytes()) == metadata
    assert {str(path), str(path.parent), str(path.parent.parent)} <= set(asked)
    write_metadata_at(io, location, metadata)
