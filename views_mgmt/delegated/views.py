"""Delegated views: a row points to an Iceberg view metadata file, which defines the view."""

from __future__ import annotations

from typing import ClassVar

from authz.actor import Actor
from catalogs.leaf_stores import LeafDescription, LeafListing
from catalogs.services.commits import commit
from formats.iceberg.views.translate import to_iceberg_view
from formats.native.outlines import outline_native
from formats.native.view_definition import ViewDefinition
from metalake.lineage import Address, Located
from views_mgmt.delegated.pointers import DelegatedPointers
from views_mgmt.iceberg_commits import alteration
from views_mgmt.services import rows
from views_mgmt.stores import Plan, ViewDraft, ViewRecord, ViewStore


class DelegatedViews(ViewStore):
    """Views in managed Iceberg catalogs; all of them are Iceberg views."""

    pointers: ClassVar[DelegatedPointers] = DelegatedPointers()
    renames_with_changes = True

    def discover(self, actor: Actor, schema: Located, name: str) -> bool:
        return False

    def listing(self, actor: Actor, schema: Located, *, refresh: bool, iceberg: bool = False) -> LeafListing:
        return LeafListing()

    def load(self, actor: Actor, view: Located, *, refresh: bool = False, as_published: bool = False) -> ViewRecord:
        return self.pointers.current(actor, view)

    def require_there(self, actor: Actor, view: Located, *, iceberg: bool) -> None:
        pass

    def describe(self, actor: Actor, leaf: Located) -> LeafDescription:
        view = self.load(actor, leaf)
        definition = view.definition
        return LeafDescription(
            comment=definition.comment or "",
            properties=dict(definition.properties),
            details=(
                ("Format", f"Iceberg view v{view.metadata.get('format-version')}"),
                ("Dialects", ", ".join(definition.dialects)),
                ("Location", view.metadata["location"]),
            ),
            columns=outline_native(list(definition.columns)),
        )

    def create(self, actor: Actor, address: Address, home: Located, wanted: ViewDefinition) -> ViewRecord:
        return self.pointers.create(actor, address, home, ViewDraft(*to_iceberg_view(wanted)))

    def alter(
        self, actor: Actor, address: Address, view: Located, plan: Plan, *, target: Address | None = None
    ) -> ViewRecord:
        return commit(actor, address, view, alteration(actor, plan, target))

    def rename(self, actor: Actor, source: Address, view: Located, target: Address, *, iceberg: bool) -> Located:
        return rows.rename(actor, source, target)

    def drop(self, actor: Actor, address: Address, view: Located, *, iceberg: bool) -> None:
        rows.drop(actor, address)
