"""What stands in the way of schemas inside schemas in a catalog that is flat so far."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from authz import operations, policy
from authz.policy import Actor
from catalogs.hierarchy import configured_separator
from catalogs.lookup import Found
from catalogs.models import Mirror
from catalogs.providers.external import ExternalProvider, encode_path
from catalogs.services.catalogs import nested_conflicts
from catalogs.services.external import mirror
from catalogs.services.external.calls import is_external, pages, provider_at_external
from metalake.errors import Invalid, ProviderUnavailable
from metalake.privileges import Kind

MOST = 5_000  # schemas that are asked for
SHOWN = 20


@dataclass(frozen=True)
class Check:
    """Each conflict in a sentence, up to SHOWN of them; `note` says what could not be looked at."""

    conflicts: list[str]
    note: str = ""


def check(actor: Actor, found: Found) -> Check:
    """What it would lead to if the catalog became nested; nothing where it is. Raises NotFound, Forbidden."""
    policy.require(actor, operations.ALTER_CATALOG, found)
    if found.nested:
        return Check([])
    held = set(nested_conflicts(found.id))
    provider = provider_at_external(found) if is_external(found) else None
    if provider is None or _nests_there(provider):
        return Check(_divided(held)[:SHOWN])
    names, note = _names(actor, found, provider)
    held |= {name for name in names if configured_separator() in name}
    provider.properties["nested-namespaces"] = "true"
    return Check([*_divided(held), *_clashes(provider, set(names) - held)][:SHOWN], note)


def _nests_there(provider: ExternalProvider) -> bool:
    offered = provider.capabilities.schemas
    return offered is not None and offered.nested


def _divided(names: Iterable[str]) -> list[str]:
    mark = configured_separator()
    return [f"Schema {name} holds {mark!r}, which would divide it into levels." for name in sorted(names)]


def _names(actor: Actor, found: Found, provider: ExternalProvider) -> tuple[list[str], str]:
    """The names there: asked for now, else as they were when last seen."""
    names: list[str] = []
    try:
        for page in pages(actor, found, provider, "list_schemas"):
            names += [mirror.provider_levels(remote)[0] for remote in page]
            if len(names) > MOST:
                return names[:MOST], f"Only the first {MOST:,} schemas were looked at."
    except ProviderUnavailable as failure:
        known = Mirror.objects.filter(in_catalog_id=found.id, securable__kind=Kind.SCHEMA)
        names = [row.levels[0] for row in known.only("wire_name")]
        return names, f"{provider.label} was not asked, so this is about what it last said. {failure.message}"
    return names, ""


def _clashes(provider: ExternalProvider, names: Iterable[str]) -> list[str]:
    """Names that would be read as paths, and names that would be one."""
    said, spelt = [], dict[str, list[str]]()
    for name in sorted(names):
        try:
            path = provider.path_of([name])
        except Invalid:
            continue  # it is no schema here, nested or not
        if path.segments != (name,):
            said.append(f"Schema {name} would be read as {path.logical()}.")
        key = encode_path([provider.folded(segment) for segment in path.segments])
        spelt.setdefault(key, []).append(name)
    said += [f"{' and '.join(same)} would be one schema." for same in spelt.values() if len(same) > 1]
    return said
