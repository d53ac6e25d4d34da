"""Reads new audit rows and usage records, and determines their days."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from metalake_client.rest import Client
from pipelines import ndjson_streams
from pipelines.job import Progress, written
from pipelines.spool import Spool

REFUSED = "access.refused"
HOURS = 24
SHOWN = 5000  # rows between progress reports


@dataclass(frozen=True)
class DayRow:
    """The state of one day in the tables."""

    changes: int = 0
    refusals: int = 0
    last_place: int = 0
    use_digest: str = ""


@dataclass(frozen=True)
class Rolled:
    """The tables' progress: they have all audit rows up to `seen` of days before `whole_before`.

    Rows up to `read_until` need not be read again, whatever their day.
    """

    days: Mapping[date, DayRow] = field(default_factory=dict)
    read_until: int = 0
    seen: int = 0
    whole_before: date = date.min

    def has(self, place: int, day: date) -> bool:
        return place <= self.seen and day < self.whole_before


@dataclass
class News:
    """The new rows: counts and last audit position by day, and a digest of each day's usage records."""

    whole_before: date
    seen: int = 0
    read_until: int = 0
    changes: Counter[date] = field(default_factory=Counter)
    refusals: Counter[date] = field(default_factory=Counter)
    last_places: dict[date, int] = field(default_factory=dict)
    use: dict[date, str] = field(default_factory=dict)

    def key_of(self, before: Rolled) -> str:
        """A digest of the inputs of the days to write."""
        days = [(day.isoformat(), repr(self.row_of(day, before))) for day in self.days_since(before)]
        return hashlib.sha256(repr(days).encode()).hexdigest()

    def days_since(self, before: Rolled) -> list[date]:
        """The days to write."""
        return sorted({*self.last_places, *self.used_since(before)})

    def used_since(self, before: Rolled) -> list[date]:
        return [day for day, digest in self.use.items() if before.days.get(day, DayRow()).use_digest != digest]

    def row_of(self, day: date, before: Rolled) -> DayRow:
        was = before.days.get(day, DayRow())
        last = self.last_places.get(day, was.last_place)
        digest = self.use.get(day, was.use_digest)
        return DayRow(was.changes + self.changes[day], was.refusals + self.refusals[day], last, digest)


def read(client: Client, metalake: str, before: Rolled, late: int, spool: Spool, progress: Progress) -> News:
    """Spool new rows of complete days; usage of the last `late` days is read again. Raises Failure."""
    asked = _use_since(before, late)
    use = ndjson_streams.use_of(client, metalake, since=None if asked is None else written(asked))
    head = next(use)
    news = News(_moment(head["completeUntil"]).date())
    since = _moment(head["since"])
    _read_use(use, since.date() if since == asked else _first_whole(since), news, spool, progress)
    _read_audit(client, metalake, before, news, spool, progress)
    return news


def _use_since(before: Rolled, late: int) -> datetime | None:
    if before.whole_before == date.min:
        return None
    return _midnight(before.whole_before - timedelta(days=late))


def _read_use(rows: Iterator[Any], first: date, news: News, spool: Spool, progress: Progress) -> None:
    """Spool usage from `first` on; the server has already deleted part of the day before."""
    progress.stage("reading the record of use")
    digests: dict[date, Any] = {}
    for done, row in enumerate(rows, 1):
        day = datetime.fromtimestamp(row["hour"] * 3600, UTC).date()
        if first <= day < news.whole_before:
            digest = digests.setdefault(day, hashlib.sha256())
            digest.update(f"{row['place']} {row['times']} {row['first']} {row['last']}\n".encode())
            spool.add("use", row)
        if done % SHOWN == 0:
            progress.at(done)
    news.use = {day: digest.hexdigest() for day, digest in digests.items()}


def _read_audit(client: Client, metalake: str, before: Rolled, news: News, spool: Spool, progress: Progress) -> None:
    rows = ndjson_streams.audit_of(client, metalake, before.read_until)
    last = next(rows)["place"]
    progress.stage("reading the audit")
    news.seen = news.read_until = last
    for done, row in enumerate(rows, 1):
        place, day = row["place"], _moment(row["at"]).date()
        if day >= news.whole_before:
            news.read_until = min(news.read_until, place - 1)
        elif not before.has(place, day):
            is_refusal = row["event"] == REFUSED
            (news.refusals if is_refusal else news.changes)[day] += 1
            news.last_places[day] = max(place, news.last_places.get(day, 0))
            spool.add("refusals" if is_refusal else "changes", row)
        if done % SHOWN == 0:
            progress.at(done)


def _first_whole(since: datetime) -> date:
    """The first day of which the server, whose records begin at `since`, deletes nothing during the read."""
    return (since + timedelta(hours=HOURS + 1)).date()


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
