"""Timeouts of our own database: connection options of every server, worker and command.

Sources: PostgreSQL, "Client Connection Defaults" and libpq, "Parameter Key Words"; SQLite, sqlite3_busy_timeout.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Limits(NamedTuple):
    """Timeouts in seconds."""

    lock: float  # for a row or table that another transaction has locked; on SQLite for the write lock
    statement: float
    idle: float  # of a transaction without a statement
    silence: int  # until a connection whose peer does not respond counts as lost
    connect: int


def on_postgresql(limits: Limits, given: dict[str, Any]) -> dict[str, Any]:
    """Connection options; those in the database URL take precedence."""
    parameters = {
        "lock_timeout": limits.lock,
        "statement_timeout": limits.statement,
        "idle_in_transaction_session_timeout": limits.idle,
    }
    sent = " ".join(f"-c {name}={round(seconds * 1000)}" for name, seconds in parameters.items())
    pause = max(1, limits.silence // 3)
    return {
        "connect_timeout": limits.connect,
        "keepalives_idle": pause,
        "keepalives_interval": pause,
        "keepalives_count": 2,
        "tcp_user_timeout": limits.silence * 1000,
        **given,
        "options": f"{sent} {given.get('options', '')}".strip(),
    }


def on_sqlite(limits: Limits) -> dict[str, Any]:
    """Connection options: transactions take the write lock at BEGIN, and commits fsync the WAL."""
    return {
        "transaction_mode": "IMMEDIATE",
        "timeout": limits.lock,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; "
        "PRAGMA foreign_keys=ON; PRAGMA mmap_size=1073741824; PRAGMA cache_size=-8000",
    }
