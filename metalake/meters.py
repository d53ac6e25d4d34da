"""What is counted for /metrics, in a server for all of its processes together.

There prometheus_client keeps each count in a file of its process's seat on the board; whichever process is asked adds
them up. Who comes takes the seat of one that went and goes on with its counts, so they never go back, and there are as
many files as there were processes at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from prometheus_client import PLATFORM_COLLECTOR, REGISTRY, CollectorRegistry, values
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from metalake import board

LOOKED_UP = CollectorRegistry()
"""Metrics that are found out when they are asked for, without the database."""


def share() -> None:
    """Before the first module that counts anything is loaded, in a process that will fork a server's."""
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(board.share())
    values.ValueClass = values.MultiProcessValue(board.seat)


def registries() -> list[Collector]:
    """What needs no database: the counts, and what is looked up."""
    folder = board.folder()
    if folder is None:
        return [REGISTRY, LOOKED_UP]
    counted = CollectorRegistry()
    MultiProcessCollector(counted, str(folder))
    return [counted, PLATFORM_COLLECTOR, LOOKED_UP]


class Told(Collector):
    """Figures of this moment."""

    def __init__(self, *families: Metric) -> None:
        self.families = families

    def collect(self) -> Iterable[Metric]:
        return self.families
