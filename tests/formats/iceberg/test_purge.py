"""Purging real tables: everything of theirs goes, nothing else does, and a crash half-way loses nothing."""

from __future__ import annotations

import bz2
import shutil
import zlib
from pathlib import Path

import pyarrow
import pytest
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestEntry, ManifestEntryStatus, write_manifest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StringType

from formats.iceberg import avro, manifests, purge
from formats.iceberg.files import read_metadata
from formats.iceberg.metadata_json import parse_metadata
from formats.iceberg.purge import reachable_files
from formats.iceberg.storage import file_io
from formats.iceberg.table_locations import effective_locations, owned_by
from metalake.errors import Invalid, NotFound, ProviderUnavailable
from tests.formats.iceberg.folder_catalog import FolderCatalog

ROWS = pyarrow.table({"id": [1, 2], "name": ["a/b *%?#", "ü"]})


@pytest.fixture
def io():
    return file_io({})


@pytest.fixture
def warehouse(tmp_path):
    return tmp_path / "warehouse"


def new_table(warehouse: Path, name: str = "orders", **options):
    table = FolderCatalog("folder", warehouse=f"file://{warehouse}").create_table(
        f"sales.{name}", ROWS.schema, **options
    )
    table.append(ROWS)
    table.append(ROWS)
    return table


def files_under(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*") if path.is_file()}


def metadata_of(io, table) -> dict:
    return parse_metadata(read_metadata(io, table.metadata_location))


def purge_table(io, table, warehouse, metadata=None, **options) -> int:
    roots = [str(warehouse)]
    metadata = metadata or metadata_of(io, table)
    return purge.purge(io, metadata, table.metadata_location, owner(metadata, roots, roots), **options).deleted


def owner(metadata, allowed, roots):
    return owned_by(effective_locations(metadata), allowed, roots)


def test_everything_of_the_table_goes_and_nothing_else(io, warehouse):
    neighbour = new_table(warehouse, "orders2")
    kept = files_under(warehouse)
    table = new_table(warehouse)
    (warehouse / "sales" / "orders" / "notes.txt").write_text("not reachable from the metadata")
    kept.add(str(warehouse / "sales" / "orders" / "notes.txt"))
    count = len(files_under(warehouse)) - len(kept)
    assert purge_table(io, table, warehouse) == count >= 9  # 2 data, 2 manifests, 2 lists, 3 metadata
    assert files_under(warehouse) == kept
    assert neighbour.scan().to_arrow().num_rows == 4


def test_partitioned_rewritten_and_deleted_rows(io, warehouse):
    """Values that look like separators are in file names, and manifests name removed files too."""
    table = FolderCatalog("folder", warehouse=f"file://{warehouse}").create_table(
        "sales.parts",
        schema=Schema(
            NestedField(1, "id", LongType(), required=False), NestedField(2, "name", StringType(), required=False)
        ),
        partition_spec=PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "name")),
        properties={"write.metadata.delete-after-commit.enabled": "false"},
    )
    table.append(ROWS)
    table.append(ROWS)
    table.delete("id == 1")
    assert any("%2F" in name for name in files_under(warehouse))
    purge_table(io, table, warehouse)
    assert files_under(warehouse) == set()


@pytest.mark.parametrize("version", ["1", "2"])
def test_each_file_is_named_once(io, warehouse, version):
    table = new_table(warehouse, properties={"format-version": version})
    roots = [str(warehouse)]
    found = list(reachable_files(io, metadata_of(io, table), roots, roots))
    assert len(found) == len(set(found)) == len(files_under(warehouse)) - 1
    assert {name.removeprefix("file://") for name in found} < files_under(warehouse)


def test_running_again_is_fine(io, warehouse):
    table = new_table(warehouse)
    metadata = metadata_of(io, table)
    assert purge_table(io, table, warehouse, metadata) > 0
    assert purge_table(io, table, warehouse, metadata) == 0


@pytest.mark.parametrize("batch", [1, 2, 3, 1_000])
def test_a_purge_cut_short_anywhere_can_be_finished(io, warehouse, monkeypatch, batch):
    monkeypatch.setattr(purge, "PURGE_BATCH", batch)
    original = new_table(warehouse)
    backup = warehouse.with_name("backup")
    shutil.copytree(warehouse, backup)
    metadata = metadata_of(io, original)
    total = len(files_under(warehouse))
    for survive in range(total):
        shutil.rmtree(warehouse)
        shutil.copytree(backup, warehouse)
        with monkeypatch.context() as patched:
            patched.setattr(purge, "delete_file", dying_after(survive))
            with pytest.raises(ProviderUnavailable):
                purge_table(io, original, warehouse, metadata)
        assert Path(original.metadata_location.removeprefix("file://")).exists()
        assert purge_table(io, original, warehouse, metadata) == total - survive
        assert files_under(warehouse) == set()


