"""Write transactions: permissions are read inside, and conflicts with other writes are retried."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TypeVar

from django.db import IntegrityError, connection, transaction

from authz.actor import Actor
from authz.write_limit import WRITERS
from metalake import prefetch
from metalake.database_errors import FAILED, is_undone, unavailable
from metalake.errors import Conflict, OutcomeUnknown
from metalake.request_context import request_id

T = TypeVar("T")
Refresh = Callable[[Actor], AbstractContextManager[Actor]]
ATTEMPTS = 8
_RETRIABLE = {"40001", "40P01"}  # PostgreSQL: serialization failure, deadlock


class Stale(Exception):
    """Raised if a row changed since it was read: the transaction is rolled back and retried."""


def write(
    actor: Actor,
    act: Callable[[Actor], T],
    *,
    holds: Callable[[], object] | None,
    kind: str | None = None,
    waits: bool = True,
    refresh: Refresh | None = None,
) -> T:
    """Run `act` in a transaction, commit, and return its result. It may be retried, so it must have no side effects
    outside the database.

    `holds` locks the rows to be written; permissions are read after that, and `act` must repeat look-ups by name. Pass
    None for rows that no other write can move or delete. `waits=False` is for the last part of a write that has already
    had a writer slot.
    `refresh` updates the actor to the current policy; a custom one reads more in the same statement.
    Raises Conflict if all retries lost against other writes, StoreUnavailable if the database certainly did not commit,
    OutcomeUnknown if the commit got no response.
    """
    is_counted = waits and request_id.get() and not connection.in_atomic_block  # only in a request's thread, once
    with WRITERS.place() if is_counted else nullcontext():
        return _write(actor, act, holds, kind, refresh or _refreshed)


@contextmanager
def _refreshed(actor: Actor) -> Iterator[Actor]:
    yield actor.refreshed()


def _write(
    actor: Actor, act: Callable[[Actor], T], holds: Callable[[], object] | None, kind: str | None, refresh: Refresh
) -> T:
    for _ in range(ATTEMPTS):
        acted = False
        try:
            with transaction.atomic():
                if holds is not None:
                    holds()
                prefetch.forget()
                with refresh(actor) as fresh:
                    result = act(fresh)
                acted = True
            return result
        except (Stale, IntegrityError):
            # A lost race is a constraint violation; the retry reads the winner's row and raises the right error.
            continue
        except FAILED as failure:
            if _is_retriable(failure):
                continue
            if (error := unavailable(failure)) is None:
                raise
            if acted and not is_undone(failure):
                raise OutcomeUnknown("The database did not answer the commit; look before writing again.") from failure
            raise error from failure
    raise Conflict("Others keep changing this object; load it again and retry.", kind=kind)


def _is_retriable(failure: Exception) -> bool:
    return getattr(failure.__cause__, "sqlstate", None) in _RETRIABLE
