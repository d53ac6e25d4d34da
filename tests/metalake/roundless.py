"""The real settings, but a worker only does what it is woken for: its rounds are an hour apart."""

from metalake.settings import CELERY_BEAT_SCHEDULE
from tests.served import *  # noqa: F403

CELERY_BEAT_SCHEDULE = {name: given | {"schedule": 3600.0} for name, given in CELERY_BEAT_SCHEDULE.items()}
