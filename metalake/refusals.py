"""What was refused, told in the audit without letting anybody flood it.

Of one caller the first ROWS different refusals of a minute are a row each, at once; how many more there were is one row
when the minute is over. Sign-ins that failed are one row a minute, with how many for which accounts and from where.
Each process tells its own: with several of them a caller may get as many rows in each, and what a process has counted
since its last row is lost if it is killed.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from metalake.errors import Forbidden
from metalake.events import Event, record

log = logging.getLogger(__name__)

MINUTE = 60.0  # seconds
ROWS = 20
CALLERS = 1000  # told apart in a minute; more of them are counted as one
NAMED = 20  # accounts and addresses that a row of failed sign-ins names
KEPT = 1024  # bytes of what a caller wrote
LONGEST_NAME = 255  # as the audit's column has it
WAITING = 1000  # rows that wait for the database
BRIEFLY = 1.0  # seconds
OTHERS = "others"

clock = time.monotonic


class _Minute:
    """What one caller was refused since it began."""

    def __init__(self, caller: str) -> None:
        self.caller = caller
        self.since = timezone.now()
        self.ends = clock() + MINUTE
        self.rows: set[bytes] = set()
        self.more = 0

    def rest(self) -> list[Event]:
        if not self.more:
            return []
        details = {"more": self.more, "since": self.since.isoformat()}
        return [_event("access.refused", self.caller, f"{self.more} more requests", details)]


class _SignIns:
    """The sign-ins that failed since it began; names that are no account's are counted, since one may be a password."""

    def __init__(self) -> None:
        self.since = timezone.now()
        self.ends = clock() + MINUTE
        self.wrong = 0
        self.not_tried = 0
        self.unknown_names = 0
        self.accounts: Counter[str] = Counter()
        self.addresses: Counter[str] = Counter()

    def rest(self) -> list[Event]:
        details = {
            "wrong": self.wrong,
            "notTried": self.not_tried,
            "accounts": dict(self.accounts),
            "unknownNames": self.unknown_names,
            "addresses": dict(self.addresses),
            "since": self.since.isoformat(),
        }
        return [_event("sign_in.refused", "", f"{self.wrong + self.not_tried} sign-ins", details, kind="user")]


_lock = threading.Lock()
_callers: dict[str, _Minute] = {}
_sign_ins: list[_SignIns] = []  # the one that is open, if any
_untold: list[Event] = []


def refused(actor: str, asked: str, refusal: Forbidden) -> None:
    """Note that a caller was refused what they asked for, a verb and a path, in a transaction of its own.

    Never raises: an answer does not fail for its note.
    """
    details = {"why": shortened(refusal.message)}
    event = _event("access.refused", actor, shortened(asked), details, kind=refusal.kind or "")
    what = hashlib.sha256(f"{asked}\0{refusal.message}".encode(errors="surrogatepass")).digest()
    with _lock:
        minute = _minute_of(event.actor)
        if what in minute.rows or len(minute.rows) >= ROWS:
            minute.more += 1
            return
        minute.rows.add(what)
    if not _note([event]):
        with _lock:
            minute.more += 1


def sign_in(account: str | None, address: str, *, tried: bool) -> None:
    """Count a sign-in that failed, or was not even tried; `account` is None where there is none of that name."""
    with _lock:
        if _sign_ins and _sign_ins[0].ends <= clock():
            _untold.extend(_sign_ins.pop().rest())
        if not _sign_ins:
            _sign_ins.append(_SignIns())
        found = _sign_ins[0]
        if tried:
            found.wrong += 1
        else:
            found.not_tried += 1
        if account is None:
            found.unknown_names += 1
        else:
            _count(found.accounts, account)
        _count(found.addresses, address or "local")


def tell(*, everything: bool = False) -> None:
    """Write the rows of the minutes that are over, or of all: every process of a server does so each second."""
    with _lock:
        begun: list[_Minute | _SignIns] = [*_callers.values(), *_sign_ins]
        over = [each for each in begun if everything or each.ends <= clock()]
        events = [*_untold, *(event for each in over for event in each.rest())]
        _untold.clear()
        for each in over:
            if isinstance(each, _SignIns):
                _sign_ins.remove(each)
            else:
                del _callers[each.caller]
    if events and not _note(events):
        with _lock:
            _untold[:] = [*events, *_untold][:WAITING]


def forget() -> None:
    """Nothing of what this process has counted is told."""
    with _lock:
        _callers.clear()
        _sign_ins.clear()
        _untold.clear()


def shortened(text: str) -> str:
    """The text, or its first KEPT bytes and a hash of the rest."""
    raw = text.encode(errors="surrogatepass")
    if len(raw) <= KEPT:
        return text
    rest = raw[KEPT:]
    return f"{raw[:KEPT].decode(errors='ignore')}... sha256:{hashlib.sha256(rest).hexdigest()} of {len(rest)} bytes"


def _minute_of(caller: str) -> _Minute:
    if caller not in _callers and len(_callers) >= CALLERS:
        caller = OTHERS
    minute = _callers.get(caller)
    if minute is None or minute.ends <= clock():
        if minute is not None:
            _untold.extend(minute.rest())
        minute = _callers[caller] = _Minute(caller)
    return minute


def _count(counter: Counter[str], name: str) -> None:
    counter[name if name in counter or len(counter) < NAMED else OTHERS] += 1


def _event(name: str, actor: str, full_name: str, details: dict[str, Any], kind: str = "") -> Event:
    return Event(
        name=name,
        actor=actor[:LONGEST_NAME],
        kind=kind,
        object_id=0,
        full_name=full_name,
        metalake_id=None,
        details=details,
    )


def _note(events: list[Event]) -> bool:
    try:
        with _briefly(), transaction.atomic():
            record(*events)
    except DatabaseError:
        log.exception("refusals could not be noted")
        return False
    return True


@contextmanager
def _briefly() -> Iterator[None]:
    """On SQLite, where there is one writer, a note waits BRIEFLY for its turn: who was refused a read waits with it."""
    if connection.vendor != "sqlite" or connection.in_atomic_block:
        yield
        return
    _wait_at_most(BRIEFLY)
    try:
        yield
    finally:
        _wait_at_most(settings.METALAKE_LIMITS.lock)


def _wait_at_most(seconds: float) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA busy_timeout = {round(seconds * 1000)}")
