"""The metadata file of a view: written and read as a table's, and refused with a reason when it is malformed."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import orjson
import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.view.metadata import ViewMetadata

from formats.iceberg.files import read_metadata, write_metadata
from formats.iceberg.metadata_json import next_version
from formats.iceberg.views.metadata_json import parse_view_metadata
from metalake.errors import Invalid
from tests.cases import each
from tests.formats.iceberg.views.view_samples import query, view


@pytest.mark.parametrize("properties", [{}, {"write.metadata.compression-codec": "gzip"}])
def test_what_is_written_is_read_again(tmp_path: Path, properties: dict[str, str]) -> None:
    io = PyArrowFileIO()
    metadata = view(query("sélect 1"), properties=properties) | {"location": f"file://{tmp_path}/v"}
    location, content = write_metadata(io, metadata, version=0)
    assert location.startswith(f"file://{tmp_path}/v/metadata/00000-") and next_version(location) == 1
    assert parse_view_metadata(content) == metadata
    assert parse_view_metadata(read_metadata(io, location)) == metadata
    ViewMetadata.model_validate_json(content)


def test_write_metadata_path_says_where_the_files_lie(tmp_path: Path) -> None:
    elsewhere = f"file://{tmp_path}/elsewhere"
    metadata = view(properties={"write.metadata.path": elsewhere}) | {"location": f"file://{tmp_path}/v"}
    location, _ = write_metadata(PyArrowFileIO(), metadata, version=7)
    assert location.startswith(f"{elsewhere}/00007-")


@each(
    "changes, words",
    [
        ({"format-version": 2}, "format-version must be 1, not 2"),
        ({"format-version": True}, "format-version must be 1"),
        ({"view-uuid": None}, "view-uuid must be text"),
        ({"location": 1}, "location must be text"),
        ({"versions": None}, "versions must be a list of objects"),
        ({"versions": [1]}, "versions must be a list of objects"),
        ({"current-version-id": "1"}, "current-version-id must be a whole number"),
        ({"properties": {"a": 1}}, "properties must be text"),
        ({"schemas": {}}, "schemas must be a list of objects"),
        ({"schemas": [{"schema-id": 0}]}, "schemas[0].fields must be a list of objects"),
        ({"schemas": [{"fields": [], "identifier-field-ids": 5}]}, "identifier-field-ids of the metadata's schemas[0]"),
        ({"version-log": [{"version-id": 1}]}, "version-log[0].timestamp-ms must be a whole number"),
        ({"versions": [{"version-id": 1}]}, "versions[0].representations must be a list of objects"),
        ({"versions": [{"representations": []}]}, "versions[0].version-id must be a whole number"),
    ],
)
def test_a_malformed_file_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_view_metadata(orjson.dumps(view() | changes))
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("default-namespace", "ns", "default-namespace of the metadata's versions[0] must be a list"),
        ("default-namespace", [1], "default-namespace of the metadata's versions[0] must be a string"),
        ("default-catalog", 1, "versions[0].default-catalog must be text"),
        ("schema-id", "0", "versions[0].schema-id must be a whole number"),
        ("summary", [], "versions[0].summary must be an object"),
        ("representations", [{}], "versions[0].representations[0].type must be text"),
        ("representations", [{"type": "sql", "sql": "x"}], "versions[0].representations[0].dialect must be text"),
    ],
)
def test_a_malformed_version_is_refused_with_its_place(field: str, value: Any, words: str) -> None:
    metadata = deepcopy(view())
    metadata["versions"][0][field] = value
    with pytest.raises(Invalid) as caught:
        parse_view_metadata(orjson.dumps(metadata))
    assert words in caught.value.message


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b"null"])
def test_what_is_no_object_is_refused(content: bytes) -> None:
    with pytest.raises(Invalid, match=r"not JSON|not a JSON object"):
        parse_view_metadata(content)


def test_nesting_without_end_is_refused() -> None:
    content = b'{"format-version": 1, "x": ' + b"[" * 400 + b"]" * 400 + b"}"
    with pytest.raises(Invalid, match="nests deeper"):
        parse_view_metadata(content)


@pytest.mark.parametrize("text", ["a\0b", "\\\0"])
def test_a_nul_is_refused_since_no_database_stores_it(text: str) -> None:
    with pytest.raises(Invalid, match="holds a NUL"):
        parse_view_metadata(orjson.dumps(view(properties={"a": text})))
    assert parse_view_metadata(orjson.dumps(view(properties={"a": r"\u0000"})))


def test_a_view_without_schemas_log_and_default_namespace_is_read() -> None:
    bare = {key: value for key, value in view().items() if key not in ("schemas", "version-log", "properties")}
    bare["versions"] = [{"version-id": 1, "representations": [{"type": "graph"}, query()]}]
    assert parse_view_metadata(orjson.dumps(bare)) == bare
