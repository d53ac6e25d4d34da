"""Runs SQL analysis in a subprocess, and kills it on timeout.

Each call starts a fresh process: 0.2 s, for no state shared between views and no worker to manage.
"""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings

from formats.sql.results import ColumnsOf, Problem, Reading, Translation
from metalake.blocking import may_block
from metalake.errors import MetalakeError, ProviderBusy, TooManyRequests
from metalake.shared_memory import Places
from views_mgmt.sql.program import FAILED, LAST, NICENESS

log = logging.getLogger(__name__)

ROOT = Path(__file__).resolve().parents[2]  # PYTHONPATH of the subprocess
PROCESSES = Places("reading of SQL", 3)  # at most one per caller; a metalake never gets the last one
WITH_WAITING = PROCESSES.size  # callers of one metalake that hold or wait for a slot
CALLERS = threading.BoundedSemaphore(WITH_WAITING + 1)  # the same, as threads of this process
IN_BACKGROUND = Places("reading of SQL in the background", 1)  # separate, so it takes no slot from requests
PATIENCE = 1.0  # seconds to wait for a slot
MOST_AT_ONCE = 2 * 1024 * 1024  # characters of SQL per call; the rest is not analysed
MOST_TEXT = 4 * 1024 * 1024  # bytes of input per call; beyond that, questions go without columns

YOURS = "SQL is read for you already; nothing was changed. Try again once that is answered."
BUSY = "The server reads the SQL of other views now; nothing was changed. Try again."
SLOW = "It could not be read within {:g} s."
NOT_REACHED = "It was not read: the SQL that was read before it took all there is of time or room."


class SqlCaller(NamedTuple):
    """A caller and a metalake's id, each with a quota of the slots."""

    caller: str
    metalake: int


@dataclass(frozen=True)
class Question:
    """One representation to analyse; `columns_of` has the known columns of its sources."""

    sql: str
    dialect: str
    default_catalog: str | None = None
    default_schema: str | None = None
    columns_of: ColumnsOf = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        columns_of = [
            [[source.catalog, source.schema, source.name], columns] for source, columns in self.columns_of.items()
        ]
        return {**vars(self), "columns_of": columns_of}


def deadline() -> float:
    """The deadline, of time.monotonic(), for all SQL analysed for one answer from now on."""
    return time.monotonic() + settings.METALAKE_SQL_TIMEOUT


def readings(questions: Sequence[Question], by: SqlCaller | None, until: float | None = None) -> list[Reading]:
    """A reading for each question; one that did not finish by `until` (default: a new `deadline`) has a problem.

    `by` None is background work, at lower priority. Raises TooManyRequests if the caller already has SQL being
    analysed, ProviderBusy if there is no free slot, BeginAgain in a thread for short reads.
    """
    answers = _ask([each.as_json() for each in questions], by, until or deadline())
    return [
        Reading(problems=(Problem(each["problem"]),)) if "problem" in each else Reading.from_json(each)
        for each in answers
    ]


def was_read(reading: Reading) -> bool:
    """Whether the analysis completed; False if it ran out of time or room."""
    return not any(problem.text in (_slow(), NOT_REACHED) for problem in reading.problems)


def took_too_long(reading: Reading) -> bool:
    """Whether the analysis timed out on this one."""
    return any(problem.text == _slow() for problem in reading.problems)


def translation(sql: str, dialect: str, into: str, by: SqlCaller) -> Translation:
    """The query translated into another dialect. Raises as `readings`."""
    (answer,) = _ask([{"sql": sql, "dialect": dialect, "into": into}], by, deadline())
    if "problem" in answer:
        return Translation(None, problems=(Problem(answer["problem"]),))
    return Translation.from_json(answer)


