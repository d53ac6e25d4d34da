"""Deletes expired rows of the record of use, a few per round."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from access.usage.queries import hour_of
from authz.models import Use, UseWriter

AT_ONCE = 1000  # rows, about; some more if many callers asked about one object in one hour
STEPS = 20  # of a round


def remove() -> None:
    """Delete expired rows in batches, each of which holds SQLite's write lock for milliseconds."""
    for _ in range(STEPS):
        if not _remove_some(hour_of(None)):
            break
    UseWriter.objects.filter(written_until__lt=timezone.now() - timedelta(days=settings.METALAKE_USE_DAYS)).delete()


def _remove_some(oldest: int) -> bool:
    """Remove about AT_ONCE rows of the first hour there is, if it is before `oldest`; whether there may be more."""
    rows = Use.objects.order_by("hour", "about")
    first = rows.values_list("hour", flat=True).first()
    if first is None or first >= oldest:
        return False
    of_hour = rows.filter(hour=first)
    last = of_hour.values_list("about", flat=True)[AT_ONCE - 1 : AT_ONCE].first()
    some = of_hour if last is None else of_hour.filter(about__lte=last)
    some.order_by().delete()
    return True
