"""Celery tasks for all apps: drain the outbox, and run the periodic jobs."""

from __future__ import annotations

from metalake import outbox, shared_settings
from metalake.celery import app


@app.task(name="metalake.do_round")
def do_round() -> None:
    outbox.do_round()


@app.task(name="metalake.drain_outbox")
def drain_outbox() -> int:
    shared_settings.tell()
    return outbox.drain()
