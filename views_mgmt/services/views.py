"""Views: list, load, create, register, alter, rename and drop them, whatever their store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from authz import operations, policy
from authz.actor import Actor
from authz.operations import Operation
from catalogs.pointer_stores import PointerStore
from catalogs.secrets import require_values
from catalogs.services import resolution
from catalogs.services.alterations import require_enabled, resolve_masks
from catalogs.services.commits import commit
from catalogs.services.leaves import LeafList, schema_to_list, visible_names
from catalogs.services.resolution import read_or_namesake, resolve_parent
from catalogs.stores import store_for
from formats.native.view_definition import ViewDefinition
from formats.native.views import CreateViewRequest, RenameView, ReplaceView, altered
from metalake.errors import Conflict, Invalid, MetalakeError, NotFound, Unsupported
from metalake.hierarchy import check_new_name
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from metalake.logs import note_failure
from metalake.models import Securable
from views_mgmt import versions
from views_mgmt.iceberg_commits import replacement
from views_mgmt.models import ViewVersion
from views_mgmt.stores import Plan, ViewDraft, ViewRecord, ViewStore

Json = dict[str, Any]
AT_ONCE = 20  # views that are read together
MOST_NAMES = 500  # in one statement; of more views, the whole schema is read


def store_of(located: Located) -> ViewStore:
    """The store of the views of a catalog. Raises Unsupported where it offers none."""
    store: ViewStore = store_for(located, Kind.VIEW)
    return store


def list_views(
    actor: Actor,
    address: Address,
    after: str | None = None,
    limit: int | None = None,
    *,
    refresh: bool = False,
    iceberg: bool = False,
) -> LeafList:
    """The names of views that the actor may load, in order; after `after`, at most `limit`.

    With `iceberg`, views in another format are left out.
    """
    schema = schema_to_list(actor, address, Kind.VIEW)
    listing = store_of(schema).listing(actor, schema, refresh=refresh, iceberg=iceberg)
    return visible_names(actor, schema, Kind.VIEW, listing, after, limit)


def summaries(actor: Actor, address: Address, names: Sequence[str]) -> Iterator[ViewVersion]:
    """The latest known version of those views of these names that the actor may load, few at once: SQL may be long.

    A view whose present state cannot be read has the reason in `view.broken`.
    """
    schema, listed = schema_to_list(actor, address, Kind.VIEW), set(names)
    below = Securable.objects.filter(parent_id=schema.id, kind=Kind.VIEW)
    loadable = policy.visible_leaves(actor, schema, below, Kind.VIEW, to_load=True).values("pk")
    read = versions.present().filter(view__schema_id=schema.id, view_id__in=loadable)
    if len(names) <= MOST_NAMES:
        read = read.filter(view__view_name__in=names)
    rows = chain(read.iterator(AT_ONCE), versions.never_read(loadable))
    return (row for row in rows if row.view.view_name in listed)


def load_view(actor: Actor, address: Address, *, refresh: bool = False) -> ViewRecord:
    """Load a view. Raises Unsupported, saying what is wrong, for one that cannot be read."""

    def read(view: Located) -> ViewRecord:
        return store_of(view).load(actor, view, refresh=refresh)

    return read_or_namesake(address, find_view(actor, address), partial(_require_loadable, actor), read)


def find_loadable(actor: Actor, address: Address) -> Located:
    """A view that the actor may load, as its store has it now if that can be read. Raises NotFound if it is gone."""

    def read(view: Located) -> Located:
        try:
            store_of(view).load(actor, view)
        except NotFound:
            raise
        except MetalakeError as failure:
            note_failure(failure)
        return view

    return read_or_namesake(address, find_view(actor, address), partial(_require_loadable, actor), read)


def _require_loadable(actor: Actor, view: Located) -> None:
    policy.require(actor, operations.LOAD_VIEW, view)
    require_enabled(view)


def load_iceberg_view(actor: Actor, address: Address, *, refresh: bool = False) -> ViewRecord:
    """A view with its Iceberg metadata. Raises NotFound for a view in another format."""
    record = load_view(actor, address, refresh=refresh)
    if record.metadata_location is None:
        raise record.view.missing()
    return record


def find_view(actor: Actor, address: Address) -> Located:
    """The view of an address, whether the actor may see it or not. Raises NotFound, also for a table of that name."""
    return resolution.of_kind(actor, resolution.find(actor, address), Kind.VIEW)


def view_exists(actor: Actor, address: Address, *, iceberg: bool = False) -> None:
    """Raise NotFound unless the actor sees the view; with `iceberg`, also for a view in another format."""

    def allow(view: Located) -> None:
        policy.require_seen(actor, view)
        require_enabled(view)

    def read(view: Located) -> None:
        store_of(view).require_there(actor, view, iceberg=iceberg)

    read_or_namesake(address, find_view(actor, address), allow, read)


def create_view(actor: Actor, address: Address, asked: CreateViewRequest) -> ViewRecord:
    """Create a view from a native request."""
    require_values(asked.properties, kind=Kind.VIEW)
    wanted = asked.definition()
    home = _home(actor, address)
    return store_of(home).create(actor, address, home, wanted)


def create_iceberg_view(actor: Actor, address: Address, draft: ViewDraft) -> ViewRecord:
    """Create a view from a request of the Iceberg wire."""
    home = _home(actor, address)
    return _pointers_in(home).create(actor, address, home, draft)


def register_view(actor: Actor, address: Address, metadata_location: str) -> ViewRecord:
    """Register an Iceberg view by its existing metadata file."""
    home = _home(actor, address, operations.REGISTER_VIEW)
    return _pointers_in(home).register(actor, address, home, metadata_location)


def _pointers_in(home: Located) -> PointerStore[ViewRecord, ViewDraft]:
    pointers = store_of(home).pointers
    if pointers is None:
        raise Unsupported(
            "This catalog keeps no Iceberg views: create the view over the native API, or in an Iceberg catalog.",
            kind=Kind.VIEW,
        )
    return pointers


def _home(actor: Actor, address: Address, asks: Operation = operations.CREATE_VIEW) -> Located:
    """The schema in which a view is to be made. Raises Invalid for a name that no view can have."""
    check_new_name(address.leaf or "", Kind.VIEW)
    return resolve_parent(actor, address, asks)


def alter_view(actor: Actor, address: Address, updates: Sequence[Any], since: int | None = None) -> ViewRecord:
    """Apply the native wire's updates to a view as one new version; with a rename among them, under its new name.

    Raises Invalid where the store cannot rename a view and change it at once; with `since`, Conflict if the view is
    not as it was in that version.
    """
    renames = [update for update in updates if isinstance(update, RenameView)]
    if len(renames) > 1:
        raise Invalid("updates: a view has one new name", kind=Kind.VIEW)
    target = _target(address, renames[0]) if renames else None
    view = find_view(actor, address)
    store = store_of(view)
    if target is not None and len(updates) > 1 and not store.renames_with_changes:
        raise Invalid(
            "updates: a rename comes alone in this catalog, since the view's name and its definition are stored apart",
            kind=Kind.VIEW,
        )
    if target is not None and len(updates) == 1:
        renamed = rename_view(actor, address, target)
        return store.load(actor, renamed, as_published=True)
    policy.require(actor, operations.ALTER_VIEW, view)
    replaces = any(isinstance(update, ReplaceView) for update in updates)
    plan = Plan(partial(_changed, updates), "view.replaced" if replaces else "view.altered")
    return store.alter(actor, address, view, unless_changed(view, since, plan), target=target)


def unless_changed(view: Located, since: int | None, plan: Plan) -> Plan:
    """The plan, which raises Conflict if the view is not as it was in version `since`."""

    def wanted_of(now: ViewDefinition) -> ViewDefinition:
        if since is not None and versions.at(view, since).definition != now:
            changed = f"View {'.'.join(view.full_name)} was changed after version {since}"
            raise Conflict(f"{changed}: look at it as it is now, then try again.", kind=Kind.VIEW)
        return plan(now)

    return Plan(wanted_of, plan.event)


def _target(address: Address, rename: RenameView) -> Address:
    check_new_name(rename.new_name, Kind.VIEW)
    return replace(address, schema=rename.new_schema_name or address.schema, leaf=rename.new_name)


def _changed(updates: Sequence[Any], definition: ViewDefinition) -> ViewDefinition:
    return altered(definition, resolve_masks(updates, lambda: definition.properties, Kind.VIEW))


def replace_view(actor: Actor, address: Address, requirements: Sequence[Json], updates: Sequence[Json]) -> ViewRecord:
    """Apply updates of the Iceberg wire to a view."""
    return commit(actor, address, find_view(actor, address), replacement(requirements, updates))


def rename_view(actor: Actor, source: Address, target: Address, *, iceberg: bool = False) -> Located:
    """Rename a view; the view with its new name.

    Who may alter it may rename it in its schema; its owner may move it to a schema where they may create views. With
    `iceberg`, raises NotFound for a view in another format.
    """
    check_new_name(target.leaf or "", Kind.VIEW)
    if (source.metalake, source.catalog) != (target.metalake, target.catalog):
        raise Unsupported("A view cannot move to another catalog.", kind=Kind.VIEW)
    view = find_view(actor, source)
    return store_of(view).rename(actor, source, view, target, iceberg=iceberg)


def drop_view(actor: Actor, address: Address, *, iceberg: bool = False) -> None:
    """Drop a view; its versions stay. With `iceberg`, raises NotFound for a view in another format."""
    view = find_view(actor, address)
    policy.require(actor, operations.DROP_VIEW, view)
    store_of(view).drop(actor, address, view, iceberg=iceberg)
