"""The threads of a server that drain its outbox, or wake a worker to, and run the jobs of every round."""

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
PAUSE = 0.2  # seconds after one drain in which what comes is left to the next, all at once
HANDED_ON = 1.0  # seconds between two tries of a process to lead, after the leading one ended


class Drainer(threading.Thread):
    """The thread that drains the outbox or, with a broker, wakes a worker to do so; no request waits for it.

    Only the leading process of a server drains; each process writes refusals to the audit.
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
                log.exception("draining the outbox failed; trying again")


class Rounds(threading.Thread):
    """The thread that runs the jobs of every round, each ROUND seconds; with a broker Celery's beat does."""

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
        log.warning("the broker does not answer; a worker is told once it does")
        time.sleep(BROKER_PAUSE)
        outbox.bell.ring()
