"""Partitions of outside tables: never cached as rows, since no grant refers to them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from authz import operations
from authz.actor import Actor
from authz.locks import Lock
from catalogs.lookup import by_id
from catalogs.models import Intent
from catalogs.secrets import require_values
from catalogs.services import places
from catalogs.services.alterations import event
from catalogs.services.writes import hold_each
from formats.native.partitions import IdentityPartition
from metalake.events import record
from metalake.full_names import dotted
from metalake.lineage import Located
from metalake.models import new_id
from outside import intents, mirror, table_places
from outside.calls import ask, levels_of, pages
from outside.intents import Draft, Work, step
from outside.tables import ExternalTable
from outside.write_helpers import files_kept, names_on, recheck
from providers.remote_objects import PARTITION, Remote

SLOT = "partition"


def listed(actor: Actor, table: ExternalTable) -> Iterator[dict[str, Any]]:
    """The partitions as JSON of the native API."""
    where = _where(table.located)
    for page in pages(actor, table.located, table.provider, "list_partitions", **where):
        yield from (table.provider.partitions.show(table.definition, each.definition) for each in page)


def names(actor: Actor, table: ExternalTable) -> list[str]:
    where = _where(table.located)
    return [
        each.name for page in pages(actor, table.located, table.provider, "list_partitions", **where) for each in page
    ]


def loaded(actor: Actor, table: ExternalTable, name: str) -> dict[str, Any]:
    """A partition as JSON of the native API. Raises NotFound."""
    where = _where(table.located)
    there = Remote(**ask(actor, table.located, table.provider, "load_partition", **where, partition=name))
    return table.provider.partitions.show(table.definition, there.definition)


def add(actor: Actor, table: ExternalTable, asked: IdentityPartition) -> dict[str, Any]:
    """Add a partition; returns its JSON. Raises Forbidden for a location that the actor may not choose."""
    require_values(asked.properties, kind=PARTITION)
    definition = table.provider.partitions.draft(table.definition, asked)
    name, place = definition["name"], definition.get("location")
    table_places.require_partition(actor, table.located, table.provider, _locations_of(table), place)
    intent = _carry(actor, table, "add_partition", name, definition=definition)
    return table.provider.partitions.show(table.definition, intent.steps[-1]["result"]["definition"])


def _locations_of(table: ExternalTable) -> list[str]:
    place = table.definition.get("location")
    return [place] if place else []


def drop(actor: Actor, table: ExternalTable, name: str) -> str | None:
    """Drop a partition; returns why its files stay that the system would have deleted, or None. Raises NotFound."""
    loaded(actor, table, name)
    return files_kept(_carry(actor, table, "drop_partition", name, partition=name))


def _carry(actor: Actor, table: ExternalTable, verb: str, name: str, **arguments: Any) -> Intent:
    def decide(actor: Actor) -> Draft:
        fresh = recheck(actor, table.located, operations.ALTER_TABLE)
        return Draft(
            id=new_id(),
            verb=verb,
            catalog_id=fresh.catalog.id,
            full_name=f"{dotted(fresh.full_name)}/{name}"[:2048],
            names=[(fresh.id, SLOT, _short(name))],
            must_stay=names_on(fresh),
            steps=[step(verb, **_where(fresh), **arguments, by_owner=places.may_choose(actor, fresh))],
            arguments={"id": fresh.id, "partition": name},
        )

    return intents.carry(actor, decide, holds=lambda: hold_each([(table.located, Lock.CHANGES)]))


def _short(name: str) -> str:
    """The name, or its hash if it is longer than the 255 characters of a reservation's name."""
    return name if len(name) <= 255 else hashlib.sha256(name.encode()).hexdigest()


def _where(located: Located) -> dict[str, Any]:
    return {"schema": levels_of(located.above()) or [], "table": mirror.wire_name_at(located.id)}


def _note(actor: Actor, intent: Intent) -> None:
    located = by_id(intent.arguments["id"])
    if located is not None:
        fact = "table.partition_added" if intent.verb == "add_partition" else "table.partition_dropped"
        details: dict[str, Any] = {"partition": intent.arguments["partition"]}
        if why := files_kept(intent):
            details["files_kept"] = why
        record(event(actor, fact, located, **details))


def _may_still(actor: Actor, intent: Intent) -> None:
    located = by_id(intent.arguments["id"])
    if located is not None:
        recheck(actor, located, operations.ALTER_TABLE)


for _verb in ("add_partition", "drop_partition"):
    intents.register(_verb, Work(_note, _may_still))
