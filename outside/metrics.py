"""What monitors may ask of outside catalogs: looked up in the database whenever they ask."""

from __future__ import annotations

from collections.abc import Iterator

from django.db import Error
from django.db.models import Count, Max, Q, QuerySet
from django.utils import timezone
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from catalogs.models import Catalog, Intent, RefreshRun
from catalogs.stores import storage_in
from metalake.kinds import Kind
from outside.sweeping import looking
from providers import lines
from providers.base import Storage

LABELS = ["catalog"]


class OutsideCatalogs(Collector):
    """By a catalog's id, as the other metrics of remote calls."""

    def describe(self) -> list[GaugeMetricFamily]:
        return []  # so that registering asks nothing of a database that may not be there yet

    def collect(self) -> Iterator[GaugeMetricFamily]:
        try:
            yield from [*_walks(), *_writes()]
        except Error:
            return


class Breakers(Collector):
    """Of the systems and storages that this server has called."""

    def describe(self) -> list[GaugeMetricFamily]:
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        systems = GaugeMetricFamily("metalake_remote_breaker_open", "Whether calls are refused", labels=LABELS)
        storages = GaugeMetricFamily("metalake_storage_breaker_open", "Whether calls are refused", labels=LABELS)
        for (to, of), health in lines.known().items():
            (storages if to == "storage" else systems).add_metric([str(of)], health.is_open)
        yield from (systems, storages)


class OutsideNames(Collector):
    """Which names belong to an id; for scrapers that may know them."""

    def describe(self) -> list[GaugeMetricFamily]:
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        names = GaugeMetricFamily("metalake_outside_catalog", "Its names", labels=["catalog", "metalake", "name"])
        try:
            for pk, metalake, name in _outside().values_list("pk", "parent__name", "name"):
                names.add_metric([str(pk), metalake, name], 1)
        except Error:
            return
        yield names


def _outside() -> QuerySet[Catalog]:
    rows = Catalog.objects.values_list("pk", "provider", "properties")
    outside = [pk for pk, name, properties in rows if storage_in(name, properties, Kind.CATALOG) == Storage.EXTERNAL]
    return Catalog.objects.filter(pk__in=outside)


def _walks() -> Iterator[GaugeMetricFamily]:
    age = GaugeMetricFamily("metalake_refresh_age_seconds", "Since the last whole walk began", labels=LABELS)
    failed = GaugeMetricFamily("metalake_refresh_failed", "Whether the newest walk that ended failed", labels=LABELS)
    done, broken = (
        Max("refreshes__started_at", filter=Q(refreshes__state=state))
        for state in (RefreshRun.State.DONE, RefreshRun.State.FAILED)
    )
    rows = _outside().annotate(done=done, broken=broken)
    for pk, walked, broke in rows.values_list("pk", "done", "broken"):
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
