"""Views of every store: list, load, create, register, alter, rename and drop."""

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
AT_ONCE = 20  # views fetched per chunk
MOST_NAMES = 500  # per statement; for more, the whole schema is read


def store_of(located: Located) -> ViewStore:
    """The store of a catalog's views. Raises Unsupported if it offers none."""
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

    `iceberg` leaves out views in other formats.
    """
    schema = schema_to_list(actor, address, Kind.VIEW)
    listing = store_of(schema).listing(actor, schema, refresh=refresh, iceberg=iceberg)
    return visible_names(actor, schema, Kind.VIEW, listing, after, limit)


def summaries(actor: Actor, address: Address, names: Sequence[str]) -> Iterator[ViewVersion]:
    """The latest known versions of the views with these names that the actor may load, in chunks: SQL may be long.

    `view.broken` says why a view's current state is unreadable.
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
    """Load a view. Raises Unsupported, with the reason, for an unreadable one."""

    def read(view: Located) -> ViewRecord:
        return store_of(view).load(actor, view, refresh=refresh)

    return read_or_namesake(address, find_view(actor, address), partial(_require_loadable, actor), read)


def find_loadable(actor: Actor, address: Address) -> Located:
    """A view that the actor may load, refreshed from its store if readable. Raises NotFound if it is gone."""

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
    """The view at an address, without a permission check. Raises NotFound, also for a table of that name."""
    return resolution.of_kind(actor, resolution.find(actor, address), Kind.VIEW)


def view_exists(actor: Actor, address: Address, *, iceberg: bool = False) -> None:
    """Raise NotFound if the view is missing or hidden from the actor; with `iceberg`, also if in another format."""

    def allow(view: Located) -> None:
        policy.require_seen(actor, view)
        require_enabled(view)

    def read(view: Located) -> None:
        store_of(view).require_there(actor, view, iceberg=iceberg)

    read_or_namesake(address, find_view(actor, address), allow, read)


def create_view(actor: Actor, address: Address, asked: CreateViewRequest) -> ViewRecord:
    """Create a view from a request of the native API."""
    require_values(asked.properties, kind=Kind.VIEW)
    wanted = asked.definition()
    home = _home(actor, address)
    return store_of(home).create(actor, address, home, wanted)


def create_iceberg_view(actor: Actor, address: Address, draft: ViewDraft) -> ViewRecord:
    """Create a view from an Iceberg REST request. Raises Unsupported in a catalog without Iceberg views."""
    home = _home(actor, address)
    return _pointers_in(home).create(actor, address, home, draft)


def register_view(actor: Actor, address: Address, metadata_location: str) -> ViewRecord:
    """Register an existing metadata file as a view. Raises Unsupported in a catalog without Iceberg views."""
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
    """The parent schema of a new view. Raises Invalid for an invalid name."""
    check_new_name(address.leaf or "", Kind.VIEW)
    return resolve_parent(actor, address, asks)


def alter_view(actor: Actor, address: Address, updates: Sequence[Any], since: int | None = None) -> ViewRecord:
    """Apply the native API's updates to a view as one new version, a rename included.

    Raises Invalid if the store cannot rename and alter a view at once; with `since`, Conflict if the view has changed
    since that version.
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
    """The plan, raising Conflict if the view has changed since version `since`."""

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
    """Apply Iceberg REST updates to a view, if its requirements hold."""
    return commit(actor, address, find_view(actor, address), replacement(requirements, updates))


def rename_view(actor: Actor, source: Address, target: Address, *, iceberg: bool = False) -> Located:
    """Rename a view; returns it under its new name.

    Renaming within its schema requires alter; moving it requires ownership, and create_view in the target schema. With
    `iceberg`, raises NotFound for a view in another format.
    """
    check_new_name(target.leaf or "", Kind.VIEW)
    if (source.metalake, source.catalog) != (target.metalake, target.catalog):
        raise Unsupported("A view cannot move to another catalog.", kind=Kind.VIEW)
    view = find_view(actor, source)
    return store_of(view).rename(actor, source, view, target, iceberg=iceberg)


def drop_view(actor: Actor, address: Address, *, iceberg: bool = False) -> None:
    """Drop a view; its versions are kept. With `iceberg`, raises NotFound for a view in another format."""
    view = find_view(actor, address)
    policy.require(actor, operations.DROP_VIEW, view)
    store_of(view).drop(actor, address, view, iceberg=iceberg)
