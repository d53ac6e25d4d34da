"""Audits denied requests, rate-limited so that no caller can flood the audit log.

A caller's first ROWS distinct denials in a minute are written as a row each, at once; further ones as a single count
at the end of the minute. Failed sign-ins get one row a minute, with counts by account and address. All processes of a
server count in shared memory, so the limits are server-wide, and a killed process's counts are written by the others.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections, transaction
from django.utils import timezone

from metalake import shared_memory
from metalake.blocking import may_block
from metalake.errors import Forbidden
from metalake.events import Event, record
from metalake.models import Metalake
from metalake.sqlite.base import DatabaseWrapper

log = logging.getLogger(__name__)

MINUTE = 60.0  # seconds
ROWS = 20
CALLERS = 1000  # counted individually per minute; the rest together
NAMED = 20  # accounts and addresses named in a row of failed sign-ins
MAX_TEXT = 1024  # bytes of caller-supplied text
LONGEST_NAME = 255  # the size of the audit column
WAITING = 1000  # rows that wait for the database
BRIEFLY = 1.0  # seconds to wait for SQLite's writer
OTHERS = "others"

clock = time.monotonic


_minutes = shared_memory.SharedDict("refusals")  # per caller, by a digest of the name
_sign_ins = shared_memory.SharedDict("failed sign-ins")  # of this minute
_unwritten = shared_memory.SharedDict("refusals untold")  # rows not yet in the database


def refused(actor: str, request: str, refusal: Forbidden, metalake: str | None = None) -> None:
    """Audit that a caller was denied `request`, a method and a path, in a separate transaction.

    `metalake` is the name in the path. Raises only BeginAgain, in a short read, since it may wait for a writer. Other
    failures are logged and do not affect the response.
    """
    may_block()
    details = {"why": shortened(refusal.message)}
    event = _event("access.refused", actor, shortened(request), details, kind=refusal.kind or "")
    what = hashlib.sha256(f"{request}\0{refusal.message}".encode(errors="surrogatepass")).hexdigest()[:32]
    try:
        if _is_a_row(event.actor, what) and not _note([event], metalake):
            _is_a_row(event.actor, what)  # the row could not be written, so it is counted
    except shared_memory.Unavailable:
        log.exception("a refusal could not be audited")


def _is_a_row(caller: str, what: str) -> bool:
    """Whether the denial gets its own row; otherwise it is counted."""
    with shared_memory.turn():
        name = _digest(caller)
        if name not in _minutes and len(_minutes) >= CALLERS:
            caller, name = OTHERS, _digest(OTHERS)
        minute = _minutes.get(name)
        if minute is None or minute["ends"] <= clock():
            if minute is not None:
                _store(_rest(minute))
            minute = _begun(caller=caller, rows=[], more=0)
        is_row = what not in minute["rows"] and len(minute["rows"]) < ROWS
        if is_row:
            minute["rows"].append(what)
        else:
            minute["more"] += 1
        _minutes[name] = minute
        return is_row


def sign_in(account: str | None, address: str, *, tried: bool) -> None:
    """Count a failed sign-in, or a throttled one (not `tried`); `account` is None if there is no such account.

    Unknown names are only counted, since one may be a mistyped password. Does not raise.
    """
    try:
        with shared_memory.turn():
            minute = _sign_ins.get("")
            if minute is None or minute["ends"] <= clock():
                if minute is not None:
                    _store(_rest(minute))
                minute = _begun(wrong=0, notTried=0, accounts={}, unknownNames=0, addresses={})
            minute["wrong" if tried else "notTried"] += 1
            if account is None:
                minute["unknownNames"] += 1
            else:
                _count(minute["accounts"], account)
            _count(minute["addresses"], address or "local")
            _sign_ins[""] = minute
    except shared_memory.Unavailable:
        log.exception("a failed sign-in could not be counted")


def flush(*, everything: bool = False) -> None:
    """Write the rows of completed minutes, or of all; each process of a server calls this every second."""
    try:
        events = _take(everything)
        if events and not _note(events):
            with shared_memory.turn():
                _store(events)
    except shared_memory.Unavailable:
        log.exception("counted refusals could not be written")


def _take(everything: bool) -> list[Event]:
    """Pop the events to write from shared memory."""

    def over() -> list[tuple[shared_memory.SharedDict, str, dict[str, Any]]]:
        begun = [(notes, name, each) for notes in (_minutes, _sign_ins) for name, each in notes.everything().items()]
        return [entry for entry in begun if everything or entry[2]["ends"] <= clock()]

    if not over() and not _unwritten:
        return []
    with shared_memory.turn():
        events = [_event_of(each) for each in _unwritten.everything().values()]
        _unwritten.clear()
        for notes, name, each in over():
            events += _rest(each)
            del notes[name]
        return events


def _rest(begun: dict[str, Any]) -> list[Event]:
    """The event with a minute's counts, if there are any."""
    if "more" not in begun:
        details = {name: value for name, value in begun.items() if name != "ends"}
        return [_event("sign_in.refused", "", f"{begun['wrong'] + begun['notTried']} sign-ins", details, kind="user")]
    if not begun["more"]:
        return []
    details = {"more": begun["more"], "since": begun["since"]}
    return [_event("access.refused", begun["caller"], f"{begun['more']} more requests", details)]


def _begun(**counts: Any) -> dict[str, Any]:
    return counts | {"since": timezone.now().isoformat(), "ends": clock() + MINUTE}


def _store(events: list[Event]) -> None:
    """Keep events in shared memory, for the next flush."""
    for event in events[: WAITING - len(_unwritten)]:
        _unwritten[f"{event.at.isoformat()} {uuid4()}"] = event.as_json()


def _event_of(stored: dict[str, Any]) -> Event:
    return Event(**(stored | {"at": datetime.fromisoformat(stored["at"])}))


def _digest(caller: str) -> str:
    return hashlib.sha256(caller.encode(errors="surrogatepass")).hexdigest()


def forget() -> None:
    """Discard all counts."""
    for notes in (_minutes, _sign_ins, _unwritten):
        notes.clear()


def shortened(text: str) -> str:
    """The text, or its first MAX_TEXT bytes and a hash of the rest."""
    raw = text.encode(errors="surrogatepass")
    if len(raw) <= MAX_TEXT:
        return text
    rest = raw[MAX_TEXT:]
    return f"{raw[:MAX_TEXT].decode(errors='ignore')}... sha256:{hashlib.sha256(rest).hexdigest()} of {len(rest)} bytes"


def _count(counter: dict[str, int], name: str) -> None:
    name = name if name in counter or len(counter) < NAMED else OTHERS
    counter[name] = counter.get(name, 0) + 1


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


def _note(events: list[Event], metalake: str | None = None) -> bool:
    try:
        with _briefly(), transaction.atomic():
            id = metalake and Metalake.objects.filter(name=metalake).values_list("pk", flat=True).first()
            record(*(replace(event, metalake_id=id or None) for event in events))
    except DatabaseError:
        log.exception("refusals could not be audited")
        return False
    return True


@contextmanager
def _briefly() -> Iterator[None]:
    """On SQLite, wait at most BRIEFLY for the write lock, since the denied caller is waiting."""
    store = connections[DEFAULT_DB_ALIAS]
    if not isinstance(store, DatabaseWrapper) or store.in_atomic_block:
        yield
        return
    store.wait_at_most(BRIEFLY)
    try:
        yield
    finally:
        store.wait_at_most(settings.METALAKE_LIMITS.lock)
