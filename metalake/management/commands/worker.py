"""`manage.py worker`: a Celery worker that drains the outbox, woken by commits and every five seconds."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from metalake.celery import app


class Command(BaseCommand):
    help = "Start a worker; needs METALAKE_BROKER_URL (Redis) and METALAKE_DATABASE_URL (PostgreSQL)."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--concurrency", default="4", help="How many tasks run at once.")

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.METALAKE_BROKER_URL:
            raise CommandError(
                "Set METALAKE_BROKER_URL, for example redis://127.0.0.1:6379/0. "
                "Without a broker the server drains its outbox itself."
            )
        self.stdout.write("The worker drains the outbox. Stop with Ctrl-C.")
        schedule = str(settings.METALAKE_HOME / "celerybeat-schedule")
        app.worker_main(
            [
                *("worker", "--pool", "threads", "--concurrency", options["concurrency"]),
                *("--beat", "--schedule", schedule),
                *("--loglevel", "WARNING", "--without-gossip", "--without-mingle"),
            ]
        )
