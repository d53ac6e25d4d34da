"""Celery's way to the services: each task calls one. Messages carry ids, names and who asks; never a secret."""

from __future__ import annotations

import threading
from typing import Any
from uuid import uuid4

import orjson
from celery import shared_task
from django.conf import settings
from django.db import close_old_connections
from kombu.exceptions import OperationalError as BrokerGone
from redis import ConnectionPool, Redis, RedisError

from authz.policy import Actor
from catalogs import intents
from catalogs.lookup import Found
from catalogs.models import Intent
from catalogs.providers import remote
from catalogs.providers.registry import provider_class
from catalogs.services import tables
from catalogs.services.external import calls, refresh, schedule, tombstones
from metalake import errors, events, outbox
from metalake.celery import app
from metalake.context import request_id
from metalake.errors import MetalakeError, OutcomeUnknown, ProviderTimeout, ProviderUnavailable

PATIENCE = remote.TOTAL + 2  # seconds; the worker's own deadline comes first
_pools: dict[str, ConnectionPool] = {}


def register() -> None:
    outbox.handles(tables.PURGE, tables.purge_table)
    outbox.handles(refresh.TOPIC, begin_refresh)
    outbox.every_round(intents.sweep, refresh.sweep, schedule.begin_due, tombstones.clear)
    events.subscribe(schedule.follow)
    calls.send_with(call)
    intents.send_with(settle)


# What a server asks of a worker


def call(found: Found, actor: Actor, verb: str, arguments: dict[str, Any]) -> Any:
    """A read made by a worker. Raises what the verb raises, ProviderUnavailable, ProviderTimeout."""
    answer = _ask("metalake.remote_call", found.catalog.id, calls.told_of(actor), verb, arguments)
    if answer is None:
        raise ProviderTimeout("No worker answered in time; is one running ('make worker')?", kind="catalog")
    if "error" in answer:
        raise errors.from_json(answer["error"])
    return answer["value"]


def settle(intent: Intent) -> None:
    """Have a worker bring an intent to its end.

    Raises ProviderUnavailable where it certainly was not sent, OutcomeUnknown where no worker said that it is done.
    """

    def send(verb: str, arguments: dict[str, Any]) -> None:
        if _ask("metalake.settle", intent.pk, intent.fence) is None:
            raise OutcomeUnknown("No worker answered in time; is one running ('make worker')?", kind="catalog")

    label = provider_class(intent.in_catalog.provider).label
    remote.run(remote.ByWorker(intent.in_catalog_id, label, send), "settle", {}, total=PATIENCE + 5)


def _ask(task: str, *arguments: Any) -> dict[str, Any] | None:
    """What a worker answers, None where none did in time. A message that nobody took by then is thrown away."""
    key = f"metalake:reply:{uuid4().hex}"
    once = {"max_retries": 1, "interval_start": 0}
    try:
        given = [*arguments, request_id.get(), key]
        app.send_task(task, args=given, expires=PATIENCE, retry=True, retry_policy=once)
    except BrokerGone:
        raise ProviderUnavailable("The broker (Redis) does not answer; try again.", kind="catalog") from None
    try:
        reply = _redis().blpop([key], timeout=PATIENCE)
    except RedisError:
        return None
    return orjson.loads(reply[1]) if reply else None


def _redis() -> Redis:
    pool = _pools.get(settings.METALAKE_BROKER_URL)
    if pool is None:
        pool = _pools.setdefault(settings.METALAKE_BROKER_URL, ConnectionPool.from_url(settings.METALAKE_BROKER_URL))
    return Redis(connection_pool=pool)


def _reply(key: str, answer: dict[str, Any]) -> None:
    with _redis().pipeline() as both:
        both.rpush(key, orjson.dumps(answer))
        both.expire(key, 60)
        both.execute()


# What a worker does


@shared_task(name="metalake.remote_call")
def remote_call(
    catalog_id: int, who: dict[str, Any], verb: str, arguments: dict[str, Any], asked: str, key: str
) -> None:
    request_id.set(asked)
    try:
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


@shared_task(name="metalake.settle")
def settle_intent(intent_id: int, fence: int, asked: str, key: str) -> None:
    request_id.set(asked)
    try:
        intents.settle(intent_id, fence)
    finally:
        _reply(key, {"value": None})


@shared_task(name="metalake.refresh")
def carry_on_refresh(run_id: int) -> None:
    refresh.carry_on(run_id)


@shared_task(name="metalake.scheduled_refresh")
def scheduled_refresh(catalog_id: int) -> None:
    refresh.begin(catalog_id)


def begin_refresh(payload: dict[str, Any]) -> None:
    """A walk takes long: it has a task of its own, or a thread where there is no worker."""
    if settings.METALAKE_BROKER_URL:
        carry_on_refresh.delay(payload["run"])
    else:
        threading.Thread(target=_walk, args=[payload["run"]], name="refresh", daemon=True).start()


def _walk(run_id: int) -> None:
    try:
        refresh.carry_on(run_id)
    finally:
        close_old_connections()
