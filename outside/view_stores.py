"""The outside store of views."""

from __future__ import annotations

from collections.abc import Sequence

from authz.actor import Actor
from catalogs.leaf_stores import LeafDescription, LeafListing
from catalogs.models import Mirror
from catalogs.services.opening import provider_at
from catalogs.services.pointers import located_now
from formats.native.outlines import outline_native
from formats.native.view_definition import ViewDefinition
from metalake.errors import Unsupported
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from outside import finding, renaming, view_writes, views
from providers.base import Provider
from views_mgmt.stores import Json, Plan, ViewDraft, ViewPointers, ViewRecord, ViewStore


class OutsideViewPointers(ViewPointers):
    """Views whose entry in another system points to an Iceberg view metadata file."""

    def create(self, actor: Actor, address: Address, home: Located, draft: ViewDraft) -> ViewRecord:
        raise _refusal(home)

    def register(self, actor: Actor, address: Address, home: Located, location: str) -> ViewRecord:
        raise _refusal(home)

    def replace(
        self, actor: Actor, address: Address, view: Located, requirements: Sequence[Json], updates: Sequence[Json]
    ) -> ViewRecord:
        views.entry_of(actor, view, force=True, iceberg=True)
        raise _refusal(view)

    def read(self, record: ViewRecord) -> ViewRecord:
        if record.metadata_location is None:
            raise record.view.missing()
        return record


class OutsideViews(ViewStore):
    """Views of another system; each has a row here, and its versions as they were met."""

    pointers = OutsideViewPointers()

    def meet(self, actor: Actor, schema: Located, name: str) -> bool:
        return finding.meet_leaf(actor, schema, Kind.VIEW, name)

    def listing(self, actor: Actor, schema: Located, *, refresh: bool, iceberg: bool = False) -> LeafListing:
        return LeafListing(*views.update_listing(actor, schema, force=refresh, iceberg=iceberg))

    def load(self, actor: Actor, view: Located, *, refresh: bool = False, as_published: bool = False) -> ViewRecord:
        return views.loaded(actor, view, force=refresh, as_published=as_published)

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
        return self.load(actor, view_writes.create(actor, address, home, wanted), as_published=True)

    def alter(
        self, actor: Actor, address: Address, view: Located, plan: Plan, *, target: Address | None = None
    ) -> ViewRecord:
        view_writes.alter(actor, view, plan)
        return self.load(actor, view, as_published=True)

    def rename(self, actor: Actor, source: Address, view: Located, target: Address, *, iceberg: bool) -> Located:
        def require_shown(provider: Provider, mirrored: Mirror) -> None:
            views.require_format(view, mirrored, iceberg=iceberg)

        renaming.rename(actor, view, target, require_shown=require_shown)
        return located_now(view)

    def drop(self, actor: Actor, address: Address, view: Located, *, iceberg: bool) -> None:
        view_writes.drop(actor, view, iceberg=iceberg)


def _refusal(located: Located) -> Unsupported:
    return Unsupported(
        f"Iceberg views in {provider_at(located).label} are read here, not written: create the view over the native "
        "API in the form of an engine, or in an Iceberg catalog of Metalake.",
        kind=Kind.VIEW,
    )
