"""The request bodies, and the responses about tables and views, of the Iceberg REST specification.

Unknown fields are ignored, as the specification requires; a wrong type is refused, naming the field.
"""

from __future__ import annotations

import hashlib
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, Field

from catalogs.table_stores import TableRecord
from views_mgmt.stores import ViewRecord


class Body(BaseModel):
    """A body whose field names have dashes on the wire; null means absent."""

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


class CreateView(Body):
    name: str
    columns: dict[str, Any] = Field(alias="schema")
    view_version: dict[str, Any]
    location: str | None = None
    properties: dict[str, str] | None = None


class RegisterView(Body):
    name: str
    metadata_location: str


class RegisterTable(Body):
    name: str
    metadata_location: str
    overwrite: bool | None = None


class LeafIdentifier(Body):
    """The name of a table or view."""

    namespace: list[str]
    name: str


class RenameLeaf(Body):
    source: LeafIdentifier
    destination: LeafIdentifier


class Commit(Body):
    """A commit to a table or view; the identifier is optional, since Java's client sends it in the path only."""

    identifier: LeafIdentifier | None = None
    requirements: list[dict[str, Any]] | None = None
    updates: list[dict[str, Any]] | None = None


def table_result(record: TableRecord, metadata: bytes | None = None) -> bytes:
    """LoadTableResult, around the stored metadata without parsing it."""
    return b'{"metadata-location":%b,"config":{},"metadata":%b}' % (
        orjson.dumps(record.metadata_location),
        metadata or record.content,
    )


def commit_result(record: TableRecord | ViewRecord) -> bytes:
    """CommitTableResponse, or LoadViewResult without a configuration."""
    return b'{"metadata-location":%b,"metadata":%b}' % (orjson.dumps(record.metadata_location), record.content)


def only_referenced(metadata: dict[str, Any]) -> bytes:
    """The metadata without the snapshots that no branch or tag points to (`snapshots=refs`)."""
    referenced = {ref["snapshot-id"] for ref in (metadata.get("refs") or {}).values()}
    referenced.add(metadata.get("current-snapshot-id"))
    snapshots = [snapshot for snapshot in metadata.get("snapshots") or () if snapshot["snapshot-id"] in referenced]
    return orjson.dumps({**metadata, "snapshots": snapshots})


def etag_of(metadata_location: str, snapshots: str = "all") -> str:
    """The ETag, which differs by the metadata and by the `snapshots` parameter."""
    digest = hashlib.sha256(f"{metadata_location}\n{snapshots}".encode(errors="surrogatepass")).hexdigest()
    return f'"{digest[:32]}"'


def matches(if_none_match: str, etag: str) -> bool:
    """Whether If-None-Match names the ETag (RFC 9110, section 13.1.2, weak comparison)."""
    given = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return etag in given or given == ["*"]
