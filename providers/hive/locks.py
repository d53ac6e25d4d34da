"""Hive's exclusive table lock, which well-behaved Iceberg writers also take."""

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
from providers.network.endpoints import Endpoint

log = logging.getLogger(__name__)

WAIT = 8.0  # seconds to wait for a lock; a dead holder's lock expires after some minutes
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 0.5
OWNER = "metalake"

_lockers: set[str] = set()  # metastores that have granted a lock


@contextmanager
def locked(endpoints: Sequence[Endpoint], metastore: Metastore, database: str, table: str) -> Iterator[bool]:
    """Hold a table's lock for the block; yields False if the metastore has no locks (no transaction tables).

    Its error is the same as for any other failure, so a metastore that has granted a lock is assumed to support them.
    Raises ProviderBusy if another holder does not release the lock in time.
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
    """Poll for the lock; each check also serves as a heartbeat. Raises ProviderBusy."""
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
    """Release the lock, on another connection if this one is broken: a leftover lock blocks others for minutes."""
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
    """A connection holding the table's lock, and whether the metastore has locks."""
    with catalog.metastore() as metastore, locked(catalog.endpoints, metastore, database, table) as has_lock:
        yield metastore, has_lock
