"""The registries of /metrics, summed over all processes of a server.

prometheus_client writes each process's counts to the files of its seat (metalake/shared_memory.py), and the scraped
process sums them. A new process takes over the seat and counts of an ended one, so that no counter decreases and there
are at most as many files as concurrent processes.
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
"""Metrics computed at scrape time, without the database."""
STORED = CollectorRegistry()
"""Metrics read from the database; omitted while it is down."""
NAMES = CollectorRegistry()
"""Metrics that map the ids of the others to names; only for scrapers with the token."""


def share() -> None:
    """Share counts between processes; call it before the fork and before modules that define metrics are imported."""
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(shared_memory.share())
    values.ValueClass = values.MultiProcessValue(shared_memory.seat)


def registries() -> list[Collector]:
    """The metrics that need no database: counters, and those computed at scrape time."""
    folder = shared_memory.folder()
    if folder is None:
        return [REGISTRY, LOOKED_UP]
    counted = CollectorRegistry()
    MultiProcessCollector(counted, str(folder))
    return [counted, PLATFORM_COLLECTOR, LOOKED_UP]


class Figures(Collector):
    """A collector of metric families with current values."""

    def __init__(self, *families: Metric) -> None:
        self.families = families

    def collect(self) -> Iterable[Metric]:
        return self.families
