"""A worker that breaks starts anew; one that is told to stop does not."""

from __future__ import annotations

import os
from typing import Any

import pytest
from celery.worker import state
from django.core.management import call_command

from metalake.celery import app
from server.management.commands import worker


@pytest.mark.django_db
@pytest.mark.parametrize(("exit_code", "asked_to_stop", "starts"), [(1, None, 1), (0, None, 0), (1, 1, 0), (0, 0, 0)])
def test_it_starts_anew_only_if_it_broke(
    exit_code: int, asked_to_stop: int | None, starts: int, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    class Ended:
        def __init__(self, **options: Any) -> None:
            self.exitcode: int | None = None

        def start(self) -> None:
            self.exitcode = exit_code
            monkeypatch.setattr(state, "should_stop", asked_to_stop)

    begun: list[list[str]] = []
    monkeypatch.setattr(app, "Worker", Ended)
    monkeypatch.setattr(worker, "PAUSE", 0)
    monkeypatch.setattr(os, "execv", lambda program, words: begun.append(words))
    settings.METALAKE_BROKER_URL = "redis://127.0.0.1:1/0"
    call_command("worker")
    assert len(begun) == starts
