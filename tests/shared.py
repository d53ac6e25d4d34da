"""Servers that one run of the suite starts once, when first asked for, whichever of its processes asks."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VARIABLE = "METALAKE_TEST_SHARED"


@contextmanager
def shared_servers() -> Iterator[str]:
    """A folder to hand over as METALAKE_TEST_SHARED; at the end every process group led by a *.pid in it is killed."""
    folder = Path(tempfile.mkdtemp(prefix="metalake-shared-"))
    try:
        yield str(folder)
    finally:
        for leader in folder.glob("*.pid"):
            kill_group(int(leader.read_text()))
        shutil.rmtree(folder, ignore_errors=True)


def shared_folder() -> Path | None:
    """The folder of this run's shared servers; None where each process starts its own."""
    given = os.environ.get(VARIABLE)
    return Path(given) if given else None


def kill_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass
