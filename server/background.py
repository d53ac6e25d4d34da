"""A server's background threads: they drain the outbox, or wake a worker to, and run periodic jobs."""

from __future__ import annotations

import logging
import threading
import time

from django.conf import settings
from django.db import close_old_connections
from kombu.exceptions import OperationalError as BrokerGone

from metalake import outbox, refusal_audit, shared_settings
from metalake.leader_election import Turn
from metalake.tasks import drain_outbox

log = logging.getLogger(__name__)

BROKER_PAUSE = 5.0  # seconds
ROUND = 15.0  # seconds
PAUSE = 0.2  # seconds between two drains, so that new rows are handled in batches
HANDED_ON = 1.0  # seconds between two attempts of a process to become the leader


class Drainer(threading.Thread):
    """The thread that drains the outbox or, with a broker, wakes a worker to do so; requests do not wait for it.

    Only the leader of a server's processes drains; every process flushes its refusals to the audit.
    """

    def __init__(self, leads: Turn, every: float = 1.0) -> None:
        super().__init__(name="outbox", daemon=True)
        self.leads = leads
        self.every = every

    def run(self) -> None:
        while True:
            leads = self.leads.is_mine()
            woken = leads and outbox.bell.wait(self.every)
            if not leads:
                time.sleep(HANDED_ON)
            try:
                close_old_connections()
                refusal_audit.flush()
                if leads and not settings.METALAKE_BROKER_URL:
                    shared_settings.tell()
                    if outbox.drain():
                        time.sleep(PAUSE)
                elif woken:
                    _wake_worker()
            except Exception:
                log.exception("draining the outbox failed; retrying")


class Rounds(threading.Thread):
    """The thread that runs the periodic jobs every ROUND seconds; with a broker, Celery beat does."""

    def __init__(self, leads: Turn) -> None:
        super().__init__(name="rounds", daemon=True)
        self.leads = leads

    def run(self) -> None:
        while not settings.METALAKE_BROKER_URL:
            if not self.leads.is_mine():
                time.sleep(HANDED_ON)
                continue
            close_old_connections()
            outbox.do_round()
            time.sleep(ROUND)


def _wake_worker() -> None:
    try:
        drain_outbox.apply_async(retry=False)
    except BrokerGone:
        log.warning("the broker does not answer; the worker is woken once it does")
        time.sleep(BROKER_PAUSE)
        outbox.bell.ring()
