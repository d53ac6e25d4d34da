"""A process that makes one write of the crash matrix and is killed at a point of it.

    python -m tests.catalogs.external.victim <write's number> <point's number> <world's file>

The environment names the database (tests.settings); the point's number may be `none`.
"""

from __future__ import annotations

import os
import signal
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
django.setup()

from authz.callers import actor_of  # noqa: E402
from authz.models import User  # noqa: E402
from tests.catalogs.external.crashes import Killed, stopping  # noqa: E402
from tests.catalogs.external.writes import REQUEST, WRITES, Bench  # noqa: E402
from tests.providers.memory import World  # noqa: E402


def main(number: str, at: str, world: str) -> None:
    from metalake.context import request_id

    write = WRITES[int(number)]
    request_id.set(REQUEST)
    bench = Bench(write.catalog, World(world), actor_of(User.objects.get(username="mia")), b"as it is")
    try:
        with stopping(None if at == "none" else int(at), lambda: print("promised", flush=True)):  # noqa: T201
            write.act(bench)
    except Killed:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
