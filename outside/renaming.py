"""Rename tables of an outside system, or move them to another schema."""

from __future__ import annotations

from functools import partial

from django.utils import timezone

from authz import operations, policy
from authz.actor import Actor
from authz.locks import Lock
from catalogs import lookup
from catalogs.lookup import by_id
from catalogs.models import Intent
from catalogs.services import chains, finding, places
from catalogs.services import free_names as naming
from catalogs.services.holding import hold_each
from catalogs.services.opening import provider_at
from metalake.errors import Conflict, Invalid, NotFound, Unsupported
from metalake.events import event_of, record, stands
from metalake.hierarchy import check_segment
from metalake.kinds import Kind, Slot
from metalake.lineage import Address, Located
from metalake.models import Securable, new_id
from metalake.names import dotted
from outside import intents, mirror
from outside.calls import levels_of
from outside.intents import Draft, Work, step
from outside.reading import current
from outside.schema_places import asked_now, making, place_to_make, publish_place
from outside.tables import require_shown
from outside.work import names_on, recheck
from providers.answers import Remote
from providers.base import Provider


def rename(actor: Actor, table: Located, target: Address, *, iceberg: bool = False) -> None:
    """Give a table another name, or another schema of the catalog, if its system can.

    If the target schema exists only here, it is made outside first. Raises NotFound for a table that `loaded` hides.
    """
    # Before the target is looked up, so that only who may move the table learns whether it exists.
    elsewhere = _is_elsewhere(table, target)
    recheck(actor, table, operations.MOVE_TABLE if elsewhere else operations.ALTER_TABLE)
    finding.find_schema(actor, target)
    provider, place, target_schema = provider_at(table), None, table.above()
    if elsewhere:
        target_schema = home = lookup.find(actor, target.of_schema())
        policy.require(actor, operations.CREATE_TABLE, home)
        place = place_to_make(actor, home, provider)
        if place is None:
            asked_now(actor, home)
    mirrored = current(actor, table, provider, force=True)
    require_shown(table, provider, mirrored, iceberg)
    name = provider.names.folded(target.leaf or "")
    check_segment(name, Kind.TABLE)
    remote = Remote(mirrored.wire_name, mirrored.definition, mirrored.identity, mirrored.version)

    def decide(actor: Actor) -> Draft:
        home = lookup.find(actor, target.of_schema())
        if home.id != target_schema.id:
            raise home.missing()
        fresh = _allowed_again(actor, table, home)
        naming.require_free_for_rename(fresh, home, name)
        return _renaming(actor, provider, fresh, remote, home, place, name)

    locks = [(target_schema, Lock.MOVES), (table.above(), Lock.MOVES), (table, Lock.CHANGES)]
    intents.carry(actor, decide, holds=partial(hold_each, locks))


def _allowed_again(actor: Actor, table: Located, home: Located) -> Located:
    """The table as it is now. Raises Forbidden if the actor may not rename it, or move it to this schema."""
    if home.id == table.nodes[-2].id:
        return recheck(actor, table, operations.ALTER_TABLE)
    fresh = recheck(actor, table, operations.MOVE_TABLE)
    policy.require(actor, operations.CREATE_TABLE, home)
    policy.require_no_escape(actor, fresh, home)
    return fresh


def _renaming(
    actor: Actor, provider: Provider, table: Located, remote: Remote, home: Located, place: Remote | None, name: str
) -> Draft:
    """The draft of the intent to rename a table, and before it to make the target schema's `place` if needed."""
    levels = levels_of(home) if place is None else mirror.provider_levels(place)
    if levels is None:
        raise Conflict(f"Schema {home.path.logical()} lost its place meanwhile; try again.", kind=Kind.SCHEMA)
    marker, above, by_owner = new_id(), table.nodes[-2].id, places.may_choose(actor, table)
    first, on_the_way = making(place, home, marker)
    calls = provider.tables.renaming(levels_of(table.above()) or [], levels, name, remote, str(marker))
    return Draft(
        id=marker,
        verb="rename_table",
        catalog_id=table.catalog.id,
        full_name=dotted(table.full_name),
        names=[*on_the_way, *names_on(table)[-1:], (home.id, Slot.TABULAR, name)],
        must_stay=[*names_on(table)[:-1], *names_on(home)],
        steps=[*first, *(step(verb, **arguments, by_owner=by_owner) for verb, arguments in calls)],
        arguments={"id": table.id, "home_id": home.id, "name": name, "moves": home.id != above},
    )


def _is_elsewhere(table: Located, target: Address) -> bool:
    """Whether the target names another schema than the table's own."""
    try:
        return chains.path_in(table, target.schema or "") != table.path
    except (Invalid, Unsupported):
        return True


def _publish_rename(actor: Actor, intent: Intent) -> None:
    """Rename the row, which keeps its grants, owner and history."""
    table, home = by_id(intent.arguments["id"]), by_id(intent.arguments["home_id"])
    if table is None or home is None:
        raise NotFound(f"{intent.full_name} does not exist.", kind=Kind.TABLE)
    name, now = intent.arguments["name"], timezone.now()
    Securable.objects.filter(pk=table.id).update(
        name=name,
        parent_id=home.id,
        lineage=f"{home.lineage}/{table.id}",
        last_modifier=actor.name,
        last_modified_time=now,
    )
    answer = next(each["result"] for each in intent.steps if each["result"] and each["verb"] != "create_schema")
    mirror.store_answer(table.id, home.catalog.id, name, Remote(**answer), now)
    publish_place(intent, home)
    facts = [stands(Securable.objects.get(pk=table.id))]
    full_name, was = [*home.full_name, name], dotted(table.full_name)
    record(event_of(actor, "table.renamed", Kind.TABLE, table.id, full_name, home.metalake.id, facts, was=was))


def _may_still_rename(actor: Actor, intent: Intent) -> None:
    table = by_id(intent.arguments["id"])
    if table is None:
        raise NotFound(f"{intent.full_name} does not exist.", kind=Kind.TABLE)
    policy.require(actor, operations.MOVE_TABLE if intent.arguments["moves"] else operations.ALTER_TABLE, table)


intents.register("rename_table", Work(_publish_rename, _may_still_rename))
