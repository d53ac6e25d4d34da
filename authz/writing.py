"""The one transaction of a write: rights are read inside it, and it runs again when another write got in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from django.db import IntegrityError, InterfaceError, OperationalError, transaction

from authz.policy import Actor
from metalake.errors import Conflict, OutcomeUnknown, ProviderUnavailable

T = TypeVar("T")
ATTEMPTS = 8
_RETRIABLE = {"40001", "40P01"}  # PostgreSQL: serialization failure, deadlock


class Stale(Exception):
    """The row changed since it was read: the transaction is undone and runs again."""


def write(actor: Actor, act: Callable[[Actor], T], *, kind: str | None = None) -> T:
    """What `act` returns, all of it committed. It may run several times, so it changes nothing outside the database.

    Raises Conflict when others kept getting in between, OutcomeUnknown when the commit itself was not answered.
    """
    for _ in range(ATTEMPTS):
        acted = False
        try:
            with transaction.atomic():
                result = act(actor.refreshed())
                acted = True
            return result
        except (Stale, IntegrityError):
            # A lost race shows as a broken constraint; the next run sees what won and says so.
            continue
        except (OperationalError, InterfaceError) as failure:
            if _is_retriable(failure):
                continue
            if acted:
                raise OutcomeUnknown("The database did not answer the commit; look before writing again.") from failure
            raise ProviderUnavailable("The database is not available; try again.") from failure
    raise Conflict("Others keep changing this object; load it again and retry.", kind=kind)


def _is_retriable(failure: Exception) -> bool:
    return getattr(failure.__cause__, "sqlstate", None) in _RETRIABLE