def _ask(questions: Sequence[Mapping[str, Any]], by: SqlCaller | None, until: float) -> list[dict[str, Any]]:
    """An answer or a problem for each question. Shortest SQL first: a long one may use up all the time."""
    if not questions:
        return []
    may_block()
    shortest_first = sorted(range(len(questions)), key=lambda number: len(questions[number]["sql"]))
    place, niceness = (_one_of(IN_BACKGROUND), LAST) if by is None else (_place(by), NICENESS)
    with place:
        asked = b"".join(_lines(questions[number] for number in shortest_first))
        output, reason = _run(asked, until - time.monotonic(), niceness)
    answers = dict(zip(shortest_first, map(json.loads, output), strict=False))
    for number in shortest_first:
        if number not in answers:
            answers[number], reason = {"problem": reason}, NOT_REACHED
    return [answers[number] for number in range(len(questions))]


def _lines(questions: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """The questions as JSON lines, up to MOST_AT_ONCE, with columns up to MOST_TEXT."""
    size = given = 0
    for question in questions:
        size += len(question["sql"])
        if size > MOST_AT_ONCE:
            return
        line = _line(question, with_columns=given <= MOST_TEXT)
        given += len(line)
        yield line if given <= MOST_TEXT else _line(question, with_columns=False)


def _line(question: Mapping[str, Any], *, with_columns: bool) -> bytes:
    bare: dict[str, Any] = {} if with_columns or "columns_of" not in question else {"columns_of": []}
    return json.dumps({**question, **bare}, default=dict).encode() + b"\n"


def _run(asked: bytes, seconds: float, niceness: int) -> tuple[list[bytes], str]:
    """The lines of the program's output, and why there are no more."""
    command = [sys.executable, "-sP", "-m", "views_mgmt.sql.program", f"{max(seconds, 0.001):.3f}", str(niceness)]
    alone: dict[str, Any] = {"cwd": "/", "env": {"PYTHONPATH": str(ROOT)}, "stderr": subprocess.DEVNULL}
    try:
        ended = subprocess.run(command, input=asked, stdout=subprocess.PIPE, timeout=seconds, check=False, **alone)  # noqa: S603
    except subprocess.TimeoutExpired as late:
        return _whole(late.stdout), _slow()
    except OSError as failure:  # no memory, or too many processes
        log.warning("the program that reads SQL could not be started: %s", failure)
        raise ProviderBusy(BUSY) from failure
    if ended.returncode == -signal.SIGALRM:
        return _whole(ended.stdout), _slow()
    if ended.returncode:
        log.error("the program that reads SQL ended with %s", ended.returncode)
    return _whole(ended.stdout), FAILED if ended.returncode else NOT_REACHED


def _slow() -> str:
    return SLOW.format(settings.METALAKE_SQL_TIMEOUT)


def _whole(output: bytes | None) -> list[bytes]:
    """The complete lines."""
    return (output or b"").split(b"\n")[:-1]


@contextmanager
def _place(by: SqlCaller) -> Iterator[None]:
    """One of the server-wide analysis slots, within the quotas of the caller and the metalake.

    Raises TooManyRequests for the caller's second slot, ProviderBusy if none becomes free.
    """
    share = f"reading of SQL of metalake {by.metalake}"
    with (
        _one_of(Places(f"reading of SQL for {by.caller}", 1), TooManyRequests(YOURS, retry_after=1)),
        _one_of(Places(f"{share} or waiting", WITH_WAITING)),
        _thread(),
        _one_of(Places(share, PROCESSES.size - 1), patience=PATIENCE),
        _one_of(PROCESSES, patience=PATIENCE),
    ):
        yield


@contextmanager
def _thread() -> Iterator[None]:
    if not CALLERS.acquire(blocking=False):
        raise ProviderBusy(BUSY)
    try:
        yield
    finally:
        CALLERS.release()


@contextmanager
def _one_of(places: Places, refusal: MetalakeError | None = None, patience: float = 0.0) -> Iterator[None]:
    place = places.take(patience)
    if place is None:
        raise refusal or ProviderBusy(BUSY)
    try:
        yield
    finally:
        places.leave(place)
