"""Runs of templates: they act with the rights of whoever starts them; that user and the metalake's owner see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from django.conf import settings
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from authz import operations, policy
from authz.actor import Actor
from authz.callers.accounts import account_of
from authz.callers.run_tokens import require_person
from authz.locks import Lock
from authz.services.change import enter
from catalogs.services.writes import Locks, Target, Write, write_to
from jobs import commands
from jobs.definition import fill
from jobs.models import JobRun, RunLog, Schedule
from jobs.services.pinning import require_same
from jobs.services.templates import KIND as TEMPLATE
from jobs.services.templates import Template, load_template
from metalake.errors import Forbidden, Invalid, NotFound, TooManyRequests, Unsupported
from metalake.events import event_of, follow_up, record
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from metalake.request_context import request_id

TOPIC = "job.run"
MOST_LISTED = 1_000
MOST_FAILED = 100
MOST_LIVE, MOST_LIVE_OF_ONE = 1_000, 500  # of a metalake, and of one user there
LOG_PAGE = 256 * 1024  # bytes
SORTED_BY = {"queuedAt": "queued_at", "startedAt": "started_at", "finishedAt": "finished_at"}


@dataclass(frozen=True)
class Choice:
    """Filters and order of a list of runs: by template, and by when they were queued, started or finished."""

    template: str | None = None
    queued_after: datetime | None = None
    started_after: datetime | None = None
    finished_after: datetime | None = None
    sort_by: str = "queuedAt"
    ascending: bool = False

    def of(self, rows: QuerySet[JobRun]) -> QuerySet[JobRun]:
        """The matching runs, newest first by default; nulls come last."""
        since = {
            "queued_at__gte": self.queued_after,
            "started_at__gte": self.started_after,
            "finished_at__gte": self.finished_after,
            "template_name": self.template,
        }
        place = F(SORTED_BY[self.sort_by])
        order = place.asc(nulls_last=True) if self.ascending else place.desc(nulls_last=True)
        return rows.filter(**{name: value for name, value in since.items() if value is not None}).order_by(order, "pk")


def start(
    actor: Actor, metalake: str, template: str, conf: Mapping[str, str], schedule: Schedule | None = None
) -> JobRun:
    """Queue a run, which a worker or a server thread picks up.

    Requires RUN_JOB, and USE_JOB_TEMPLATE on the template. Raises Invalid for unsuitable values, Unsupported if this
    server cannot run it, and Altered if the template differs from what the schedule's owner knows.
    """
    require_person(actor, "starts no other runs")
    return write_to(actor, to_run(metalake, template, TEMPLATE), _start, template, conf, schedule)


def _start(write: Write, template: str, conf: Mapping[str, str], schedule: Schedule | None) -> JobRun:
    actor, top = write.actor, write.located
    chosen = load_template(actor, top.name, template)
    if schedule is not None:
        require_same(schedule, chosen.row)
    require_runnable(chosen, conf)
    _require_room(actor, top)
    run = JobRun.objects.create(
        metalake_id=top.id,
        template=chosen.row,
        template_name=chosen.name,
        conf=dict(conf),
        content=chosen.row and chosen.row.content,
        schedule=schedule,
        user_id=account_of(actor),
        user_name=actor.name,
        standing=actor.standing,
        request_id=request_id.get(),
    )
    details = {"template": chosen.name, "values": sorted(conf)}
    record(run_event(actor, run, "job.queued", **details | ({"schedule": schedule.name} if schedule else {})))
    follow_up(TOPIC, [{"run": run.pk}])
    return run


def to_run(metalake: str, template: str, kind: str) -> Target:
    """The write target for running a template: locks the metalake and the template; `kind` is that of conflicts."""
    check = partial(_require_run, template=template)
    return Target(Address(metalake=metalake), operations.LOAD_METALAKE, Lock.HANGS, check=check, kind=kind)


def _require_run(actor: Actor, top: Located, *, template: str) -> Locks:
    policy.require(actor, operations.RUN_JOB, top)
    located = load_template(actor, top.name, template).located
    return [(located, Lock.HANGS)] if located else []  # a built-in one has no row


def _require_room(actor: Actor, top: Located) -> None:
    live = JobRun.objects.filter(metalake_id=top.id, status__in=JobRun.LIVE)
    for rows, most, whose in ((live, MOST_LIVE, ""), (live.filter(user_id=actor.id), MOST_LIVE_OF_ONE, " of yours")):
        if rows.count() >= most:
            raise TooManyRequests(f"{most} runs{whose} in metalake {top.name} have not ended: wait, or cancel some.")


def require_runnable(template: Template, conf: Mapping[str, str]) -> None:
    """Raise Invalid unless the values suit the template, Unsupported if this server cannot run it."""
    if "token" not in settings.METALAKE_AUTHENTICATORS:
        raise Unsupported("Jobs act by tokens: METALAKE_AUTHENTICATORS has to name token.", kind=TEMPLATE)
    try:
        command_of(template, conf, 0, "/")
    except Unsupported:
        if not settings.METALAKE_BROKER_URL:  # a worker may have what this server lacks
            raise


def command_of(template: Template, conf: Mapping[str, str], run_id: int, folder: str) -> commands.Command:
    """A run's command, in its working folder. Raises Invalid, Unsupported."""
    if template.built_in:
        filled = fill(template.content, template.built_in.with_defaults(conf))
        return commands.of_built_in(template.built_in, filled, run_id, folder)
    return commands.of_template(template.job_type, fill(template.content, conf), run_id, folder)


