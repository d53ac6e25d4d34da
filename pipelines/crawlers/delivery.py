"""The tasks of a harvest on the executors: list, read, compare with the server's rows, and deliver.

A permanent failure is returned in the result, since Spark would retry an exception; the first failure ends a task.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import orjson

from metalake_client.failures import Exit, Failure
from metalake_client.rest import Client
from pipelines.crawlers.systems import Crawler, Entry, Gone, Json, Unavailable, as_stored, patiently, system_of
from pipelines.sealed_secrets import Sealed

T = TypeVar("T")
Known = dict[str, tuple[str, str]]  # identity and version by name
ROOT = ""  # the listing of the catalog itself, whose objects are the schemas
ENTRIES, BYTES = 100, 2**18  # per delivery: five times as much cost the server 80 MB more and was no faster
NAMES = 100  # missing objects per delivery
TIMEOUT = 120.0  # seconds: the server checks each missing object in the outside system
REST = -1  # part number for known objects that were not listed


@dataclass(frozen=True)
class Wrong:
    """Why a task failed, and the exit code of the job."""

    message: str
    exit_code: Exit


@dataclass(frozen=True)
class Part:
    """A chunk of a schema's names that one task reads (None: all), with the server's known versions."""

    schema: str
    number: int = 0
    asked_at: str = ""
    names: list[str] | None = None
    known: Known = field(default_factory=dict)
    wrong: Wrong | None = None


@dataclass(frozen=True)
class Listed:
    """The result of a part, or of all parts of a schema: the number of objects, and the missing ones."""

    schema: str
    asked_at: str = ""
    count: int = 0
    missing: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)  # of schemas
    wrong: Wrong | None = None


class Target:
    """The refresh run to deliver to. Deliveries are idempotent, and retried while the server does not respond.

    Raises Failure.
    """

    def __init__(self, settings: Json) -> None:
        self._client = Client(settings["url"], token=settings["token"], timeout=TIMEOUT)
        self._patience = float(settings["patience"])
        self._turn = settings["turn"]
        self._path = ("metalakes", settings["metalake"], "catalogs", settings["catalog"], "refreshes", settings["run"])

    def known(self, schema: str) -> tuple[Json, Known]:
        """The head of the reply, and the known objects from all pages."""
        head: Json | None = None
        known, token = Known(), None
        while head is None or token:
            query = {"turn": str(self._turn), "schema": schema or None, "pageToken": token}
            reply = self._answer(lambda query=query: self._client.get(*self._path, "known", **query))  # type: ignore[misc]
            head = head or reply["known"]
            known |= {name: (identity, version) for name, identity, version in reply["known"]["objects"]}
            token = reply.get("nextPageToken")
        return head, known

    def deliver(self, schema: str, asked_at: str, **body: Any) -> Json:
        return self._send("parts", schema, asked_at, body)

    def whole(self, listed: Listed) -> Json:
        """Report a listing's missing objects and complete it; returns the updated run."""
        names = listed.missing
        pages = [names[start : start + NAMES] for start in range(0, len(names), NAMES)] or [[]]
        about = {"missingInAll": len(names), "listed": listed.count}
        run: Json = {}
        for number, page in enumerate(pages, 1):
            body = about | {"missing": page, "isLast": number == len(pages)}
            run = self._send("missing", listed.schema, listed.asked_at, body)["refresh"]
        return run

    def _send(self, what: str, schema: str, asked_at: str, body: Json) -> Json:
        sent = {"turn": self._turn, "askedAt": asked_at, "schema": schema, **body}
        return self._answer(lambda: self._client.call("POST", *self._path, what, body=sent))

    def _answer(self, ask: Callable[[], Json]) -> Json:
        last: Failure | None = None

        def once() -> Json:
            nonlocal last
            try:
                return ask()
            except Failure as failure:
                last = failure
                is_passing = failure.exit_code is Exit.UNREACHABLE or failure.status == 429
                raise Unavailable(str(failure), is_final=not is_passing) from None

        try:
            return patiently(once, self._patience)
        except Unavailable:
            assert last is not None
            raise last from None


