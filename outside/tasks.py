"""Celery tasks, each of which calls one service. Messages have ids, names and the sender, but never a secret."""

from __future__ import annotations

import logging
import threading
from typing import Any

from celery import Task, shared_task
from django.conf import settings
from django.db import close_old_connections

from catalogs import vault
from catalogs.models import Intent, RefreshRun
from metalake import errors, events, outbox
from metalake.errors import MetalakeError
from metalake.request_context import for_request
from outside import calls, intents, recovery, refresh, schedule, tombstones, worker_calls

log = logging.getLogger(__name__)

PASSES, PAUSE = 5, 0.3  # how often a worker requeues a message for others, and the delay in seconds


def register() -> None:
    outbox.handles(refresh.TOPIC, begin_refresh)
    outbox.every_round(recovery.sweep, take_up_refreshes, schedule.begin_due, tombstones.clear)
    events.subscribe(schedule.follow)


def _leave_to_others(task: Task, catalog_id: int | None) -> None:
    """Requeue a message, at most PASSES times, if this worker cannot decrypt the catalog's secrets."""
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
        failure = MetalakeError(f"The worker failed ({type(bug).__name__}); its log says more.")
        worker_calls.reply(key, {"error": errors.as_json(failure)})
        raise
    worker_calls.reply(key, answer)


@shared_task(name="metalake.settle", bind=True)
def settle_intent(self: Task, intent_id: int, fence: int, asked: str, key: str) -> None:
    """Settle an intent. Only the worker that acted on it replies, since a message may be delivered twice."""
    _leave_to_others(self, Intent.objects.filter(pk=intent_id).values_list("in_catalog_id", flat=True).first())
    with for_request(asked):
        is_settled = intents.settle(intent_id, fence)
    if is_settled:
        worker_calls.reply(key, {"value": None})


@shared_task(name="metalake.refresh", bind=True)
def carry_on_refresh(self: Task, run_id: int) -> None:
    _leave_to_others(self, RefreshRun.objects.filter(pk=run_id).values_list("in_catalog_id", flat=True).first())
    refresh.carry_on(run_id)


@shared_task(name="metalake.scheduled_refresh")
def scheduled_refresh(catalog_id: int) -> None:
    schedule.begin(catalog_id)


def begin_refresh(payload: dict[str, Any]) -> None:
    """Begin a walk, which takes long, in a separate task or, without a broker, in a thread."""
    if settings.METALAKE_BROKER_URL:
        carry_on_refresh.delay(payload["run"])
    else:
        threading.Thread(target=_walk, args=[payload["run"]], name="refresh", daemon=True).start()


def take_up_refreshes() -> None:
    """Resume walks whose process died, without waiting for them."""
    for run_id in refresh.abandoned():
        begin_refresh({"run": run_id})


def _walk(run_id: int) -> None:
    try:
        refresh.carry_on(run_id)
    finally:
        close_old_connections()
