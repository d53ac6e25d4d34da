"""What the endpoints of tables and views share: listing and renaming."""

from __future__ import annotations

from collections.abc import Callable

from catalogs.services.leaves import LeafList
from iceberg_rest.names import checked_levels, checked_name
from iceberg_rest.pages import page
from iceberg_rest.replies import Reply, done, reply
from iceberg_rest.routes import Call
from iceberg_rest.wire import RenameLeaf
from metalake.errors import NotFound
from metalake.kinds import KINDS, Kind


def list_leaves(call: Call, kind: Kind, listing: Callable[..., LeafList]) -> Reply:
    """A page of the names from `listing`, a function of the kind's service."""

    def fetch(after: str | None, limit: int | None) -> list[str]:
        listed = listing(call.actor, call.ident(), after, limit, refresh=call.refresh, iceberg=True)
        call.taken_at = listed.taken_at
        return listed.names

    names, token = page(
        call.query, fetch, KINDS[kind].plural, call.actor.name, call.metalake, call.catalog, *call.levels
    )
    identifiers = [{"namespace": call.levels, "name": name} for name in names]
    return reply({"identifiers": identifiers, "next-page-token": token})


def rename_leaf(
    call: Call, body: RenameLeaf, kind: Kind, require_there: Callable[..., None], rename: Callable[..., object]
) -> Reply:
    """Rename through the kind's service; a missing target namespace is reported only if the source exists."""
    source, target = checked_levels(body.source.namespace), checked_levels(body.destination.namespace)
    moved = call.ident(source, checked_name(body.source.name, kind))
    call.subject = call.about_leaf(source, body.source.name)
    require_there(call.actor, moved, iceberg=True)
    try:
        rename(call.actor, moved, call.ident(target, body.destination.name), iceberg=True)
    except NotFound as miss:
        if miss.kind != kind:
            call.subject = call.about_namespace(target)
        raise
    return done()
