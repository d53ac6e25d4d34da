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
from views_mgmt import noting
from views_mgmt.noting import Noted
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
    noting.note(
        [_noted(provider, schema.below(Node(id, Kind.VIEW, one.name, None, None)), one) for id, one in described], by
    )


def _noted(provider: Provider, view: Located, remote: Remote) -> Noted:
    """The state of an Iceberg view is stored when its metadata file is read."""
    try:
        entry = provider.views.read(remote.definition)
    except MetalakeError as unreadable:
        return Noted(view, Form(remote.formats or UNKNOWN, UNKNOWN), broken=unreadable.message)
    return Noted(view, Form(entry.engine, entry.format), entry.definition)