def test_what_names_others_is_never_deleted_with_them(io, warehouse):
    """Files of one depth are deleted side by side; a manifest must not be of the depth of what it names."""
    table = new_table(warehouse)
    walked = list(purge._walk(io, metadata_of(io, table), lambda location: True, purge.Purged()))
    depth_of = {location: depth for depth, location in walked}
    assert [location for _, location in walked] == list(depth_of)
    for snapshot in table.metadata.snapshots:
        for manifest in snapshot.manifests(table.io):
            for entry in manifest.fetch_manifest_entry(table.io):
                assert depth_of[entry.data_file.file_path] < depth_of[manifest.manifest_path]
            assert depth_of[manifest.manifest_path] < depth_of[snapshot.manifest_list]


def dying_after(survive: int):
    """Deletes so many files, then no more, as a crash would, in whatever order the threads come."""
    tickets = iter(range(survive))
    real = purge.delete_file

    def delete_file(io, location):
        if next(tickets, None) is None:
            raise ProviderUnavailable("crashed")
        return real(io, location)

    return delete_file


def test_progress_counts_up(io, warehouse, monkeypatch):
    monkeypatch.setattr(purge, "PURGE_BATCH", 2)
    told: list[int] = []
    total = purge_table(io, new_table(warehouse), warehouse, progress=told.append)
    assert told == sorted(told) and told[-1] == total - 1 and len(told) > 2


def test_shared_data_stays_where_collection_is_off(io, warehouse):
    table = new_table(warehouse, properties={"gc.enabled": "FALSE"})
    purge_table(io, table, warehouse)
    assert {Path(name).suffix for name in files_under(warehouse)} == {".parquet"}


def test_statistics_files_go_too(io, warehouse):
    table = new_table(warehouse)
    folder = warehouse / "sales" / "orders" / "metadata"
    metadata = metadata_of(io, table)
    for field in ("statistics", "partition-statistics"):
        (folder / field).write_text("x")
        metadata[field] = [{"snapshot-id": 1, "statistics-path": f"file://{folder}/{field}"}]
    purge_table(io, table, warehouse, metadata)
    assert files_under(warehouse) == set()


class TestWhatIsNotTheTables:
    """A user's metadata may name any file; the server's own keys must not be lent to delete it."""

    @pytest.fixture
    def victim(self, warehouse):
        return new_table(warehouse, "victim")

    def test_a_neighbours_files_named_by_our_metadata_stay(self, io, warehouse, victim):
        kept = files_under(warehouse)
        table = new_table(warehouse)
        metadata = metadata_of(io, table)
        theirs = metadata_of(io, victim)
        metadata["snapshots"] += theirs["snapshots"]
        metadata["metadata-log"] = [*theirs["metadata-log"], {"metadata-file": victim.metadata_location}]
        metadata["statistics"] = [{"statistics-path": victim.metadata_location}]
        purge_table(io, table, warehouse, metadata)
        assert kept <= files_under(warehouse)
        assert victim.scan().to_arrow().num_rows == 4

    def test_a_neighbours_data_named_by_our_manifest_stays(self, io, warehouse, victim):
        table = new_table(warehouse)
        stolen = next(name for name in files_under(warehouse / "sales" / "victim") if name.endswith(".parquet"))
        overwrite_manifest(table, stolen)
        purge_table(io, table, warehouse)
        assert Path(stolen).exists()

    @pytest.mark.parametrize(
        "way_out", ["{own}/../victim/{name}", "{own}//../victim/{name}", "{own}/%2e%2e/victim/{name}"]
    )
    def test_no_way_out_by_dots(self, io, warehouse, victim, way_out):
        table = new_table(warehouse)
        target = warehouse / "sales" / "victim" / "target"
        target.write_text("x")
        metadata = metadata_of(io, table) | {
            "statistics": [{"statistics-path": way_out.format(own=table.location(), name="target")}]
        }
        purge_table(io, table, warehouse, metadata)
        assert target.exists()

    def test_no_way_out_by_a_symbolic_link(self, io, warehouse, victim):
        table = new_table(warehouse)
        (warehouse / "sales" / "orders" / "link").symlink_to(warehouse / "sales" / "victim")
        target = warehouse / "sales" / "victim" / "target"
        target.write_text("x")
        metadata = metadata_of(io, table)
        metadata["statistics"] = [{"statistics-path": f"{table.location()}/link/target"}]
        purge_table(io, table, warehouse, metadata)
        assert target.exists()

    def test_a_location_no_longer_allowed_is_left_alone(self, io, warehouse):
        table = new_table(warehouse)
        before = files_under(warehouse)
        for allowed, roots in (([str(warehouse / "other")], [str(warehouse)]), ([str(warehouse)], [])):
            metadata = metadata_of(io, table)
            outcome = purge.purge(io, metadata, table.metadata_location, owner(metadata, allowed, roots))
            assert (outcome.deleted, outcome.left_behind) == (0, 0) and outcome.foreign >= 5
        assert files_under(warehouse) == before

    def test_a_manifest_outside_is_not_even_read(self, io, warehouse, victim, monkeypatch):
        table = new_table(warehouse)
        metadata = metadata_of(io, table)
        metadata["snapshots"] = [{"manifest-list": snapshot.manifest_list} for snapshot in victim.metadata.snapshots]
        monkeypatch.setattr(purge, "read_bytes", lambda *_: pytest.fail("read a file that is not the table's"))
        roots = [str(warehouse)]
        list(reachable_files(io, metadata, roots, roots))

    def test_a_directory_named_as_a_file_stops_nothing(self, io, warehouse):
        table = new_table(warehouse)
        metadata = metadata_of(io, table)
        metadata["statistics"] = [{"statistics-path": f"{table.location()}/data"}]
        metadata["snapshots"].insert(0, {"manifest-list": f"{table.location()}/data"})
        purge_table(io, table, warehouse, metadata)
        assert files_under(warehouse) == set()


