"""The jobs of a metalake: runnable templates, runs with their progress and logs, and schedules."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from authz import operations
from authz.actor import Actor
from frontend import toasts
from frontend.confusables import spelled
from frontend.forms.jobs import JobForm
from frontend.page_decorators import is_partial, permits, signed_in
from frontend.pages.catalogs import located
from frontend.pages.job_changes import ALTER, DROP, REGISTER
from jobs.definition import placeholders
from jobs.models import JobRun, Schedule
from jobs.services import outcomes, runs, schedules, system, templates
from jobs.services.outcomes import Outcome
from jobs.services.runs import Choice
from jobs.services.schedules import When
from metalake.errors import Forbidden, MetalakeError, NotFound
from metalake.kinds import Kind
from metalake.lineage import Located

SORTS = ("runs", "templates", "schedules")
MOST_RUNS = 100
RUNS_OF_A_TEMPLATE = 10
MOST_USERS = 50
LONGEST_LINE = 300  # characters of a log's last line
LOG_SHOWN = 64 * 1024  # last bytes of a log


@require_safe
@signed_in
def show_jobs(request: HttpRequest, actor: Actor, metalake_id: int) -> HttpResponse:
    """The runs, templates or schedules of a metalake (`sort`) that the user may see."""
    target = located(actor, metalake_id, Kind.METALAKE)
    sort = request.GET.get("sort", "runs")
    if sort not in SORTS:
        raise NotFound("There is no such list.")
    context: dict[str, Any] = {"target": target, "sort": sort, "sorts": SORTS}
    context["sees_all"] = permits(request, operations.MANAGE_JOBS, target)
    if sort == "runs":
        context["rows"] = runs.list_runs(actor, target.name, Choice())[:MOST_RUNS]
        context["is_moving"] = any(run.status in JobRun.LIVE for run in context["rows"])
        by_run = outcomes.outcomes_of(actor, target, context["rows"])
        context["rows"] = [(run, _linked(target, by_run.get(run.pk))) for run in context["rows"]]
    elif sort == "templates":
        context["rows"] = templates.list_templates(actor, target.name)
        context["may_run"] = permits(request, operations.RUN_JOB, target)
        context["may_register"] = permits(request, REGISTER, target)
        context["may_make_system"] = not system.is_made(target.id) and permits(
            request, operations.CREATE_SYSTEM_CATALOG, target
        )
    else:
        rows = schedules.list_schedules(actor, target.name)
        context["rows"] = [
            (row, schedules.next_at(row), row.user_id == actor.id, _changes(actor, target, row)) for row in rows
        ]
    part = is_partial(request) and sort == "runs"
    return render(request, "frontend/jobs/runs.html" if part else "frontend/jobs/list.html", context)


class Linked(NamedTuple):
    """What a run found, and the page that shows it."""

    says: str
    url: str


def _linked(target: Located, outcome: Outcome | None) -> Linked | None:
    if outcome is None:
        return None
    if outcome.on is not None:
        return Linked(outcome.says, reverse("frontend:outside", args=[outcome.on.id]))
    if outcome.about == "review":
        return Linked(outcome.says, reverse("frontend:reviewed", args=[target.id]))
    of = {"views": "views", "dormant": "objects"}[outcome.about]
    return Linked(outcome.says, f"{reverse('frontend:findings', args=[target.id])}?of={of}")


def _changes(actor: Actor, target: Located, row: Schedule) -> list[tuple[str, str, str]]:
    """The altered fields of a schedule's template, with their old and new values as JSON."""
    changes = schedules.template_changes(actor, target.name, row)
    return [(each["field"], _as_json(each["was"]), _as_json(each["is"])) for each in changes]


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


