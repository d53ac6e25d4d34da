"""An outside catalog's state for its owners, and their decisions about writes that cannot settle by themselves."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.db.models import Count, Max, QuerySet
from django.utils import timezone

from authz import operations, policy
from authz.actor import Actor
from authz.locks import Lock
from authz.objects import by_ids
from authz.transactions import write
from catalogs.lookup import by_id
from catalogs.models import Catalog, Intent, RefreshRun, Tombstone
from catalogs.services.alterations import event
from catalogs.services.writes import hold_each
from catalogs.stores import catalog_store_of, store_for
from metalake.errors import NotFound
from metalake.events import record
from metalake.kinds import Kind
from metalake.lineage import Located, Node
from outside import recovery, schedule
from providers import circuit_breaker
from providers.registry import PROVIDERS, provider_class

SHOWN = 10  # runs
MANY = 100  # tombstones, and writes


@dataclass(frozen=True)
class Health:
    """An outside system's health as this server sees it; unknown if workers make the calls (not `asked_here`)."""

    asked_here: bool
    answers: bool = False  # as of the last call, if there was one
    failures: int = 0  # in a row
    failing_since: datetime | None = None
    last_error: str = ""
    is_spared: bool = False
    asked_again_in: int = 0  # seconds


@dataclass(frozen=True)
class Timetable:
    """The schedule of a catalog's automatic refreshes."""

    every: int  # seconds
    next_at: datetime | None  # None if disabled


@dataclass(frozen=True)
class Watch:
    """The state of an outside catalog for its owners; runs and tombstones newest first."""

    health: Health
    timetable: Timetable | None
    runs: list[RefreshRun]
    as_of: datetime | None  # when the newest complete walk began
    dropped: list[Tombstone]
    dropped_count: int
    under_way: list[Intent]
    stuck: list[Intent]
    looked_for: list[Intent]  # undone intents whose calls may have arrived late

    @property
    def run(self) -> RefreshRun | None:
        """The newest run."""
        return self.runs[0] if self.runs else None

    @property
    def is_running(self) -> bool:
        return self.run is not None and self.run.state == RefreshRun.State.RUNNING

    @property
    def held_back(self) -> int:
        """How many objects the newest complete walk missed but did not remove, since they were too many."""
        done = (run for run in self.runs if run.state == RefreshRun.State.DONE)
        return next((run.held_back for run in done), 0)

    @property
    def unsettled(self) -> int:
        return len(self.stuck) + len(self.under_way) + len(self.looked_for)

    @property
    def is_moving(self) -> bool:
        """Whether the state changes by itself, so that the page should reload."""
        return self.is_running or bool(self.under_way)


@dataclass(frozen=True)
class Condition:
    """A catalog in a list: its provider, and of an outside one that the actor may refresh how it is."""

    provider: str
    health: Health | None = None
    as_of: datetime | None = None  # when the newest complete walk began
    stuck: int = 0  # writes that wait for a decision

    @property
    def rank(self) -> tuple[int, str]:
        """What needs somebody first."""
        if self.health is None:
            return 4, self.provider
        fine = 3 if self.health.answers and self.as_of else 2
        return 0 if self.stuck else 1 if self.health.failures else fine, self.provider


def conditions(actor: Actor, metalake: Located, catalogs: Iterable[Node]) -> dict[int, Condition]:
    """The condition of each of these catalogs of a metalake, which the actor may load; at most three statements."""
    nodes = {node.id: node for node in catalogs if node.kind == Kind.CATALOG}
    rows = list(Catalog.objects.filter(pk__in=nodes).only("provider", "properties")) if nodes else []
    labels = {row.pk: provider_class(row.provider).label if row.provider in PROVIDERS else row.provider for row in rows}
    watched = [
        row.pk
        for row in rows
        if catalog_store_of(row).is_mirrored
        and policy.permits(actor, operations.REFRESH_CATALOG, metalake.below(nodes[row.pk]))
    ]
    walked, stuck = dict[int, datetime](), dict[int, int]()
    if watched:
        done = RefreshRun.objects.filter(in_catalog__in=watched, state=RefreshRun.State.DONE)
        walked = dict(done.values_list("in_catalog_id").annotate(Max("started_at")))
        writes = Intent.objects.filter(in_catalog_id__in=watched, state=Intent.State.STUCK)
        stuck = dict(writes.values_list("in_catalog_id").annotate(Count("pk")))
    return {
        id: Condition(label, health_of(id), walked.get(id), stuck.get(id, 0)) if id in watched else Condition(label)
        for id, label in labels.items()
    }


def may_watch(actor: Actor, catalog: Located) -> bool:
    """Whether this is an outside catalog that the actor may refresh."""
    return _is_mirrored(catalog) and policy.permits(actor, operations.REFRESH_CATALOG, catalog)


