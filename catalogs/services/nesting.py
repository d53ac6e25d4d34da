"""Whether a catalog may have nested schemas, and the conflicts that prevent a change of this."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from authz import operations, policy
from authz.actor import Actor
from catalogs.models import Catalog, Schema
from catalogs.stores import catalog_store_of, store_for
from metalake.errors import Invalid, ProviderUnavailable
from metalake.hierarchy import configured_separator
from metalake.kinds import Kind
from metalake.lineage import Located

PROPERTY = "nested-namespaces"
SHOWN = 20


@dataclass(frozen=True)
class Check:
    """Up to SHOWN conflicts, one sentence each; `note` says why the outside system could not be checked."""

    conflicts: list[str]
    note: str = ""


def check(actor: Actor, catalog: Located) -> Check:
    """The conflicts of making the catalog nested; none if it already is. Raises NotFound, Forbidden."""
    policy.require(actor, operations.ALTER_CATALOG, catalog)
    if catalog.nested:
        return Check([])
    names = divided(catalog.id)
    try:
        conflicts = store_for(catalog, Kind.CATALOG).nesting_conflicts(actor, catalog, names)
    except ProviderUnavailable as failure:
        return Check(divided_conflicts(names), failure.message)
    return Check((conflicts or divided_conflicts(names))[:SHOWN])


def require_nestable(actor: Actor, catalog: Located) -> None:
    """Raise Invalid if names in its system prevent a catalog from becoming nested, ProviderUnavailable if it does not
    list them all. Do not call in a transaction.
    """
    if catalog.nested:
        return
    conflicts = store_for(catalog, Kind.CATALOG).nesting_conflicts(actor, catalog, divided(catalog.id))
    if conflicts:
        raise Invalid(f"{PROPERTY!r} cannot be switched on: {' '.join(conflicts[:SHOWN])}", kind=Kind.CATALOG)


def require_changeable(row: Catalog, nested: bool) -> None:
    """Raise Invalid if the names of its schemas prevent a catalog from becoming nested or flat."""
    if nested and not row.nested and (names := divided(row.pk)):
        raise Invalid(
            f"{PROPERTY!r} cannot be switched on: {configured_separator()!r} is part of {', '.join(names)}. Drop these "
            "schemas or choose another separator.",
            kind=Kind.CATALOG,
        )
    if row.nested and not nested:
        if Schema.objects.filter(in_catalog_id=row.pk, parent__kind=Kind.SCHEMA).exists():
            raise Invalid("The catalog cannot become flat: it has nested schemas.", kind=Kind.CATALOG)
        if conflicts := catalog_store_of(row).flattening_conflicts(row.pk):
            raise Invalid(f"{PROPERTY!r} cannot be switched off: {' '.join(conflicts[:SHOWN])}", kind=Kind.CATALOG)


def divided(catalog_id: int) -> list[str]:
    """Up to SHOWN names of top-level schemas that contain the separator, which prevents nesting."""
    names = Schema.objects.filter(parent_id=catalog_id, name__contains=configured_separator())
    return list(names.order_by("name").values_list("name", flat=True)[:SHOWN])


def divided_conflicts(names: Iterable[str]) -> list[str]:
    """One sentence for each name that the separator would split."""
    mark = configured_separator()
    return [f"Schema {name} contains {mark!r}, which would split it into levels." for name in sorted(names)]


def check_separator_of_names() -> None:
    """Raise Invalid if a level of a schema in a nested catalog contains the server's separator.

    Such names were created under another separator, and would now be parsed as paths of other schemas.
    """
    mark = configured_separator()
    rows = Schema.objects.filter(in_catalog__nested=True, name__contains=mark).order_by("in_catalog__name", "name")
    names = [f"{catalog}.{name}" for catalog, name in rows.values_list("in_catalog__name", "name")[:20]]
    if names:
        raise Invalid(
            f"METALAKE_SCHEMA_SEPARATOR cannot be {mark!r}: it is part of the schemas {', '.join(names)}. "
            "Choose another separator, or start with the former one and drop these schemas.",
            kind=Kind.SCHEMA,
        )
