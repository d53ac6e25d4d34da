"""The native wire's replies about metalakes, catalogs, schemas and tables: their shapes, and how they are made.

Source: Gravitino's documented API of catalogs, schemas and tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import Field

from catalogs.models import Catalog
from catalogs.secrets import NOTHING, mask
from catalogs.stores import SchemaRecord
from formats.native.columns import Column
from formats.native.tables import Distribution, Index, Partitioning, SortOrder
from metalake.models import Metalake
from metalake.rest.replies import Audit, AuditReply, audit_of
from metalake.wire import Reply


class Identifier(Reply):
    """The address of an object: every name above it, the metalake first, and its own."""

    namespace: list[str]
    name: str


class MetalakeReply(Reply):
    """A metalake; the property `in-use` says whether it is enabled."""

    name: str
    comment: str | None
    properties: dict[str, str]
    audit: AuditReply


class CatalogReply(Reply):
    """A catalog; secrets among its properties are masked, and `in-use` says whether it is enabled."""

    name: str
    type: Literal["relational", "fileset", "messaging", "model"]
    provider: str
    comment: str | None
    properties: dict[str, str]
    audit: AuditReply


class SchemaReply(Reply):
    """A schema; its name is the whole path."""

    name: str
    comment: str | None
    properties: dict[str, str]
    audit: AuditReply


class TableReply(Reply):
    """A table."""

    name: str
    comment: str | None
    columns: list[Column] = Field(min_length=1)
    properties: dict[str, str]
    partitioning: list[Partitioning]
    sort_orders: list[SortOrder]
    distribution: Distribution
    indexes: list[Index]
    audit: AuditReply


def identifiers(namespace: Iterable[str], names: Iterable[str]) -> list[dict[str, Any]]:
    above = list(namespace)
    return [{"namespace": above, "name": name} for name in names]


def metalake_reply(row: Metalake) -> dict[str, Any]:
    return _container(row.name, row, in_use=row.enabled)


def catalog_reply(row: Catalog, secrets: Mapping[str, bool]) -> dict[str, Any]:
    kind = {"type": row.type, "provider": row.provider}
    return kind | _container(row.name, row, in_use=row.enabled, secrets=secrets)


def schema_reply(record: SchemaRecord) -> dict[str, Any]:
    """The reply about a schema; only its name if it is just the path to an object below."""
    if record.is_path:
        return {"name": record.path.logical(), "comment": None, "properties": {}, "audit": {}}
    return _container(record.path.logical(), record.row)


def table_reply(name: str, parts: dict[str, Any], audit: Audit) -> dict[str, Any]:
    return parts | {"name": name, "properties": mask(parts["properties"]), "audit": audit_of(audit)}


def partition_reply(parts: dict[str, Any]) -> dict[str, Any]:
    return parts | {"properties": mask(parts["properties"])}


def as_sent(reply: dict[str, Any], properties: Mapping[str, str]) -> dict[str, Any]:
    """The reply to a creation: with the properties of the request, masked, and no other.

    Source: Gravitino's server, which answers a creation with the requested properties (MetalakeManager,
    SchemaOperationDispatcher and TableOperationDispatcher). A catalog is answered as it is loaded.
    """
    return reply | {"properties": mask(properties)}


def _container(
    name: str, row: Any, *, in_use: bool | None = None, secrets: Mapping[str, bool] = NOTHING
) -> dict[str, Any]:
    properties = mask(row.properties, secrets)
    if in_use is not None:
        properties["in-use"] = "true" if in_use else "false"
    return {"name": name, "comment": row.comment, "properties": properties, "audit": audit_of(row)}
