"""A short read reads small metadata files on the disk of our own store, and leaves others to a thread that may wait."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from django.db import connection

from formats.iceberg.storage import file_io
from metalake.blocking import BeginAgain, short_reads
from metalake.errors import NotFound
from providers import metadata_files
from providers.metadata_files import METADATA, SMALL, MetadataFiles

CONTENT = b'{"format-version": 2}'


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the own disk."""
    folder = tmp_path / "warehouse"
    folder.mkdir()
    monkeypatch.setattr(metadata_files, "OWN_DISK", f"file://{folder}/")
    METADATA._entries.clear()
    return folder


def read(path: Path) -> bytes:
    with short_reads():
        return files_of().read(f"file://{path}")


def files_of() -> MetadataFiles:
    return MetadataFiles(1, lambda: file_io({}), [], [])


def test_a_small_file_is_read_at_once(own: Path) -> None:
    (own / "t").mkdir()
    (own / "t/1.json").write_bytes(CONTENT)
    assert read(own / "t/1.json") == CONTENT


def test_what_is_larger_or_zipped_or_no_file_or_elsewhere_is_left_to_a_thread(own: Path, tmp_path: Path) -> None:
    (own / "large.json").write_bytes(CONTENT.ljust(SMALL + 1))
    (own / "zipped.json").write_bytes(gzip.compress(CONTENT))
    os.mkfifo(own / "pipe.json")
    (tmp_path / "elsewhere.json").write_bytes(CONTENT)
    for path in (own / "large.json", own / "zipped.json", own / "pipe.json", own, tmp_path / "elsewhere.json"):
        with pytest.raises(BeginAgain):
            read(path)
    with pytest.raises(BeginAgain):
        read(own / "missing.json")
    with pytest.raises(NotFound):
        files_of().read(f"file://{own}/missing.json")


def test_the_own_disk_is_that_of_the_store(tmp_path: Path, settings) -> None:
    settings.METALAKE_HOME = tmp_path
    expected = f"file://{tmp_path}/warehouse/" if connection.vendor == "sqlite" else ""
    assert metadata_files._own_disk() == expected
    settings.ON_SQLITE = False
    assert metadata_files._own_disk() == ""
    settings.ON_SQLITE = True
    (tmp_path / "warehouse").symlink_to("/mnt")
    assert metadata_files._own_disk() == ""
