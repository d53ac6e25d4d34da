"""The counters of /metrics, in a server added up over all of its processes.

prometheus_client writes each count to a file of the process's seat on the board, and the process that is asked adds
them up. A new process takes the seat of one that ended and goes on with its counts, so that no count decreases and
there are only as many files as there were processes at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from prometheus_client import PLATFORM_COLLECTOR, REGISTRY, CollectorRegistry, values
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from metalake import shared_memory

LOOKED_UP = CollectorRegistry()
"""Metrics that are computed when they are asked for, without the database."""
STORED = CollectorRegistry()
"""Metrics that are read from the database; left out while it does not answer."""
NAMES = CollectorRegistry()
"""Metrics that map the ids of the others to names; only for scrapers with the token."""


def share() -> None:
    """Share the counts; to be called in the process that forks a server, before any module with a counter is loaded."""
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(shared_memory.share())
    values.ValueClass = values.MultiProcessValue(shared_memory.seat)


def registries() -> list[Collector]:
    """The metrics that need no database: counts, and those computed when asked for."""
    folder = shared_memory.folder()
    if folder is None:
        return [REGISTRY, LOOKED_UP]
    counted = CollectorRegistry()
    MultiProcessCollector(counted, str(folder))
    return [counted, PLATFORM_COLLECTOR, LOOKED_UP]


class Figures(Collector):
    """Metric families with the figures of this moment."""

    def __init__(self, *families: Metric) -> None:
        self.families = families

    def collect(self) -> Iterable[Metric]:
        return self.families
