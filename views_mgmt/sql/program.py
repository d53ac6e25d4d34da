"""The SQL analysis program: JSON lines in, one answer per line out.

It sets its own limits before reading input, so it ends in time even if the server that started it was killed.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from typing import Any

MEMORY = 512 * 1024 * 1024  # bytes of address space; the largest accepted query needs a third of it
NICENESS = 10  # below requests: a tenth of a processor that they saturate
LAST = 19  # background: below interactive analysis, too
DEPTH = 5000  # Python's recursion limit: some 200 nested parentheses

TOO_MUCH_MEMORY = "It takes more memory to be read than it is given here."
FAILED = "It could not be read: the attempt failed."


def main() -> None:
    _limit(float(sys.argv[1]), int(sys.argv[2]))
    for line in sys.stdin.buffer:
        sys.stdout.write(json.dumps(_answer(json.loads(line))) + "\n")
        sys.stdout.flush()


def _limit(seconds: float, niceness: int) -> None:
    """Have the kernel kill this process after so many seconds, whatever it is doing, and cap its memory."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal: the server answers, then stops
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    signal.setitimer(signal.ITIMER_REAL, seconds)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.setpriority(os.PRIO_PROCESS, 0, max(niceness, os.getpriority(os.PRIO_PROCESS, 0)))  # the caller may be nicer
    sys.setrecursionlimit(DEPTH)


def _answer(question: dict[str, Any]) -> dict[str, Any]:
    """The reading or translation as JSON; only a problem for SQL that exceeds the limits."""
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
    except Exception:  # a crash of the library fails this query only
        return {"problem": FAILED}


if __name__ == "__main__":
    main()
