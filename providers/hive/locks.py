"""Hive's exclusive lock on a table, which every careful writer of Iceberg tables takes, too."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from hive_metastore.ttypes import (
    CheckLockRequest,
    LockComponent,
    LockLevel,
    LockRequest,
    LockResponse,
    LockState,
    LockType,
    UnlockRequest,
)

from metalake.errors import MetalakeError, NotFound, ProviderBusy, ProviderUnavailable, Unsupported
from metalake.kinds import Kind
from providers.hive.catalog import HiveCatalog
from providers.hive.client import Metastore, connection
from providers.hive.errors import About, Refused
from providers.reaching.endpoints import Endpoint

log = logging.getLogger(__name__)

WAIT = 8.0  # seconds for others to let go; a lock whose holder died goes after some minutes
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 0.5
OWNER = "metalake"

_lockers: set[str] = set()  # metastores that have given a lock


@contextmanager
def locked(endpoints: Sequence[Endpoint], metastore: Metastore, database: str, table: str) -> Iterator[bool]:
    """Hold a table's lock; gives False where the metastore keeps no locks, for want of its transaction tables.

    It says the same of that as of any trouble, so one that has given a lock is believed to keep them. Raises
    ProviderBusy where others do not let go in time.
    """
    about = About(Kind.TABLE, f"{database}.{table}")
    part = LockComponent(LockType.EXCLUSIVE, LockLevel.TABLE, database, table)
    wanted = LockRequest(component=[part], user=OWNER, hostname=socket.gethostname(), agentInfo=OWNER)
    try:
        lock = metastore.call("lock", wanted, about=about)
    except (Refused, Unsupported) as refusal:
        if metastore.where in _lockers:
            raise
        log.warning("the metastore at %s gives no locks: %s", metastore.where, refusal.message)
        yield False
        return
    _lockers.add(metastore.where)
    try:
        _wait(metastore, lock, about)
        yield True
    finally:
        _release(endpoints, metastore, lock.lockid, about)


def _wait(metastore: Metastore, lock: LockResponse, about: About) -> None:
    """Asking keeps a waiting lock alive, as a heartbeat does."""
    deadline, pause = time.monotonic() + WAIT, FIRST_PAUSE
    while lock.state == LockState.WAITING and time.monotonic() < deadline:
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
        try:
            lock = metastore.call("check_lock", CheckLockRequest(lock.lockid), about=about)
        except NotFound:
            break
    if lock.state != LockState.ACQUIRED:
        raise ProviderBusy(f"{str(about).capitalize()} is locked by somebody else.", kind=about.kind)


def _release(endpoints: Sequence[Endpoint], metastore: Metastore, lock: int, about: About) -> None:
    """Also where the connection broke under the lock, or breaks now: one that stays keeps others off for minutes."""
    try:
        if metastore.is_good:
            with suppress(ProviderUnavailable):
                return _unlock(metastore, lock, about)
        with connection(endpoints) as another:
            _unlock(another, lock, about)
    except MetalakeError as failure:
        log.warning("the lock of %s was not released: %s", about, failure.message)


def _unlock(metastore: Metastore, lock: int, about: About) -> None:
    with suppress(NotFound):
        metastore.call("unlock", UnlockRequest(lock), about=about)


@contextmanager
def locked_table(catalog: HiveCatalog, database: str, table: str) -> Iterator[tuple[Metastore, bool]]:
    """A connection under the table's lock, and whether there is one."""
    with catalog.metastore() as metastore, locked(catalog.endpoints, metastore, database, table) as has_lock:
        yield metastore, has_lock
