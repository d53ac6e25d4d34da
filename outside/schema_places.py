"""The place of a schema in its outside system; a schema that exists only here gets its place with its first table."""

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
from outside.calls import levels_of
from outside.intents import Name, step
from outside.reads import current
from outside.write_helpers import names_on, require_own
from providers.base import Provider
from providers.remote_objects import Remote


def as_remote(actor: Actor, schema: Located, *, refresh: bool) -> Remote:
    """The schema as its system last described it, or with `refresh` describes it now.

    For a schema that exists only here, what it would be there; with `refresh`, NotFound is raised for that, and if the
    schema is gone or another one has its name.
    """
    if refresh:
        mirrored = current(actor, schema, provider_at(schema), force=True)
    else:
        there = Mirror.objects.filter(pk=schema.id).first()
        if there is None:
            provider = provider_at(schema)
            name = mirror.wire_name(provider.names.levels_of(schema.path))
            return Remote(name, provider.schemas.draft(None, {}), kind=Kind.SCHEMA)
        mirrored = there
    return Remote(mirrored.wire_name, mirrored.definition, mirrored.identity, mirrored.version, kind=Kind.SCHEMA)


def home_of(actor: Actor, schema: Located) -> str | None:
    """The default folder of a schema's Iceberg tables, or None if it is not known."""
    return provider_at(schema).pointers.home_of(store_for(schema, Kind.SCHEMA).as_remote(actor, schema))


def asked_now(actor: Actor, home: Located) -> Remote:
    """The schema as its system has it now. Raises NotFound if it is gone, or another one has its name there."""
    return store_for(home, Kind.SCHEMA).as_remote(actor, home, refresh=True)


def place_to_make(actor: Actor, home: Located, provider: Provider) -> Remote | None:
    """The outside schema to make for a schema that exists only here; None if it has its place already.

    Raises Unsupported for a place that is only a link.
    """
    if levels_of(home) is not None:
        require_own(home)
        return None
    if there := nesting.foreign_place(actor, home, provider, home.path):
        require_own(home, there)
        return there
    levels = provider.names.levels_of(home.path)
    return Remote(mirror.wire_name(levels), provider.schemas.draft(None, {}), kind=Kind.SCHEMA)


def making(place: Remote | None, home: Located, marker: int) -> tuple[list[dict[str, Any]], list[Name]]:
    """The call that makes a schema's place, and its name to reserve, so that it shows only when published."""
    if place is None:
        return [], []
    arguments = {"schema": mirror.provider_levels(place), "definition": place.definition, "marker": str(marker)}
    return [step("create_schema", may_adopt=True, **arguments)], names_on(home)[-1:]


def publish_place(intent: Intent, home: Located) -> None:
    for each in intent.steps:
        if each["verb"] == "create_schema":
            name = mirror.wire_name(each["arguments"]["schema"])
            mirror.store_answer(home.id, home.catalog.id, name, Remote(**each["result"]), timezone.now())
