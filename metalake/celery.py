"""The Celery application that `manage.py worker` runs when a broker is set. Tasks are in the apps' tasks.py."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "metalake.settings")

app = Celery("metalake")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
