"""Nested schemas over a flat outside system: name conflicts, and under which name such a schema is stored there."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

from django.db.models import F

from authz.actor import Actor
from catalogs.services.nesting import PROPERTY, SHOWN, divided_conflicts
from catalogs.services.provider_of import provider_at
from metalake.errors import Invalid, NotFound, ProviderTimeout, ProviderUnavailable
from metalake.hierarchy import HierarchicalSchema, configured_separator
from metalake.kinds import Kind
from metalake.lineage import Located
from outside import mirror
from outside.calls import load_schema, pages
from providers import remote
from providers.base import Provider
from providers.deadline import require_time
from providers.remote_objects import Levels, Remote
from providers.schema_names import encode_path


def conflicts(actor: Actor, catalog: Located, divided: Collection[str]) -> list[str]:
    """Why a flat catalog cannot become nested, one sentence each. Raises ProviderUnavailable if it cannot be read."""
    provider = provider_at(catalog)
    if provider.names.nests_there or not provider.keeps_outside(Kind.SCHEMA):
        return divided_conflicts(divided)
    names = _names(actor, catalog, provider)
    odd = {*divided, *(name for name in names if configured_separator() in name)}
    provider.properties[PROPERTY] = "true"
    return [*divided_conflicts(odd), *_read_otherwise(provider, set(names) - odd), *_made_one(provider, names)]


def require_no_clash(provider: Provider, metalake_id: int) -> None:
    """Raise Invalid if two schemas of its system would have the same path in a catalog to be created.

    Raises ProviderUnavailable if the system cannot be read now, since the answer is unknown then.
    """
    if not provider.names.nests_here:
        return
    with _explained(provider.label):
        names = remote.trial(provider, lambda: list(_there(provider)), remote.TOTAL, metalake_id=metalake_id)
    if clashes := _made_one(provider, names):
        raise Invalid(f"{PROPERTY!r} cannot be switched on: {' '.join(clashes[:SHOWN])}", kind=Kind.CATALOG)


def spelt_otherwise(catalog_id: int) -> list[str]:
    """Why a nested catalog cannot become flat: schemas whose name in the system differs from their name here."""
    odd = mirror.of_schemas(catalog_id).exclude(wire_name=F("securable__name")).order_by("wire_name")
    names = odd.values_list("securable__name", "wire_name")[:SHOWN]
    return [f"Schema {here} is called {there} there." for here, there in names]


# Where a schema lies


def spellings(provider: Provider, path: HierarchicalSchema) -> list[Levels]:
    """The levels that a schema may have there: our spelling first, then one that others may use. Raises Invalid."""
    spelt = provider.names.levels_of(path)
    plain = [path.leaf]
    if not provider.names.nests_here or path.is_nested or plain == spelt or provider.names.path_of(plain) != path:
        return [spelt]
    return [spelt, plain]


def foreign_place(actor: Actor, catalog: Located, provider: Provider, path: HierarchicalSchema) -> Remote | None:
    """The schema with this path that others created under another spelling than ours, or None.

    Where nothing carries markers, also under ours: a creation whose answer is lost must have begun with a free name.
    """
    for levels in spellings(provider, path)[int(provider.schemas.carries_markers) :]:
        try:
            return load_schema(actor, catalog, provider, levels)
        except NotFound:
            pass
    return None


# Names that cannot stay apart


def _names(actor: Actor, catalog: Located, provider: Provider) -> list[str]:
    """All names in the system, as of now. Raises ProviderUnavailable."""
    names, until = list[str](), time.monotonic() + remote.TOTAL
    with _explained(provider.label):
        for page in pages(actor, catalog, provider, "list_schemas"):
            names += [mirror.provider_levels(each)[0] for each in page]
            if time.monotonic() > until:
                raise ProviderTimeout(f"It did not list all in {remote.TOTAL:.0f} seconds.", kind=Kind.CATALOG)
    return names


@contextmanager
def _explained(label: str) -> Iterator[None]:
    """Explain in a ProviderUnavailable that nesting stays off until the outside system has listed its schemas."""
    try:
        yield
    except ProviderUnavailable as failure:
        unknown = f"{PROPERTY!r} is not switched on, since {label} must say first which schemas it has."
        failure.message = f"{unknown} {failure.message}"
        raise


def _there(provider: Provider) -> Iterator[str]:
    """The names in the system of a catalog that has no row yet."""
    page = provider.schemas.list()
    while True:
        yield from (mirror.provider_levels(remote)[0] for remote in page.items)
        if page.next is None:
            return
        require_time()  # the caller may have timed out, and pages may loop
        page = provider.schemas.list(page.next)


def _read_otherwise(provider: Provider, names: Iterable[str]) -> list[str]:
    """Names that would be read as paths."""
    paths = ((name, _path(provider, name)) for name in sorted(names))
    return [
        f"Schema {name} would be read as {path.logical()}." for name, path in paths if path and path.segments != (name,)
    ]


def _made_one(provider: Provider, names: Iterable[str]) -> list[str]:
    """Names that would collide in one path."""
    spelt = dict[str, list[str]]()
    for name in sorted(set(names)):
        if path := _path(provider, name):
            key = encode_path([provider.names.folded(segment) for segment in path.segments])
            spelt.setdefault(key, []).append(name)
    return [f"{' and '.join(same)} would be one schema." for same in spelt.values() if len(same) > 1]


def _path(provider: Provider, name: str) -> HierarchicalSchema | None:
    """The path of a name; None if it cannot be a schema here."""
    try:
        return provider.names.path_of([name])
    except Invalid:
        return None
