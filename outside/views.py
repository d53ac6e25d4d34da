"""Outside views: list and load them, as their system has them now; what is read is stored as versions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from authz.actor import SYSTEM, Actor, system_actor
from authz.transactions import write
from catalogs.models import Mirror
from catalogs.services.claims import require_unclaimed
from catalogs.services.provider_of import provider_at
from metalake.errors import MetalakeError, Unsupported
from metalake.kinds import Kind
from metalake.lineage import Located
from outside import mirror
from outside.listing import describe, listed_names
from outside.reads import current, mirror_of
from providers.base import Provider
from providers.remote_objects import METADATA_FILE, ViewEntry
from views_mgmt import version_recorder, versions
from views_mgmt.states import past_states
from views_mgmt.stores import ViewRecord
from views_mgmt.versions import Form, State


@dataclass(frozen=True)
class ExternalView:
    """A view's mirror, and its parsed entry."""

    provider: Provider
    mirrored: Mirror
    described: ViewEntry


def update_listing(
    actor: Actor, schema: Located, *, force: bool = False, iceberg: bool = False
) -> tuple[set[str] | None, datetime]:
    """The names of a schema's views, None for all rows, and the time of the listing; with `iceberg`, of Iceberg views.

    Views known only by name are loaded, so that all rows have a format.
    """
    names, taken_at = listed_names(actor, schema, Kind.VIEW, force=force)
    rows = mirror.of_leaves(schema.id, Kind.VIEW).filter(securable__kind=Kind.VIEW)
    describe(actor, schema, Kind.VIEW, force=force and iceberg)
    if iceberg:
        shown = {name for name, formats in rows.values_list("wire_name", "formats") if METADATA_FILE in formats}
        names = shown if names is None else names & shown
    return names, taken_at


def loaded(
    actor: Actor, view: Located, *, force: bool = False, as_published: bool = False, iceberg: bool = False
) -> ViewRecord:
    """A view as its system has it.

    With `as_published`, right after a write, its result is used: another read might fail though the write succeeded.
    Raises NotFound if it is gone or, with `iceberg`, in another format; Unsupported, with the reason, if it cannot be
    parsed.
    """
    external = entry_of(actor, view, force=force, as_published=as_published, iceberg=iceberg)
    described, taken_at = external.described, external.mirrored.taken_at
    if described.metadata_location is not None:
        return _with_metadata(view, external, described.metadata_location)
    return ViewRecord(
        view,
        described.engine,
        described.format,
        described.definition,
        is_materialized=described.is_materialized,
        query_columns=described.query_columns,
        taken_at=taken_at,
        entry=external,
    )


def require_there(actor: Actor, view: Located, *, iceberg: bool) -> None:
    """Raise NotFound if a view is gone from its system or, with `iceberg`, in another format; it may be unreadable."""
    require_format(view, current(actor, view, provider_at(view)), iceberg=iceberg)


def require_format(view: Located, mirrored: Mirror, *, iceberg: bool) -> None:
    """With `iceberg`, raise NotFound for a view in another format."""
    if iceberg and METADATA_FILE not in mirrored.formats:
        raise view.missing()


def require_plain(provider: Provider, mirrored: Mirror) -> None:
    """Raise Unsupported for a materialized view; an unreadable view passes."""
    try:
        is_materialized = provider.views.read(mirrored.definition).is_materialized
    except MetalakeError:
        return
    if is_materialized:
        raise Unsupported("A materialized view is renamed by the engine that fills it.", kind=Kind.VIEW)


def entry_of(
    actor: Actor, view: Located, *, force: bool = False, as_published: bool = False, iceberg: bool = False
) -> ExternalView:
    """A view's entry in its system, without its metadata file. Raises as `loaded` does."""
    provider = provider_at(view)
    mirrored = mirror_of(view) if as_published else current(actor, view, provider, force=force)
    require_format(view, mirrored, iceberg=iceberg)
    return ExternalView(provider, mirrored, provider.views.read(mirrored.definition))


def _with_metadata(view: Located, external: ExternalView, location: str) -> ViewRecord:
    """The record of an Iceberg view. Raises Invalid if its location is not allowed."""
    own_files = external.provider.views.files(*own_places(external))
    own_files.allowed_place(location)
    record = ViewRecord(
        view,
        external.described.engine,
        external.described.format,
        metadata_location=location,
        content=own_files.read(location),
        taken_at=external.mirrored.taken_at,
        entry=external,
    )
    _note_metadata(record, location)
    return record


def own_places(external: ExternalView) -> list[str]:
    """The location of the view's files in its entry. Raises Invalid for one that a table of ours claims."""
    place = external.mirrored.definition.get("location")
    require_unclaimed(external.provider, place)
    return [place] if place else []


def _note_metadata(record: ViewRecord, location: str) -> None:
    """Store the state in a metadata file that is new here; for a view without versions, its whole history."""
    if versions.is_stored_at(record.view, location):
        return
    stored_as = {"metadata-location": location, "version-id": record.metadata["current-version-id"]}
    states = [*past_states(record.metadata, location), State(record.definition, stored_as)]

    def act(actor: Actor) -> None:
        mirror.require_there(record.view)
        version_recorder.note_states(record.view, states, SYSTEM, Form(record.engine, record.format))

    write(system_actor(), act, holds=None, kind=Kind.VIEW)
