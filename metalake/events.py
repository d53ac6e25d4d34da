"""Events: recorded in the transaction of a change, delivered after its commit.

`record` inserts the rows of in-transaction subscribers (audit, history) and of the outbox; the other subscribers are
called when the outbox is drained, at least once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from django.utils import timezone

from metalake.bulk_insert import Into, insert
from metalake.full_names import dotted
from metalake.models import Outbox, Securable
from metalake.request_context import request_id

TOPIC = "event"


@dataclass(frozen=True, kw_only=True)
class Event:
    """One change: `name` is in the past tense, such as `schema.created`; `details` contain no secrets."""

    name: str
    actor: str
    kind: str
    object_id: int
    full_name: str
    metalake_id: int | None
    details: dict[str, Any] = field(default_factory=dict)
    facts: Sequence[list[Any]] = ()  # the new state, for the history
    at: datetime = field(default_factory=timezone.now)
    request_id: str = field(default_factory=request_id.get)

    def as_json(self) -> dict[str, Any]:
        fields = vars(self) | {"at": self.at.isoformat()}
        del fields["facts"]
        return fields


class Named(Protocol):
    @property
    def name(self) -> str: ...


def event_of(
    actor: Named,
    name: str,
    kind: str,
    object_id: int,
    full_name: Iterable[str],
    metalake_id: int,
    facts: Sequence[list[Any]] = (),
    **details: Any,
) -> Event:
    """The event of an actor's change to one object of a metalake."""
    return Event(
        name=name,
        actor=actor.name,
        kind=kind,
        object_id=object_id,
        full_name=dotted(full_name),
        metalake_id=metalake_id,
        details=details,
        facts=facts,
    )


STANDS = ("parent_id", "id", "name", "kind", "lineage", "owner_user_id", "owner_group_id")


def stands(row: Securable) -> list[Any]:
    """The fact that an object exists, with its parent, name and owner."""
    return ["object", *(getattr(row, field) for field in STANDS)]


def gone(securable_id: int) -> list[Any]:
    """The fact that an object, and everything below it, no longer exists."""
    return ["object", None, securable_id]


Subscriber = Callable[[dict[str, Any]], None]
InTransaction = Callable[[list[Event]], Into | None]

_in_transaction: list[InTransaction] = []
_after_commit: list[Subscriber] = []


def subscribe_in_transaction(subscriber: InTransaction) -> None:
    """Register a function that runs in the transaction of the events; if it fails, the change is rolled back.

    Rows that it returns are inserted together with those of the outbox.
    """
    if subscriber not in _in_transaction:
        _in_transaction.append(subscriber)


def subscribe(subscriber: Subscriber) -> None:
    """Register a function that gets each event's JSON after its commit, at least once; failures are retried."""
    if subscriber not in _after_commit:
        _after_commit.append(subscriber)


def record(*events: Event) -> None:
    """Insert the rows of the in-transaction subscribers, and add all events to the outbox."""
    if not events:
        return
    waiting = [Outbox(topic=TOPIC, payload=event.as_json()) for event in events]
    theirs = [subscriber(list(events)) for subscriber in _in_transaction]
    insert(*filter(None, theirs), (Outbox, waiting))
    _wake_drainer()


def follow_up(topic: str, payloads: Iterable[dict[str, Any]]) -> None:
    """Add follow-up work to the outbox, in the same transaction."""
    insert((Outbox, [Outbox(topic=topic, payload=payload) for payload in payloads]))
    _wake_drainer()


def _wake_drainer() -> None:
    from metalake.outbox import wake_after_commit

    wake_after_commit()


def deliver(payload: dict[str, Any]) -> None:
    for subscriber in _after_commit:
        subscriber(payload)
