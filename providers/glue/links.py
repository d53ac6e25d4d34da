"""Resource links: entries without a table of their own, which lead to one of another database or account."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from formats.hive.tables import VIEW_TYPES
from metalake.errors import Invalid, NotFound, ProviderUnavailable, Unsupported
from metalake.kinds import Kind
from providers.answers import Json
from providers.glue.client import GlueClient

LINK = "metalake.link"  # in the rest of a definition: why the link leads nowhere, empty for one that was followed
TARGET = "resource-link"  # the property that shows where a link leads
OF_THE_LINK = ("Name", "DatabaseName", "CatalogId", "CreateTime", "TargetTable")


def is_unread(entry: Mapping[str, Any]) -> bool:
    """Whether an entry is a link whose target is not read yet."""
    return bool(entry.get("TargetTable")) and not entry.get("StorageDescriptor") and LINK not in entry


def followed(glue: GlueClient, entry: Json, region: str) -> Json:
    """The entry, or a link with all that its target says; a dead or forbidden one with the reason under LINK."""
    if not is_unread(entry):
        return entry
    to, version = entry["TargetTable"], entry.get("VersionId") or ""
    try:
        if to.get("Region") not in (None, region):
            raise Invalid("It is in another region.")
        place = {"CatalogId": to["CatalogId"], "DatabaseName": to["DatabaseName"], "Name": to["Name"]}
        target = glue.call("GetTable", [to["DatabaseName"], to["Name"]], **place)["Table"]
        if target.get("TargetTable") or target.get("TableType") in VIEW_TYPES:
            raise Invalid("It is no table.")
    except (NotFound, Invalid, ProviderUnavailable) as failure:
        if isinstance(failure, ProviderUnavailable) and failure.retryable:
            raise
        why = f"Table {entry['Name']} is a resource link to {_name(to)}, which this catalog cannot read."
        return {**entry, LINK: f"{why} {failure.message}", "VersionId": f"{version}/"}
    its_own = {name: entry[name] for name in OF_THE_LINK if name in entry}
    return {**target, **its_own, LINK: "", "VersionId": f"{version}/{target.get('VersionId') or ''}"}


def target_of(definition: Json) -> str | None:
    """Where a link to a table leads, as `account.database.table`; None for what is no link."""
    return _name(definition["rest"]["TargetTable"]) if LINK in definition["rest"] else None


def dead(definition: Json) -> str:
    """Why a link leads nowhere, a sentence or two; empty for a table and for a link that was followed."""
    return str(definition.get("rest", {}).get(LINK) or "")


def require_own(entry: Json) -> None:
    """As `require_none`, for an entry."""
    if is_unread(entry):
        require_none({"rest": {LINK: "", **entry}})


def require_none(definition: Json) -> None:
    """Raise Unsupported for a link, which is only read here."""
    if target := target_of(definition):
        raise Unsupported(f"This is a resource link to {target}: it is changed there.", kind=Kind.TABLE)


def _name(to: Mapping[str, str]) -> str:
    return ".".join(filter(None, (to.get("CatalogId"), to.get("DatabaseName"), to.get("Name"))))
