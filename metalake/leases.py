"""Leases on rows with a `fence` and a `lease_until`: one process at a time works on a row, for a limited time.

Taking a row increments its fencing token, so the previous holder's next write raises TakenOver.
The rows of a dead process become free when their lease expires.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.db.models import QuerySet
from django.utils import timezone

Row = TypeVar("Row", bound=Any)


class TakenOver(Exception):
    """Another process has taken the row."""


def over(length: timedelta) -> datetime:
    """The expiry of a lease of this length that begins now."""
    return timezone.now() + length


def take(among: QuerySet[Row], pk: Any, fence: int, length: timedelta, **fields: Any) -> bool:
    """Compare-and-swap: take the row if it is still among these with this fence; False if another process won."""
    return bool(among.filter(pk=pk, fence=fence).update(fence=fence + 1, lease_until=over(length), **fields))


def mine(row: Row) -> QuerySet[Row]:
    """The row as a query set; empty if another process has taken it since."""
    return type(row)._default_manager.filter(pk=row.pk, fence=row.fence)


def write(row: Any, **fields: Any) -> None:
    """Change the row. Raises TakenOver if another process has taken it."""
    if not mine(row).update(**fields):
        raise TakenOver


def give_back(row: Any) -> None:
    """End the lease, so that another process can take the row immediately."""
    mine(row).update(lease_until=timezone.now())
