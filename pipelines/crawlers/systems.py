"""The interface of crawlers, and the declarations of the outside systems that have one."""

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
NUL, STAND_IN = "\0", "\ufdd0"  # not storable in the server's database, and its replacement
SHORTEST, LONGEST = 0.4, 10.0  # seconds between retries


class Unavailable(Exception):
    """The system did not respond, or refused; the message is one line without secrets. Final ones are not retried."""

    def __init__(self, message: str, *, is_final: bool = False) -> None:
        super().__init__(message)
        self.is_final = is_final


class Gone(Exception):
    """The schema to be listed no longer exists."""


@dataclass(frozen=True)
class Entry:
    """An object of the system, with `content` describing it to the server.

    `identity` and `version` equal the server's if it is unchanged; empty if only the server can compute them.
    """

    name: str
    content: Json
    identity: str = ""
    version: str = ""


class Crawler(Protocol):
    """A connection to a system. The schema "" is the catalog itself, whose objects are the schemas."""

    def parts(self, schema: str) -> list[list[str] | None]:
        """The names in a schema, split for several tasks; [None] if only one task can read it. Raises Gone."""

    def read(self, schema: str, names: Sequence[str] | None) -> Iterator[list[Entry]]:
        """The existing objects of these names (None: all), page by page. Raises Gone."""

    def close(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class System:
    """A system with a crawler: `module` has `crawler(properties of the catalog, patience in seconds)`.

    `secrets` maps properties masked by the server to the job's environment variables with their values.
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
    """The system of a provider. Raises Failure if it has no crawler."""
    if provider not in SYSTEMS:
        raise Failure(
            f"Catalogs of {provider} are not harvested: {', '.join(sorted(SYSTEMS))} are. Refresh this one.", Exit.USAGE
        )
    return SYSTEMS[provider]


def patiently(act: Callable[[], T], patience: float) -> T:
    """Call `act`, retrying with exponential backoff while the system is unavailable or busy.

    Raises Unavailable after `patience` seconds, and at once if it is final.
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
    """JSON with each NUL replaced."""
    match value:
        case str():
            return value.replace(NUL, STAND_IN)
        case dict():
            return {as_stored(key): as_stored(item) for key, item in value.items()}
        case list():
            return [as_stored(item) for item in value]
    return value
