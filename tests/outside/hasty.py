"""The real settings, but what a crash or a lost message leaves is taken up again within seconds."""

from datetime import timedelta

from django.apps import AppConfig

from metalake.settings import CELERY_BEAT_SCHEDULE, INSTALLED_APPS
from tests.served import *  # noqa: F403

CELERY_BEAT_SCHEDULE = {name: given | {"schedule": 2.0} for name, given in CELERY_BEAT_SCHEDULE.items()}
INSTALLED_APPS = [*INSTALLED_APPS, "tests.outside.hasty.Hasty"]
PATIENCE = 8  # seconds that a server waits for a worker


class Hasty(AppConfig):
    name = "tests.outside.hasty"

    def ready(self) -> None:
        from outside import intents, listing_diff, steps, worker_calls
        from server import background

        background.ROUND = 2.0
        worker_calls.PATIENCE, worker_calls.GLANCE = PATIENCE, 1
        intents.LEASE = steps.LEASE = timedelta(seconds=PATIENCE + 3)
        listing_diff.LEASE = timedelta(seconds=6)
