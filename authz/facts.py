"""The history of permissions and objects: each change appends facts, in its own transaction.

A fact is the full state of one thing from then on: a role's grants on an object, a user's roles or groups, a group's
roles, who is a member, where an object is and who owns it. The state at a point in time is the newest fact of each
thing until then. Facts are sealed after their commit into one chain of keyed hashes, which reveals any row that was
changed, removed or inserted.
"""

from __future__ import annotations

import hmac
import logging
from datetime import datetime
from typing import Any, NamedTuple

import orjson
from django.conf import settings
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.db.models import Max, QuerySet

from authz.models import AuditEntry, Fact, User
from metalake.errors import Invalid
from metalake.events import Event, Into, record

log = logging.getLogger(__name__)

BATCH = 500
ROUNDS = 1000
FIRST = "0" * 64
_SEALED_FIELDS = ("metalake_id", "topic", "holder", "about", "name", "state", "actor", "event", "request_id")


def rows_of(happened: list[Event]) -> Into:
    """The facts of these events; call it inside their transaction."""
    rows = [_row(event, *fact) for event in happened for fact in event.facts]
    if users := {row.about for row in rows if row.topic == "members"}:
        names = dict(User.objects.filter(pk__in=users).values_list("pk", "username"))
        for row in rows:
            if row.topic == "members":
                row.name = names[row.about]
    for row in rows:
        row.mac = mac_of(row)
    return Fact, rows


def _row(event: Event, topic: str, holder: int | None, *rest: Any) -> Fact:
    fact = Fact(
        at=event.at,
        metalake_id=event.metalake_id or 0,
        topic=topic,
        holder=holder or 0,
        actor=event.actor,
        event=event.name,
        request_id=event.request_id,
    )
    if topic == "object":
        fact.about, *standing = rest
        if standing:
            fact.name, *state = standing
            fact.state = dict(zip(("kind", "lineage", "owner_user", "owner_group"), state, strict=True))
    elif topic == "group":
        fact.about, *named = rest
        fact.name, fact.state = (named[0], True) if named else ("", None)
    elif topic in ("grants", "members"):
        fact.about, fact.state = rest if len(rest) == 2 else (0, None)
    else:
        (fact.state,) = rest
    return fact


# The chain


class Head(NamedTuple):
    """The end of the chain: how many facts are sealed, and the last seal."""

    position: int
    digest: str

    def __str__(self) -> str:
        return f"{self.position}:{self.digest}"

    def followed_by(self, fact_id: int, mac: str) -> Head:
        place = self.position + 1
        return Head(place, _keyed(f"{self.digest} {place} {fact_id} {mac}".encode()))


def seal_after_events() -> None:
    """Seal newly committed facts after events are delivered; on failure the next call seals them."""
    try:
        seal()
    except DatabaseError:
        log.warning("facts are left to be sealed with the next event", exc_info=True)


def seal() -> int:
    """Append newly committed facts to the chain, which all nodes share; returns how many were sealed."""
    sealed = 0
    for _ in range(ROUNDS):
        if not Fact.objects.filter(position__isnull=True).exists():
            break  # no write transaction needed
        try:
            some = _seal_some()
        except IntegrityError:
            continue  # another node took the position
        sealed += some
        if some < BATCH:
            break
    return sealed


def _seal_some() -> int:
    """Seal one batch. The head is read first, so that concurrent nodes collide instead of leaving a gap."""
    with transaction.atomic():
        at = head()
        waiting = list(Fact.objects.filter(position__isnull=True).order_by("id").values_list("pk", "mac")[:BATCH])
        places = []
        for pk, mac in waiting:
            at = at.followed_by(pk, mac)
            places.append((at.position, at.digest, pk))
        with connection.cursor() as cursor:
            cursor.executemany(_PLACED, places)
        return len(waiting)


_PLACED = "UPDATE authz_fact SET position = %s, digest = %s WHERE id = %s AND position IS NULL"


def head() -> Head:
    last = Fact.objects.filter(position__isnull=False).order_by("-position").values_list("position", "digest").first()
    return Head(last[0] or 0, last[1]) if last else Head(0, FIRST)


