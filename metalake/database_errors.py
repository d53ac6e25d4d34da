"""Classifies failures of our own database or disk: the cause for the log, and a message for the caller.

Sources: PostgreSQL, "Error Codes"; SQLite, "Result and Error Codes".
"""

from __future__ import annotations

import errno
import os
import sqlite3
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import DatabaseError, InterfaceError, OperationalError
from prometheus_client import Counter

from metalake.blocking import may_block
from metalake.errors import StoreUnavailable

FAILURES = Counter("metalake_database_failures", "Requests that our own database did not serve", ["cause"])
FAILED = (DatabaseError, InterfaceError)
LONGEST = 300  # characters of a database's message


@dataclass(frozen=True)
class Cause:
    """`name` is for operators; `message` is for the caller, who may retry in `retry_after` seconds."""

    name: str
    message: str
    retry_after: int


def _away(name: str) -> Cause:
    return Cause(name, "The database is not available; try again.", 5)


def _cannot_write(name: str) -> Cause:
    return Cause(name, "The database accepts no writes at the moment; nothing was changed. Try again later.", 30)


LOCKED = Cause("lock timeout", "Another transaction held the lock for too long; nothing was changed. Try again.", 2)
SLOW = Cause("statement timeout", "The database took too long; nothing was changed. Try again.", 5)
IDLE = Cause("idle transaction", "The transaction was idle for too long; nothing was changed. Try again.", 1)
FULL = _cannot_write("disk full")
READ_ONLY = _cannot_write("read-only database")
TOO_MANY = _away("too many connections")
GONE = _away("no connection")
STOPPING = _away("database stops or starts")
OTHER = _away("database failed")

_OF_POSTGRESQL = {
    "55P03": LOCKED,
    "57014": SLOW,
    "25P03": IDLE,
    "25P04": IDLE,
    "53100": FULL,
    "25006": READ_ONLY,
    "53300": TOO_MANY,
    "57P01": STOPPING,
    "57P02": STOPPING,
    "57P03": STOPPING,
}
_OF_SQLITE = {
    sqlite3.SQLITE_BUSY: LOCKED,
    sqlite3.SQLITE_LOCKED: LOCKED,
    sqlite3.SQLITE_FULL: FULL,
    sqlite3.SQLITE_READONLY: READ_ONLY,
}
# psycopg gives a refused connection no error code.
_OF_TEXT = {
    "too many clients": TOO_MANY,
    "too many connections": TOO_MANY,
    "connection slots are reserved": TOO_MANY,
    "the database system is": STOPPING,
    "connection": GONE,
}


def cause_of(failure: BaseException | None) -> Cause | None:
    """The cause of a database failure; None for other exceptions and for errors in the statement itself."""
    if not isinstance(failure, FAILED):
        return None
    code, text = _code(failure), str(failure)
    if isinstance(code, str) and code in _OF_POSTGRESQL:
        return _OF_POSTGRESQL[code]
    if isinstance(code, int) and code & 0xFF in _OF_SQLITE:
        return _OF_SQLITE[code & 0xFF]
    if code == sqlite3.SQLITE_IOERR_WRITE:
        return FULL
    if not isinstance(failure, OperationalError | InterfaceError):
        return None
    if code is None:
        return next((cause for words, cause in _OF_TEXT.items() if words in text), OTHER)
    return GONE if str(code).startswith("08") else OTHER


def unavailable(failure: BaseException) -> StoreUnavailable | None:
    """The error for a failure of the database that changed nothing; None for other failures.

    Raises BeginAgain in a short read (metalake/blocking.py): the request is retried in a thread that may block.
    """
    cause = cause_of(failure)
    if cause is None:
        return None
    may_block()
    FAILURES.labels(cause.name).inc()
    error = StoreUnavailable(cause.message)
    error.retry_after = cause.retry_after
    error.__cause__ = failure
    return error


def is_undone(failure: BaseException) -> bool:
    """Whether a transaction certainly changed nothing, although its commit may have been sent.

    PostgreSQL answers a commit with an ERROR if it was rolled back; if the session ended, the outcome is unknown,
    unless the session was idle. SQLite commits with its last page: if a page could not be written, nothing was.
    """
    code = _code(failure)
    if isinstance(code, int):
        return code & 0xFF in _OF_SQLITE or code == sqlite3.SQLITE_IOERR_WRITE
    answer: Any = getattr(failure.__cause__, "diag", None)
    if _OF_POSTGRESQL.get(code or "") is IDLE:
        return True
    return answer is not None and answer.severity_nonlocalized == "ERROR"


def log_text(failure: BaseException | None) -> str:
    """A failure for the log: cause, code, class and first line, without values or secrets; "" for other errors."""
    if isinstance(failure, OSError) and failure.errno:
        return f"{errno.errorcode.get(failure.errno, failure.errno)}: {os.strerror(failure.errno)}"
    if not isinstance(failure, FAILED):
        return ""
    cause, code = cause_of(failure), _code(failure)
    if cause is None:
        return type(failure).__name__  # its text may quote values
    first = next(iter(str(failure).strip().splitlines()), "")[:LONGEST]
    if password := settings.DATABASES["default"].get("PASSWORD"):
        first = first.replace(str(password), "******")
    named = " ".join(str(part) for part in (code, type(failure.__cause__ or failure).__name__) if part is not None)
    return f"{cause.name} ({named}): {first}"


def _code(failure: BaseException | None) -> str | int | None:
    """SQLSTATE of PostgreSQL, the extended result code of SQLite; None if it has neither."""
    driver = getattr(failure, "__cause__", None)
    code: str | int | None = getattr(driver, "sqlstate", None)
    return getattr(driver, "sqlite_errorcode", None) if code is None else code
