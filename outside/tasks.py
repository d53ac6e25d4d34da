"""Celery's way to the services: each task calls one. Messages carry ids, names and who asks; never a secret."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import orjson
from celery import Task, shared_task
from celery.signals import worker_init
from django.conf import settings
from django.db import close_old_connections
from kombu.exceptions import OperationalError as BrokerGone

from authz.policy import Actor
from catalogs import vault
from catalogs.models import Intent, RefreshRun
from metalake import errors, events, outbox
from metalake.celery import app
from metalake.context import for_request, request_id
from metalake.errors import MetalakeError, OutcomeUnknown, ProviderBusy, ProviderTimeout, ProviderUnavailable
from metalake.lineage import Located
from outside import calls, intents, refresh, schedule, tombstones
from providers import remote
from providers.registry import provider_class

if TYPE_CHECKING:
    from redis import ConnectionPool, Redis

log = logging.getLogger(__name__)

PATIENCE = remote.TOTAL + 2  # seconds; the worker's own deadline comes first
PASSES, PAUSE = 5, 0.3  # how often a worker leaves a message to others, and seconds before they see it
GLANCE = 3  # seconds to wait for a reply before asking whether Redis is still there
_pools: dict[str, ConnectionPool] = {}


def register() -> None:
    outbox.handles(refresh.TOPIC, begin_refresh)
    outbox.every_round(intents.sweep, take_up_refreshes, schedule.begin_due, tombstones.clear)
    events.subscribe(schedule.follow)
    calls.send_with(call)
    intents.send_with(settle)
    worker_init.connect(lambda **_: calls.send_no_more(), weak=False)


# What a server asks of a worker


def call(found: Located, actor: Actor, verb: str, arguments: dict[str, Any]) -> Any:
    """A read made by a worker. Raises what the verb raises, ProviderBusy, ProviderTimeout."""
    answer = _answer(_tell("metalake.remote_call", found.catalog.id, actor.as_json(), verb, arguments))
    if "error" in answer:
        raise errors.from_json(answer["error"])
    return answer["value"]


def settle(intent: Intent) -> None:
    """Have a worker bring an intent to its end.

    Raises ProviderBusy where it certainly was not sent, OutcomeUnknown where no worker said that it is done.
    """

    def send(verb: str, arguments: dict[str, Any]) -> None:
        key = _tell("metalake.settle", intent.pk, intent.fence)
        try:
            _answer(key)
        except ProviderUnavailable as silence:
            raise OutcomeUnknown(silence.message, kind="catalog") from silence

    label = provider_class(intent.in_catalog.provider).label
    remote.run(remote.ByWorker(intent.in_catalog_id, label, send), "settle", {}, total=PATIENCE + 5)


def _tell(task: str, *arguments: Any) -> str:
    """Send a message that is thrown away if nobody takes it in time; the key of its reply. Raises ProviderBusy."""
    key = f"metalake:reply:{uuid4().hex}"
    once = {"max_retries": 1, "interval_start": 0}
    try:
        given = [*arguments, request_id.get(), key]
        app.send_task(task, args=given, expires=PATIENCE, retry=True, retry_policy=once)
    except BrokerGone:
        raise _broker_gone() from None
    return key


def _answer(key: str) -> dict[str, Any]:
    """What a worker replies. Raises ProviderTimeout where none does in time, ProviderBusy where Redis went away."""
    from redis import RedisError

    deadline = time.monotonic() + PATIENCE
    try:
        while time.monotonic() < deadline:
            if reply := _redis().blpop([key], timeout=GLANCE):
                answer: dict[str, Any] = orjson.loads(reply[1])
                return answer
    except RedisError:
        raise _broker_gone() from None
    raise ProviderTimeout("No worker answered in time; is one running ('make worker')?", kind="catalog")


def _broker_gone() -> ProviderBusy:
    """Not the fault of the outside system, so no reason to spare it."""
    return ProviderBusy("The broker (Redis) does not answer; try again.", kind="catalog")


def _redis() -> Redis:
    """Its client is imported where there is one to speak to."""
    from redis import ConnectionPool, Redis

    url = settings.METALAKE_BROKER_URL
    pool = _pools.get(url)
    if pool is None:
        waits = {"socket_connect_timeout": remote.CONNECT, "socket_timeout": GLANCE + 2}
        pool = _pools.setdefault(url, ConnectionPool.from_url(url, **waits))
    return Redis(connection_pool=pool)


def _reply(key: str, answer: dict[str, Any]) -> None:
    from redis import RedisError

    try:
        with _redis().pipeline() as both:
            both.rpush(key, orjson.dumps(answer))
            both.expire(key, 60)
            both.execute()
    except RedisError as failure:
        log.warning("Redis did not take the answer to a call (%s); who asked is told that none came", failure)


# What a worker does


def _leave_to_others(task: Task, catalog_id: int | None) -> None:
    """A message about a catalog whose secrets this worker cannot open goes back, for one that can; a few times."""
    if catalog_id is None or task.request.retries >= PASSES:
        return
    if reason := vault.lacks_key_of(catalog_id):
        log.warning("%s is left to another worker: %s", task.name, reason)
        raise task.retry(countdown=PAUSE, max_retries=PASSES)


@shared_task(name="metalake.remote_call", bind=True)
def remote_call(
    self: Task, catalog_id: int, who: dict[str, Any], verb: str, arguments: dict[str, Any], asked: str, key: str
) -> None:
    _leave_to_others(self, catalog_id)
    try:
        with for_request(asked):
            answer = {"value": calls.answer(catalog_id, who, verb, arguments)}
    except MetalakeError as refusal:
        answer = {"error": errors.as_json(refusal)}
    except Exception as bug:
        _reply(
            key,
            {"error": errors.as_json(MetalakeError(f"The worker failed ({type(bug).__name__}); its log says more."))},
        )
        raise
    _reply(key, answer)


@shared_task(name="metalake.settle", bind=True)
def settle_intent(self: Task, intent_id: int, fence: int, asked: str, key: str) -> None:
    """Only who acted on the intent replies: a message that came twice must not say that it is done."""
    _leave_to_others(self, Intent.objects.filter(pk=intent_id).values_list("in_catalog_id", flat=True).first())
    with for_request(asked):
        is_settled = intents.settle(intent_id, fence)
    if is_settled:
        _reply(key, {"value": None})


@shared_task(name="metalake.refresh", bind=True)
def carry_on_refresh(self: Task, run_id: int) -> None:
    _leave_to_others(self, RefreshRun.objects.filter(pk=run_id).values_list("in_catalog_id", flat=True).first())
    refresh.carry_on(run_id)


@shared_task(name="metalake.scheduled_refresh")
def scheduled_refresh(catalog_id: int) -> None:
    schedule.begin(catalog_id)


def begin_refresh(payload: dict[str, Any]) -> None:
    """A walk takes long: it has a task of its own, or a thread where there is no worker."""
    if settings.METALAKE_BROKER_URL:
        carry_on_refresh.delay(payload["run"])
    else:
        threading.Thread(target=_walk, args=[payload["run"]], name="refresh", daemon=True).start()


def take_up_refreshes() -> None:
    """Go on with what a process left that went away; the round does not wait for it."""
    for run_id in refresh.abandoned():
        begin_refresh({"run": run_id})


def _walk(run_id: int) -> None:
    try:
        refresh.carry_on(run_id)
    finally:
        close_old_connections()
