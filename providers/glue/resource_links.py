"""Resource links: entries that refer to a table in another database or account.

AWS returns a link with its target's properties if the caller may read these, and an update of such an entry updates the
target: an entry with `TargetTable` is a link, whatever else it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from formats.hive.tables import VIEW_TYPES
from metalake.errors import Invalid, NotFound, ProviderUnavailable, Unsupported
from metalake.kinds import Kind
from providers.glue.client import GlueClient
from providers.glue.settings import GlueSettings
from providers.network.identity import ADVICE, are_named
from providers.remote_objects import Json

LINK = "metalake.link"  # in a definition's `rest`: why the link cannot be resolved, empty for a resolved one
TARGET = "resource-link"  # the property that shows a link's target
OF_THE_LINK = ("Name", "DatabaseName", "CatalogId", "CreateTime", "TargetTable")


def is_link(entry: Mapping[str, Any]) -> bool:
    return isinstance(entry.get("TargetTable"), Mapping)


def is_unread(entry: Mapping[str, Any]) -> bool:
    """Whether an entry is a link whose target is not read yet."""
    return is_link(entry) and not entry.get("StorageDescriptor") and LINK not in entry


def followed(glue: GlueClient, entry: Json, given: GlueSettings, *, asks: bool = True) -> Json:
    """The entry, or a link with its target's fields; a dead or forbidden one with the reason under LINK.

    The target is read only if AWS did not include it; without `asks` such a link stays unread.
    """
    if not is_link(entry) or (is_unread(entry) and not asks):
        return entry
    to, version = entry["TargetTable"], entry.get("VersionId") or ""
    its_own = {name: entry[name] for name in OF_THE_LINK if name in entry}
    try:
        _require_reach(entry, given)
        target = _target(glue, to) if is_unread(entry) else {**entry, "TargetTable": None, "VersionId": ""}
        if is_link(target) or target.get("TableType") in VIEW_TYPES:
            raise Invalid("It is no table.")
    except (NotFound, Invalid, ProviderUnavailable) as failure:
        if isinstance(failure, ProviderUnavailable) and failure.retryable:
            raise
        why = f"Table {entry['Name']} is a resource link to {_name(to)}, which this catalog cannot read."
        return {**its_own, LINK: f"{why} {failure.message}", "VersionId": f"{version}/"}
    return {**target, **its_own, LINK: "", "VersionId": f"{version}/{target.get('VersionId') or ''}"}


def _target(glue: GlueClient, to: Mapping[str, str]) -> Json:
    place = {name: to[name] for name in ("CatalogId", "DatabaseName", "Name")}
    target: Json = glue.call("GetTable", [to["DatabaseName"], to["Name"]], **place)["Table"]
    return target


def _require_reach(entry: Json, given: GlueSettings) -> None:
    """Raise Invalid for a target with an incomplete name, in another region, or denied to the server's identity."""
    to = entry["TargetTable"]
    if not all(to.get(name) for name in ("CatalogId", "DatabaseName", "Name")):
        raise Invalid("It does not name an account, a database and a table.")
    if to.get("Region") not in (None, given.region):
        raise Invalid("It is in another region.")
    needed = f"glue://{to['CatalogId']}/{given.region}"
    if not given.keys and to["CatalogId"] != (given.account or entry.get("CatalogId")) and not are_named([needed]):
        raise Invalid(f"{ADVICE} It needs {needed}.")


def target_of(definition: Json) -> str | None:
    """The target of a table or database link as `account.database.table`; None if it is no link.

    Empty for an unread link to a table, of which only the name is known.
    """
    rest = definition.get("rest") or {}
    if not definition:
        return ""
    if LINK in rest:
        return _name(rest.get("TargetTable") or {})
    return _name(rest["TargetDatabase"]) if rest.get("TargetDatabase") else None


def dead(definition: Json) -> str:
    """Why a link cannot be resolved, in a sentence or two; empty for a table and for a resolved link."""
    return str(definition.get("rest", {}).get(LINK) or "")


def require_own(entry: Json, advice: str = "it is changed there") -> None:
    """Raise Unsupported for a link's entry, which is read-only here."""
    if is_link(entry):
        raise Unsupported(f"This is a resource link to {_name(entry['TargetTable'])}: {advice}.", kind=Kind.TABLE)


def require_none(definition: Json) -> None:
    """`require_own` for a definition."""
    if (target := target_of(definition)) is not None:
        require_own({"TargetTable": {"Name": target}})


def _name(to: Mapping[str, Any]) -> str:
    return ".".join(str(to[name]) for name in ("CatalogId", "DatabaseName", "Name") if to.get(name)) or "nothing"