def run_event(actor: Any, run: JobRun, name: str, **details: Any) -> Any:
    return event_of(actor, name, Kind.JOB, run.pk, [str(run.pk)], run.metalake_id, **details)


def list_runs(actor: Actor, metalake: str, choice: Choice) -> list[JobRun]:
    """The runs that the actor may see, at most MOST_LISTED. Raises NotFound for a template that they may not load."""
    top = enter(actor, metalake)
    policy.require(actor, operations.LIST_JOBS, top)
    if choice.template is not None:
        load_template(actor, metalake, choice.template)
    return list(choice.of(visible(actor, top)).select_related("schedule")[:MOST_LISTED])


def visible(actor: Actor, top: Located) -> QuerySet[JobRun]:
    """All runs for the metalake's owner, for others their own."""
    rows = JobRun.objects.filter(metalake_id=top.id)
    return rows if policy.permits(actor, operations.MANAGE_JOBS, top) else rows.filter(user_id=actor.id)


def failed_since(actor: Actor, tops: Sequence[Located], since: datetime) -> list[JobRun]:
    """The runs in these metalakes that the actor may see and that failed since then, newest first."""
    managed = [top.id for top in tops if policy.permits(actor, operations.MANAGE_JOBS, top)]
    mine = Q(metalake_id__in=[top.id for top in tops], user_id=actor.id)
    rows = JobRun.objects.filter(Q(metalake_id__in=managed) | mine, status=JobRun.Status.FAILED)
    return list(rows.filter(finished_at__gte=since).order_by("-finished_at").defer("content", "conf")[:MOST_FAILED])


def load_run(actor: Actor, metalake: str, run_id: str) -> JobRun:
    """A run. Raises NotFound, also for one that the actor may not see."""
    return _seen(actor, enter(actor, metalake), run_id)


def _seen(actor: Actor, top: Located, run_id: str) -> JobRun:
    is_id = run_id.isascii() and run_id.isdigit() and len(run_id) <= 18
    row = visible(actor, top).select_related("schedule").filter(pk=int(run_id) if is_id else 0).first()
    if row is None:
        raise NotFound(f"Job {run_id:.32} does not exist.", kind=Kind.JOB)
    return row


def cancel(actor: Actor, metalake: str, run_id: str) -> JobRun:
    """Cancel a run: at once if it is queued, else its watcher ends the process. No effect on one that has ended."""
    check = partial(_require_seen, run_id=run_id)
    top = Target(Address(metalake=metalake), operations.LOAD_METALAKE, Lock.HANGS, check=check, kind=Kind.JOB)
    return write_to(actor, top, _cancel, run_id)


