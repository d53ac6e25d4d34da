"""Readiness checks of this node's database and disks, each in its own thread since either may hang.

The results are public, so they contain no address, path or name.
"""

from __future__ import annotations

import errno
import logging
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TookTooLong
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection

from metalake import database_checks
from metalake.database_errors import FAILED, cause_of, log_text
from metalake.models import Outbox

log = logging.getLogger(__name__)

PATIENCE = 2.0  # seconds for all checks
PROBE = b"\0" * 4096
SILENT = "it does not answer"
UNPREPARED = "its migrations are missing: start a server of this version, or run 'manage.py migrate'"

Details = dict[str, Any]


class Failed(Exception):
    """A failed check: its text is the reason; `details` also has what was known before it failed."""

    def __init__(self, reason: str, **details: Any) -> None:
        super().__init__(reason)
        self.details = {"reason": reason, **details}


class Check:
    """One check, run by one thread at a time: concurrent callers share its result."""

    _lock = threading.Lock()
    _asked: dict[str, Future[Details]] = {}
    _reasons: dict[str, str] = {}

    def __init__(self, name: str, look: Callable[[], Details]) -> None:
        self.name = name
        with self._lock:
            under_way = self._asked.get(name)
            if under_way is None or under_way.done():
                under_way = self._asked[name] = Future()
                threading.Thread(target=_answer, args=(under_way, look), name=f"ready: {name}", daemon=True).start()
            self._future = under_way

    def result(self, until: float) -> dict[str, Any]:
        """The result as JSON; its status is UP, LOW (still able to serve) or DOWN."""
        why = None
        try:
            details = self._future.result(max(0.0, until - time.monotonic()))
            status = "LOW" if "reason" in details else "UP"
        except TookTooLong:
            status, details = "DOWN", {"reason": SILENT}
        except Failed as failure:
            status, details, why = "DOWN", failure.details, failure.__cause__
        self._note(status, details.get("reason", ""), log_text(why))
        return {"name": self.name, "status": status, "details": details}

    def _note(self, status: str, reason: str, cause: str) -> None:
        """Log the reason and its cause when it changes, not at every request."""
        with self._lock:
            before = self._reasons.get(self.name, "")
            self._reasons[self.name] = reason
        if reason != before:
            change = f": {reason}" + (f" [{cause}]" if cause else "") if reason else " again"
            log.warning("%s is %s%s", self.name, status, change)


def checks() -> list[dict[str, Any]]:
    """The results of all checks, the database's first; within PATIENCE seconds."""
    until = time.monotonic() + PATIENCE
    under_way = [Check("database", look_at_database)]
    under_way += [Check(name, partial(look_at_folder, folder)) for name, folder in _folders().items()]
    return [check.result(until) for check in under_way]


def _answer(future: Future[Details], look: Callable[[], Details]) -> None:
    try:
        future.set_result(look())
    except Failed as failure:
        future.set_exception(failure)
    except Exception as bug:
        log.exception("a readiness check failed")
        future.set_exception(Failed(type(bug).__name__))


def look_at_database() -> Details:
    """Check the database with a new connection, so that a failure to connect shows. Raises Failed."""
    details: Details = {"engine": connection.vendor}
    try:
        if database_checks.lacks_migrations():
            raise Failed(UNPREPARED, **details)
        return details | {"outbox": Outbox.objects.count()}
    except FAILED as failure:
        cause = cause_of(failure)
        raise Failed(cause.name if cause else type(failure).__name__, **details) from failure
    finally:
        connection.close()


def look_at_folder(folder: Path) -> Details:
    """Check that a file can be written in a folder, or that a missing folder can be made. Raises Failed."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        raise Failed("nothing can be written there")
    try:
        if there == folder:
            _try_to_write(folder)
        free = shutil.disk_usage(there).free
    except OSError as failure:
        raise Failed(f"nothing can be written there: {log_text(failure)}") from failure
    return {"reason": "little space is left"} if free < settings.METALAKE_MIN_FREE else {}


def _try_to_write(folder: Path) -> None:
    with tempfile.TemporaryFile(dir=folder, buffering=0) as probe:
        if probe.write(PROBE) < len(PROBE):
            raise OSError(errno.ENOSPC, "Short write")


def _folders() -> dict[str, Path]:
    """The folders of this machine that writes need."""
    folders = {}
    if settings.ON_SQLITE or not settings.METALAKE_WAREHOUSE:
        folders["home"] = settings.METALAKE_HOME
    if settings.METALAKE_WAREHOUSE.startswith("file://"):
        folders["warehouse"] = Path(settings.METALAKE_WAREHOUSE.removeprefix("file://"))
    return folders