def watch(actor: Actor, catalog: Located) -> Watch:
    """The state of an outside catalog. Raises Forbidden, and NotFound, also for a managed catalog."""
    policy.require(actor, operations.REFRESH_CATALOG, catalog)
    _require_external(catalog)
    runs = RefreshRun.objects.filter(in_catalog_id=catalog.id)
    done = runs.filter(state=RefreshRun.State.DONE).order_by("-started_at")
    dropped = Tombstone.objects.filter(in_catalog_id=catalog.id).order_by("-found_at", "full_name")
    live = Intent.objects.filter(in_catalog_id=catalog.id, state__in=Intent.LIVE).order_by("created_at")
    writes = list(live.defer("arguments", "steps")[:MANY])
    return Watch(
        health=health_of(catalog.id),
        timetable=_timetable(catalog.id),
        runs=list(runs.order_by("-started_at")[:SHOWN]),
        as_of=done.values_list("started_at", flat=True).first(),
        dropped=list(dropped[:MANY]),
        dropped_count=dropped.count(),
        under_way=[intent for intent in writes if intent.state != Intent.State.STUCK],
        stuck=[intent for intent in writes if intent.state == Intent.State.STUCK],
        looked_for=list(_looked_for(catalog).defer("arguments", "steps")[:MANY]),
    )


def undecided_writes(actor: Actor) -> list[tuple[Located, int]]:
    """The outside catalogs with writes that wait for the actor's decision, each with how many; of MANY catalogs."""
    theirs = recovery.undecided().filter(in_catalog__parent__in=policy.metalakes_of(actor).values("pk"))
    counted = theirs.order_by().values("in_catalog_id").annotate(count=Count("pk"))
    counts = dict(counted.values_list("in_catalog_id", "count")[:MANY])
    catalogs = by_ids(counts).values() if counts else ()
    return [(each, counts[each.id]) for each in catalogs if policy.permits(actor, operations.REFRESH_CATALOG, each)]


def _looked_for(catalog: Located) -> QuerySet[Intent]:
    late = recovery.looking().filter(in_catalog_id=catalog.id).exclude(state=Intent.State.STUCK)
    return late.order_by("created_at")


def health_of(catalog_id: int) -> Health:
    if settings.METALAKE_BROKER_URL:
        return Health(asked_here=False)
    seen = circuit_breaker.health_of("system", catalog_id)
    now = time.monotonic()
    since = timezone.now() - timedelta(seconds=now - seen.failing_since) if seen.failing_since else None
    return Health(
        asked_here=True,
        answers=bool(seen.answered_at) and not seen.failures,
        failures=seen.failures,
        failing_since=since,
        last_error=seen.last_error,
        is_spared=seen.is_open,
        asked_again_in=max(0, round(seen.open_until - now)),
    )


def _timetable(catalog_id: int) -> Timetable | None:
    task = schedule.schedule_of(catalog_id).select_related("interval").first()
    if task is None or task.interval is None:
        return None
    every = round(task.interval.schedule.run_every.total_seconds())
    if not task.enabled:
        return Timetable(every, None)
    _, seconds = task.schedule.is_due(task.last_run_at or task.date_changed)
    return Timetable(every, timezone.now() + timedelta(seconds=seconds))


def _require_external(catalog: Located) -> None:
    if not _is_mirrored(catalog):
        raise NotFound("There is no such outside catalog.", kind=Kind.CATALOG)


def _is_mirrored(catalog: Located) -> bool:
    return catalog.kind == Kind.CATALOG and store_for(catalog, Kind.CATALOG).is_mirrored


# Decisions about stuck writes


@dataclass(frozen=True)
class Decision:
    """A decision about an undecided write: `apply` takes the intent and who decided; `event` records it."""

    event: str
    apply: Callable[[Intent, str], None]


RETRIED = Decision("intent.retried", lambda intent, by: recovery.retry(intent))
GIVEN_UP = Decision("intent.given_up", recovery.give_up_by_operator)


def retry(actor: Actor, catalog: Located, intent_id: int) -> None:
    """Have an undecided write retried within a sweep round. Raises NotFound, Forbidden."""
    _decide(actor, catalog, intent_id, RETRIED)


def give_up(actor: Actor, catalog: Located, intent_id: int) -> None:
    """End an undecided write: its names are released, what it left outside stays. Raises NotFound, Forbidden."""
    _decide(actor, catalog, intent_id, GIVEN_UP)


def _decide(actor: Actor, catalog: Located, intent_id: int, decision: Decision) -> None:
    def act(actor: Actor) -> None:
        fresh = by_id(catalog.id)
        if fresh is None:
            raise catalog.missing()
        policy.require(actor, operations.REFRESH_CATALOG, fresh)
        intent = recovery.undecided().filter(in_catalog_id=fresh.id, pk=intent_id).first()
        if intent is None:
            raise NotFound("There is no write that waits for a decision; it has been settled since.")
        _take_down(actor, fresh, intent, decision)

    write(actor, act, holds=partial(hold_each, [(catalog, Lock.HANGS)]), kind=Kind.CATALOG)


def decide_all(operator: Actor, rows: Iterable[Intent], decision: Decision) -> int:
    """Decide about several writes; returns how many were undecided. The admin pages check the operator's rights."""

    def act(operator: Actor) -> int:
        decided = 0
        for intent in recovery.undecided().filter(pk__in=chosen):
            catalog = by_id(intent.in_catalog_id)
            if catalog is not None:
                _take_down(operator, catalog, intent, decision)
                decided += 1
        return decided

    chosen = [intent.pk for intent in rows]
    return write(operator, act, holds=None, kind=Kind.CATALOG)  # by their ids


def _take_down(actor: Actor, catalog: Located, intent: Intent, decision: Decision) -> None:
    decision.apply(intent, actor.name)
    record(event(actor, decision.event, catalog, intent=str(intent.pk), verb=intent.verb, target=intent.full_name))
