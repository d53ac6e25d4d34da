"""Row locks until a transaction ends, so that an object looked up by name keeps that name (docs/decisions/locks.md)."""

from __future__ import annotations

from enum import StrEnum

from django.db import connection

from metalake.models import Securable, below


class Lock(StrEnum):
    """PostgreSQL's row locks, by what a write does with an object; each excludes changes of its name and place."""

    HANGS = "FOR KEY SHARE"  # something is created below the object, or refers to it as a grant does
    CHANGES = "FOR NO KEY UPDATE"  # its own columns change; rows that refer to it may come and go
    MOVES = "FOR UPDATE"  # its name or place changes, or it is deleted


def hold(lock: Lock, *ids: int) -> None:
    """Lock these objects, in the order of their ids, waiting for other writers.

    Read afterwards whether and where they still exist. On SQLite this does nothing: a write has the whole database to
    itself.
    """
    if not connection.features.has_select_for_update:
        return
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT id FROM metalake_securable WHERE id = ANY(%s) ORDER BY id {lock}", [list(ids)])  # noqa: S608


def hold_owner(user_id: int) -> None:
    """Lock the future owner of a new object, whose removal would hand over what they own.

    Read afterwards whether they still exist.
    """
    if not connection.features.has_select_for_update:
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM authz_user WHERE id = %s FOR KEY SHARE", [user_id])


def hold_below(lineage: str) -> None:
    """Lock all objects below the one of this lineage, which the caller has locked; parents first."""
    list(Securable.objects.select_for_update().filter(below(lineage)).order_by("lineage").values_list("pk"))
