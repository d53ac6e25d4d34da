"""Request bodies and table and view responses of the Iceberg REST specification.

Unknown fields are ignored, as the specification requires; a wrong type is an error naming the field.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar

import orjson
from pydantic import BaseModel, ConfigDict, Field

from catalogs.table_stores import TableRecord
from metalake.blocking import may_block
from providers.metadata_files import METADATA
from views_mgmt.stores import ViewRecord

LEAST = 1400  # bytes of metadata below which a response fits in one packet anyway
MUCH = 64 * 1024  # bytes above which compressing takes more than a millisecond


class Body(BaseModel):
    """A body with kebab-case field names in JSON; null means absent."""

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

    namespace: list[str] = Field(fail_fast=True)
    name: str


class RenameLeaf(Body):
    source: LeafIdentifier
    destination: LeafIdentifier


class Commit(Body):
    """A commit to a table or view; the identifier is optional, since Java's client sends it only in the path."""

    # Expiring a hundred thousand snapshots takes many values but little memory; only the first error is reported.
    per_object: ClassVar[int] = 4

    identifier: LeafIdentifier | None = None
    requirements: list[dict[str, Any]] | None = Field(None, fail_fast=True)
    updates: list[dict[str, Any]] | None = Field(None, fail_fast=True)


class TableChange(Body):
    """A transaction's commit to one table."""

    identifier: LeafIdentifier
    requirements: list[dict[str, Any]]
    updates: list[dict[str, Any]]


class CommitTransaction(Body):
    table_changes: list[TableChange]


def table_result(record: TableRecord, metadata: bytes | None = None) -> bytes:
    """LoadTableResult, built around the stored metadata without parsing it."""
    return b'{"metadata-location":%b,"config":{},"metadata":%b}' % (
        orjson.dumps(record.metadata_location),
        metadata or record.content,
    )


def commit_result(record: TableRecord | ViewRecord) -> bytes:
    """CommitTableResponse, or LoadViewResult without a configuration."""
    return b'{"metadata-location":%b,"metadata":%b}' % (orjson.dumps(record.metadata_location), record.content)


def only_referenced(metadata: dict[str, Any]) -> bytes:
    """The metadata with only the snapshots that a branch or tag points to (`snapshots=refs`)."""
    referenced = {ref["snapshot-id"] for ref in (metadata.get("refs") or {}).values()}
    referenced.add(metadata.get("current-snapshot-id"))
    snapshots = [snapshot for snapshot in metadata.get("snapshots") or () if snapshot["snapshot-id"] in referenced]
    return orjson.dumps({**metadata, "snapshots": snapshots})


@lru_cache(maxsize=10_000)
def etag_of(metadata_location: str, snapshots: str = "all") -> str:
    """The ETag, which depends on the metadata and the `snapshots` parameter."""
    digest = hashlib.sha256(f"{metadata_location}\n{snapshots}".encode(errors="surrogatepass")).hexdigest()
    return f'"{digest[:32]}"'


def matches(if_none_match: str, etag: str) -> bool:
    """Whether If-None-Match has the ETag, gzipped or not (RFC 9110, section 13.1.2, weak comparison)."""
    given = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return etag in given or packed_etag(etag) in given or given == ["*"]


def packed_etag(etag: str) -> str:
    """The ETag of the gzipped response, which must differ (RFC 9110, section 8.8.3.3)."""
    return f'{etag[:-1]}-gzip"'


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether Accept-Encoding names gzip with a non-zero weight (RFC 9110, section 12.5.3)."""
    for each in accept_encoding.lower().split(","):
        coding, _, weight = each.strip().partition(";")
        if coding.strip() in ("gzip", "x-gzip"):
            return weight.strip().replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def packed_result(record: TableRecord) -> bytes:
    """LoadTableResult gzipped, cached with the metadata."""
    return _made_once(record, "gzip", lambda: gzip.compress(table_result(record), compresslevel=6, mtime=0))


def referenced_result(record: TableRecord) -> bytes:
    """LoadTableResult with only the referenced snapshots, cached to avoid reparsing the history."""
    return _made_once(record, "refs", lambda: table_result(record, only_referenced(record.metadata)))


def _made_once(record: TableRecord, form: str, make: Callable[[], bytes]) -> bytes:
    """Cached result. Raises BeginAgain in a short-read thread on a miss for large metadata."""
    place = record.published.catalog.id, record.metadata_location or ""
    answer = METADATA.answer(*place, record.content, form)
    if answer is None:
        if len(record.content) > MUCH:
            may_block()
        answer = make()
        METADATA.put_answer(*place, record.content, form, answer)
    return answer
