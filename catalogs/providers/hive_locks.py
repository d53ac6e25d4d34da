"""Hive's exclusive lock on a table, which every careful writer of Iceberg tables takes, too."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

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

from catalogs.providers.hive_client import Metastore, connection
from catalogs.providers.hive_errors import About, Refused
from catalogs.providers.reaching.endpoints import Endpoint
from metalake.errors import MetalakeError, NotFound, ProviderBusy, Unsupported
from metalake.privileges import Kind

log = logging.getLogger(__name__)

WAIT = 8.0  # seconds for others to let go; a lock whose holder died goes after some minutes
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 0.5
OWNER = "metalake"


@contextmanager
def locked(endpoints: Sequence[Endpoint], metastore: Metastore, database: str, table: str) -> Iterator[bool]:
    """Hold a table's lock; gives False where the metastore keeps no locks, for want of its transaction tables.

    Raises ProviderBusy where others do not let go in time.
    """
    about = About(Kind.TABLE, f"{database}.{table}")
    part = LockComponent(LockType.EXCLUSIVE, LockLevel.TABLE, database, table)
    wanted = LockRequest(component=[part], user=OWNER, hostname=socket.gethostname(), agentInfo=OWNER)
    try:
        lock = metastore.call("lock", wanted, about=about)
    except (Refused, Unsupported) as refusal:
        log.warning("the metastore at %s gives no locks: %s", metastore.where, refusal.message)
        yield False
        return
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
    """Also where the connection broke under the lock; what cannot be released goes by itself after some minutes."""
    try:
        if metastore.is_good:
            metastore.call("unlock", UnlockRequest(lock), about=about)
        else:
            with connection(endpoints) as another:
                another.call("unlock", UnlockRequest(lock), about=about)
    except MetalakeError as failure:
        log.warning("the lock of %s was not released: %s", about, failure.message)