@require_http_methods(["GET", "POST"])
@signed_in
def start_job(request: HttpRequest, actor: Actor, metalake_id: int) -> HttpResponse:
    """The page of a template (`template`), which runs it now, or by a schedule (`act=schedule`)."""
    target = located(actor, metalake_id, Kind.METALAKE)
    template = templates.load_template(actor, target.name, request.GET.get("template", "").replace("\x00", ""))
    defaults = template.built_in.with_defaults({}) if template.built_in else {}
    form = JobForm(request.POST if request.method == "POST" else None, placeholders(template.content), defaults)
    form.initial = request.GET.dict()
    if form.is_valid():
        try:
            return _started(request, actor, target, template.name, form)
        except Forbidden:
            raise
        except MetalakeError as refusal:
            form.add_error(None, refusal.message)
    context = {"target": target, "template": template, "form": form}
    context["may_run"] = permits(request, operations.RUN_JOB, target)
    rows = runs.list_runs(actor, target.name, Choice(template=template.name))[:RUNS_OF_A_TEMPLATE]
    by_run = outcomes.outcomes_of(actor, target, rows)
    context |= {"rows": [(run, _linked(target, by_run.get(run.pk))) for run in rows], "is_of_one": True}
    if template.located is not None:
        context["may_alter"] = permits(request, ALTER, template.located)
        context["may_drop"] = permits(request, DROP, template.located)
    if permits(request, operations.READ_ACCESS_TO_METALAKE, target):
        context["users"] = templates.users_of(actor, target.name, template, MOST_USERS + 1)
        context["most_users"] = MOST_USERS
    return render(request, "frontend/jobs/start.html", context, status=422 if form.errors else 200)


def _started(request: HttpRequest, actor: Actor, target: Located, template: str, form: JobForm) -> HttpResponse:
    if request.POST.get("act") != "schedule":
        run = runs.start(actor, target.name, template, form.values())
        return redirect("frontend:run", target.id, run.pk)
    given = form.cleaned_data
    when = When(given["cron"] or None, given["every"])
    row = schedules.create(actor, target.name, given["name"], template, form.values(), when)
    toasts.add(request, f"Schedule {row.name} is made.")
    return redirect(_schedules(target))


def _schedules(target: Located) -> str:
    return f"{reverse('frontend:jobs', args=[target.id])}?sort=schedules"


@require_safe
@signed_in
def show_run(request: HttpRequest, actor: Actor, metalake_id: int, run_id: int) -> HttpResponse:
    """A run, with its progress and the end of its log; polled while it runs."""
    target = located(actor, metalake_id, Kind.METALAKE)
    run = runs.load_run(actor, target.name, str(run_id))
    template = "frontend/jobs/run_part.html" if is_partial(request) else "frontend/jobs/run.html"
    return render(request, template, {"target": target, **_about(actor, target, run)})


def _about(actor: Actor, target: Located, run: JobRun) -> dict[str, Any]:
    rate, eta = runs.speed(run)
    log = runs.read_log(actor, target.name, str(run.pk), limit=0)
    end = runs.read_log(actor, target.name, str(run.pk), max(0, log.total - LOG_SHOWN), LOG_SHOWN)
    text = end.content.decode(errors="replace").replace("\0", "\ufffd")
    about: dict[str, Any] = {
        "run": run,
        "rate": rate,
        "eta": eta,
        "log": text,
        "log_total": log.total,
        "is_cut": end.offset > 0,
    }
    about["outcome"] = _linked(target, outcomes.outcome_of(actor, target, run))
    about["results"] = outcomes.results_of(actor, target, run)
    about["last_line"] = next((line for line in reversed(text.splitlines()) if line.strip()), "")[:LONGEST_LINE]
    return about | {"is_live": run.status in JobRun.LIVE, "is_known": run.done is not None and run.total is not None}


@require_POST
@signed_in
def cancel_run(request: HttpRequest, actor: Actor, metalake_id: int, run_id: int) -> HttpResponse:
    target = located(actor, metalake_id, Kind.METALAKE)
    run = runs.cancel(actor, target.name, str(run_id))
    if not is_partial(request):
        return redirect("frontend:run", target.id, run.pk)
    return render(request, "frontend/jobs/run_part.html", {"target": target, **_about(actor, target, run)})


@require_POST
@signed_in
def change_schedule(request: HttpRequest, actor: Actor, metalake_id: int) -> HttpResponse:
    """Disable or enable (`act`) a schedule (`name`)."""
    target = located(actor, metalake_id, Kind.METALAKE)
    name, act = (request.POST.get(field, "").replace("\x00", "") for field in ("name", "act"))
    schedules.set_enabled(actor, target.name, name, act == "enable")
    toasts.add(request, f"Schedule {spelled(name)} {'starts runs again' if act == 'enable' else 'is stopped'}.")
    return redirect(_schedules(target))
