"""Flushes this process's counts to the record of use, every ten seconds at most and on exit."""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

import orjson
from django.db import DatabaseError, close_old_connections, connection

from authz import usage_counter
from authz.callers import token_uses
from authz.models import UseCaller, UseObject, UseQuestion, UseWriter
from authz.objects import batches
from authz.usage_counter import HOUR, Count, Counts, Question
from metalake.request_context import this_process

log = logging.getLogger(__name__)

EVERY = 9.0  # seconds between two writes, with a margin for the write itself
QUIET = 30.0  # seconds after which an idle process writes a heartbeat
AT_ONCE = 500  # rows per statement, each in its own transaction
KNOWN = 100_000  # rows of the small tables that a process caches

T = TypeVar("T")
_COLUMNS = 7


class Writer(threading.Thread):
    """A process's thread that flushes its counts."""

    def __init__(self) -> None:
        super().__init__(name="record of use", daemon=True)
        self.process = f"{this_process()} {os.urandom(4).hex()}"
        self.ends = threading.Event()
        self._turn = threading.Lock()
        self._last_word = 0.0
        self._known: dict[tuple[str, Any], int] = {}

    def run(self) -> None:
        while not self.ends.wait(self._pause()):
            close_old_connections()
            self.write()

    def _pause(self) -> float:
        return 1.0 if usage_counter.waiting() > usage_counter.EARLY else EVERY

    def write(self) -> bool:
        """Flush the counts; False if some could not be stored, which are retried next time."""
        with self._turn:
            moment = datetime.now(UTC)
            counted, lost = usage_counter.take()
            counts = {question: count for question, count in counted.items() if question.object}  # 0: no such object
            if not counts and not lost and time.monotonic() - self._last_word < QUIET:
                return True
            try:
                self._write_all(counts)
                self._tell(moment, lost)
                token_uses.store()
            except DatabaseError as failure:
                log.warning("the record of use waits for the database: %s", failure)
                return False
            self._last_word = time.monotonic()
            return True

    def end(self) -> None:
        """Flush the last counts and delete the process's row; call once, when the process ends."""
        self.ends.set()
        if self.write():
            try:
                UseWriter.objects.filter(pk=self.process, lost=0).delete()
            except DatabaseError as failure:
                log.warning("the record of use could not be ended: %s", failure)

    def _write_all(self, counts: Counts) -> None:
        left = dict(counts)
        try:
            for some in batches(counts, AT_ONCE):
                self._add({question: counts[question] for question in some})
                for question in some:
                    del left[question]
        finally:
            usage_counter.put_back(left)

    def _add(self, counts: Counts) -> None:
        rows = sorted(self._rows(counts))  # a consistent lock order across processes prevents deadlocks
        values = ", ".join([f"({', '.join(['%s'] * _COLUMNS)})"] * len(rows))
        with connection.cursor() as cursor:
            cursor.execute(  # only placeholders are interpolated
                f"INSERT INTO authz_use AS known (hour, about, caller, question, times, first, last) VALUES {values} "  # noqa: S608
                "ON CONFLICT (hour, about, caller, question) DO UPDATE SET times = known.times + excluded.times, "
                "first = CASE WHEN excluded.first < known.first THEN excluded.first ELSE known.first END, "
                "last = CASE WHEN excluded.last > known.last THEN excluded.last ELSE known.last END",
                [value for row in rows for value in row],
            )

    def _rows(self, counts: Counts) -> Iterator[tuple[int, ...]]:
        callers = self._ids(UseCaller, {_caller_key(each): each for each in counts}, _caller)
        objects = self._ids(UseObject, {each.object: each for each in counts}, _object)
        questions = self._ids(UseQuestion, {_question_key(each): each for each in counts}, _question)
        for each, count in counts.items():
            about, caller, question = objects[each.object], callers[_caller_key(each)], questions[_question_key(each)]
            yield each.hour, about, caller, question, count.times, *_seconds(each, count)

    def _ids(
        self, model: Any, wanted: Mapping[Any, Question], made: Callable[[Question], dict[str, Any]]
    ) -> dict[Any, int]:
        """The ids of a small table's rows by key; missing rows are created."""
        table = model._meta.db_table
        new = {key: made(each) for key, each in wanted.items() if (table, key) not in self._known}
        if new:
            model.objects.bulk_create([model(**fields) for fields in new.values()], ignore_conflicts=True)
            if len(self._known) > KNOWN:
                self._known.clear()
                return self._ids(model, wanted, made)
            self._known |= {(table, key): id for key, id in _stored(model, new)}
        return {key: self._known[table, key] for key in wanted}

    def _tell(self, moment: datetime, lost: int) -> None:
        row, is_new = UseWriter.objects.get_or_create(pk=self.process, defaults={"written_until": moment, "lost": lost})
        if not is_new:
            row.written_until, row.lost = moment, row.lost + lost
            row.save()


def _stored(model: Any, new: Mapping[Any, dict[str, Any]]) -> Iterator[tuple[Any, int]]:
    if model is UseQuestion:  # a small table
        for *key, id in model.objects.values_list("operation", "outcome", "wire", "engine", "id"):
            if tuple(key) in new:
                yield tuple(key), id
        return
    field = "digest" if model is UseCaller else "object_id"
    keys = {fields[field]: key for key, fields in new.items()}
    for value, id in model.objects.filter(**{f"{field}__in": list(keys)}).values_list(field, "id"):
        yield keys[value], id


def _caller_key(question: Question) -> tuple[Any, ...]:
    return question.user, question.claimed, question.active


def _caller(question: Question) -> dict[str, Any]:
    claimed, active = sorted(question.claimed), None if question.active is None else sorted(question.active)
    digest = hashlib.sha256(orjson.dumps([question.user, claimed, active])).hexdigest()
    return {"user_id": question.user, "claimed": claimed, "active": active, "digest": digest}


def _object(question: Question) -> dict[str, Any]:
    return {"object_id": question.object, "metalake_id": question.metalake}


def _question_key(question: Question) -> tuple[str, ...]:
    return question.operation, question.outcome, question.wire, question.engine


def _question(question: Question) -> dict[str, Any]:
    return dict(zip(("operation", "outcome", "wire", "engine"), _question_key(question), strict=True))


def _seconds(question: Question, count: Count) -> tuple[int, int]:
    """The first and the last second of the hour."""
    began = question.hour * HOUR
    return int(count.first - began), min(int(count.last - began), HOUR - 1)


_writers: dict[int, Writer] = {}  # by process id, since a fork inherits its parent's


def start() -> None:
    """Start this process's thread; its last counts are flushed on exit."""
    writer = _writers[os.getpid()] = Writer()
    writer.start()


@atexit.register
def stop() -> None:
    """Flush this process's last counts, if it has a writer."""
    if writer := _writers.pop(os.getpid(), None):
        writer.end()


def flush() -> bool:
    """Flush this process's counts now."""
    return _writers.get(os.getpid(), _alone).write()


_alone = Writer()  # for processes without a thread, such as tests
