"""The Celery application; with a broker set, `manage.py worker` drains the outbox here."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "metalake.settings")

app = Celery("metalake")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@app.task(name="metalake.do_round")
def do_round() -> None:
    from metalake.outbox import do_round

    do_round()


@app.task(name="metalake.drain_outbox")
def drain_outbox() -> int:
    from metalake import sharing
    from metalake.outbox import drain

    sharing.tell()
    return drain()
