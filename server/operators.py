"""The start page of the operators' admin: how the server is, and every model by what it is for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib import admin
from django.db.models import Count, Max, Min, Q
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django_celery_beat.models import PeriodicTask

from authz import facts
from authz.models import UseWriter
from catalogs.models import Catalog, Intent
from metalake import shared_settings
from metalake.celery import app
from metalake.models import Differing, Outbox
from providers import circuit_breaker
from server.readiness import PATIENCE, Check, checks

GOOD, LOOK, BAD = "good", "look", "bad"
PING = 0.5  # seconds that workers have to answer
LATE = timedelta(minutes=5)  # for follow-ups, and for the clock of schedules
NAMED = 5  # catalogs

GROUPS = (
    ("Audit and history", ("authz.AuditEntry", "authz.Fact", "authz.AccessReview", "authz.Dormancy")),
    ("Accounts", ("authz.User", "authz.Token", "authz.Invitation", "authz.Member", "authz.Group")),
    (
        "Rights",
        (
            "authz.Role", "authz.Grant", "authz.AccessRequest", "authz.Plan", "authz.PolicyChange", "authz.PolicyEpoch",
        ),
    ),
    (
        "Objects",
        (
            "metalake.Securable", "metalake.Metalake", "catalogs.Catalog", "catalogs.Schema", "catalogs.Table",
            "views_mgmt.View", "views_mgmt.ViewVersion", "views_mgmt.ViewMeta", "views_mgmt.ViewRead",
            "views_mgmt.ViewFinding", "catalogs.CatalogSecrets", "catalogs.LocationClaim", "catalogs.ReservedPlace",
        ),
    ),
    (
        "Other systems",
        (
            "catalogs.Intent", "catalogs.Reservation", "catalogs.RefreshRun", "catalogs.HarvestedPart",
            "catalogs.Tombstone", "catalogs.Mirror", "catalogs.Listing",
        ),
    ),
    ("Jobs", ("jobs.JobRun", "jobs.JobTemplate", "jobs.Schedule")),
    (
        "Clocks of schedules, kept by Celery beat",
        (
            "django_celery_beat.PeriodicTask", "django_celery_beat.IntervalSchedule",
            "django_celery_beat.CrontabSchedule", "django_celery_beat.ClockedSchedule",
            "django_celery_beat.SolarSchedule",
        ),
    ),
    (
        "The server",
        (
            "metalake.Outbox", "metalake.Shared", "metalake.Differing", "authz.Remembered", "authz.UseWriter",
            "authz.UseCaller", "authz.UseObject", "authz.UseQuestion",
        ),
    ),
)  # fmt: skip
"""Every model of the admin by its label, in the order of the page."""


NAMES = {"views_mgmt.ViewMeta": "states of views", "django_celery_beat.ClockedSchedule": "moments"}
"""Those whose own names say too little next to the others."""


class Model(NamedTuple):
    name: str
    url: str


class Line(NamedTuple):
    """One part of the server: GOOD, LOOK (serves, but needs somebody) or BAD, and what is to say about it."""

    name: str
    state: str
    says: str
    url: str = ""


def groups(request: HttpRequest) -> list[tuple[str, list[Model]]]:
    """The models that the user may list, by what they are for."""
    models = [model for each in admin.site.get_app_list(request) for model in each["models"]]
    labelled = {model["model"]._meta.label: model for model in models}
    listed = {label: Model(NAMES.get(label) or str(one["name"]), one["admin_url"]) for label, one in labelled.items()}
    named = [(title, [listed[label] for label in labels if label in listed]) for title, labels in GROUPS]
    return [group for group in named if group[1]]


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """The same for the side of every page, after the start."""
    first = {"items": [{"title": "Start", "link": reverse("admin:index")}]}
    some = [
        {
            "title": title,
            "separator": True,
            "collapsible": True,
            "items": [{"title": model.name.capitalize(), "link": model.url} for model in models],
        }
        for title, models in groups(request)
    ]
    return [first, *some]


def start(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """The context of the start page: the state of the server within some seconds, and the models."""
    lines = list(state())
    needs = sum(line.state != GOOD for line in lines)
    return context | {"lines": lines, "needs": needs, "groups": groups(request)}


def state() -> Iterator[Line]:
    """How each part is. Nothing here reads more than the rows that wait, or a bounded number."""
    until = time.monotonic() + PATIENCE
    workers = Check("workers", _ping) if settings.METALAKE_BROKER_URL else None
    yield from _health()
    yield _breakers()
    yield _writes()
    yield _outbox()
    yield _chain()
    yield _workers(workers, until)
    yield _beat()


def _list(model: str, query: str = "") -> str:
    return reverse(f"admin:{model}_changelist") + query


def _health() -> Iterator[Line]:
    states = {"UP": GOOD, "LOW": LOOK}
    for check in checks():
        details = check["details"]
        engine = {"postgresql": "PostgreSQL answers", "sqlite": "SQLite answers"}.get(details.get("engine", ""))
        says = details.get("reason") or engine or "can be written"
        name = "Database" if check["name"] == "database" else f"Folder {check['name']}"
        yield Line(name, states.get(check["status"], BAD), says)


def _breakers() -> Line:
    known = circuit_breaker.known()
    broken = [of for (_, of), health in known.items() if health.is_open]
    if not broken:
        many = f"none of {len(known):,} is open" if known else "no system was called since the start"
        return Line("Circuit breakers", GOOD, many)
    names = Catalog.objects.filter(pk__in=broken).values_list("parent__name", "name")[:NAMED]
    says = f"calls are refused to {', '.join('.'.join(name) for name in names)}"
    more = len(set(broken)) - len(names)
    return Line("Circuit breakers", BAD, f"{says} and {more} more" if more > 0 else says, _list("catalogs_catalog"))


def _writes() -> Line:
    is_stuck = Q(state=Intent.State.STUCK)
    live = Intent.objects.filter(state__in=Intent.LIVE)
    counts = live.aggregate(stuck=Count("pk", filter=is_stuck), moving=Count("pk", filter=~is_stuck))
    says = f"{counts['stuck']:,} stuck, {counts['moving']:,} under way"
    query = f"?state__exact={Intent.State.STUCK}" if counts["stuck"] else ""
    return Line("Writes to other systems", LOOK if counts["stuck"] else GOOD, says, _list("catalogs_intent", query))


def _outbox() -> Line:
    now = timezone.now()
    rows = Outbox.objects.aggregate(count=Count("pk"), failed=Count("pk", filter=Q(attempts__gt=1)), due=Min("due_at"))
    says = f"{rows['count']:,} waiting, {rows['failed']:,} failed before"
    is_late = rows["due"] is not None and rows["due"] < now - LATE
    if is_late:
        says += f"; the oldest is due since {_at(rows['due'])}"
    return Line("Outbox", BAD if is_late else LOOK if rows["failed"] else GOOD, says, _list("metalake_outbox"))


def _chain() -> Line:
    proof = facts.proof()
    last = proof.verification
    says = f"{proof.head.position:,} facts sealed, {proof.unsealed:,} waiting"
    if last is None:
        return Line("History", LOOK, f"{says}; never verified: manage.py verify_history", _list("authz_fact"))
    if not last.is_intact:
        return Line("History", BAD, f"broken at position {last.position:,}, as of {_at(last.at)}", _list("authz_fact"))
    return Line("History", GOOD, f"{says}; verified up to {last.position:,} on {_at(last.at)}", _list("authz_fact"))


def _ping() -> dict[str, Any]:
    answers = app.control.ping(timeout=PING)
    return {"workers": len(answers)} if answers else {"workers": 0, "reason": "none answers"}


def _workers(check: Check | None, until: float) -> Line:
    differing = Differing.objects.filter(seen_at__gte=timezone.now() - shared_settings.FRESH).count()
    recording = UseWriter.objects.filter(written_until__gte=timezone.now() - shared_settings.FRESH).count()
    state, url = (LOOK, _list("metalake_differing")) if differing else (GOOD, _list("authz_usewriter"))
    says = [f"{recording:,} process{'es' if recording > 1 else ''} recording use"] if recording else []
    if differing:
        says.append(f"{differing:,} leaving work to others, since their settings differ")
    if check is None:
        return Line("Workers", state, "; ".join(["the server does their work: no broker is set", *says]), url)
    result = check.result(until)
    if count := result["details"].get("workers"):
        return Line("Workers", state, "; ".join([f"{count:,} answer", *says]), url)
    return Line("Workers", BAD, "; ".join([result["details"].get("reason", "none answers"), *says]), url)


def _beat() -> Line:
    """The clock of schedules: with a broker it ticks all the time, without one only when something is due."""
    rows = PeriodicTask.objects.filter(enabled=True).aggregate(count=Count("pk"), last=Max("last_run_at"))
    last = rows["last"]
    says = f"{rows['count']:,} enabled" + (f", the last began on {_at(last)}" if last else "")
    stopped = settings.METALAKE_BROKER_URL and (last is None or last < timezone.now() - LATE)
    return Line("Schedules", BAD if stopped else GOOD, says, _list("django_celery_beat_periodictask"))


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
