"""32 clients send requests for a minute while one of the server's processes is killed every five seconds, and again
while all of them are replaced as often: which requests got no answer, and whether an acknowledged commit was lost.

`python -m benchmarks.killed_processes [seconds]` takes that many instead of 60, and half of it for the exchanges.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.harness import claim, finish
from tests.metalake.killing import Outcome, ask_throughout, exchange, kill_one, processes
from tests.servers import MetalakeServer, prepare

SECONDS, EVERY = 60.0, 5.0
READERS, WRITERS = 24, 8


def main(arguments: list[str]) -> None:
    seconds = float(arguments[0]) if arguments else SECONDS
    with tempfile.TemporaryDirectory() as folder:
        server = prepare(Path(folder), METALAKE_LOG_LEVEL="ERROR", METALAKE_WORKERS="2")
        server.start()
        try:
            killed = asked(server, seconds, kill_one(server))
            connections = sum(len(each.ports) for each in killed.killed)
            print(
                f"  {len(killed.killed)} processes were killed, which held {connections} connections: "
                f"{len(killed.unanswered)} requests were not answered"
            )
            judge(killed, "a process is killed every 5 s")
            before = {process.pid for process in processes(server)}
            judge(asked(server, seconds / 2, exchange(server)), "all are exchanged every 5 s")
            stayed = before & {process.pid for process in processes(server)}
            claim("processes that were not exchanged", len(stayed), 0)
        finally:
            server.kill()
    finish()


def asked(server: MetalakeServer, seconds: float, disturb: Callable[[Outcome], None]) -> Outcome:
    return ask_throughout(server, seconds, EVERY, disturb, READERS, WRITERS)


def judge(outcome: Outcome, meanwhile: str) -> None:
    statuses = ", ".join(f"{count:,} times {status}" for status, count in sorted(outcome.answers.items()))
    commits = sum(len(properties) for properties in outcome.acknowledged.values())
    print(f"  while {meanwhile}: answered {statuses}; {commits:,} commits were acknowledged")
    for one in outcome.unexplained[:3]:
        print(f"       {one.why}")
    claim("requests without an answer that no dead process held", len(outcome.unexplained), 0)
    claim("connections refused", len(outcome.refused), 0)
    claim("answers of 500 and above other than 503", outcome.failures, 0)
    claim("acknowledged commits lost", len(outcome.lost), 0)


if __name__ == "__main__":
    main(sys.argv[1:])
