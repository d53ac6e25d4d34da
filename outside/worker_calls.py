"""RPC to Celery workers, whose replies the server waits for: calls to outside systems, and intents.

Replies come through Redis. Without a broker, the server does the work itself and does not use this.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import orjson
from celery.signals import worker_init
from django.conf import settings
from kombu.exceptions import OperationalError as BrokerGone

from authz.actor import Actor
from catalogs.models import Intent
from metalake import errors
from metalake.celery import app
from metalake.errors import OutcomeUnknown, ProviderBusy, ProviderTimeout, ProviderUnavailable
from metalake.request_context import request_id
from providers import remote
from providers.registry import provider_class

if TYPE_CHECKING:
    from redis import ConnectionPool, Redis

log = logging.getLogger(__name__)

PATIENCE = remote.TOTAL + 2  # seconds; the worker's own deadline comes first
GLANCE = 3  # seconds to wait for a reply before checking that Redis still answers
_pools: dict[str, ConnectionPool] = {}
_is_worker = threading.Event()


@worker_init.connect
def begin_to_work(**_: Any) -> None:
    """Mark this process as a worker, which makes calls itself: if it waited for another worker, none might be free."""
    _is_worker.set()


def make_calls() -> bool:
    """Whether this process delegates its calls to outside systems to workers."""
    return bool(settings.METALAKE_BROKER_URL) and not _is_worker.is_set()


def call(catalog_id: int, actor: Actor, verb: str, arguments: dict[str, Any]) -> Any:
    """Have a worker do a read. Raises what the verb raises, ProviderBusy, ProviderTimeout."""
    answer = _reply_at(_tell("metalake.remote_call", catalog_id, actor.as_json(), verb, arguments))
    if "error" in answer:
        raise errors.from_json(answer["error"])
    return answer["value"]


def settle(intent: Intent) -> None:
    """Have a worker settle an intent.

    Raises ProviderBusy if the message certainly was not sent, OutcomeUnknown if no worker confirmed it.
    """

    def send(verb: str, arguments: dict[str, Any]) -> None:
        key = _tell("metalake.settle", intent.pk, intent.fence)
        try:
            _reply_at(key)
        except ProviderUnavailable as silence:
            raise OutcomeUnknown(silence.message, kind="catalog") from silence

    label = provider_class(intent.in_catalog.provider).label
    remote.run(remote.ByWorker(intent.in_catalog_id, label, send), "settle", {}, total=PATIENCE + 5)


def _tell(task: str, *arguments: Any) -> str:
    """Send a message that expires if no worker takes it in time; returns its reply's key. Raises ProviderBusy."""
    key = f"metalake:reply:{uuid4().hex}"
    once = {"max_retries": 1, "interval_start": 0}
    try:
        given = [*arguments, request_id.get(), key]
        app.tasks[task].apply_async(args=given, expires=PATIENCE, retry=True, retry_policy=once)
    except BrokerGone:
        raise _broker_gone() from None
    return key


def _reply_at(key: str) -> dict[str, Any]:
    """A worker's reply. Raises ProviderTimeout if there is none in time, ProviderBusy if Redis does not answer."""
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
    """The error for an unreachable Redis; a ProviderBusy does not count as a failure of the outside system."""
    return ProviderBusy("The broker (Redis) does not answer; try again.", kind="catalog")


def _redis() -> Redis:
    """The Redis client, imported only if a broker is set."""
    from redis import ConnectionPool, Redis

    url = settings.METALAKE_BROKER_URL
    pool = _pools.get(url)
    if pool is None:
        waits = {"socket_connect_timeout": remote.CONNECT, "socket_timeout": GLANCE + 2}
        pool = _pools.setdefault(url, ConnectionPool.from_url(url, **waits))
    return Redis(connection_pool=pool)


def reply(key: str, answer: dict[str, Any]) -> None:
    """Send a worker's answer, which expires after 60 seconds; a Redis failure is only logged."""
    from redis import RedisError

    try:
        with _redis().pipeline() as both:
            both.rpush(key, orjson.dumps(answer))
            both.expire(key, 60)
            both.execute()
    except RedisError as failure:
        log.warning("Redis did not take the answer to a call (%s); who asked is told that none came", failure)
