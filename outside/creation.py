"""Make tables and views in an outside system by intents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from django.utils import timezone

from authz import operations, policy
from authz.actor import Actor
from authz.locks import Lock
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
from metalake.lineage import Address, Located, Node
from metalake.models import Securable, new_id
from outside import intents, mirror, table_places
from outside.discovery import require_free_there
from outside.intents import Draft, Work, step
from outside.schema_places import making, publish_place, schema_for_new
from outside.tables import ExternalTable, require_shown
from outside.view_versions import as_arguments
from outside.view_versions import note_all as note_views
from outside.write_helpers import names_on, recheck
from providers.base import Provider
from providers.remote_objects import NewTable, Remote
from views_mgmt.versions import State

Defined = Callable[[Provider, Remote], NewTable]
StatesOf = Callable[[Provider, NewTable], Sequence[State]]


def create(actor: Actor, ident: Address, home: Located, asked: CreateTableRequest) -> ExternalTable:
    """Make a table from a native create request; the table as its system answered."""
    provider = provider_at(home)
    table, intent = make(actor, ident, home, provider, lambda _, schema: provider.tables.draft(schema, asked))
    definition, taken_at = _answer(intent).definition, intent.ended_at
    assert taken_at is not None
    require_shown(table, provider, definition)
    return ExternalTable(table, provider, definition, taken_at)


def make(
    actor: Actor,
    ident: Address,
    home: Located,
    provider: Provider,
    defined: Defined,
    kind: Kind = Kind.TABLE,
    states_of: StatesOf = lambda provider, new: (),
    fact: str = "created",
) -> tuple[Located, Intent]:
    """Make the table or view that `defined` returns for its outside schema, after making that schema if it exists only
    here; the object and its intent.

    `states_of` gives the states that an Iceberg view has, oldest first; `fact` is the last part of the event's name.
    """
    name = provider.names.folded(ident.leaf or "")
    check_new_name(name, kind)
    naming.require_free(home, name, kind)
    schema, is_new = schema_for_new(actor, home, provider)
    new = defined(provider, schema)
    require_free_there(actor, home, provider, mirror.provider_levels(schema), name, kind)
    call: dict[str, Any] = {"schema": mirror.provider_levels(schema), str(kind): name, "definition": new.definition}
    has_files = kind is Kind.TABLE or new.plan is not None
    if has_files:
        call["plan"] = _checked(actor, home, schema, provider, kind, new)
    arguments = {"schema_id": home.id, "name": name, "fact": fact, "states": as_arguments(states_of(provider, new))}

    def decide(actor: Actor) -> Draft:
        marker, verb = new_id(), f"create_{kind}"
        fresh = recheck(actor, home, operations.OPERATIONS[verb])
        naming.require_free(fresh, name, kind)
        first, on_the_way = making(schema if is_new else None, fresh, marker)
        by_owner = {"by_owner": places.may_choose(actor, fresh)} if has_files else {}
        return Draft(
            id=marker,
            verb=verb,
            catalog_id=fresh.catalog.id,
            full_name=dotted([*fresh.full_name, name]),
            names=[*on_the_way, (fresh.id, Slot.TABULAR, name)],
            must_stay=names_on(fresh),
            steps=[*first, step(verb, **call, **by_owner, marker=str(marker))],
            arguments=arguments,
        )

    at = replace(home.address, leaf=name, leaf_kind=kind)
    intent = intents.carry(actor, decide, holds=partial(hold_each, [(home, Lock.MOVES)]), at=at)
    return home.below(Node(intent.pk, kind, name, intent.actor_id, None)), intent


def _checked(
    actor: Actor, home: Located, schema: Remote, provider: Provider, kind: Kind, new: NewTable
) -> dict[str, Any] | None:
    """The plan with the ground that limits the actor. Raises Forbidden or Invalid for a place that may not be used."""
    store = provider.view_pointers if kind is Kind.VIEW else provider.tables
    bound = table_places.require_named(actor, home, schema, provider, store.named_places(new.definition, new.plan))
    return table_places.with_ground(bound, new.plan)


def _answer(intent: Intent) -> Remote:
    """What the system said of the new object."""
    return Remote(**intent.steps[-1]["result"])


def _home(actor: Actor, intent: Intent) -> Located:
    home = by_id(intent.arguments["schema_id"])
    if home is None:
        raise NotFound(f"The schema of {intent.full_name} does not exist.", kind=Kind.SCHEMA)
    policy.require(actor, operations.OPERATIONS[intent.verb], home)
    return home


def _publish_creation(actor: Actor, intent: Intent) -> None:
    """Insert the row; it has the id of its intent, so that the process that promised it knows the id."""
    now, home, name = timezone.now(), _home(actor, intent), intent.arguments["name"]
    kind, answer = Kind(intent.verb.removeprefix("create_")), _answer(intent)
    naming.require_free(home, name, kind, is_there=True)
    publish_place(intent, home)
    row = Securable.made(kind, name, home, id=intent.pk, owner_user_id=actor.id, creator=actor.name)
    row.save(force_insert=True)
    mirror.store_answer(row.id, home.catalog.id, name, answer, now)
    note_views(home, [(row.id, answer)], actor.name, intent.arguments.get("states", ()))
    full_name, fact = [*home.full_name, name], intent.arguments.get("fact", "created")
    record(event_of(actor, f"{kind}.{fact}", kind, row.id, full_name, home.metalake.id, [stands(row)]))


intents.register("create_table", Work(_publish_creation, allowed=_home))
intents.register("create_view", Work(_publish_creation, allowed=_home))
