"""Native API replies about views: their types and builders."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from catalogs.secrets import mask
from formats.native.columns import Column
from formats.native.view_definition import Representation, ViewDefinition
from metalake.rest.replies import AuditReply
from metalake.wire import Reply
from views_mgmt.models import ViewMeta, ViewVersion
from views_mgmt.stores import ViewRecord

UNKNOWN = "definition"  # the property that says why a view has no SQL here


class RepresentationReply(Reply):
    """The query in one dialect; its defaults complete the names in its SQL."""

    type: Literal["sql"]
    dialect: str
    sql: str
    default_catalog: str | None
    default_schema: str | None


class DefinitionReply(Reply):
    """What a version of a view has; `defaultCatalog` and `defaultSchema` are those that all representations share."""

    comment: str | None
    columns: list[Column]
    representations: list[RepresentationReply]
    default_catalog: str | None
    default_schema: str | None
    security_mode: Literal["DEFINER", "INVOKER"] | None
    properties: dict[str, str]


class ViewReply(DefinitionReply):
    """A view; `engine` is whose form it has, `format` what it is stored as, `version` the number of its version."""

    name: str
    version: int
    engine: str
    format: str
    materialized: bool
    audit: AuditReply


class ViewSummary(Reply):
    """A view in a list; `broken` says why it cannot be read, null if it can."""

    name: str
    version: int
    dialects: list[str]
    engine: str
    format: str
    security_mode: Literal["DEFINER", "INVOKER"] | None
    comment: str | None
    broken: str | None


class ViewVersionReply(DefinitionReply):
    """One version of a view; `storedAs` says what it is in the view's own store."""

    version: int
    stored_as: dict[str, Any]
    audit: AuditReply


def definition_reply(definition: ViewDefinition) -> dict[str, Any]:
    return {
        "comment": definition.comment,
        "columns": list(definition.columns),
        "representations": [representation_reply(each) for each in definition.representations],
        "defaultCatalog": definition.default_catalog,
        "defaultSchema": definition.default_schema,
        "securityMode": definition.security_mode,
        "properties": mask(definition.properties),
    }


def representation_reply(each: Representation) -> dict[str, Any]:
    return {
        "type": "sql",
        "dialect": each.dialect,
        "sql": each.sql,
        "defaultCatalog": each.default_catalog,
        "defaultSchema": each.default_schema,
    }


def view_reply(record: ViewRecord, meta: ViewMeta) -> dict[str, Any]:
    definition = record.definition
    if not definition.representations:  # upstream's clients refuse a view without any
        why = definition.properties.get(UNKNOWN, "Its SQL is not known here.")
        definition = replace(definition, representations=(Representation(dialect=record.engine, sql=f"-- {why}"),))
    return definition_reply(definition) | {
        "name": record.view.name,
        "version": meta.current_version,
        "engine": record.engine,
        "format": record.format,
        "materialized": record.is_materialized,
        "audit": meta.audit_info,
    }


def summary_reply(version: ViewVersion) -> dict[str, Any]:
    meta = version.view
    return {
        "name": meta.view_name,
        "version": version.version,
        "dialects": version.definition.dialects,
        "engine": meta.engine,
        "format": meta.format,
        "securityMode": version.security_mode,
        "comment": version.view_comment,
        "broken": meta.broken or None,
    }


def version_reply(version: ViewVersion) -> dict[str, Any]:
    return definition_reply(version.definition) | {
        "version": version.version,
        "storedAs": version.stored_as,
        "audit": version.audit_info,
    }
