"""Iceberg view commits: how each builds the new metadata file for the pointer swap (`catalogs.services.commits`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from authz import operations
from authz.actor import Actor
from catalogs.pointer_stores import Change, now_ms
from formats.iceberg.requirements import check_view_requirements
from formats.iceberg.views.builder import apply_view_updates
from formats.iceberg.views.security import with_noted_mode
from formats.iceberg.views.translate import updates_for
from metalake.lineage import Address
from views_mgmt.stores import Plan, ViewRecord

Json = dict[str, Any]


def replacement(requirements: Sequence[Json], updates: Sequence[Json]) -> Change[ViewRecord]:
    """A client's updates to a view, if its requirements hold."""

    def updated(current: ViewRecord) -> Json:
        check_view_requirements(list(requirements), current.metadata)
        return apply_view_updates(current.metadata, list(updates), now_ms=now_ms())

    return Change(operations.ALTER_VIEW, "view.replaced", updated)


def alteration(actor: Actor, plan: Plan, target: Address | None = None) -> Change[ViewRecord]:
    """An alteration by the native API, as in `ViewStore.alter`; it may drop dialects."""

    def updated(current: ViewRecord) -> Json:
        now = current.definition
        updates = updates_for(now, with_noted_mode(plan(now), now, actor.name), current.metadata)
        return apply_view_updates(current.metadata, updates, now_ms=now_ms(), may_drop_dialects=True)

    return Change(operations.ALTER_VIEW, plan.event, updated, target)
