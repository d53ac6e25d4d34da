"""What was refused, told in the audit without letting anybody flood it.

Of one caller the first ROWS different refusals of a minute are a row each, at once; how many more there were is one row
when the minute is over. Sign-ins that failed are one row a minute, with how many for which accounts and from where.
All processes of a server count on its board: whichever a caller met, these are the bounds, and what a process that was
killed had counted is told by the others.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from metalake import board
from metalake.blocking import may_block
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


_minutes = board.Notes("refusals")  # of each caller, by a digest of its name
_sign_ins = board.Notes("failed sign-ins")  # those of this minute
_untold = board.Notes("refusals untold")  # rows that the database has not taken yet


def refused(actor: str, asked: str, refusal: Forbidden) -> None:
    """Note that a caller was refused what they asked for, a verb and a path, in a transaction of its own.

    Never raises: an answer does not fail for its note. A short read is refused by a thread that may wait for a writer.
    """
    may_block()
    details = {"why": shortened(refusal.message)}
    event = _event("access.refused", actor, shortened(asked), details, kind=refusal.kind or "")
    what = hashlib.sha256(f"{asked}\0{refusal.message}".encode(errors="surrogatepass")).hexdigest()[:32]
    try:
        if _is_a_row(event.actor, what) and not _note([event]):
            _is_a_row(event.actor, what)  # it was to be one: now it is counted
    except board.Unavailable:
        log.exception("a refusal could not be noted")


def _is_a_row(caller: str, what: str) -> bool:
    """Whether it is to be told at once; else it is counted."""
    with board.turn():
        name = _digest(caller)
        if name not in _minutes and len(_minutes) >= CALLERS:
            caller, name = OTHERS, _digest(OTHERS)
        minute = _minutes.get(name)
        if minute is None or minute["ends"] <= clock():
            if minute is not None:
                _keep(_rest(minute))
            minute = _begun(caller=caller, rows=[], more=0)
        is_row = what not in minute["rows"] and len(minute["rows"]) < ROWS
        if is_row:
            minute["rows"].append(what)
        else:
            minute["more"] += 1
        _minutes[name] = minute
        return is_row


def sign_in(account: str | None, address: str, *, tried: bool) -> None:
    """Count a sign-in that failed, or was not even tried; `account` is None where there is none of that name.

    Names that are no account's are counted alone, since one may be a password. Never raises.
    """
    try:
        with board.turn():
            found = _sign_ins.get("")
            if found is None or found["ends"] <= clock():
                if found is not None:
                    _keep(_rest(found))
                found = _begun(wrong=0, notTried=0, accounts={}, unknownNames=0, addresses={})
            found["wrong" if tried else "notTried"] += 1
            if account is None:
                found["unknownNames"] += 1
            else:
                _count(found["accounts"], account)
            _count(found["addresses"], address or "local")
            _sign_ins[""] = found
    except board.Unavailable:
        log.exception("a failed sign-in could not be counted")


def tell(*, everything: bool = False) -> None:
    """Write the rows of the minutes that are over, or of all; one of a server's processes does so each second."""
    try:
        events = _take(everything)
        if events and not _note(events):
            with board.turn():
                _keep(events)
    except board.Unavailable:
        log.exception("what was refused could not be told")


def _take(everything: bool) -> list[Event]:
    """What is to be told, which is then nobody else's to tell."""

    def over() -> list[tuple[board.Notes, str, dict[str, Any]]]:
        begun = [(notes, name, each) for notes in (_minutes, _sign_ins) for name, each in notes.everything().items()]
        return [found for found in begun if everything or found[2]["ends"] <= clock()]

    if not over() and not _untold:
        return []
    with board.turn():
        events = [_event_of(each) for each in _untold.everything().values()]
        _untold.clear()
        for notes, name, each in over():
            events += _rest(each)
            del notes[name]
        return events


def _rest(begun: dict[str, Any]) -> list[Event]:
    """What is left to say of a minute."""
    if "more" not in begun:
        details = {name: value for name, value in begun.items() if name != "ends"}
        return [_event("sign_in.refused", "", f"{begun['wrong'] + begun['notTried']} sign-ins", details, kind="user")]
    if not begun["more"]:
        return []
    details = {"more": begun["more"], "since": begun["since"]}
    return [_event("access.refused", begun["caller"], f"{begun['more']} more requests", details)]


def _begun(**counts: Any) -> dict[str, Any]:
    return counts | {"since": timezone.now().isoformat(), "ends": clock() + MINUTE}


def _keep(events: list[Event]) -> None:
    """For the next who tells."""
    for event in events[: WAITING - len(_untold)]:
        _untold[f"{event.at.isoformat()} {uuid4()}"] = event.as_json()


def _event_of(kept: dict[str, Any]) -> Event:
    return Event(**(kept | {"at": datetime.fromisoformat(kept["at"])}))


def _digest(caller: str) -> str:
    return hashlib.sha256(caller.encode(errors="surrogatepass")).hexdigest()


def forget() -> None:
    """Nothing of what was counted is told."""
    for notes in (_minutes, _sign_ins, _untold):
        notes.clear()


def shortened(text: str) -> str:
    """The text, or its first KEPT bytes and a hash of the rest."""
    raw = text.encode(errors="surrogatepass")
    if len(raw) <= KEPT:
        return text
    rest = raw[KEPT:]
    return f"{raw[:KEPT].decode(errors='ignore')}... sha256:{hashlib.sha256(rest).hexdigest()} of {len(rest)} bytes"


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
