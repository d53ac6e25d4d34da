"""Make tables in an outside system by intents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from django.utils import timezone

from authz import operations, policy
from authz.actor import Actor
from authz.locks import Lock
from catalogs import lookup
from catalogs.lookup import by_id
from catalogs.models import Intent
from catalogs.services import free_names as naming
from catalogs.services import places
from catalogs.services.claims import require_unclaimed
from catalogs.services.holding import hold_each
from catalogs.services.opening import provider_at
from formats.native.tables import CreateTableRequest
from metalake.errors import NotFound
from metalake.events import event_of, record, stands
from metalake.hierarchy import check_segment
from metalake.kinds import Kind, Slot
from metalake.lineage import Address, Located
from metalake.models import Securable, new_id
from metalake.names import dotted
from outside import ground, intents, mirror
from outside.intents import Draft, Work, step
from outside.schema_places import asked_now, making, place_to_make, publish_place
from outside.work import names_on, recheck
from providers.answers import NewTable, Remote
from providers.base import Provider


def create(actor: Actor, ident: Address, home: Located, asked: CreateTableRequest) -> Located:
    """Make a table from a native create request."""
    return make(actor, ident, home, lambda provider, schema: provider.tables.draft(schema, asked))


def make(actor: Actor, ident: Address, home: Located, defined: Callable[[Provider, Remote], NewTable]) -> Located:
    """Make the table that `defined` returns for its outside schema, after making that schema if it exists only here."""
    provider = provider_at(home)
    name = provider.names.folded(ident.leaf or "")
    check_segment(name, Kind.TABLE)
    naming.require_free(home, name)
    place = place_to_make(actor, home, provider)
    schema = place or asked_now(actor, home)
    new = defined(provider, schema)
    named = provider.tables.named_places(new.definition, new.plan)
    bound = ground.require_named(actor, home, schema, provider, named)
    plan = ground.with_ground(bound, new.plan)
    require_unclaimed(provider, new.definition.get("location"), provider.pointers.location(new.definition))

    def decide(actor: Actor) -> Draft:
        fresh = recheck(actor, home, operations.CREATE_TABLE)
        naming.require_free(fresh, name)
        arguments: dict[str, Any] = {"schema": mirror.provider_levels(schema), "table": name}
        arguments |= {"definition": new.definition, "plan": plan, "by_owner": places.may_choose(actor, fresh)}
        return _creation(fresh, name, place, arguments)

    intents.carry(actor, decide, holds=partial(hold_each, [(home, Lock.MOVES)]))
    return lookup.find(actor, replace(ident, leaf=name))


def _creation(home: Located, name: str, place: Remote | None, arguments: dict[str, Any]) -> Draft:
    """The draft of the intent to make a table, and before it the outside schema `place` if that does not exist yet."""
    marker = new_id()
    first, on_the_way = making(place, home, marker)
    return Draft(
        id=marker,
        verb="create_table",
        catalog_id=home.catalog.id,
        full_name=dotted([*home.full_name, name]),
        names=[*on_the_way, (home.id, Slot.TABULAR, name)],
        must_stay=names_on(home),
        steps=[*first, step("create_table", **arguments, marker=str(marker))],
        arguments={"schema_id": home.id, "name": name},
    )


def _home(actor: Actor, intent: Intent) -> Located:
    home = by_id(intent.arguments["schema_id"])
    if home is None:
        raise NotFound(f"The schema of {intent.full_name} does not exist.", kind=Kind.SCHEMA)
    policy.require(actor, operations.CREATE_TABLE, home)
    return home


def _publish_creation(actor: Actor, intent: Intent) -> None:
    now, home, name = timezone.now(), _home(actor, intent), intent.arguments["name"]
    naming.require_free(home, name)
    publish_place(intent, home)
    row = Securable.made(Kind.TABLE, name, home, owner_user_id=actor.id, creator=actor.name)
    row.save(force_insert=True)
    mirror.store_answer(row.id, home.catalog.id, name, Remote(**intent.steps[-1]["result"]), now)
    full_name = [*home.full_name, name]
    record(event_of(actor, "table.created", Kind.TABLE, row.id, full_name, home.metalake.id, [stands(row)]))


intents.register("create_table", Work(_publish_creation, allowed=_home))
