"""A schema's counterpart in its outside system; one that exists only here is created there with its first table."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from authz.actor import Actor
from catalogs.models import Intent, Mirror
from catalogs.services.provider_of import provider_at
from catalogs.stores import store_for
from metalake.kinds import Kind
from metalake.lineage import Located
from outside import mirror, nesting
from outside.intents import ADOPTED, Name, step
from outside.reads import current
from outside.write_helpers import names_on, require_no_link
from providers.base import Provider
from providers.remote_objects import Remote


def as_remote(schema: Located) -> Remote:
    """The schema as its system last described it; one that exists only here as it would be created there."""
    there = Mirror.objects.filter(pk=schema.id).first()
    return _only_here(schema, provider_at(schema)) if there is None else _remote_of(there)


def _only_here(schema: Located, provider: Provider) -> Remote:
    name = mirror.wire_name(provider.names.levels_of(schema.path))
    return Remote(name, provider.schemas.draft(None, {}), kind=Kind.SCHEMA)


def _remote_of(mirrored: Mirror) -> Remote:
    return Remote(mirrored.wire_name, mirrored.definition, mirrored.identity, mirrored.version, kind=Kind.SCHEMA)


def home_of(actor: Actor, schema: Located) -> str | None:
    """The default folder of a schema's Iceberg tables, or None if unknown."""
    return provider_at(schema).pointers.home_of(store_for(schema, Kind.SCHEMA).as_remote(actor, schema))


def schema_for_new(actor: Actor, home: Located, provider: Provider) -> tuple[Remote, bool]:
    """The outside schema for a new object, as its system has it now, and whether it must be created first.

    Raises NotFound if it is gone, or another one has its name there; Unsupported if it is a resource link.
    """
    mirrored = Mirror.objects.select_related("securable").filter(pk=home.id).first()
    if mirrored is not None:
        require_no_link(home, mirrored.definition)
        return _remote_of(current(actor, home, provider, force=True, known=mirrored)), False
    store = store_for(home, Kind.SCHEMA)
    if store.levels(home) is not None:  # managed schemas, with tables outside
        return store.as_remote(actor, home), False
    if there := nesting.foreign_place(actor, home, provider, home.path):
        require_no_link(home, there.definition)
        return there, True
    return _only_here(home, provider), True


def making(place: Remote | None, home: Located, marker: int) -> tuple[list[dict[str, Any]], list[Name]]:
    """The call that creates a schema there, and its name to reserve, so that it appears only when published.

    Where nothing carries markers, a place that is there already is adopted before any call: nobody could tell later.
    """
    if place is None:
        return [], []
    arguments = {"schema": mirror.provider_levels(place), "definition": place.definition, "marker": str(marker)}
    call = step("create_schema", may_adopt=True, **arguments)
    if place.version and not provider_at(home).schemas.carries_markers:
        call |= {"status": ADOPTED, "result": place.as_json()}
    return [call], names_on(home)[-1:]


def publish_place(intent: Intent, home: Located) -> None:
    for each in intent.steps:
        if each["verb"] == "create_schema":
            name = mirror.wire_name(each["arguments"]["schema"])
            mirror.store_answer(home.id, home.catalog.id, name, Remote(**each["result"]), timezone.now())
