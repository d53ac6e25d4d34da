"""The one transaction of a write: rights are read inside it, and it runs again when another write got in between."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TypeVar

from django.db import IntegrityError, connection, transaction

from authz.actor import Actor
from authz.writers import WRITERS
from metalake.causes import FAILED, is_undone, unavailable
from metalake.context import request_id
from metalake.errors import Conflict, OutcomeUnknown

T = TypeVar("T")
ATTEMPTS = 8
_RETRIABLE = {"40001", "40P01"}  # PostgreSQL: serialization failure, deadlock


class Stale(Exception):
    """The row changed since it was read: the transaction is undone and runs again."""


def write(
    actor: Actor,
    act: Callable[[Actor], T],
    *,
    holds: Callable[[], object] | None,
    kind: str | None = None,
    waits: bool = True,
) -> T:
    """What `act` returns, all of it committed. It may run several times, so it changes nothing outside the database.

    `holds` waits for the rows that are written to; rights are read after that, and what was found by a name is looked
    for once more by `act`. None is for what no other write can move or take away.
    Without `waits` it needs no place among the writers: it is the end of a write that had one.
    Raises Conflict when others kept getting in between, StoreUnavailable when the database certainly did not do it,
    OutcomeUnknown when the commit itself was not answered.
    """
    is_counted = waits and request_id.get() and not connection.in_atomic_block  # a request's thread, and only once
    with WRITERS.place() if is_counted else nullcontext():
        return _write(actor, act, holds, kind)


def _write(actor: Actor, act: Callable[[Actor], T], holds: Callable[[], object] | None, kind: str | None) -> T:
    for _ in range(ATTEMPTS):
        acted = False
        try:
            with transaction.atomic():
                if holds is not None:
                    holds()
                result = act(actor.refreshed())
                acted = True
            return result
        except (Stale, IntegrityError):
            # A lost race shows as a broken constraint; the next run sees what won and says so.
            continue
        except FAILED as failure:
            if _is_retriable(failure):
                continue
            if (told := unavailable(failure)) is None:
                raise
            if acted and not is_undone(failure):
                raise OutcomeUnknown("The database did not answer the commit; look before writing again.") from failure
            raise told from failure
    raise Conflict("Others keep changing this object; load it again and retry.", kind=kind)


def _is_retriable(failure: Exception) -> bool:
    return getattr(failure.__cause__, "sqlstate", None) in _RETRIABLE
