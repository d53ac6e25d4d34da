"""Row locks held until commit, so that an object looked up by name keeps that name (docs/decisions/locks.md)."""

from __future__ import annotations

from enum import StrEnum

from django.db import connection

from metalake.models import Securable, below


class Lock(StrEnum):
    """PostgreSQL's row lock modes, by what a write does to an object; each blocks renames and moves of it."""

    HANGS = "FOR KEY SHARE"  # something is created below the object, or refers to it as a grant does
    CHANGES = "FOR NO KEY UPDATE"  # its own columns change; referring rows may come and go
    MOVES = "FOR UPDATE"  # it is renamed, moved or deleted


def hold(lock: Lock, *ids: int) -> None:
    """Lock these objects in id order, waiting for other writers.

    Afterwards, reread whether and where they still exist. A no-op on SQLite, where a write locks the whole database.
    """
    if not connection.features.has_select_for_update:
        return
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT id FROM metalake_securable WHERE id = ANY(%s) ORDER BY id {lock}", [list(ids)])  # noqa: S608


def hold_owner(user_id: int) -> None:
    """Lock the future owner of a new object against removal, which would transfer what they own.

    Afterwards, reread whether they still exist.
    """
    if not connection.features.has_select_for_update:
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM authz_user WHERE id = %s FOR KEY SHARE", [user_id])


def hold_below(lineage: str) -> None:
    """Lock all objects below this lineage, parents first; the caller has locked the top one."""
    list(Securable.objects.select_for_update().filter(below(lineage)).order_by("lineage").values_list("pk"))
