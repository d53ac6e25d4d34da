"""List the objects of an outside schema, and bring their rows up to date."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from django.utils import timezone

from authz.actor import Actor
from catalogs.leaf_stores import asked_once
from catalogs.services.provider_of import provider_at
from catalogs.stores import store_for
from metalake.errors import NotFound
from metalake.kinds import KINDS, Kind
from metalake.lineage import Located
from outside import mirror
from outside.calls import levels_of, load_leaf, pages
from outside.reads import LOOKS, listed_since, names_to_show
from providers.base import Provider
from providers.remote_objects import Levels


def listed_names(actor: Actor, schema: Located, kind: Kind, *, force: bool = False) -> tuple[set[str] | None, datetime]:
    """The names of this kind and of those listed with it, None for all rows, and the time of the listing.

    Includes objects just created here, which a listing may lack.
    """
    provider, levels = provider_at(schema), levels_of(schema)
    if levels is None:
        return set(), timezone.now()
    listed_at = listed_since(schema.id, schema.catalog.id, provider, force)
    if listed_at is not None:
        return None, listed_at

    kinds = mirror.listed_kinds(schema, kind)

    def fetch() -> tuple[set[str] | None, datetime]:
        asked_at = timezone.now()
        return _fetch_names(actor, schema, kinds, provider, levels, asked_at), asked_at

    return asked_once((schema.id, kinds), fetch)


def _fetch_names(
    actor: Actor, schema: Located, kinds: Sequence[Kind], provider: Provider, levels: Levels, asked_at: datetime
) -> set[str]:
    names = set[str]()
    try:
        for page in pages(actor, schema, provider, f"list_{KINDS[kinds[0]].plural}", schema=levels):
            mirror.import_leaves(kinds[0], schema, page, asked_at)
            names |= mirror.names_of(kinds, page)
    except NotFound:
        store_for(schema, Kind.SCHEMA).load(actor, schema, refresh=True)  # removes the schema if it is gone
        raise
    return names_to_show(actor, schema, provider, names, kinds[0], asked_at)


def describe(actor: Actor, schema: Located, kind: Kind, *, force: bool = False) -> None:
    """Store the definitions of a schema's objects known only by name; with `force`, of all.

    A listing may give names alone. A few are loaded one by one; for more, a bulk listing comes first. The next listing
    loads what is still unknown then.
    """
    asked_once(("definitions", schema.id, kind, force), lambda: _describe(actor, schema, kind, force))


def _describe(actor: Actor, schema: Located, kind: Kind, force: bool) -> None:
    rows = mirror.of_leaves(schema.id, kind).filter(securable__kind=kind, version="", formats="")
    names = list(rows.values_list("wire_name", flat=True)[: LOOKS + 1])
    levels = levels_of(schema)
    if levels is None or not (names or force):
        return
    provider, asked_at, first = provider_at(schema), timezone.now(), mirror.listed_kinds(schema, kind)[0]
    if force or len(names) > LOOKS:
        whole: dict[str, Any] = {"whole": True} if kind is Kind.TABLE else {}
        if kind is Kind.TABLE and provider.tables.lists_by_names and not force:
            whole["names"] = list(rows.values_list("wire_name", flat=True))
        for page in pages(actor, schema, provider, f"list_{KINDS[kind].plural}", schema=levels, **whole):
            mirror.import_leaves(kind, schema, page, asked_at)
        names = list(rows.values_list("wire_name", flat=True)[:LOOKS])  # missing there, too, such as links
    for name in names:
        with suppress(NotFound):  # dropped meanwhile
            mirror.import_leaves(kind, schema, [load_leaf(actor, schema, provider, first, levels, name)], asked_at)
