"""What a crawler of an outside system is, and which systems have one: each is a declaration."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol, TypeVar

from metalake_client.failures import Exit, Failure

T = TypeVar("T")
Json = dict[str, Any]
NUL, STAND_IN = "\0", "\ufdd0"  # what the server's database cannot store, and what it stores instead
SHORTEST, LONGEST = 0.4, 10.0  # seconds between two tries of a call


class Unavailable(Exception):
    """The system did not answer, or refused, in one line without secrets. A final one is not tried again."""

    def __init__(self, message: str, *, is_final: bool = False) -> None:
        super().__init__(message)
        self.is_final = is_final


class Gone(Exception):
    """The schema that was to be listed is gone."""


@dataclass(frozen=True)
class Entry:
    """An object as the system has it, and the entry that describes it to the server.

    `identity` and `version` are those that the server has of it where it is unchanged, empty where they are not known
    before the server computes them.
    """

    name: str
    content: Json
    identity: str = ""
    version: str = ""


class Crawler(Protocol):
    """One connection to a system. A schema without a name is the catalog itself, whose objects are the schemas."""

    def parts(self, schema: str) -> list[list[str] | None]:
        """The names in a schema, divided for several tasks; [None] where only one task can read it. Raises Gone."""

    def read(self, schema: str, names: Sequence[str] | None) -> Iterator[list[Entry]]:
        """The objects of these names that are there, or all, page by page. Raises Gone."""

    def close(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class System:
    """A system that can be crawled: `module` has a function `crawler` that takes a catalog's properties and seconds.

    `secrets` maps the properties that the server masks to the variables that hold their values where the job runs.
    """

    provider: str
    module: str
    secrets: Mapping[str, str] = field(default_factory=dict)

    def open(self, properties: Mapping[str, str], patience: float) -> Crawler:
        crawler: Crawler = import_module(self.module).crawler(properties, patience)
        return crawler


SYSTEMS = {
    each.provider: each
    for each in (
        System(provider="hive", module="pipelines.crawlers.hive"),
        System(
            provider="glue",
            module="pipelines.crawlers.glue",
            secrets={
                "aws-access-key-id": "AWS_ACCESS_KEY_ID",
                "aws-secret-access-key": "AWS_SECRET_ACCESS_KEY",
                "aws-session-token": "AWS_SESSION_TOKEN",
                "aws-external-id": "AWS_EXTERNAL_ID",
            },
        ),
    )
}


def system_of(provider: str) -> System:
    """Raises Failure."""
    if provider not in SYSTEMS:
        raise Failure(
            f"Catalogs of {provider} are not harvested: {', '.join(sorted(SYSTEMS))} are. Refresh this one.", Exit.USAGE
        )
    return SYSTEMS[provider]


def patiently(act: Callable[[], T], patience: float) -> T:
    """What `act` returns; while the system is silent or busy it is called again, with longer and longer pauses.

    Raises Unavailable when so many seconds are over.
    """
    until, pause = time.monotonic() + patience, SHORTEST
    while True:
        try:
            return act()
        except Unavailable as failure:
            wait = random.uniform(pause / 2, pause)  # noqa: S311 (tasks that failed together do not return together)
            if failure.is_final or time.monotonic() + wait > until:
                raise
        time.sleep(wait)
        pause = min(2 * pause, LONGEST)


def as_stored(value: Any) -> Any:
    """JSON with a stand-in for each NUL."""
    match value:
        case str():
            return value.replace(NUL, STAND_IN)
        case dict():
            return {as_stored(key): as_stored(item) for key, item in value.items()}
        case list():
            return [as_stored(item) for item in value]
    return value
