"""The request bodies of the Iceberg REST specification, and what its table responses are made of.

Fields we do not know are passed over, as the specification asks; a wrong type is refused, naming the field.
"""

from __future__ import annotations

import hashlib
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, Field

from catalogs.table_stores import TableRecord


class Body(BaseModel):
    """Field names are written with dashes on the wire; null stands for absent."""

    model_config = ConfigDict(extra="ignore", strict=True, alias_generator=lambda name: name.replace("_", "-"))


class CreateNamespace(Body):
    namespace: list[str]
    properties: dict[str, str] | None = None


class UpdateNamespaceProperties(Body):
    removals: list[str] | None = None
    updates: dict[str, str] | None = None


class CreateTable(Body):
    name: str
    columns: dict[str, Any] = Field(alias="schema")
    location: str | None = None
    partition_spec: dict[str, Any] | None = None
    write_order: dict[str, Any] | None = None
    stage_create: bool | None = None
    properties: dict[str, str] | None = None


class RegisterTable(Body):
    name: str
    metadata_location: str
    overwrite: bool | None = None


class TableIdentifier(Body):
    namespace: list[str]
    name: str


class RenameTable(Body):
    source: TableIdentifier
    destination: TableIdentifier


class CommitTable(Body):
    """The identifier is optional: Java's client leaves it to the path."""

    identifier: TableIdentifier | None = None
    requirements: list[dict[str, Any]] | None = None
    updates: list[dict[str, Any]] | None = None


def table_result(record: TableRecord, metadata: bytes | None = None) -> bytes:
    """LoadTableResult around the stored metadata, which is not parsed for it."""
    return b'{"metadata-location":%b,"config":{},"metadata":%b}' % (
        orjson.dumps(record.metadata_location),
        metadata or record.content,
    )


def commit_result(record: TableRecord) -> bytes:
    return b'{"metadata-location":%b,"metadata":%b}' % (orjson.dumps(record.metadata_location), record.content)


def only_referenced(metadata: dict[str, Any]) -> bytes:
    """The metadata without the snapshots that no branch or tag points to (`snapshots=refs`)."""
    kept = {ref["snapshot-id"] for ref in (metadata.get("refs") or {}).values()}
    kept.add(metadata.get("current-snapshot-id"))
    snapshots = [snapshot for snapshot in metadata.get("snapshots") or () if snapshot["snapshot-id"] in kept]
    return orjson.dumps({**metadata, "snapshots": snapshots})


def etag_of(metadata_location: str, snapshots: str = "all") -> str:
    """Differs with the metadata and with what is shown of it."""
    digest = hashlib.sha256(f"{metadata_location}\n{snapshots}".encode(errors="surrogatepass")).hexdigest()
    return f'"{digest[:32]}"'


def matches(if_none_match: str, etag: str) -> bool:
    """RFC 9110, section 13.1.2, with its weak comparison."""
    given = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return etag in given or given == ["*"]
