"""Make tables and views in an outside system by intents."""

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
from outside.view_versions import note_all as note_views
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

    def arguments(actor: Actor, fresh: Located) -> dict[str, Any]:
        names = {"schema": mirror.provider_levels(schema), "table": name}
        return {**names, "definition": new.definition, "plan": plan, "by_owner": places.may_choose(actor, fresh)}

    carry_creation(actor, home, Kind.TABLE, name, place, arguments)
    return lookup.find(actor, replace(ident, leaf=name))


def carry_creation(
    actor: Actor,
    home: Located,
    kind: Kind,
    name: str,
    place: Remote | None,
    arguments: Callable[[Actor, Located], dict[str, Any]],
) -> None:
    """Make an object in a schema, and before it the schema's `place` if it does not exist yet.

    `arguments` are those of the call but for its marker, made in the transaction that promises it.
    """

    def decide(actor: Actor) -> Draft:
        fresh = recheck(actor, home, operations.OPERATIONS[f"create_{kind}"])
        naming.require_free(fresh, name, kind)
        return _creation(fresh, kind, name, place, arguments(actor, fresh))

    intents.carry(actor, decide, holds=partial(hold_each, [(home, Lock.MOVES)]))


def _creation(home: Located, kind: Kind, name: str, place: Remote | None, arguments: dict[str, Any]) -> Draft:
    """The draft of the intent to make an object, and before it the outside schema `place` if that is not there yet."""
    marker, verb = new_id(), f"create_{kind}"
    first, on_the_way = making(place, home, marker)
    return Draft(
        id=marker,
        verb=verb,
        catalog_id=home.catalog.id,
        full_name=dotted([*home.full_name, name]),
        names=[*on_the_way, (home.id, Slot.TABULAR, name)],
        must_stay=names_on(home),
        steps=[*first, step(verb, **arguments, marker=str(marker))],
        arguments={"schema_id": home.id, "name": name},
    )


def _home(actor: Actor, intent: Intent) -> Located:
    home = by_id(intent.arguments["schema_id"])
    if home is None:
        raise NotFound(f"The schema of {intent.full_name} does not exist.", kind=Kind.SCHEMA)
    policy.require(actor, operations.OPERATIONS[intent.verb], home)
    return home


def _publish_creation(actor: Actor, intent: Intent) -> None:
    now, home, name = timezone.now(), _home(actor, intent), intent.arguments["name"]
    kind, answer = Kind(intent.verb.removeprefix("create_")), Remote(**intent.steps[-1]["result"])
    naming.require_free(home, name, kind)
    publish_place(intent, home)
    row = Securable.made(kind, name, home, owner_user_id=actor.id, creator=actor.name)
    row.save(force_insert=True)
    mirror.store_answer(row.id, home.catalog.id, name, answer, now)
    note_views(home, [(row.id, answer)], actor.name)
    full_name = [*home.full_name, name]
    record(event_of(actor, f"{kind}.created", kind, row.id, full_name, home.metalake.id, [stands(row)]))


intents.register("create_table", Work(_publish_creation, allowed=_home))
intents.register("create_view", Work(_publish_creation, allowed=_home))
