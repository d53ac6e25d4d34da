"""Who works on a row, of those that have a `fence` and a `lease_until`: one process at a time, until a moment.

Whoever takes a row makes its fence greater by one, and so shuts out who had it; who had it notices at its next write.
A process that dies gives its rows back when their lease is over.
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
    """When a lease of this length that begins now is over."""
    return timezone.now() + length


def take(among: QuerySet[Row], pk: Any, fence: int, length: timedelta, **fields: Any) -> bool:
    """Take the row if it is still among these and under this fence; False where another was faster."""
    return bool(among.filter(pk=pk, fence=fence).update(fence=fence + 1, lease_until=over(length), **fields))


def mine(row: Row) -> QuerySet[Row]:
    """The row, unless another process has taken it since."""
    return type(row)._default_manager.filter(pk=row.pk, fence=row.fence)


def write(row: Any, **fields: Any) -> None:
    """Change the row. Raises TakenOver."""
    if not mine(row).update(**fields):
        raise TakenOver


def give_back(row: Any) -> None:
    """Whoever comes next goes on at once."""
    mine(row).update(lease_until=timezone.now())
