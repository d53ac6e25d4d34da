"""Create, alter and drop views in an outside system by intents; `outside.renames` renames them."""

from __future__ import annotations

from functools import partial
from typing import Any

from authz import operations
from authz.actor import Actor
from catalogs.models import Mirror
from catalogs.services.provider_of import provider_at
from formats.native import view_definition
from formats.native.view_definition import ViewDefinition
from metalake.full_names import dotted
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from metalake.models import new_id
from outside import intents
from outside.calls import levels_of
from outside.creation import make
from outside.intents import Draft, step
from outside.reads import current
from outside.views import require_format
from outside.write_helpers import (
    alteration,
    alteration_work,
    drop_work,
    dropping,
    holding,
    recheck,
    retry_on_conflict,
)
from providers.base import Provider
from providers.remote_objects import NewTable, Remote
from views_mgmt.services import definer
from views_mgmt.stores import Plan


def create(actor: Actor, address: Address, home: Located, wanted: ViewDefinition) -> Located:
    """Create a view in the format of its dialect's engine. Raises what `RemoteViews.draft` does."""

    def defined(provider: Provider, schema: Remote) -> NewTable:
        name = provider.names.folded(address.leaf or "")
        return NewTable(provider.views.draft(schema, name, wanted, actor.name))

    return make(actor, address, home, provider_at(home), defined, Kind.VIEW)[0]


def alter(actor: Actor, view: Located, plan: Plan) -> bool:
    """Alter a view, based on its current definition; a plan that changes nothing makes no intent.

    False for an Iceberg view, which a commit alters. Raises Unsupported for a view that cannot be parsed.
    """
    recheck(actor, view, operations.ALTER_VIEW)
    provider = provider_at(view)

    def attempt() -> bool:
        mirrored = current(actor, view, provider, force=True)
        before = provider.views.read(mirrored.definition).definition
        if before is None:
            return False
        wanted = plan(before)
        view_definition.check(wanted)
        if wanted != before:
            expected = provider.views.altered(mirrored.definition, wanted, actor.name)
            change: dict[str, Any] = {"before": before, "wanted": wanted, "expected": expected, "event": plan.event}
            draft = partial(_alteration, view=view, mirrored=mirrored, **change)
            intents.carry(actor, draft, holds=holding(view))
        return True

    return retry_on_conflict(attempt)


def _alteration(
    actor: Actor,
    view: Located,
    mirrored: Mirror,
    before: ViewDefinition,
    wanted: ViewDefinition,
    expected: dict[str, Any],
    event: str,
) -> Draft:
    fresh, marker = recheck(actor, view, operations.ALTER_VIEW), new_id()
    definer.require_may_change(actor, fresh, before, wanted)
    call = step(
        "alter_view",
        schema=levels_of(fresh.above()),
        view=mirrored.wire_name,
        expected=expected,
        version=mirrored.version,
        marker=str(marker),
    )
    details, fact = {"changed": wanted.differences(before)}, event.removeprefix("view.")
    return alteration(fresh, "alter_view", dotted(fresh.full_name), marker, call, details, fact=fact)


def drop(actor: Actor, view: Located, *, iceberg: bool = False) -> None:
    """Drop a view; its versions stay. With `iceberg`, raises NotFound for a view in another format."""
    recheck(actor, view, operations.DROP_VIEW)
    provider = provider_at(view)
    mirrored = current(actor, view, provider, force=True)
    require_format(view, mirrored, iceberg=iceberg)
    there = Remote(mirrored.wire_name, mirrored.definition, mirrored.identity, mirrored.version, Kind.VIEW)

    def decide(actor: Actor) -> Draft:
        fresh = recheck(actor, view, operations.DROP_VIEW)
        verb, arguments = provider.views.dropping(levels_of(fresh.above()) or [], there)
        return dropping(fresh, dotted(fresh.full_name), [step(verb, **arguments)], {})

    intents.carry(actor, decide, holds=holding(view))


intents.register("alter_view", alteration_work(operations.ALTER_VIEW))
intents.register("drop_view", drop_work(operations.DROP_VIEW))
