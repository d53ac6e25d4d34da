"""Metalake on PostgreSQL with what benchmarks/rivals.py measures, in a process of its own; it serves until stdin ends.

`python -m benchmarks.rival_postgres DATABASE_URL` prints one line of JSON: where it is, and with which authorizations.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack

from benchmarks.peers import Side


def on_postgres(stack: ExitStack) -> Side:
    """Metalake on a PostgreSQL server of its own, asked by the owner of everything."""
    from tests.postgres import running_postgres

    server = stack.enter_context(running_postgres())
    command = [sys.executable, "-m", "benchmarks.rival_postgres", server.create_database()]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    stack.callback(process.wait, 30)
    assert process.stdin and process.stdout
    stack.callback(process.stdin.close)
    return Side(**json.loads(process.stdout.readline()))


def main(database_url: str) -> None:
    from benchmarks.harness import own_store, serve
    from benchmarks.rival_stores import fill_ours

    own_store(database_url)
    with ExitStack() as stack:
        owner = fill_ours(stack, serve).owner
        sys.stdout.write(
            json.dumps({"name": "ours", "url": owner.url, "base": owner.base, "authorization": owner.authorization})
            + "\n"
        )
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
