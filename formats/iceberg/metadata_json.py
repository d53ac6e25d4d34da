"""The JSON of a metadata file: structure, size, compression and file name."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Collection, Mapping
from io import BytesIO
from typing import Any

import orjson

from formats.iceberg.draft import TABLE_IDS
from metalake.errors import Invalid, TooLarge

# 64 MiB is about 100,000 snapshots; reading more would cost a request seconds and a gigabyte of memory.
MAX_METADATA_BYTES = 64 * 1024 * 1024
MAX_GZIP_RATIO = 20
GZIP_RATIO_FLOOR = 16 * 1024 * 1024  # bytes: a file may always unzip to this size
GZIP_MAGIC = b"\x1f\x8b"
METADATA_FILE = re.compile(r"(?:v(\d{1,9})|(\d{1,9})-[^/]*?)(?:\.gz)?\.metadata\.json(?:\.gz)?")
# The names that `files.write_metadata` gives.
WRITTEN = re.compile(r"\d{5,9}-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:\.gz)?\.metadata\.json")
TEXT, NUMBER, LIST, OBJECT = str, int, list, dict
SHAPES = {TEXT: "text", NUMBER: "a whole number", LIST: "a list of objects", OBJECT: "an object"}
EVERY_VERSION = {"location": TEXT, "last-updated-ms": NUMBER, "last-column-id": NUMBER}
VERSION_1 = EVERY_VERSION | {"schema": OBJECT, "partition-spec": LIST}
VERSION_2 = EVERY_VERSION | {
    "table-uuid": TEXT,
    "last-sequence-number": NUMBER,
    "schemas": LIST,
    "current-schema-id": NUMBER,
    "partition-specs": LIST,
    "default-spec-id": NUMBER,
    "last-partition-id": NUMBER,
    "sort-orders": LIST,
    "default-sort-order-id": NUMBER,
}
TABLE_FIELDS = {1: VERSION_1, 2: VERSION_2, 3: VERSION_2 | {"next-row-id": NUMBER}}
OPTIONAL_FIELDS = {
    "properties": OBJECT,
    "current-snapshot-id": NUMBER,
    "refs": OBJECT,
    "metadata-log": LIST,
    "snapshot-log": LIST,
    **dict.fromkeys(TABLE_IDS, LIST),
}
# What the elements of lists must have; what else they may have is in ELEMENTS_MAY_HAVE.
ELEMENT_IDS: dict[str, dict[str, type]] = {
    key: {id_key: TEXT if id_key == "key-id" else NUMBER} for key, id_key in TABLE_IDS.items()
}
ELEMENTS_HAVE: dict[str, dict[str, type]] = ELEMENT_IDS | {
    "schemas": {"fields": LIST},
    "partition-specs": {"spec-id": NUMBER, "fields": LIST},
    "sort-orders": {"order-id": NUMBER, "fields": LIST},
    "snapshot-log": {"snapshot-id": NUMBER, "timestamp-ms": NUMBER},
}
ELEMENTS_MAY_HAVE = {"schemas": ELEMENT_IDS["schemas"]}  # a schema without an id is schema 0
# A partition or sort field of several columns has no source-id.
FIELDS_HAVE: dict[str, dict[str, type]] = {
    "schemas": {"id": NUMBER},
    "partition-specs": {"name": TEXT, "transform": TEXT},
    "sort-orders": {"transform": TEXT, "direction": TEXT, "null-order": TEXT},
}
FIELDS_MAY_HAVE: dict[str, type] = {"source-id": NUMBER, "field-id": NUMBER}


def parse_metadata(content: bytes) -> dict[str, Any]:
    """Table metadata as plain data, unknown fields included. Raises Invalid unless it is of format version 1, 2 or 3.

    Source: Iceberg spec, "Table Metadata Fields". Does not check that its ids are consistent.
    """
    metadata = load_object(content)
    version = metadata.get("format-version")
    if type(version) is not int or version not in TABLE_FIELDS:
        raise Invalid(f"The metadata's format-version must be 1, 2 or 3, not {version!r:.40}", kind="metadata-file")
    check_fields(metadata, TABLE_FIELDS[version], VERSION_2 | OPTIONAL_FIELDS)
    check_text_properties(metadata)
    _check_elements(metadata)
    return metadata


def _check_elements(metadata: Mapping[str, Any]) -> None:
    """Check the fields of list elements that a commit reads, above all their ids. Raises Invalid."""
    for key, required in ELEMENTS_HAVE.items():
        _check_each(metadata.get(key) or (), required, ELEMENTS_MAY_HAVE.get(key, {}), key)
    for key, required in FIELDS_HAVE.items():
        optional = {} if key == "schemas" else FIELDS_MAY_HAVE
        for position, each in enumerate(metadata.get(key) or ()):
            _check_each(each["fields"], required, optional, f"{key}[{position}].fields")
    if metadata.get("schemas") is None:
        check_fields(metadata["schema"], ELEMENTS_HAVE["schemas"], ELEMENTS_MAY_HAVE["schemas"], "schema.")
        _check_each(metadata["schema"]["fields"], FIELDS_HAVE["schemas"], {}, "schema.fields")
    if metadata.get("partition-specs") is None:
        _check_each(metadata["partition-spec"], FIELDS_HAVE["partition-specs"], FIELDS_MAY_HAVE, "partition-spec")
    for name, ref in (metadata.get("refs") or {}).items():
        if not isinstance(ref, dict):
            raise Invalid(f"The metadata's refs.{name:.100} must be an object", kind="metadata-file")
        check_fields(ref, ELEMENT_IDS["snapshots"], {}, f"refs.{name:.100}.")


def _check_each(
    elements: Collection[Mapping[str, Any]], required: Mapping[str, type], optional: Mapping[str, type], place: str
) -> None:
    is_plain = not optional and LIST not in required.values()
    # Faster than `check_fields` for each: there may be a hundred thousand snapshots.
    if is_plain and all(type(each.get(field)) is kind for field, kind in required.items() for each in elements):
        return
    for position, each in enumerate(elements):
        check_fields(each, required, optional, f"{place}[{position}].")


def load_object(content: bytes) -> dict[str, Any]:
    """The JSON object of a metadata file. Raises Invalid if it is not one."""
    try:
        metadata = orjson.loads(content)
    except orjson.JSONDecodeError:
        raise Invalid("The metadata file is not JSON", kind="metadata-file") from None
    if not isinstance(metadata, dict):
        raise Invalid("The metadata file is not a JSON object", kind="metadata-file")
    return metadata


def check_fields(
    holder: Mapping[str, Any], required: Mapping[str, type], optional: Mapping[str, type], place: str = ""
) -> None:
    """Check the types of fields; null counts as missing. Raises Invalid, with `place` before the field's name."""
    for field, wanted in required.items():
        _check_field(holder, field, wanted, place)
    for field, wanted in optional.items():
        if holder.get(field) is not None:
            _check_field(holder, field, wanted, place)


