"""The versions of outside views, stored as their systems describe them."""

from __future__ import annotations

from collections.abc import Iterable

from authz.actor import SYSTEM
from catalogs.services.opening import provider_at
from metalake.errors import MetalakeError
from metalake.kinds import Kind
from metalake.lineage import Located, Node
from providers.answers import Remote
from providers.base import Provider
from views_mgmt import versions
from views_mgmt.versions import Form

UNKNOWN = "unknown"


def note_all(schema: Located, views: Iterable[tuple[int, Remote]], by: str = SYSTEM) -> None:
    """Store the states of views of a schema, given by the ids of their rows, in the caller's transaction.

    Nothing is stored for a view of which only the name is known, nor for other objects.
    """
    described = [(id, remote) for id, remote in views if remote.kind == Kind.VIEW and remote.version]
    if not described:
        return
    provider = provider_at(schema)
    for id, remote in described:
        _note(provider, schema.below(Node(id, Kind.VIEW, remote.name, None, None)), remote, by)


def _note(provider: Provider, view: Located, remote: Remote, by: str) -> None:
    """That of an Iceberg view is stored when its metadata file is read."""
    try:
        entry = provider.views.read(remote.definition)
    except MetalakeError as unreadable:
        versions.note_unread(view, by, Form(remote.formats or UNKNOWN, UNKNOWN), unreadable.message)
        return
    form = Form(entry.engine, entry.format)
    if entry.definition is None:
        versions.note_unread(view, by, form)
    else:
        versions.note(view, entry.definition, by, form)
