"""Rate limiting of failures, across all processes and nodes.

A counter's row reveals neither who nor where: its key is a digest keyed by METALAKE_SECRET_KEY. Its window begins with
the first failure and ends WINDOW seconds later.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from threading import BoundedSemaphore
from typing import NamedTuple

from django.conf import settings
from django.db import connection
from django.db.models import F

from authz.models import Remembered
from metalake import shared_memory
from metalake.errors import TooManyRequests

WINDOW = 15 * 60
DAY = 24 * 60 * 60

Rows = dict[str, Remembered]


class Count(NamedTuple):
    """The digest of what is counted, and the failures allowed per window."""

    digest: str
    limit: int


def count_of(limit: int, *of: str) -> Count:
    return Count(digest(*of), limit)


def digest(*of: str) -> str:
    """A keyed digest (HMAC-SHA256, hex), not guessable without the key; only the last part may contain a NUL."""
    return hmac.digest(_key(settings.SECRET_KEY), "\0".join(of).encode(errors="surrogatepass"), "sha256").hex()


@cache
def _key(secret: str) -> bytes:
    return hashlib.sha256(b"metalake throttling\0" + secret.encode()).digest()


def read(*digests: str) -> Rows:
    """The unexpired rows of these digests, by digest; one statement."""
    return Remembered.objects.filter(until__gt=int(time.time())).in_bulk(digests)


def require(counts: Sequence[Count], rows: Rows, message: str) -> None:
    """Raise TooManyRequests if a count is at its limit; the time to wait is appended to the message."""
    _refuse([rows[digest].until for digest, limit in counts if digest in rows and rows[digest].count >= limit], message)


def add(counts: Sequence[Count], message: str, times: int = 1) -> None:
    """Increment all counts in one statement. Raises TooManyRequests if one now exceeds its limit."""
    now = int(time.time())
    ordered = sorted(counts)  # a fixed lock order prevents deadlocks
    values = ", ".join(["(%s, %s, %s)"] * len(ordered))
    with connection.cursor() as cursor:
        cursor.execute(  # only placeholders are interpolated
            f"INSERT INTO authz_remembered AS known (digest, count, until) VALUES {values} "  # noqa: S608
            "ON CONFLICT (digest) DO UPDATE SET "
            "count = CASE WHEN known.until <= %s THEN excluded.count ELSE known.count + excluded.count END, "
            "until = CASE WHEN known.until <= %s THEN excluded.until ELSE known.until END "
            "RETURNING digest, count, until",
            [*(value for each in ordered for value in (each.digest, times, now + WINDOW)), now, now],
        )
        counted = {digest: (count, until) for digest, count, until in cursor.fetchall()}
    _refuse([counted[digest][1] for digest, limit in counts if counted[digest][0] > limit], message)


def take_back(counts: Sequence[Count]) -> None:
    """Decrement counts that were added before an attempt succeeded."""
    Remembered.objects.filter(digest__in=[each.digest for each in counts], count__gt=0).update(count=F("count") - 1)


def remember(digest: str, seconds: int) -> None:
    """Store this digest for that many seconds from now."""
    row = Remembered(digest=digest, count=0, until=int(time.time()) + seconds)
    Remembered.objects.bulk_create([row], update_conflicts=True, unique_fields=["digest"], update_fields=["until"])


def prune() -> None:
    Remembered.objects.filter(until__lte=int(time.time())).delete()


def _refuse(ends: Sequence[int], message: str) -> None:
    if ends:
        wait = max(1, max(ends) - int(time.time()))
        minutes = -(-wait // 60)
        raise TooManyRequests(f"{message} Try again in {minutes} minute{'s' if minutes > 1 else ''}.", retry_after=wait)


class Bulkhead:
    """A bulkhead that admits `size` threads at once server-wide, which limits CPU load.

    Per process at most `line` threads are inside or wait, up to `patience` seconds, so that the others stay free.
    """

    def __init__(self, name: str, size: int, line: int, patience: float, message: str) -> None:
        self.patience, self.message = patience, message
        self._inside = shared_memory.Places(name, size)
        self._line = BoundedSemaphore(line)

    @contextmanager
    def place(self) -> Iterator[None]:
        """Raises TooManyRequests if no slot becomes free in time."""
        if not self._line.acquire(blocking=False):
            raise TooManyRequests(self.message, retry_after=1)
        try:
            place = self._inside.take(self.patience)
            if place is None:
                raise TooManyRequests(self.message, retry_after=1)
            try:
                yield
            finally:
                self._inside.leave(place)
        finally:
            self._line.release()
