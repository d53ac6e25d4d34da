"""When tokens were last used, to ten minutes: noted in memory by the reads that accept them, stored by a thread.

A use is stored as a digest to be forgotten REMEMBERED seconds later (authz.throttling), so nothing tells whose it is.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime

from authz import throttling
from authz.models import Remembered

REMEMBERED = 400 * throttling.DAY
SLOT = 600  # seconds
MOST_KNOWN = 10_000  # tokens of which a process knows that their slot is stored

_noted: dict[str, int] = {}
_stored: dict[str, int] = {}


def note(token: str) -> None:
    """Note that the token with this digest was accepted now."""
    _noted[token] = int(time.time())


def store() -> None:
    """Store what this process noted since the last time. Raises DatabaseError, and then stores it the next time."""
    noted = dict(_noted)
    new = {token: at for token, at in noted.items() if at - _stored.get(token, 0) >= SLOT}
    rows = [Remembered(digest=_key(token), count=0, until=at + REMEMBERED) for token, at in new.items()]
    rows.sort(key=lambda row: row.digest)  # a consistent lock order across processes prevents deadlocks
    Remembered.objects.bulk_create(rows, update_conflicts=True, unique_fields=["digest"], update_fields=["until"])
    if len(_stored) > MOST_KNOWN:
        _stored.clear()
    _stored.update(new)
    for token, at in noted.items():
        if _noted.get(token) == at:
            del _noted[token]


def last_uses(tokens: Iterable[str]) -> dict[str, datetime]:
    """When the tokens of these digests were last used, of those of which that is stored."""
    keys = {_key(token): token for token in tokens}
    rows = throttling.read(*keys)
    return {keys[key]: datetime.fromtimestamp(row.until - REMEMBERED, UTC) for key, row in rows.items()}


def _key(token: str) -> str:
    return throttling.digest("token used", token)