class TestBrokenManifests:
    @pytest.mark.parametrize("content", [b"", b"Obj\x01", b"PAR1" * 9, b"\x00" * 1_000])
    def test_an_unreadable_list_does_not_stop_the_rest(self, io, warehouse, content, caplog):
        table = new_table(warehouse)
        Path(table.metadata.snapshots[0].manifest_list.removeprefix("file://")).write_bytes(content)
        purge_table(io, table, warehouse)
        assert files_under(warehouse) == set()  # the second list names everything of the first
        assert "the purge leaves the files of" in caplog.text

    def test_a_storage_in_trouble_does(self, io, warehouse, monkeypatch):
        table = new_table(warehouse)
        metadata = metadata_of(io, table)

        def no_answer(*_):
            raise ProviderUnavailable("no answer")

        monkeypatch.setattr(purge, "read_bytes", no_answer)
        before = files_under(warehouse)
        with pytest.raises(ProviderUnavailable):
            purge_table(io, table, warehouse, metadata)
        assert files_under(warehouse) == before

    @pytest.mark.parametrize("codec", ["deflate", "zstandard", "bzip2"])
    def test_a_block_cannot_unfold_without_end(self, codec, monkeypatch):
        monkeypatch.setattr(avro, "MAX_BLOCK_BYTES", 10_000)
        compress = {
            "deflate": lambda data: zlib.compress(data, wbits=-15),
            "zstandard": lambda data: pyarrow.compress(data, "zstd", asbytes=True),
            "bzip2": bz2.compress,
        }[codec]
        unfold = avro.BOUNDED_CODECS[codec].decompress
        assert unfold(compress(b" " * 10_000)) == b" " * 10_000
        with pytest.raises(ValueError, match="over"):
            unfold(compress(b" " * 10_001))

    @pytest.mark.parametrize("codec", ["gzip", "zstd", "null"])
    def test_codecs_in_use_are_read_and_bounded(self, io, warehouse, codec, monkeypatch):
        table = new_table(warehouse, properties={"write.avro.compression-codec": codec})
        roots = [str(warehouse)]
        assert len(list(reachable_files(io, metadata_of(io, table), roots, roots))) == len(files_under(warehouse)) - 1
        content = Path(table.current_snapshot().manifest_list.removeprefix("file://")).read_bytes()
        monkeypatch.setattr(avro, "MAX_BLOCK_BYTES", 10)
        if codec != "null":
            with pytest.raises(Invalid):
                list(manifests.manifest_paths(content))


def test_a_missing_list_is_a_file_already_gone(io, warehouse):
    table = new_table(warehouse)
    lists = [Path(snapshot.manifest_list.removeprefix("file://")) for snapshot in table.metadata.snapshots]
    lists[0].unlink()
    purge_table(io, table, warehouse)
    assert files_under(warehouse) == set()
    with pytest.raises(NotFound):
        read_metadata(io, table.metadata_location)


def overwrite_manifest(table, data_file: str) -> None:
    """Replace the table's first manifest by one that names `data_file`."""
    manifest = table.current_snapshot().manifests(table.io)[0]
    entry = ManifestEntry.from_args(
        status=ManifestEntryStatus.ADDED,
        snapshot_id=1,
        data_file=DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=data_file,
            file_format=FileFormat.PARQUET,
            partition=Record(),
            record_count=1,
            file_size_in_bytes=1,
        ),
    )
    output = table.io.new_output(manifest.manifest_path)
    with write_manifest(2, table.spec(), table.schema(), output, 1, "deflate") as writer:
        writer.add_entry(entry)
    content = Path(manifest.manifest_path.removeprefix("file://")).read_bytes()
    assert list(manifests.content_paths(content)) == [data_file]
