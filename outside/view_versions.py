"""The versions of outside views, stored as their systems describe them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from authz.actor import SYSTEM
from catalogs.services.provider_of import provider_at
from formats.native.view_definition import ViewDefinition
from metalake.errors import MetalakeError
from metalake.kinds import Kind
from metalake.lineage import Located, Node
from providers.base import Provider
from providers.remote_objects import Remote
from views_mgmt import version_recorder
from views_mgmt.version_recorder import Noted
from views_mgmt.versions import Form, State

Json = dict[str, Any]

UNKNOWN = "unknown"


def as_arguments(states: Iterable[State]) -> list[Json]:
    """States of an Iceberg view as JSON, for an intent."""
    return [{"definition": state.definition.as_json(), "stored_as": dict(state.stored_as)} for state in states]


def note_all(
    schema: Located, views: Iterable[tuple[int, Remote]], by: str = SYSTEM, written: Sequence[Json] = ()
) -> None:
    """Store the states of a schema's views, given by row id, in the caller's transaction.

    Views known only by name are skipped, like other objects. `written` are the states, as JSON, that a write of ours
    gave the only view, an Iceberg view.
    """
    described = [(id, remote) for id, remote in views if remote.kind == Kind.VIEW and remote.version]
    if not described:
        return
    provider = provider_at(schema)
    noted = [_noted(provider, schema.below(Node(id, Kind.VIEW, one.name, None, None)), one) for id, one in described]
    if written:
        states = [State(ViewDefinition.from_json(one["definition"]), one["stored_as"]) for one in written]
        version_recorder.note_states(noted[0].view, states, by, noted[0].form)
    else:
        version_recorder.note(noted, by)


def _noted(provider: Provider, view: Located, remote: Remote) -> Noted:
    """The state of an Iceberg view that others wrote is stored when its metadata file is read."""
    try:
        entry = provider.views.read(remote.definition)
    except MetalakeError as unreadable:
        return Noted(view, Form(remote.formats or UNKNOWN, UNKNOWN), broken=unreadable.message)
    return Noted(view, Form(entry.engine, entry.format), entry.definition, file=entry.metadata_location)
