"""Turns Iceberg DEFINER views whose owner was removed into INVOKER views.

The mode is in a metadata file, which cannot be written in the transaction that removes the owner: it follows later.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from authz.actor import Actor, system_actor
from authz.locks import Lock
from authz.transactions import write
from catalogs import vault
from catalogs.lookup import by_id
from catalogs.managed.pointers import Raced, move_pointer
from catalogs.pointer_stores import NewState, discard_on_failure, now_ms
from catalogs.services import shared_folders
from catalogs.services.commits import COMMIT_ATTEMPTS
from catalogs.services.provider_of import files_of
from catalogs.services.writes import hold_each
from formats.iceberg.views.builder import run_by_invokers
from metalake.errors import Conflict
from metalake.events import follow_up
from metalake.kinds import Kind
from metalake.lineage import Located
from metalake.outbox import NotHere
from views_mgmt.delegated.pointers import DelegatedPointers, note_state
from views_mgmt.models import View
from views_mgmt.services import definer
from views_mgmt.stores import ViewRecord


def note(securable_ids: Sequence[int]) -> None:
    """Queue the DEFINER views among these to become INVOKER views after the transaction."""
    rows = list(View.objects.filter(pk__in=definer.definers(securable_ids)).order_by("pk"))
    for row in rows:
        shared_folders.mark(row.metadata_location or "")
    follow_up(definer.BECOMES_INVOKER, [{"id": row.pk} for row in rows])


def become_invoker(payload: dict[str, Any]) -> None:
    """Remove Trino's run-as owner from a view's metadata, as a new version. Idempotent.

    Raises NotHere if this process cannot reach the files' folder or open the catalog's secrets.
    """
    for _ in range(COMMIT_ATTEMPTS):
        view = by_id(payload["id"])
        if view is None or _is_done(view):
            return
    raise Conflict("Others keep committing to the view.", kind=Kind.VIEW)


def _is_done(view: Located) -> bool:
    """Commit the new state; False if another commit won the race."""
    if reason := vault.lacks_key_of(view.catalog.id):
        raise NotHere(reason)
    files, current = files_of(view), DelegatedPointers().current(system_actor(), view)
    shared_folders.require_here([current.metadata_location or ""], files.allowed)
    metadata = run_by_invokers(current.metadata, now_ms=now_ms())
    if metadata is current.metadata:
        return True
    new = NewState(files, metadata, *files.write(metadata, current.metadata_location))
    move = partial(_move, view=view, current=current, new=new)
    try:
        with discard_on_failure([new]):
            write(system_actor(), move, holds=partial(hold_each, [(view, Lock.CHANGES)]), kind=Kind.VIEW)
    except Raced:
        return False
    return True


def _move(actor: Actor, view: Located, current: ViewRecord, new: NewState) -> None:
    fresh = by_id(view.id)
    if fresh is None:
        raise Raced
    move_pointer(actor, View, fresh, current, new)
    note_state(actor, fresh, current, new, "view.altered")
