"""How a runner updates the rows of runs: leased, renewed while the process lives, and ended."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from authz import operations, policy
from authz.actor import SERVER, Actor, actor_from
from authz.callers.identity import digest_of, issue_token
from authz.locks import Lock, hold
from authz.models import Token, User
from authz.services.change import enter
from jobs.commands import Command
from jobs.models import JobRun, RunLog
from jobs.running.fair_share import has_room, in_turn
from jobs.services import departures
from jobs.services.runs import command_of, run_event
from jobs.services.system import principal_of
from jobs.services.templates import Template, load_template
from metalake import leases
from metalake.errors import Forbidden, NotFound
from metalake.events import record
from metalake.kinds import Kind
from metalake.leases import TakenOver
from metalake.request_context import this_process

LEASE = timedelta(seconds=30)  # with rounds of 15 s, a run whose watcher died is marked as failed within 60 s
AFTER = timedelta(minutes=5)  # by which a token outlives its run's time limit
Status = JobRun.Status


class Output(NamedTuple):
    """A run's output so far."""

    head: bytes
    tail: bytes
    total: int


def take() -> JobRun | None:
    """Lease the run that is next in fair order; None if none waits or may start."""
    full: set[int] = set()
    for metalake_id, user_id in in_turn():
        if metalake_id in full:
            continue
        with transaction.atomic():
            hold(Lock.CHANGES, metalake_id)  # so that no other process counts its runs concurrently
            if not has_room(metalake_id):
                full.add(metalake_id)
            elif run := _take_of(metalake_id, user_id):
                return run
    return None


def _take_of(metalake_id: int, user_id: int) -> JobRun | None:
    waiting = JobRun.objects.filter(status=Status.QUEUED, metalake_id=metalake_id, user_id=user_id)
    run = waiting.order_by("queued_at", "pk").first()
    fields = {"status": Status.STARTED, "started_at": timezone.now(), "worker": this_process()}
    if run is None or not leases.take(waiting, run.pk, run.fence, LEASE, **fields):
        return None
    run.refresh_from_db()
    return run


def actor_of(run: JobRun) -> Actor:
    """The user who started the run, with their current rights."""
    return actor_from({"id": run.user_id, "name": run.user_name, **run.standing})


class Secrets(NamedTuple):
    """The secrets of a run's own token and, if its template writes results, of its token for the system catalog."""

    own: str
    system: str = ""


def prepare(run: JobRun, folder: str) -> tuple[Command, Secrets]:
    """A run's command and its tokens' secrets; re-checks rights and files.

    Raises the error of a failed check, and TakenOver.
    """
    with transaction.atomic():
        template = _allowed(run)
        if run.content is not None:
            template = replace(template, content=run.content)  # as its starter knew it
        command = command_of(template, run.conf, run.pk, folder)
        own = _issue(run, run.user, "token_id", run.standing)
        writes = template.built_in is not None and template.built_in.writes_results
        system = _issue(run, principal_of(run.metalake_id), "system_token_id") if writes else ""
        return command, Secrets(own, system)


def _allowed(run: JobRun) -> Template:
    actor, metalake = actor_of(run), run.metalake.name
    if not User.objects.filter(pk=run.user_id, is_active=True).exists():
        raise Forbidden(f"The account {run.user_name} is disabled.", kind=Kind.JOB)
    if not actor.is_member(run.metalake_id) and not policy.authorization_is_off():
        raise NotFound(f"User {run.user_name} does not exist.", kind="user")
    policy.require(actor, operations.RUN_JOB, enter(actor, metalake))
    if run.template is not None:
        return load_template(actor, metalake, run.template.name)
    return load_template(actor, metalake, run.template_name)


def _issue(run: JobRun, user: User, noted_as: str, standing: dict[str, Any] | None = None) -> str:
    """Issue a token with this standing, valid only in the run's metalake and until the run's end."""
    until = timezone.now() + timedelta(seconds=settings.METALAKE_JOB_TIMEOUT) + AFTER
    secret = issue_token(user, f"job {run.pk}", until, within_id=run.metalake_id, standing=standing or None)
    row = Token.objects.select_related("user").get(digest=digest_of(secret))
    leases.write(run, **{noted_as: row.pk})
    setattr(run, noted_as, row.pk)
    record(row.event("token.issued", SERVER.name))
    return secret


def renew(run: JobRun) -> str:
    """Renew the lease; returns the current status. Raises TakenOver if another process has the run, or it is gone."""
    mine = leases.mine(run).filter(status__in=JobRun.RUNNING)
    if not mine.update(lease_until=leases.over(LEASE)):
        raise TakenOver
    status: str | None = mine.values_list("status", flat=True).first()
    if status is None:
        raise TakenOver
    return status


def store(run: JobRun, output: Output) -> None:
    """Store a run's output. Raises TakenOver."""
    if not leases.mine(run).exists():
        raise TakenOver
    RunLog.objects.update_or_create(run_id=run.pk, defaults=output._asdict())


def finish(run: JobRun, status: str, exit_code: int | None, error: str, output: Output | None) -> None:
    """End a run, and revoke its tokens. Raises TakenOver."""
    with transaction.atomic():
        fields = {"status": status, "finished_at": timezone.now(), "exit_code": exit_code, "error": error}
        if not leases.mine(run).filter(status__in=JobRun.RUNNING).update(**fields, lease_until=None):
            raise TakenOver
        if output is not None:
            store(run, output)
        _ended(run, status, exit_code, error)


def _ended(run: JobRun, status: str, exit_code: int | None, error: str) -> None:
    departures.end_tokens([run.token_id, run.system_token_id])
    details = {"status": status, "exitCode": exit_code, "error": error, "user": run.user_name}
    record(run_event(SERVER, run, "job.ended", template=run.template_name, **details))


def lose() -> int:
    """Mark at most 100 runs whose watcher died (the lease expired) as ended; returns how many."""
    count = 0
    lost = JobRun.objects.filter(finished_at=None, status__in=JobRun.RUNNING, lease_until__lt=timezone.now())
    for run in list(lost[:100]):
        status = Status.CANCELLED if run.status == Status.CANCELLING else Status.FAILED
        error = "The process that watched it is gone, and its own with it."
        fields = {"status": status, "finished_at": timezone.now(), "error": error}
        with transaction.atomic():
            if leases.take(lost, run.pk, run.fence, timedelta(), **fields):
                run.refresh_from_db()
                _ended(run, status, None, error)
                count += 1
    return count
