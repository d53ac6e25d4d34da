"""What a table's Avro files name: a manifest list names manifests, a manifest names data and delete files.

Only the paths are decoded (Iceberg spec, "Manifests" and "Manifest Lists"), whatever else a file holds.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from io import BytesIO
from typing import TYPE_CHECKING, Any

from metalake.errors import Invalid

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.typedef import Record

REMOVED = 2  # status of an entry
MAX_BLOCK_BYTES = 64 * 1024 * 1024


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
    """The data and delete files that a manifest names and does not say to be removed. Raises Invalid."""
    from pyiceberg.schema import Schema
    from pyiceberg.types import IntegerType, NestedField, StringType, StructType

    file = StructType(NestedField(100, "file_path", StringType(), required=True))
    status = NestedField(0, "status", IntegerType(), required=True)
    schema = Schema(status, NestedField(2, "data_file", file, required=True))
    return (record[1][0] for record in _records(manifest, schema) if record[0] != REMOVED)


def _records(content: bytes, schema: Schema) -> Iterator[Record]:
    try:
        with _projected_avro_file()(_InMemory(content), schema) as records:
            yield from records
    except Exception as error:
        # Users write these files, and the decoder answers a broken one with whatever goes wrong first.
        raise Invalid(f"Not a readable manifest: {type(error).__name__}", kind="manifest") from error


class _InMemory:
    """As much of an input file as the Avro reader asks for."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def open(self) -> BytesIO:
        return BytesIO(self.content)


def _projected_avro_file() -> Any:
    """pyiceberg's Avro reader with two differences: columns may be left out, and a block cannot unfold without end."""
    from pyiceberg.avro.codecs import KNOWN_CODECS
    from pyiceberg.avro.file import AvroFile, AvroFileHeader
    from pyiceberg.avro.resolver import ReadSchemaResolver, SchemaPartnerAccessor
    from pyiceberg.schema import visit_with_partner

    class Accessor(SchemaPartnerAccessor):
        """Finds the wanted column for one in the file; below a column nobody wants, there is none."""

        def field_partner(self, partner: Any, field_id: int, field_name: str) -> Any:
            return partner and super().field_partner(partner, field_id, field_name)

        def list_element_partner(self, partner_list: Any) -> Any:
            return partner_list and super().list_element_partner(partner_list)

        def map_key_partner(self, partner_map: Any) -> Any:
            return partner_map and super().map_key_partner(partner_map)

        def map_value_partner(self, partner_map: Any) -> Any:
            return partner_map and super().map_value_partner(partner_map)

    class BoundedHeader(AvroFileHeader):
        def compression_codec(self) -> Any:
            codec = super().compression_codec()
            name = next((name for name, known in KNOWN_CODECS.items() if known is codec), "")
            return BOUNDED_CODECS.get(name, codec)

    class ProjectedAvroFile(AvroFile[Any]):
        def __init__(self, file: Any, wanted: Schema) -> None:
            super().__init__(file)
            self.wanted = wanted

        def __enter__(self) -> Any:
            super().__enter__()
            project: Any = visit_with_partner
            self.reader = project(self.schema, self.wanted, ReadSchemaResolver({}, {}), Accessor())
            return self

        def _read_header(self) -> AvroFileHeader:
            header = super()._read_header()
            return BoundedHeader(header.magic, header.meta, header.sync)

    return ProjectedAvroFile


class _Deflate:
    @staticmethod
    def decompress(block: bytes) -> bytes:
        return _within_bounds(zlib.decompressobj(-zlib.MAX_WBITS).decompress(block, MAX_BLOCK_BYTES + 1))


class _Zstandard:
    @staticmethod
    def decompress(block: bytes) -> bytes:
        return _read_compressed(block, "zstd")


class _Bzip2:
    @staticmethod
    def decompress(block: bytes) -> bytes:
        return _read_compressed(block, "bz2")


# Snappy is not here: it cannot unfold a block by more than about 20.
BOUNDED_CODECS: dict[str, Any] = {"deflate": _Deflate, "zstandard": _Zstandard, "bzip2": _Bzip2}


def _read_compressed(block: bytes, compression: str) -> bytes:
    import pyarrow

    with pyarrow.CompressedInputStream(pyarrow.BufferReader(block), compression) as stream:
        return _within_bounds(stream.read(MAX_BLOCK_BYTES + 1))


def _within_bounds(unfolded: bytes) -> bytes:
    if len(unfolded) > MAX_BLOCK_BYTES:
        raise ValueError(f"a block is over {MAX_BLOCK_BYTES} bytes")
    return unfolded