def mac_of(fact: Fact) -> str:
    """A keyed hash of the fact's contents, computed before it is written."""
    values = [fact.at.timestamp(), *(getattr(fact, field) for field in _SEALED_FIELDS)]
    return _keyed(orjson.dumps(values, option=orjson.OPT_SORT_KEYS))


def _keyed(content: bytes) -> str:
    key = hmac.digest(settings.SECRET_KEY.encode(), b"metalake.history", "sha256")
    return hmac.new(key, content, "sha256").hexdigest()


class Broken(NamedTuple):
    """The first position at which the chain is broken, and what is wrong there."""

    position: int
    says: str


def verify(since: Head | None = None) -> Broken | None:
    """None if all sealed facts are intact and the chain still contains the exported head `since`."""
    at = Head(0, FIRST)
    for fact in Fact.objects.filter(position__isnull=False).order_by("position").iterator(chunk_size=BATCH):
        place = at.position + 1
        if fact.position != place:
            return Broken(place, f"the fact of position {place} is missing")
        if not hmac.compare_digest(fact.mac, mac_of(fact)):
            return Broken(place, f"fact {fact.pk} ({fact.event} by {fact.actor}, {fact.at.isoformat()}) was changed")
        at = at.followed_by(fact.pk, fact.mac)
        if not hmac.compare_digest(at.digest, fact.digest):
            return Broken(place, f"the seal of fact {fact.pk} does not follow from the one before")
        if since is not None and since.position == place and not hmac.compare_digest(at.digest, since.digest):
            return Broken(place, "the chain was written anew: its seal there is not the exported one")
    if since is not None and since.position > at.position:
        return Broken(at.position + 1, f"the facts of positions {at.position + 1} to {since.position} are missing")
    return None


# Verifying reads every fact, so it is a command, which leaves its result in the audit.

VERIFIED, BROKEN = "history.verified", "history.broken"
VERIFIER = "verify_history"  # the command, as an actor


class Verification(NamedTuple):
    """When the chain was last verified, up to which position, and what was wrong there, if anything."""

    at: datetime
    position: int
    says: str

    @property
    def is_intact(self) -> bool:
        return not self.says


class Proof(NamedTuple):
    """The end of the chain, how many facts are not sealed yet, and the last verification; None if there was none."""

    head: Head
    unsealed: int
    verification: Verification | None


def proof() -> Proof:
    """The state of the chain, without verifying it: three looks into an index."""
    waiting = Fact.objects.filter(position__isnull=True).count()
    results = AuditEntry.objects.filter(actor=VERIFIER, event__in=(VERIFIED, BROKEN))
    last = results.order_by("-pk").values_list("at", "details").first()
    return Proof(head(), waiting, last and Verification(last[0], last[1]["position"], last[1].get("says", "")))


def record_verification(broken: Broken | None) -> None:
    """Put the result of `verify` into the audit, with the head up to which it is intact."""
    name, details = (BROKEN, broken._asdict()) if broken else (VERIFIED, head()._asdict())
    event = Event(
        name=name, actor=VERIFIER, kind="", object_id=0, full_name="history", metalake_id=None, details=details
    )
    record(event)


def parse_head(text: str) -> Head:
    """Raises Invalid unless it is an exported head, `position:digest`."""
    position, _, digest = text.strip().partition(":")
    if not position.isdigit() or len(digest) != len(FIRST):
        raise Invalid("A head is written position:digest, as verify_history prints it.")
    return Head(int(position), digest)


# Reading the state at a point in time


def lineage_in(state: Any) -> tuple[int, ...]:
    """The lineage in an object fact's state; empty for a dropped object."""
    return tuple(int(step) for step in state["lineage"][1:].split("/")) if state else ()


def newest(facts: QuerySet[Fact], *of: str) -> list[Fact]:
    """The newest of these facts for each thing; `of` names the fields that identify a thing."""
    last = facts.order_by().values(*of).annotate(last=Max("id")).values("last")
    return list(Fact.objects.filter(pk__in=last).order_by("id"))
