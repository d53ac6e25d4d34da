"""The program that reads SQL: one question a line, one answer a line, as JSON.

It limits itself before it reads anything, so it ends in time also where the server that started it was killed.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from typing import Any

MEMORY = 512 * 1024 * 1024  # bytes of address space; the largest query that is read needs a third of it
NICENESS = 10  # lets requests go first, which leaves it a tenth of a processor that they use fully
LAST = 19  # lets also those go first that people wait for
DEPTH = 5000  # Python's calls within calls: some 200 parentheses within each other

TOO_MUCH_MEMORY = "It takes more memory to be read than it is given here."
FAILED = "It could not be read: the attempt failed."


def main() -> None:
    _limit(float(sys.argv[1]), int(sys.argv[2]))
    for line in sys.stdin.buffer:
        sys.stdout.write(json.dumps(_answer(json.loads(line))) + "\n")
        sys.stdout.flush()


def _limit(seconds: float, niceness: int) -> None:
    """Let the kernel end this process after so many seconds, whatever it computes, and bound its memory."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the server ends, and answers before it does
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    signal.setitimer(signal.ITIMER_REAL, seconds)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.setpriority(os.PRIO_PROCESS, 0, max(niceness, os.getpriority(os.PRIO_PROCESS, 0)))  # threads that ask are nicer
    sys.setrecursionlimit(DEPTH)


def _answer(question: dict[str, Any]) -> dict[str, Any]:
    """The reading or translation, as JSON; a problem alone for SQL that is too much for it."""
    from formats.sql.analysis import read
    from formats.sql.parsing import TOO_DEEP
    from formats.sql.results import Source
    from formats.sql.translating import translate

    try:
        if "into" in question:
            return translate(**question).as_json()
        columns_of = {Source(*source): columns for source, columns in question.pop("columns_of")}
        return read(**question, columns_of=columns_of).as_json()
    except MemoryError:
        return {"problem": TOO_MUCH_MEMORY}
    except RecursionError:
        return {"problem": TOO_DEEP}
    except Exception:  # whatever SQL makes the library fail is one query's problem
        return {"problem": FAILED}


if __name__ == "__main__":
    main()