def _require_seen(actor: Actor, top: Located, *, run_id: str) -> None:
    _seen(actor, top, run_id)


def _cancel(write: Write, run_id: str) -> JobRun:
    run = _seen(write.actor, write.located, run_id)
    cancel_rows(write.actor, JobRun.objects.filter(pk=run.pk))
    return _seen(write.actor, write.located, run_id)


def cancel_rows(actor: Any, rows: QuerySet[JobRun]) -> None:
    """Cancel these runs, except those that have ended, in the caller's transaction."""
    now = timezone.now()
    who = {"last_modifier": actor.name, "last_modified_time": now}
    for run in rows.filter(status__in=(JobRun.Status.QUEUED, JobRun.Status.STARTED)).select_for_update():
        mine = JobRun.objects.filter(pk=run.pk)
        queued = mine.filter(status=JobRun.Status.QUEUED)
        # If another process starts the run concurrently, the first update matches nothing, and the second does.
        if not queued.update(status=JobRun.Status.CANCELLED, finished_at=now, **who):
            mine.filter(status=JobRun.Status.STARTED).update(status=JobRun.Status.CANCELLING, **who)
        record(run_event(actor, run, "job.cancelled", template=run.template_name))


def progress(actor: Actor, metalake: str, run_id: str, done: int, total: int | None, stage: str | None) -> JobRun:
    """Store a run's progress, which it reports with its own token. Raises Forbidden, Invalid once it has ended."""
    run = load_run(actor, metalake, run_id)
    if run.user_id != actor.id:
        raise Forbidden(f"{actor.name} may not write the progress of job {run.pk}: the run does.", kind=Kind.JOB)
    if total is not None and done > total:
        raise Invalid("done: cannot be more than the total.", kind=Kind.JOB)
    fields = {"done": done, "total": total, "stage": stage or "", "progressed_at": timezone.now()}
    if not JobRun.objects.filter(pk=run.pk, status__in=JobRun.RUNNING).update(**fields):
        raise Invalid(f"Job {run.pk} is {run.status}, so it makes no progress.", kind=Kind.JOB)
    return load_run(actor, metalake, run_id)


def speed(run: JobRun) -> tuple[float | None, int | None]:
    """Units done per second, and the estimated seconds left; None if unknown."""
    if run.done is None or run.started_at is None or run.progressed_at is None:
        return None, None
    seconds = (run.progressed_at - run.started_at).total_seconds()
    rate = run.done / seconds if seconds > 0 else 0.0
    if run.total is None or rate <= 0 or run.status not in JobRun.RUNNING:
        return rate, None
    return rate, round((run.total - run.done) / rate)


@dataclass(frozen=True)
class LogPart:
    """Bytes of a log from `offset` on, of `total` bytes; the `left_out` bytes in its middle are not stored."""

    content: bytes
    offset: int
    total: int
    left_out: int


def read_log(actor: Actor, metalake: str, run_id: str, offset: int = 0, limit: int = LOG_PAGE) -> LogPart:
    """At most `limit` bytes of a run's log; an offset in the gap is moved to its end."""
    run = load_run(actor, metalake, run_id)
    log = RunLog.objects.filter(run_id=run.pk).first()
    if log is None:
        return LogPart(b"", 0, 0, 0)
    return part_of(bytes(log.head), bytes(log.tail), log.total, offset, limit)


def part_of(head: bytes, tail: bytes, total: int, offset: int, limit: int) -> LogPart:
    begins = total - len(tail)  # offset of the tail in the whole output
    left_out = begins - len(head)
    if offset < len(head):
        return LogPart(head[offset : offset + limit], offset, total, left_out)
    offset = min(max(offset, begins), total)
    return LogPart(tail[offset - begins : offset - begins + limit], offset, total, left_out)


def forget(rows: Sequence[int]) -> None:
    """Delete these runs with their logs."""
    RunLog.objects.filter(run_id__in=rows).delete()
    JobRun.objects.filter(Q(pk__in=rows)).delete()