@contextmanager
def _crawling(sealed: Sealed) -> Iterator[tuple[Crawler, Target]]:
    settings = sealed.open()
    crawler = system_of(settings["provider"]).open(settings["properties"], float(settings["patience"]))
    try:
        yield crawler, Target(settings)
    finally:
        crawler.close()


def wrong_of(failure: Exception) -> Wrong:
    exit_code = failure.exit_code if isinstance(failure, Failure) else Exit.UNREACHABLE
    return Wrong(str(failure), exit_code)


# Tasks


def list_schemas(sealed: Sealed, schemas: Iterable[str]) -> Iterator[Part]:
    """The parts of each schema; none if it has no row, is gone, or was delivered whole in another turn."""
    try:
        with _crawling(sealed) as (crawler, target):
            for schema in schemas:
                yield from _parts(crawler, target, schema)
    except (Failure, Unavailable) as failure:
        yield Part("", wrong=wrong_of(failure))


def _parts(crawler: Crawler, target: Target, schema: str) -> Iterator[Part]:
    head, known = target.known(schema)
    if not head["isThere"] or (head["isWhole"] and schema):
        return
    asked_at = head["askedAt"]
    try:
        parts = crawler.parts(schema)
    except Gone:
        return
    for number, names in enumerate(parts):
        if names is None:
            yield Part(schema, number, asked_at, None, known)
            return
        yield Part(schema, number, asked_at, names, {name: known.pop(name) for name in names if name in known})
    yield Part(schema, REST, asked_at, [], known)


def place_of(part: Part, tasks: int) -> int:
    """The task that reads a part; the parts of a schema are spread round-robin."""
    return (zlib.crc32(part.schema.encode()) + part.number) % tasks


def deliver_parts(sealed: Sealed, parts: Iterable[Part]) -> Iterator[Listed]:
    try:
        with _crawling(sealed) as (crawler, target):
            for part in parts:
                if part.wrong is not None:
                    yield Listed(part.schema, wrong=part.wrong)
                    return
                if (listed := _delivered(crawler, target, part)) is not None:
                    yield listed
    except (Failure, Unavailable) as failure:
        yield Listed("", wrong=wrong_of(failure))


def _delivered(crawler: Crawler, target: Target, part: Part) -> Listed | None:
    """Read and deliver a part; None if the schema was dropped meanwhile."""
    missing, seen = dict.fromkeys(part.known), list[str]()
    outgoing = _Outgoing(target, part)
    try:
        for page in crawler.read(part.schema, part.names):
            for each in page:
                seen.append(each.name)
                missing.pop(each.name, None)
                outgoing.add(each)
    except Gone:
        return None
    outgoing.send()
    names = seen if part.schema == ROOT else []
    return Listed(part.schema, part.asked_at, len(seen), list(missing), names)


class _Outgoing:
    """The buffer of a part's entries for the next delivery; unchanged objects are only counted."""

    def __init__(self, target: Target, part: Part) -> None:
        self._target, self._part, self._number = target, part, 0
        self._begin()

    def _begin(self) -> None:
        self._entries, self._seen, self._bytes = list[Json](), 0, 0

    def add(self, each: Entry) -> None:
        self._seen += 1
        if each.version and self._part.known.get(each.name) == (each.identity, each.version):
            return
        content = orjson.dumps(each.content)
        self._entries.append(as_stored(each.content) if b"\\u0000" in content else each.content)
        self._bytes += len(content)
        if len(self._entries) == ENTRIES or self._bytes >= BYTES:
            self.send()

    def send(self) -> None:
        if self._seen:
            name = f"{self._part.number}.{self._number}"
            self._target.deliver(
                self._part.schema, self._part.asked_at, part=name, seen=self._seen, entries=self._entries
            )
        self._number += 1
        self._begin()


def say_whole(sealed: Sealed, listings: Iterable[Listed]) -> Iterator[Listed]:
    """Report completed listings to the server; yields failures."""
    try:
        target = Target(sealed.open())
        for listed in listings:
            target.whole(listed)
    except Failure as failure:
        yield Listed("", wrong=wrong_of(failure))
