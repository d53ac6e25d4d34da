"""A provider that does as it is told, and calls to it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from metalake.errors import ProviderUnavailable
from providers import remote

CATALOG = 4_000_000_001


class Provider:
    """Every verb does what `acts` say next, and then answers."""

    label = "Elsewhere"
    catalog_id = CATALOG

    def __init__(self, *acts: Callable[[], Any] | Exception) -> None:
        self.acts = list(acts)
        self.calls = 0

    def call(self, verb: str, arguments: dict[str, Any]) -> Any:
        self.calls += 1
        act = self.acts.pop(0) if self.acts else lambda: "answer"
        if isinstance(act, Exception):
            raise act
        return act()


def down(retryable: bool = True) -> ProviderUnavailable:
    return ProviderUnavailable("Refused.", retryable=retryable)


def ask(provider: Provider, verb: str = "load_table", total: float = remote.TOTAL) -> Any:
    return remote.run(provider, verb, {}, total=total)


def occupy(number: int, provider: Provider) -> list[threading.Thread]:
    waiters = [threading.Thread(target=lambda: ask(provider)) for _ in range(number)]
    for waiter in waiters:
        waiter.start()
    return waiters
