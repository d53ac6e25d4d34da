"""Rename tables and views of an outside system, or move them to another schema."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from django.utils import timezone

from authz import operations, policy
from authz.actor import Actor
from authz.locks import Lock
from authz.operations import Operation
from authz.services import ownership_rules
from catalogs import lookup
from catalogs.models import Intent, Mirror
from catalogs.services import free_names as naming
from catalogs.services import places, resolution, schema_paths
from catalogs.services.provider_of import provider_at
from catalogs.services.renames import rename_row
from catalogs.services.resolution import as_home
from catalogs.services.writes import hold_each
from metalake.errors import Conflict, Invalid, Unsupported
from metalake.full_names import dotted
from metalake.hierarchy import check_new_name
from metalake.kinds import Kind, Slot
from metalake.lineage import Address, Located
from metalake.models import new_id
from outside import intents, mirror
from outside.calls import levels_of
from outside.intents import Draft, Work, step
from outside.reads import current
from outside.schema_places import making, publish_place, schema_for_new
from outside.view_versions import note_all as note_views
from outside.write_helpers import names_on, recheck, target_of
from providers.base import Provider
from providers.remote_objects import Remote

Shown = Callable[[Provider, Mirror], object]


def rename(actor: Actor, table: Located, target: Address, *, require_shown: Shown) -> None:
    """Rename a table or view, or move it to another schema of the catalog, if its system can.

    If the target schema exists only here, it is created outside first. `require_shown` raises NotFound for an object
    that is hidden from the caller.
    """
    # Checked before the target is looked up, so that only callers who may move the table learn whether it exists.
    kind, elsewhere = table.kind, _is_elsewhere(table, target)
    recheck(actor, table, _asked(kind, moves=elsewhere))
    resolution.find_schema(actor, target)
    provider, place, target_schema = provider_at(table), None, table.above()
    if elsewhere:
        target_schema = home = lookup.find(actor, target.of_schema())
        as_home(actor, home, operations.create_of(kind))
        schema, is_new = schema_for_new(actor, home, provider)
        place = schema if is_new else None
    mirrored = current(actor, table, provider, force=True)
    require_shown(provider, mirrored)
    name = provider.names.folded(target.leaf or "")
    check_new_name(name, kind)
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


def _asked(kind: str, *, moves: bool) -> Operation:
    return operations.OPERATIONS[f"move_{kind}" if moves else f"alter_{kind}"]


def _allowed_again(actor: Actor, table: Located, home: Located) -> Located:
    """The table, re-read. Raises Forbidden if the actor may not rename it, or move it to this schema."""
    if home.id == table.nodes[-2].id:
        return recheck(actor, table, _asked(table.kind, moves=False))
    fresh = recheck(actor, table, _asked(table.kind, moves=True))
    as_home(actor, home, operations.create_of(table.kind))
    ownership_rules.require_no_escape(actor, fresh, home)
    return fresh


def _renaming(
    actor: Actor, provider: Provider, table: Located, remote: Remote, home: Located, place: Remote | None, name: str
) -> Draft:
    """The draft of the intent that renames a table, after creating the target schema's `place` if needed."""
    levels = levels_of(home) if place is None else mirror.provider_levels(place)
    if levels is None:
        raise Conflict(f"Schema {home.path.logical()} lost its place meanwhile; try again.", kind=Kind.SCHEMA)
    marker, above = new_id(), table.nodes[-2].id
    first, on_the_way = making(place, home, marker)
    here = levels_of(table.above()) or []
    if table.kind == Kind.VIEW:  # no files, so the owner of the catalog does not matter
        calls, more = provider.views.renaming(here, levels, name, remote, str(marker)), {}
    else:
        calls = provider.tables.renaming(here, levels, name, remote, str(marker))
        more = {"by_owner": places.may_choose(actor, table)}
    return Draft(
        id=marker,
        verb=f"rename_{table.kind}",
        catalog_id=table.catalog.id,
        full_name=dotted(table.full_name),
        names=[*on_the_way, *names_on(table)[-1:], (home.id, Slot.TABULAR, name)],
        must_stay=[*names_on(table)[:-1], *names_on(home)],
        steps=[*first, *(step(verb, **arguments, **more) for verb, arguments in calls)],
        arguments={"id": table.id, "home_id": home.id, "name": name, "moves": home.id != above},
    )


def _is_elsewhere(table: Located, target: Address) -> bool:
    """Whether the target is in another schema."""
    try:
        return schema_paths.path_in(table, target.schema or "") != table.path
    except (Invalid, Unsupported):
        return True


def _publish_rename(actor: Actor, intent: Intent) -> None:
    """Rename the row, and store the system's answer."""
    table, home, name = target_of(intent), target_of(intent, "home_id"), intent.arguments["name"]
    rename_row(actor, table, home, name)
    answer = next(each["result"] for each in intent.steps if each["result"] and each["verb"] != "create_schema")
    mirror.store_answer(table.id, home.catalog.id, name, Remote(**answer), timezone.now())
    note_views(home, [(table.id, Remote(**answer))], actor.name)
    publish_place(intent, home)


def _may_still_rename(actor: Actor, intent: Intent) -> None:
    table = target_of(intent)
    policy.require(actor, _asked(table.kind, moves=intent.arguments["moves"]), table)


intents.register("rename_table", Work(_publish_rename, _may_still_rename))
intents.register("rename_view", Work(_publish_rename, _may_still_rename))