def check_text_properties(metadata: Mapping[str, Any]) -> None:
    """Raise Invalid unless every property is text."""
    if not all(isinstance(value, str) for value in properties_of(metadata).values()):
        raise Invalid("The metadata's properties must be text", kind="metadata-file")


def content_of(metadata: Mapping[str, Any]) -> tuple[bytes, bytes, str]:
    """The JSON, the bytes to store (zipped if the table says so), and the file name's extension."""
    content = dump(metadata)
    return content, *_zip(content, properties_of(metadata).get("write.metadata.compression-codec") or "none")


def properties_of(metadata: Mapping[str, Any]) -> Mapping[str, str]:
    return metadata.get("properties") or {}


def next_version(previous_location: str | None) -> int:
    """The number after the previous metadata file's; 0 if there is none or its name has no number."""
    match = METADATA_FILE.fullmatch((previous_location or "").rsplit("/", 1)[-1])
    return int(match[1] or match[2]) + 1 if match else 0


def _check_field(holder: Mapping[str, Any], field: str, wanted: type, place: str) -> None:
    value = holder.get(field)
    is_right = isinstance(value, wanted) and not isinstance(value, bool)
    if is_right and wanted is LIST:
        is_right = all(isinstance(item, dict) for item in holder[field])
    if not is_right:
        raise Invalid(f"The metadata's {place}{field} must be {SHAPES[wanted]}", kind="metadata-file")


def dump(metadata: Mapping[str, Any]) -> bytes:
    """The metadata as JSON. Raises Invalid if it cannot be written, TooLarge over `MAX_METADATA_BYTES`."""
    try:
        content = orjson.dumps(metadata)
    except orjson.JSONEncodeError:
        raise Invalid(
            "The metadata cannot be written as JSON: it is nested too deeply, a number is over 64 bits, or a text is "
            "not valid Unicode",
            kind="metadata-file",
        ) from None
    if len(content) > MAX_METADATA_BYTES:
        raise TooLarge(
            f"The metadata is over {MAX_METADATA_BYTES} bytes; expire a table's snapshots, or let a view's history "
            "have fewer versions (version.history.num-entries)",
            kind="metadata-file",
        )
    return content


def _zip(content: bytes, codec: str) -> tuple[bytes, str]:
    if codec.lower() not in ("none", "gzip"):
        raise Invalid(f"write.metadata.compression-codec must be none or gzip, not {codec!r:.40}", kind="property")
    zipped = gzip.compress(content, compresslevel=6, mtime=0) if codec.lower() == "gzip" else b""
    # A file that unzips to more than the limit could not be read back, so it is stored uncompressed.
    if zipped and len(content) <= _unzip_limit(zipped):
        return zipped, ".gz.metadata.json"
    return content, ".metadata.json"


def unzip(content: bytes, location: str, max_bytes: int) -> bytes:
    """Unzip a metadata file. Raises Invalid for broken gzip, TooLarge over `max_bytes` or `MAX_GZIP_RATIO`."""
    limit = min(max_bytes, _unzip_limit(content))
    try:
        with gzip.GzipFile(fileobj=BytesIO(content)) as stream:
            unzipped = stream.read(limit + 1)
    except (OSError, EOFError, zlib.error):
        raise Invalid(f"Not a readable gzip file: {location}", kind="metadata-file") from None
    if len(unzipped) > limit:
        raise TooLarge(f"The file unzips to over {limit} bytes: {location}", kind="metadata-file")
    return unzipped


def _unzip_limit(zipped: bytes) -> int:
    return max(GZIP_RATIO_FLOOR, MAX_GZIP_RATIO * len(zipped))
