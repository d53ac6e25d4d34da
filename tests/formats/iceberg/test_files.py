"""Metadata files: read back what was written, by us and by pyiceberg, and never more than we can carry."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import pyarrow
import pytest
from pyarrow.fs import LocalFileSystem
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import StaticTable

from formats.iceberg import files, metadata_json, storage
from formats.iceberg.files import read_metadata, write_metadata
from formats.iceberg.metadata_json import next_version, parse_metadata
from formats.iceberg.storage import delete_quietly, file_io
from metalake.errors import AlreadyExists, Invalid, NotFound, ProviderUnavailable, TooLarge
from providers.network.arrow import ArrowFiles, _holds_a_file
from tests.cases import each
from tests.formats.iceberg.folder_catalog import FolderCatalog

ROWS = pyarrow.table({"id": [1, 2], "name": ["a", "b"]})


@pytest.fixture
def io():
    return file_io({})


@pytest.fixture
def table(tmp_path):
    table = FolderCatalog("folder", warehouse=f"file://{tmp_path}").create_table("sales.orders", schema=ROWS.schema)
    table.append(ROWS)
    return table


def metadata_in(folder: Path, **properties: str) -> dict:
    return {
        "format-version": 2,
        "table-uuid": "6f1e2b1c-0000-4000-8000-000000000000",
        "location": f"file://{folder}/t",
        "last-sequence-number": 0,
        "last-updated-ms": 1,
        "last-column-id": 1,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": []}],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": properties,
        "a-field-from-tomorrow": {"kept": True},
    }


def stored(folder: Path, name: str, content: bytes) -> str:
    (folder / name).write_bytes(content)
    return f"file://{folder}/{name}"


class TestFileIO:
    def test_is_one_object_for_the_same_settings(self):
        settings = {"s3.access-key-id": "a", "s3.secret-access-key": "b"}
        assert file_io(settings) is file_io({**settings, "comment": "not a storage setting"})
        assert file_io(settings) is not file_io({**settings, "s3.access-key-id": "c"})

    def test_takes_storage_settings_and_no_classes(self):
        properties = {
            "s3.region": "eu-west-1",
            "s3.retry-strategy-impl": "os.path",
            "py-io-impl": "os.path",
            "uri": "http://elsewhere",
            "warehouse": "gs://elsewhere",
            "DEFAULT_SCHEME": "hdfs",
        }
        io: Any = file_io(properties, ArrowFiles)
        assert (
            io.files_of("s3://lake/x").properties
            == io.properties
            == {"s3.region": "eu-west-1", "s3.connect-timeout": "3", "s3.request-timeout": "10"}
        )

    def test_nothing_heavy_is_imported_before_the_first_use(self):
        program = (
            "import sys, catalogs.secrets, formats.iceberg.forbidden_properties, formats.iceberg.purge;"
            "print([m for m in ('pyiceberg', 'pyarrow', 'django') if m in sys.modules])"
        )
        answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert answer.stdout.strip() == "[]"

    def test_files_of_this_machine_need_none_of_it(self, tmp_path):
        program = (
            "import sys; from formats.iceberg import files, storage; io = storage.file_io({});"
            f"place, content = files.write_metadata(io, {{'location': 'file://{tmp_path}/t'}}, version=1);"
            "assert files.read_metadata(io, place) == content;"
            f"assert not storage.is_empty(io, 'file://{tmp_path}');"
            "assert storage.delete_file(io, place) == 1;"
            "assert storage.delete_file(io, place) == 0;"
            f"assert storage.is_empty(io, 'file://{tmp_path}');"
            "print([m for m in ('pyiceberg', 'pyarrow') if m in sys.modules])"
        )
        environment = os.environ | {"DJANGO_SETTINGS_MODULE": "tests.settings"}
        answer = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
        )
        assert answer.stdout.strip() == "[]"

    def test_a_link_is_deleted_and_not_what_it_leads_to(self, io, tmp_path):
        stored(tmp_path, "kept.json", b"{}")
        (tmp_path / "link.json").symlink_to(tmp_path / "kept.json")
        assert storage.delete_file(io, f"file://{tmp_path}/link.json") == 1
        assert [path.name for path in tmp_path.iterdir()] == ["kept.json"]

    def test_azure_takes_the_account_from_the_settings(self):
        assert storage._address("abfss://box@acme.dfs.core.windows.net/t") == "abfss://box/t"
        assert storage._address("s3://bucket/a@b/t") == "s3://bucket/a@b/t"


class TestRead:
    def test_reads_what_pyiceberg_wrote(self, io, table):
        metadata = parse_metadata(read_metadata(io, table.metadata_location))
        assert metadata["table-uuid"] == str(table.metadata.table_uuid)
        assert len(metadata["snapshots"]) == 1

    @pytest.mark.parametrize("name", ["a.gz.metadata.json", "a.metadata.json.gz", "a.metadata.json"])
    def test_unzips_by_content_whatever_the_name(self, io, tmp_path, name):
        assert read_metadata(io, stored(tmp_path, name, gzip.compress(b'{"a": 1}'))) == b'{"a": 1}'

    def test_plain_content_under_a_zipped_name_is_taken_as_it_is(self, io, tmp_path):
        assert read_metadata(io, stored(tmp_path, "a.gz.metadata.json", b"{}")) == b"{}"

    @pytest.mark.parametrize("spelling", ["file://{}", "file:{}", "{}", "FILE:{}"])
    def test_every_spelling_of_a_local_file(self, io, tmp_path, spelling):
        stored(tmp_path, "a.metadata.json", b"{}")
        assert read_metadata(io, spelling.format(tmp_path / "a.metadata.json")) == b"{}"

    @pytest.mark.parametrize("path", ["nope.json", "a.json/below", "n" * 300])
    def test_a_missing_file_is_said_in_the_words_clients_know(self, io, tmp_path, path):
        stored(tmp_path, "a.json", b"{}")
        location = f"file://{tmp_path}/{path}"
        with pytest.raises(NotFound) as caught:
            read_metadata(io, location)
        assert caught.value.message == f"Failed to open input stream for file: {location}"
        assert caught.value.kind == "metadata-file"

    def test_a_directory_is_not_metadata(self, io, tmp_path):
        with pytest.raises(Invalid):
            read_metadata(io, f"file://{tmp_path}")

    @pytest.mark.parametrize("more,error", [(0, None), (1, TooLarge)])
    def test_size_limit(self, io, tmp_path, more, error):
        location = stored(tmp_path, "a.json", b" " * (100 + more))
        if error:
            with pytest.raises(error):
                read_metadata(io, location, max_bytes=100)
        else:
            assert len(read_metadata(io, location, max_bytes=100)) == 100

    def test_a_gzip_bomb_is_refused_before_it_unfolds(self, io, tmp_path, monkeypatch):
        monkeypatch.setattr(metadata_json, "GZIP_RATIO_FLOOR", 1_000)
        zipped = gzip.compress(b" " * 100_000)
        with pytest.raises(TooLarge, match="unzips"):
            read_metadata(io, stored(tmp_path, "bomb.json", zipped))
        random = gzip.compress(os.urandom(5_000))
        assert len(read_metadata(io, stored(tmp_path, "fair.json", random))) == 5_000

    def test_the_ratio_does_not_matter_below_the_floor(self, io, tmp_path):
        assert len(read_metadata(io, stored(tmp_path, "a.json", gzip.compress(b" " * 1_000_000)))) == 1_000_000

    def test_unzipped_size_counts_against_the_limit(self, io, tmp_path):
        with pytest.raises(TooLarge):
            read_metadata(io, stored(tmp_path, "a.json", gzip.compress(b" " * 1_001)), max_bytes=1_000)

    @pytest.mark.parametrize("content", [b"\x1f\x8bxx", gzip.compress(b"{}" * 99, mtime=0)[:-9], b"\x1f\x8b"])
    def test_broken_gzip_is_the_files_fault(self, io, tmp_path, content):
        with pytest.raises(Invalid, match="gzip"):
            read_metadata(io, stored(tmp_path, "a.json", content))

    def test_a_location_with_a_way_out_is_not_opened(self, io, tmp_path):
        stored(tmp_path, "a.json", b"{}")
        with pytest.raises(Invalid):
            read_metadata(io, f"file://{tmp_path}/x/../a.json")

    def test_a_storage_in_trouble_tells_no_secrets(self):
        class Broken(PyArrowFileIO):
            def new_input(self, location):
                raise OSError("during HeadObject: key AKIASECRET, secret hunter2")

        with pytest.raises(ProviderUnavailable) as caught:
            read_metadata(Broken(), "s3://bucket/t/a.json")
        assert caught.value.message == "The storage did not answer for s3://bucket/t/a.json: OSError"
        assert caught.value.__suppress_context__

    @pytest.mark.parametrize(
        ("said", "message", "retryable"),
        [
            (
                "ExpiredToken",
                "The storage refused access to s3://bucket/t/a.json: its credentials have expired; "
                "give the catalog new ones.",
                True,
            ),
            (
                "HTTP status 400",
                "The storage did not answer for s3://bucket/t/a.json: HTTP status 400",
                True,
            ),
            ("AccessDenied", "The storage did not answer for s3://bucket/t/a.json: AccessDenied", False),
            ("<b>", "The storage did not answer for s3://bucket/t/a.json: unknown", True),
        ],
    )
    def test_the_code_of_an_answer_is_told(self, said, message, retryable):
        class Refusing(PyArrowFileIO):
            def new_input(self, location):
                raise storage.Refused(said)

        with pytest.raises(ProviderUnavailable) as caught:
            read_metadata(Refusing(), "s3://bucket/t/a.json")
        assert (caught.value.message, caught.value.retryable) == (message, retryable)

    def test_refused_access_is_not_worth_a_retry(self):
        class Refusing(PyArrowFileIO):
            def new_input(self, location):
                raise PermissionError("secret hunter2")

        with pytest.raises(ProviderUnavailable) as caught:
            read_metadata(Refusing(), "s3://bucket/t/a.json")
        assert not caught.value.retryable
        assert "hunter2" not in caught.value.message


class TestParse:
    def test_keeps_what_it_does_not_know(self, tmp_path):
        metadata = metadata_in(tmp_path)
        assert parse_metadata(orjson.dumps(metadata)) == metadata

    @pytest.mark.parametrize("version", [1, 2, 3])
    def test_every_format_version(self, tmp_path, version):
        extra = {"schema": {}, "partition-spec": [], "next-row-id": 0, "format-version": version}
        assert parse_metadata(orjson.dumps(metadata_in(tmp_path) | extra))["format-version"] == version

    @each("content", [b"", b"{", b"[]", b"null", b'"text"', b"NaN", b"{}", b"\xff\xfe", b"[" * 5_000])
    def test_refuses_what_is_not_metadata(self, content):
        with pytest.raises(Invalid):
            parse_metadata(content)

    @pytest.mark.parametrize("version", [0, 4, -1, "2", 2.0, True, None, [2]])
    def test_refuses_an_unknown_format(self, tmp_path, version):
        with pytest.raises(Invalid, match="format-version"):
            parse_metadata(orjson.dumps(metadata_in(tmp_path) | {"format-version": version}))

    @each("field", sorted(metadata_json.VERSION_2))
    def test_each_required_field_is_named_when_missing_or_wrong(self, tmp_path, field):
        for broken in ({}, {field: None}, {field: True}, {field: {"a": 1}}, {field: [1]}):
            metadata = metadata_in(tmp_path)
            del metadata[field]
            with pytest.raises(Invalid, match=field):
                parse_metadata(orjson.dumps(metadata | broken))

    @each(
        "field, value",
        [
            ("properties", []),
            ("properties", {"a": 1}),
            ("properties", {"a": None}),
            ("snapshots", {}),
            ("snapshots", [None]),
            ("refs", []),
            ("statistics", ["x"]),
            ("metadata-log", [["x"]]),
            ("current-snapshot-id", []),
            ("refs", {"main": {"snapshot-id": [1], "type": "branch"}}),
        ],
    )
    def test_optional_fields_have_a_shape_too(self, tmp_path, field, value):
        with pytest.raises(Invalid):
            parse_metadata(orjson.dumps(metadata_in(tmp_path) | {field: value}))
        assert parse_metadata(orjson.dumps(metadata_in(tmp_path) | {field: None}))

    @each(
        "key, element, place",
        [
            ("schemas", {"schema-id": [], "fields": []}, "schemas[0].schema-id"),
            ("schemas", {"schema-id": 0, "fields": [{"id": 1}, {"id": "2"}]}, "schemas[0].fields[1].id"),
            ("partition-specs", {"fields": []}, "partition-specs[0].spec-id"),
            ("partition-specs", {"spec-id": 0, "fields": [{"name": "p"}]}, "partition-specs[0].fields[0].transform"),
            ("sort-orders", {"order-id": [1], "fields": []}, "sort-orders[0].order-id"),
            ("sort-orders", {"fields": []}, "sort-orders[0].order-id"),
            ("snapshots", {"snapshot-id": True}, "snapshots[0].snapshot-id"),
            ("snapshot-log", {"timestamp-ms": 1}, "snapshot-log[0].snapshot-id"),
            ("statistics", {"snapshot-id": {}}, "statistics[0].snapshot-id"),
            ("encryption-keys", {"key-id": ["k"]}, "encryption-keys[0].key-id"),
        ],
    )
    def test_an_element_without_a_proper_id_is_named(self, tmp_path, key, element, place):
        for version in (1, 2, 3):
            extra: dict[str, Any] = {
                "schema": {},
                "partition-spec": [],
                "next-row-id": 0,
                "format-version": version,
                key: [element],
            }
            with pytest.raises(Invalid, match=re.escape(place)):
                parse_metadata(orjson.dumps(metadata_in(tmp_path) | extra))

    def test_what_older_and_newer_writers_leave_out_or_add(self, tmp_path):
        old = {key: metadata_in(tmp_path)[key] for key in ("location", "last-updated-ms", "last-column-id")}
        columns = [{"id": 1, "name": "a", "type": "long", "required": False}]
        parts = [{"name": "p", "transform": "identity", "source-id": 1}]
        old |= {"format-version": 1, "schema": {"type": "struct", "fields": columns}, "partition-spec": parts}
        assert parse_metadata(orjson.dumps(old)) == old
        some = {"name": "q", "transform": "zorder", "source-ids": [1, 2], "field-id": 1000}
        new = metadata_in(tmp_path) | {
            "schemas": [{"type": "struct", "fields": columns}],
            "partition-specs": [{"spec-id": 0, "fields": [some]}],
            "statistics": [{"snapshot-id": 1}] * 2,
            "versions": ["of a newer format"],
        }
        assert parse_metadata(orjson.dumps(new)) == new


class TestWrite:
    def test_what_is_written_is_read_back_by_us_and_by_pyiceberg(self, io, tmp_path):
        metadata = metadata_in(tmp_path)
        location, content = write_metadata(io, metadata, version=7)
        folder, _, name = location.rpartition("/")
        assert folder == f"file://{tmp_path}/t/metadata"
        number, _, unique = name.removesuffix(".metadata.json").partition("-")
        assert (number, str(UUID(unique))) == ("00007", unique)
        assert read_metadata(io, location) == content
        assert parse_metadata(content) == metadata
        assert str(StaticTable.from_metadata(location).metadata.table_uuid) == metadata["table-uuid"]

    def test_metadata_path_is_followed_and_spelled_as_given(self, io, tmp_path):
        elsewhere = f"file:{tmp_path}/elsewhere/"
        location, _ = write_metadata(io, metadata_in(tmp_path, **{"write.metadata.path": elsewhere}), version=0)
        assert location.startswith(f"file:{tmp_path}/elsewhere/00000-")
        assert not (tmp_path / "t").exists()

    @pytest.mark.parametrize("codec", ["gzip", "GZIP"])
    def test_gzip(self, io, tmp_path, codec):
        metadata = metadata_in(tmp_path, **{"write.metadata.compression-codec": codec})
        location, content = write_metadata(io, metadata, version=0)
        assert location.endswith(".gz.metadata.json")
        assert gzip.decompress(Path(location.removeprefix("file://")).read_bytes()) == content
        assert read_metadata(io, location) == content
        assert StaticTable.from_metadata(location).properties == metadata["properties"]

    def test_gzip_is_left_out_where_it_could_not_be_read_back(self, io, tmp_path, monkeypatch):
        monkeypatch.setattr(metadata_json, "GZIP_RATIO_FLOOR", 1_000)
        metadata = metadata_in(tmp_path, **{"write.metadata.compression-codec": "gzip", "comment": "a" * 100_000})
        location, content = write_metadata(io, metadata, version=0)
        assert not location.endswith(".gz.metadata.json")
        assert read_metadata(io, location) == content

    def test_an_unknown_codec_is_refused(self, io, tmp_path):
        with pytest.raises(Invalid, match="compression-codec"):
            write_metadata(io, metadata_in(tmp_path, **{"write.metadata.compression-codec": "lzma"}), version=0)

    def test_never_overwrites(self, io, tmp_path, monkeypatch):
        monkeypatch.setattr(files, "uuid4", lambda: UUID(int=1))
        location, content = write_metadata(io, metadata_in(tmp_path), version=0)
        with pytest.raises(AlreadyExists):
            write_metadata(io, metadata_in(tmp_path, changed="yes"), version=0)
        assert read_metadata(io, location) == content

    def test_a_half_written_file_is_removed(self, tmp_path):
        path = tmp_path / "half.json"

        class Stream:
            def __enter__(self):
                return self

            def __exit__(self, *_):
                pass

            def write(self, content):
                path.write_bytes(content[:3])
                raise OSError("disk full")

        class Failing(PyArrowFileIO):
            def new_output(self, location):
                self.location = location
                return self

            def create(self, overwrite):
                assert not overwrite
                return Stream()

            def delete(self, location):
                assert location == self.location
                path.unlink()

        with pytest.raises(ProviderUnavailable):
            write_metadata(Failing(), metadata_in(tmp_path) | {"location": "s3://lake/t"}, version=0)
        assert not path.exists()

    def test_metadata_we_could_not_read_back_is_not_written(self, io, tmp_path, monkeypatch):
        monkeypatch.setattr(metadata_json, "MAX_METADATA_BYTES", 10)
        with pytest.raises(TooLarge):
            write_metadata(io, metadata_in(tmp_path), version=0)

    def test_nesting_without_end_is_refused(self, io, tmp_path):
        nested: list = []
        for _ in range(2_000):
            nested = [nested]
        with pytest.raises(Invalid, match="nested"):
            write_metadata(io, metadata_in(tmp_path) | {"x": nested}, version=0)

    def test_a_metadata_path_with_a_way_out_is_refused(self, io, tmp_path):
        with pytest.raises(Invalid):
            write_metadata(io, metadata_in(tmp_path, **{"write.metadata.path": f"{tmp_path}/../x"}), version=0)


@each(
    "previous, version",
    [
        (None, 0),
        ("", 0),
        ("s3://b/t/metadata/00000-6f1e2b1c.metadata.json", 1),
        ("s3://b/t/metadata/00041-6f1e2b1c-aa.gz.metadata.json", 42),
        ("s3://b/t/metadata/99999-a.metadata.json", 100_000),
        ("s3://b/t/metadata/100000-a.metadata.json", 100_001),
        ("s3://b/t/metadata/v3.metadata.json", 4),
        ("s3://b/t/metadata/v3.gz.metadata.json", 4),
        ("s3://b/t/metadata/v3.metadata.json.gz", 4),
        ("s3://b/00007-x/metadata/anything.json", 0),
        ("s3://b/t/metadata/-1-a.metadata.json", 0),
        (f"s3://b/t/metadata/{'9' * 5_000}-a.metadata.json", 0),
    ],
)
def test_next_version(previous, version):
    assert next_version(previous) == version


def test_delete_quietly_goes_on_after_a_failure(io, tmp_path, caplog):
    first, last = stored(tmp_path, "a", b""), stored(tmp_path, "z", b"")
    (tmp_path / "folder").mkdir()
    delete_quietly(io, [first, f"file://{tmp_path}/missing", f"file://{tmp_path}/folder", last])
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    assert "folder" in caplog.text


def test_a_folder_is_empty_while_no_file_lies_in_it_anywhere(io, tmp_path):
    place = f"file://{tmp_path}/t"
    assert storage.is_empty(io, place)
    storage.make_folder(f"{place}/data")
    storage.make_folder(f"{place}/rows/of/2026")
    assert storage.is_empty(io, place)
    (tmp_path / "t" / "rows" / "of" / "part-0").write_bytes(b"")
    assert not storage.is_empty(io, place)


def test_what_cannot_be_looked_at_is_not_empty(tmp_path):
    """A folder of another account in one that may be read."""

    class OfOthers(LocalFileSystem):
        def get_file_info(self, asked):
            if asked.base_dir.endswith("hidden"):
                raise PermissionError(13, "Permission denied")
            return super().get_file_info(asked)

    (tmp_path / "t" / "hidden").mkdir(parents=True)
    assert _holds_a_file(OfOthers(), f"{tmp_path}/t")


def test_metadata_of_pyiceberg_has_the_fields_we_ask_for(table):
    """The list of required fields is ours; what pyiceberg writes must satisfy it."""
    assert parse_metadata(json.dumps(json.loads(table.metadata.model_dump_json())).encode())
