"""pyiceberg's Avro reader with two differences: columns can be skipped, and a decompressed block has a size limit.

Importing this module loads pyiceberg, which takes long, so import it only where a manifest is read.
"""

from __future__ import annotations

import zlib
from typing import Any

from pyiceberg.avro.codecs import KNOWN_CODECS
from pyiceberg.avro.file import AvroFile, AvroFileHeader
from pyiceberg.avro.resolver import ReadSchemaResolver, SchemaPartnerAccessor
from pyiceberg.schema import Schema, visit_with_partner

MAX_BLOCK_BYTES = 64 * 1024 * 1024


class ProjectedAvroFile(AvroFile[Any]):
    """The records of an Avro file, projected to the columns of a schema."""

    def __init__(self, file: Any, projection: Schema) -> None:
        super().__init__(file)
        self.projection = projection

    def __enter__(self) -> Any:
        super().__enter__()
        project: Any = visit_with_partner
        self.reader = project(self.schema, self.projection, ReadSchemaResolver({}, {}), _Accessor())
        return self

    def _read_header(self) -> AvroFileHeader:
        header = super()._read_header()
        return _BoundedHeader(header.magic, header.meta, header.sync)


class _Accessor(SchemaPartnerAccessor):
    """Finds the projected column for a column of the file; nothing below a column that is not projected."""

    def field_partner(self, partner: Any, field_id: int, field_name: str) -> Any:
        return partner and super().field_partner(partner, field_id, field_name)

    def list_element_partner(self, partner_list: Any) -> Any:
        return partner_list and super().list_element_partner(partner_list)

    def map_key_partner(self, partner_map: Any) -> Any:
        return partner_map and super().map_key_partner(partner_map)

    def map_value_partner(self, partner_map: Any) -> Any:
        return partner_map and super().map_value_partner(partner_map)


class _BoundedHeader(AvroFileHeader):
    def compression_codec(self) -> Any:
        codec = super().compression_codec()
        name = next((name for name, known in KNOWN_CODECS.items() if known is codec), "")
        return BOUNDED_CODECS.get(name, codec)


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


# Not Snappy, whose compression ratio is limited to about 20.
BOUNDED_CODECS: dict[str, Any] = {"deflate": _Deflate, "zstandard": _Zstandard, "bzip2": _Bzip2}


def _read_compressed(block: bytes, compression: str) -> bytes:
    import pyarrow

    with pyarrow.CompressedInputStream(pyarrow.BufferReader(block), compression) as stream:
        return _within_bounds(stream.read(MAX_BLOCK_BYTES + 1))


def _within_bounds(unfolded: bytes) -> bytes:
    if len(unfolded) > MAX_BLOCK_BYTES:
        raise ValueError(f"a block is over {MAX_BLOCK_BYTES} bytes")
    return unfolded
