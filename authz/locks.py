"""Rows held until a transaction ends, so that an object found by its name keeps it (docs/decisions/locks.md)."""

from __future__ import annotations

from enum import StrEnum

from django.db import connection

from metalake.models import Securable, below


class Lock(StrEnum):
    """What a write does with an object, as PostgreSQL has it; each shuts out the changes of names and places."""

    HANGS = "FOR KEY SHARE"  # something is put below the object, or hung on it as a grant is
    CHANGES = "FOR NO KEY UPDATE"  # what it says of itself; what hangs on it may come and go
    MOVES = "FOR UPDATE"  # its name, its place, or that it is there at all


def hold(lock: Lock, *ids: int) -> None:
    """Wait for whoever writes to these objects, in the order of their ids.

    Whether they are still there, and where, is read after that. On SQLite nothing is waited for: a whole write has the
    database to itself.
    """
    if not connection.features.has_select_for_update:
        return
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT id FROM metalake_securable WHERE id = ANY(%s) ORDER BY id {lock}", [list(ids)])  # noqa: S608


def hold_owner(user_id: int) -> None:
    """Whoever is to own what is made is not removed meanwhile, which hands over what they own; or was before."""
    if not connection.features.has_select_for_update:
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM authz_user WHERE id = %s FOR KEY SHARE", [user_id])


def hold_below(lineage: str) -> None:
    """Wait for all who write to what lies below the object of this lineage, which the caller holds; parents first."""
    list(Securable.objects.select_for_update().filter(below(lineage)).order_by("lineage").values_list("pk"))
