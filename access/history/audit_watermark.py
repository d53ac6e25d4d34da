"""The places of the audit before which no row can turn up any more."""

from __future__ import annotations

import time

from django.db import connection
from django.db.models import Max

from authz.models import AuditEntry
from metalake.errors import ProviderBusy

PATIENCE, PAUSE = 10.0, 0.05  # seconds

# Who inserts has this lock before the row has a number, and until its transaction ends.
_WRITERS = (
    "SELECT virtualtransaction FROM pg_locks WHERE locktype = 'relation' AND relation = %s::regclass "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
    "AND mode = 'RowExclusiveLock' AND pid IS DISTINCT FROM pg_backend_pid()"
)


def last_place() -> int:
    """The number of the last row of the audit, all rows before which are there.

    On PostgreSQL a row is numbered before its transaction commits, so those that are under way are waited for; SQLite
    has one writer. Raises ProviderBusy where they take longer than PATIENCE.
    """
    last = AuditEntry.objects.aggregate(last=Max("pk"))["last"] or 0
    if connection.vendor == "postgresql":
        _wait_for(_writers())
    return last


def _wait_for(writers: set[str]) -> None:
    until = time.monotonic() + PATIENCE
    while writers:
        if time.monotonic() > until:
            raise ProviderBusy("Changes that began before are still being made. Try again.")
        time.sleep(PAUSE)
        writers &= _writers()


def _writers() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(_WRITERS, [AuditEntry._meta.db_table])
        return {transaction for (transaction,) in cursor.fetchall()}
