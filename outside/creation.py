"""Make tables and views in an outside system by intents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from catalogs.services.provider_of import provider_at
from catalogs.services.writes import hold_each
from formats.native.tables import CreateTableRequest
from metalake.errors import NotFound
from metalake.events import event_of, record, stands
from metalake.full_names import dotted
from metalake.hierarchy import check_new_name
from metalake.kinds import Kind, Slot
from metalake.lineage import Address, Located
from metalake.models import Securable, new_id
from outside import intents, mirror, table_places
from outside.intents import Draft, Work, step
from outside.schema_places import asked_now, making, place_to_make, publish_place
from outside.view_versions import as_arguments
from outside.view_versions import note_all as note_views
from outside.write_helpers import names_on, recheck
from providers.base import Provider
from providers.remote_objects import NewTable, Remote
from views_mgmt.versions import State

Defined = Callable[[Provider, Remote], NewTable]
StatesOf = Callable[[Provider, NewTable], Sequence[State]]


def create(actor: Actor, ident: Address, home: Located, asked: CreateTableRequest) -> Located:
    """Make a table from a native create request."""
    return make(actor, ident, home, lambda provider, schema: provider.tables.draft(schema, asked))


def make(
    actor: Actor,
    ident: Address,
    home: Located,
    defined: Defined,
    kind: Kind = Kind.TABLE,
    *,
    states_of: StatesOf = lambda provider, new: (),
    fact: str = "created",
) -> Located:
    """Make the table or Iceberg view that `defined` returns for its outside schema, after making that schema if it
    exists only here.

    `states_of` gives the states that it has as a view, oldest first; `fact` is the last part of its event's name.
    """
    provider = provider_at(home)
    name = provider.names.folded(ident.leaf or "")
    check_new_name(name, kind)
    naming.require_free(home, name, kind)
    place = place_to_make(actor, home, provider)
    schema = place or asked_now(actor, home)
    new = defined(provider, schema)
    plan = _checked(actor, home, schema, provider, kind, new)
    more = {"fact": fact, "states": as_arguments(states_of(provider, new))}

    def arguments(actor: Actor, fresh: Located) -> dict[str, Any]:
        names = {"schema": mirror.provider_levels(schema), str(kind): name}
        return {**names, "definition": new.definition, "plan": plan, "by_owner": places.may_choose(actor, fresh)}

    carry_creation(actor, home, kind, name, place, arguments, more)
    return lookup.find(actor, replace(ident, leaf=name))


def _checked(
    actor: Actor, home: Located, schema: Remote, provider: Provider, kind: Kind, new: NewTable
) -> dict[str, Any] | None:
    """The plan with the ground that limits the actor. Raises Forbidden or Invalid for a place that may not be used."""
    if kind is Kind.VIEW:
        named = provider.view_pointers.named_places(new.definition, new.plan)
    else:
        named = provider.tables.named_places(new.definition, new.plan)
    bound = table_places.require_named(actor, home, schema, provider, named)
    return table_places.with_ground(bound, new.plan)


def carry_creation(
    actor: Actor,
    home: Located,
    kind: Kind,
    name: str,
    place: Remote | None,
    arguments: Callable[[Actor, Located], dict[str, Any]],
    more: Mapping[str, Any] | None = None,
) -> None:
    """Make an object in a schema, and before it the schema's `place` if it does not exist yet.

    `arguments` are those of the call but for its marker, made in the transaction that promises it. `more` may have
    `fact`, the last part of the event's name, and the `states` of an Iceberg view.
    """

    def decide(actor: Actor) -> Draft:
        fresh = recheck(actor, home, operations.create_of(kind))
        naming.require_free(fresh, name, kind)
        draft = _creation(fresh, kind, name, place, arguments(actor, fresh))
        return replace(draft, arguments={**draft.arguments, **(more or {})})

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
    naming.require_free(home, name, kind, is_there=True)
    publish_place(intent, home)
    row = Securable.made(kind, name, home, owner_user_id=actor.id, creator=actor.name)
    row.save(force_insert=True)
    mirror.store_answer(row.id, home.catalog.id, name, answer, now)
    note_views(home, [(row.id, answer)], actor.name, intent.arguments.get("states", ()))
    full_name, fact = [*home.full_name, name], intent.arguments.get("fact", "created")
    record(event_of(actor, f"{kind}.{fact}", kind, row.id, full_name, home.metalake.id, [stands(row)]))


intents.register("create_table", Work(_publish_creation, allowed=_home))
intents.register("create_view", Work(_publish_creation, allowed=_home))
