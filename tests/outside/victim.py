"""A process that makes one write of the crash matrix and is killed at a point of it.

    python -m tests.outside.victim <write's number among EVERY_WRITE> <point's number>

It says when the write is promised, and goes on when it is told to. The environment names the database
(tests.settings); the point's number may be `none`.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import cast

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
django.setup()

from authz.callers.identity import actor_of  # noqa: E402
from authz.models import User  # noqa: E402
from tests.outside.crashes import Killed, stopping  # noqa: E402
from tests.outside.outside import Outside  # noqa: E402
from tests.outside.writes import EVERY_WRITE, REQUEST, Bench  # noqa: E402


def main(number: str, at: str) -> None:
    from metalake.request_context import request_id

    write = EVERY_WRITE[int(number)]
    request_id.set(REQUEST)
    nothing = cast(Outside, None)  # the catalog says where the system is, and its faults are the tests' own
    bench = Bench(write.catalog, nothing, actor_of(User.objects.get(username="mia")))

    def promised() -> None:
        print("promised", flush=True)  # noqa: T201
        sys.stdin.readline()

    try:
        with stopping(None if at == "none" else int(at), promised):
            write.act(bench)
    except Killed:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
