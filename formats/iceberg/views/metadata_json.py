"""The JSON of a view's metadata file; formats.iceberg.files reads and writes it as it does table metadata."""

from __future__ import annotations

from typing import Any

from formats.iceberg.metadata_json import (
    LIST,
    NUMBER,
    OBJECT,
    TEXT,
    check_fields,
    check_text_properties,
    load_object,
)
from formats.iceberg.parsing import get_ints, get_texts, has
from metalake.errors import Invalid
from metalake.wire import holds_nul, nests_deeper_than

MAX_NESTING = 250  # of JSON; a schema of 64 levels takes 192
VIEW_FIELDS = {"view-uuid": TEXT, "location": TEXT, "current-version-id": NUMBER, "versions": LIST}
OPTIONAL_FIELDS = {"schemas": LIST, "version-log": LIST, "properties": OBJECT}
VERSION_FIELDS = {"version-id": NUMBER, "representations": LIST}
OPTIONAL_VERSION_FIELDS = {"schema-id": NUMBER, "timestamp-ms": NUMBER, "summary": OBJECT, "default-catalog": TEXT}


def parse_view_metadata(content: bytes) -> dict[str, Any]:
    """Parse view metadata, preserving unknown fields. Raises Invalid unless it is valid and of format version 1.

    Source: Iceberg view spec, "View Metadata". Schemas, version log and default namespace may be missing.
    """
    metadata = load_object(content)
    if holds_nul(content):
        raise Invalid("The metadata file holds a NUL character, which no database stores", kind="metadata-file")
    # Counting brackets is cheap: with fewer than this it cannot nest too deep.
    if content.count(b"{") + content.count(b"[") > MAX_NESTING and nests_deeper_than(MAX_NESTING, metadata):
        raise Invalid(f"The metadata file nests deeper than {MAX_NESTING} levels", kind="metadata-file")
    version = metadata.get("format-version")
    if type(version) is not int or version != 1:
        raise Invalid(f"The view's format-version must be 1, not {version!r:.40}", kind="metadata-file")
    check_fields(metadata, VIEW_FIELDS, OPTIONAL_FIELDS)
    check_text_properties(metadata)
    for position, each in enumerate(metadata["versions"]):
        _check_version(each, f"versions[{position}].")
    for position, each in enumerate(metadata.get("version-log") or ()):
        check_fields(each, {"version-id": NUMBER, "timestamp-ms": NUMBER}, {}, f"version-log[{position}].")
    for position, each in enumerate(metadata.get("schemas") or ()):
        place = f"schemas[{position}]"
        check_fields(each, {"fields": LIST}, {"schema-id": NUMBER}, f"{place}.")
        if has(each, "identifier-field-ids"):
            get_ints(each, "identifier-field-ids", f"the metadata's {place}")
    return metadata


def _check_version(version: dict[str, Any], place: str) -> None:
    check_fields(version, VERSION_FIELDS, OPTIONAL_VERSION_FIELDS, place)
    if has(version, "default-namespace"):
        get_texts(version, "default-namespace", f"the metadata's {place.removesuffix('.')}")
    for position, each in enumerate(version["representations"]):
        inside = f"{place}representations[{position}]."
        check_fields(each, {"type": TEXT}, {}, inside)
        if each["type"].lower() == "sql":
            check_fields(each, {"sql": TEXT, "dialect": TEXT}, {}, inside)
