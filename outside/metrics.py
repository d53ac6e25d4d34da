"""Metrics of outside catalogs, read from the database at each scrape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db import Error
from django.db.models import Count, Max, Q
from django.utils import timezone
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from catalogs.models import Catalog, Intent, RefreshRun
from catalogs.stores import storage_in
from metalake.kinds import Kind
from outside.recovery import looking
from providers import circuit_breaker
from providers.base import Storage

LABELS = ["catalog"]
_STATE = RefreshRun.State


class OutsideCatalogs(Collector):
    """Refreshes and writes of outside catalogs, labelled by catalog id like the other metrics of remote calls."""

    def describe(self) -> list[GaugeMetricFamily]:
        return []  # so that registering needs no database, which may not exist yet

    def collect(self) -> Iterator[GaugeMetricFamily]:
        try:
            yield from [*_walks(), *_writes()]
        except Error:
            return


class Breakers(Collector):
    """The circuit breakers of the systems and storages that this server has called."""

    def describe(self) -> list[GaugeMetricFamily]:
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        systems = GaugeMetricFamily("metalake_remote_breaker_open", "Whether calls are refused", labels=LABELS)
        storages = GaugeMetricFamily("metalake_storage_breaker_open", "Whether calls are refused", labels=LABELS)
        for (to, of), health in circuit_breaker.known().items():
            (storages if to == "storage" else systems).add_metric([str(of)], health.is_open)
        yield from (systems, storages)


class OutsideNames(Collector):
    """The names of catalog ids, for scrapers that may know them."""

    def describe(self) -> list[GaugeMetricFamily]:
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        names = GaugeMetricFamily("metalake_outside_catalog", "Its names", labels=["catalog", "metalake", "name"])
        try:
            for pk, metalake, name in _outside():
                names.add_metric([str(pk), metalake, name], 1)
        except Error:
            return
        yield names


def _outside(**among: Any) -> list[tuple[int, str, str]]:
    """Ids of catalogs with objects outside, with the names of their metalakes and their own; one query."""
    rows = Catalog.objects.filter(**among).values_list("pk", "parent__name", "name", "provider", "properties")
    return [
        (pk, metalake, name)
        for pk, metalake, name, provider, properties in rows
        if storage_in(provider, properties, Kind.CATALOG) == Storage.EXTERNAL
    ]


def _walks() -> Iterator[GaugeMetricFamily]:
    """Metrics of catalogs that were walked; no others are queried."""
    age = GaugeMetricFamily("metalake_refresh_age_seconds", "Since the last whole walk began", labels=LABELS)
    failed = GaugeMetricFamily("metalake_refresh_failed", "Whether the newest walk that ended failed", labels=LABELS)
    done, broken = (Max("started_at", filter=Q(state=state)) for state in (_STATE.DONE, _STATE.FAILED))
    ended = RefreshRun.objects.filter(state__in=(_STATE.DONE, _STATE.FAILED)).values_list("in_catalog_id")
    walks = {pk: (walked, broke) for pk, walked, broke in ended.annotate(done=done, broken=broken)}
    for pk, _, _ in _outside(pk__in=ended.values("in_catalog_id")):
        walked, broke = walks.get(pk, (None, None))
        if walked:
            age.add_metric([str(pk)], (timezone.now() - walked).total_seconds())
        if walked or broke:
            failed.add_metric([str(pk)], bool(broke and (walked is None or broke > walked)))
    yield from (age, failed)


def _writes() -> Iterator[GaugeMetricFamily]:
    stuck = GaugeMetricFamily("metalake_writes_stuck", "Writes that wait for somebody's word", labels=LABELS)
    live = GaugeMetricFamily("metalake_writes_under_way", "Writes that are not settled yet", labels=LABELS)
    late = GaugeMetricFamily(
        "metalake_writes_looked_for", "Writes that were taken back and may still have arrived", labels=LABELS
    )
    is_stuck = Q(state=Intent.State.STUCK)
    waiting = Intent.objects.filter(state__in=Intent.LIVE).values("in_catalog_id")
    counts = waiting.annotate(stopped=Count("pk", filter=is_stuck), moving=Count("pk", filter=~is_stuck))
    for pk, stopped, moving in counts.values_list("in_catalog_id", "stopped", "moving"):
        stuck.add_metric([str(pk)], stopped)
        live.add_metric([str(pk)], moving)
    looked_for = looking().exclude(state=Intent.State.STUCK).values_list("in_catalog_id")
    for pk, number in looked_for.annotate(number=Count("pk")):
        late.add_metric([str(pk)], number)
    yield from (stuck, live, late)
