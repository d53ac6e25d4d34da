"""`manage.py worker`: a Celery worker that drains the outbox, woken by commits and every five seconds."""

from __future__ import annotations

import logging
import os
import sys
import time
from typing import Any

from celery.worker import state
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from metalake import database_checks, shared_settings
from metalake.celery import app

log = logging.getLogger(__name__)

PAUSE = 1.0  # seconds before a broken worker restarts


class Command(BaseCommand):
    help = "Start a worker; needs METALAKE_BROKER_URL (Redis) and METALAKE_DATABASE_URL (PostgreSQL)."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--concurrency", default=16, type=int, help="How many tasks run at once.")

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.METALAKE_BROKER_URL:
            raise CommandError(
                "Set METALAKE_BROKER_URL, for example redis://127.0.0.1:6379/0. "
                "Without a broker the server drains its outbox itself."
            )
        database_checks.wait_until_migrated(self._say)
        shared_settings.begin()
        for difference in shared_settings.sentences():
            self._say(difference)
        settings.METALAKE_THREADS = options["concurrency"]  # calls to outside systems are limited by their number
        self._say("The worker drains the outbox. Stop with Ctrl-C.")
        worker = app.Worker(
            pool_cls="threads",
            concurrency=options["concurrency"],
            beat=True,
            scheduler=settings.CELERY_BEAT_SCHEDULER,
            loglevel="WARNING",
            without_gossip=True,
            without_mingle=True,
        )
        worker.start()
        if worker.exitcode and state.should_stop is None and state.should_terminate is None:
            _restart()

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        sys.stdout.flush()


def _restart() -> None:
    """Replace this process by a new worker: kombu 5.7.0 gives up if the connection breaks twice in a row."""
    log.error("the worker lost its broker; it restarts in %s s", PAUSE)
    time.sleep(PAUSE)
    os.execv(sys.executable, [sys.executable, *sys.argv])  # noqa: S606
