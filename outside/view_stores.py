"""The outside store of views."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from authz.actor import Actor
from catalogs.leaf_stores import LeafDescription, LeafListing
from catalogs.models import Mirror
from catalogs.services.commits import commit
from catalogs.services.provider_of import provider_at
from catalogs.services.resolution import located_now
from catalogs.stores import offers_of
from formats.hive.views.forms import ICEBERG_VIEW
from formats.iceberg.views.translate import to_iceberg_view
from formats.native.outlines import outline_native
from formats.native.view_definition import ViewDefinition
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from outside import discovery, renames, view_writes, views
from outside.calls import ask, levels_of
from outside.pointers import OutsideViewPointers
from outside.reads import mirror_of
from providers.base import Provider
from views_mgmt.iceberg_commits import alteration
from views_mgmt.stores import Plan, ViewDraft, ViewRecord, ViewStore

TYPE = "table_type"  # property with the type of a Hive-like system's entry


class OutsideViews(ViewStore):
    """Views of another system; each has a row here, with the versions imported so far."""

    pointers: ClassVar[OutsideViewPointers] = OutsideViewPointers()

    def discover(self, actor: Actor, schema: Located, name: str) -> bool:
        return discovery.import_leaf(actor, schema, Kind.VIEW, name)

    def listing(self, actor: Actor, schema: Located, *, refresh: bool, iceberg: bool = False) -> LeafListing:
        return LeafListing(*views.update_listing(actor, schema, force=refresh, iceberg=iceberg))

    def load(self, actor: Actor, view: Located, *, refresh: bool = False, as_published: bool = False) -> ViewRecord:
        return views.loaded(actor, view, force=refresh, as_published=as_published)

    def check(self, actor: Actor, view: Located) -> dict[str, Any] | None:
        place = {"schema": levels_of(view.above()) or [], "view": mirror_of(view).wire_name}
        answer: dict[str, Any] | None = ask(actor, view, provider_at(view), "check_view", **place)
        return answer

    def only_read(self, located: Located) -> str:
        return provider_at(located).views.only_read

    def require_there(self, actor: Actor, view: Located, *, iceberg: bool) -> None:
        views.require_there(actor, view, iceberg=iceberg)

    def describe(self, actor: Actor, leaf: Located) -> LeafDescription:
        record = self.load(actor, leaf)
        definition = record.definition
        details = [("Dialects", ", ".join(definition.dialects)), ("Format", record.format), ("Engine", record.engine)]
        if definition.security_mode:
            details.append(("Runs as", str(definition.security_mode)))
        return LeafDescription(
            comment=definition.comment or "",
            properties=dict(definition.properties),
            details=tuple(details),
            columns=outline_native(list(definition.columns)),
        )

    def create(self, actor: Actor, address: Address, home: Located, wanted: ViewDefinition) -> ViewRecord:
        if _is_iceberg(home, wanted):
            return self.pointers.create(actor, address, home, _as_draft(wanted))
        return self.load(actor, view_writes.create(actor, address, home, wanted), as_published=True)

    def alter(
        self, actor: Actor, address: Address, view: Located, plan: Plan, *, target: Address | None = None
    ) -> ViewRecord:
        if not view_writes.alter(actor, view, plan):
            return commit(actor, address, view, alteration(actor, plan))
        return self.load(actor, view, as_published=True)

    def rename(self, actor: Actor, source: Address, view: Located, target: Address, *, iceberg: bool) -> Located:
        def require_shown(provider: Provider, mirrored: Mirror) -> None:
            views.require_format(view, mirrored, iceberg=iceberg)
            views.require_plain(provider, mirrored)

        renames.rename(actor, view, target, require_shown=require_shown)
        return located_now(view)

    def drop(self, actor: Actor, address: Address, view: Located, *, iceberg: bool) -> None:
        view_writes.drop(actor, view, iceberg=iceberg)


def _is_iceberg(home: Located, wanted: ViewDefinition) -> bool:
    """Whether to create an Iceberg view, if the system has those: by its property, else if it has several dialects."""
    if "iceberg" not in offers_of(home)[Kind.VIEW].formats:
        return False
    named = wanted.properties.get(TYPE)
    return len(wanted.representations) > 1 if named is None else named.lower() == ICEBERG_VIEW


def _as_draft(wanted: ViewDefinition) -> ViewDraft:
    properties = {name: value for name, value in wanted.properties.items() if name != TYPE}
    return ViewDraft(*to_iceberg_view(replace(wanted, properties=properties)))
