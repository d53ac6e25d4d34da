"""Managed views: they exist only as rows of our database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson

from authz.actor import Actor
from authz.callers.accounts import account_of
from catalogs.leaf_stores import LeafDescription, LeafListing
from catalogs.lookup import by_id
from catalogs.services.alterations import event
from catalogs.services.free_names import require_free
from catalogs.services.writes import Write, new_in_schema, write_to
from formats.iceberg.column_names import CASE_TWINS, require_no_twins
from formats.iceberg.forbidden_properties import check_limits
from formats.native.outlines import outline_native
from formats.native.view_definition import SecurityMode, ViewDefinition
from metalake.events import record, stands
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from metalake.models import Securable
from views_mgmt import versions
from views_mgmt.services import definer, rows
from views_mgmt.stores import Plan, ViewRecord, ViewStore


class ManagedViews(ViewStore):
    """A view is the row of its latest version."""

    pointers = None
    renames_with_changes = True

    def discover(self, actor: Actor, schema: Located, name: str) -> bool:
        return False

    def listing(self, actor: Actor, schema: Located, *, refresh: bool, iceberg: bool = False) -> LeafListing:
        return LeafListing(frozenset() if iceberg else None)

    def load(self, actor: Actor, view: Located, *, refresh: bool = False, as_published: bool = False) -> ViewRecord:
        meta = versions.meta_of(view)
        return replace(_record(view, versions.definition_of(meta)), meta=meta)

    def require_there(self, actor: Actor, view: Located, *, iceberg: bool) -> None:
        if iceberg:
            raise view.missing()

    def describe(self, actor: Actor, leaf: Located) -> LeafDescription:
        definition = versions.current(leaf).definition
        return LeafDescription(
            comment=definition.comment or "",
            properties=dict(definition.properties),
            details=(("Dialects", ", ".join(definition.dialects)), ("Runs as", str(definition.security_mode))),
            columns=outline_native(list(definition.columns)),
        )

    def create(self, actor: Actor, address: Address, home: Located, wanted: ViewDefinition) -> ViewRecord:
        """Create a view; its security mode is DEFINER unless the request sets it."""
        check_limits(wanted.properties)
        _require_columns(home, wanted.columns)
        whole = replace(wanted, security_mode=wanted.security_mode or SecurityMode.DEFINER)
        target = new_in_schema(address, Kind.VIEW, home)
        return write_to(actor, target, _create, rows.name_in(home, address.leaf or ""), whole)

    def alter(
        self, actor: Actor, address: Address, view: Located, plan: Plan, *, target: Address | None = None
    ) -> ViewRecord:
        return write_to(actor, rows.to_alter(address, target), _alter, plan, target)

    def rename(self, actor: Actor, source: Address, view: Located, target: Address, *, iceberg: bool) -> Located:
        if iceberg:
            raise view.missing()
        return rows.rename(actor, source, target)

    def drop(self, actor: Actor, address: Address, view: Located, *, iceberg: bool) -> None:
        if iceberg:
            raise view.missing()
        rows.drop(actor, address)


def _create(write: Write, name: str, whole: ViewDefinition) -> ViewRecord:
    actor, home = write.actor, write.home
    require_free(home, name, Kind.VIEW)
    row = Securable.made(Kind.VIEW, name, home, creator=actor.name, owner_user_id=account_of(actor))
    row.save(force_insert=True)
    view = by_id(row.pk)
    assert view is not None
    versions.add(view, whole, actor.name)
    record(event(actor, "view.created", view, [stands(row)]))
    return _record(view, whole)


def _alter(write: Write, plan: Plan, target: Address | None) -> ViewRecord:
    actor, view = write.actor, write.located
    before = versions.current(view).definition
    wanted = plan(before)
    check_limits(wanted.properties)
    _require_columns(view, wanted.columns, before.columns)
    definer.require_may_change(actor, view, before, wanted)
    if target is not None:
        view = rows.move_row(actor, write.home, view, target.leaf or "")
    changed = wanted.differences(before)
    if changed or target is not None:  # a rename is a new version, too
        number = versions.add(view, wanted, actor.name)
        if changed:
            record(event(actor, plan.event, view, version=number, changed=changed))
    return _record(view, wanted)


def _require_columns(at: Located, columns: Sequence[Any], before: Sequence[Any] = ()) -> None:
    """Raise Invalid for new columns that differ only by case, unless the catalog allows them."""
    if orjson.loads(at.properties or "{}").get(CASE_TWINS) != "true":
        require_no_twins(outline_native(columns), outline_native(before))


def _record(view: Located, definition: ViewDefinition) -> ViewRecord:
    return ViewRecord(view, *versions.OURS, definition)
