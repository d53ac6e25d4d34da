"""The paths in a table's Avro files: a manifest list names manifests, a manifest names data and delete files.

Only the paths are decoded (Iceberg spec, "Manifests" and "Manifest Lists"); other columns are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import TYPE_CHECKING

from metalake.errors import Invalid

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.typedef import Record

REMOVED = 2  # status of an entry


def manifest_paths(manifest_list: bytes) -> Iterator[str]:
    """The manifests a manifest list names, in its order. Raises Invalid if it cannot be read."""
    from pyiceberg.schema import Schema
    from pyiceberg.types import NestedField, StringType

    schema = Schema(NestedField(500, "manifest_path", StringType(), required=True))
    return (record[0] for record in _records(manifest_list, schema))


def content_paths(manifest: bytes) -> Iterator[str]:
    """The data and delete files a manifest names, removed ones too. Raises Invalid if it cannot be read."""
    from pyiceberg.schema import Schema
    from pyiceberg.types import NestedField, StringType, StructType

    file = StructType(NestedField(100, "file_path", StringType(), required=True))
    schema = Schema(NestedField(2, "data_file", file, required=True))
    return (record[0][0] for record in _records(manifest, schema))


def live_paths(manifest: bytes) -> Iterator[str]:
    """The data and delete files that a manifest names, without removed ones. Raises Invalid if it cannot be read."""
    from pyiceberg.schema import Schema
    from pyiceberg.types import IntegerType, NestedField, StringType, StructType

    file = StructType(NestedField(100, "file_path", StringType(), required=True))
    status = NestedField(0, "status", IntegerType(), required=True)
    schema = Schema(status, NestedField(2, "data_file", file, required=True))
    return (record[1][0] for record in _records(manifest, schema) if record[0] != REMOVED)


def _records(content: bytes, schema: Schema) -> Iterator[Record]:
    try:
        from formats.iceberg.avro import ProjectedAvroFile  # loads pyiceberg

        with ProjectedAvroFile(_InMemory(content), schema) as records:
            yield from records
    except Exception as error:
        # Users write these files, and the decoder may raise anything for a broken one.
        raise Invalid(f"Not a readable manifest: {type(error).__name__}", kind="manifest") from error


class _InMemory:
    """The part of pyiceberg's InputFile that the Avro reader uses."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def open(self) -> BytesIO:
        return BytesIO(self.content)
