"""Schedules: each starts runs of one template as its owner, with the owner's rights at that time. Groups that the
owner's token claimed when they created or enabled the schedule count only with their DENYs.

Each has a django-celery-beat row as its clock, read by celery beat if there is a broker, else in the server's rounds.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from celery.schedules import crontab
from django.db.models import QuerySet
from django.utils import timezone
from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask

from authz import operations, policy
from authz.actor import Actor, actor_from
from authz.callers.accounts import account_of
from authz.callers.run_tokens import require_person
from authz.locks import Lock
from authz.services.change import enter
from catalogs.services.writes import Target, Write, write_to
from jobs.definition import changed_fields
from jobs.models import JobRun, Schedule
from jobs.services import runs
from jobs.services.pinning import TASK, Altered, clocks_of, stop_clocks
from jobs.services.templates import load_template
from metalake import beat_schedules
from metalake.beat_schedules import LONGEST_NAME
from metalake.errors import AlreadyExists, Forbidden, Invalid, MetalakeError, NotFound
from metalake.events import event_of, record
from metalake.hierarchy import check_strict
from metalake.lineage import Address, Located

log = logging.getLogger(__name__)

KIND = "schedule"
NOT_ENDED = "The run before has not ended."


@dataclass(frozen=True)
class When:
    """By `cron` (five fields, UTC) or `every` so many seconds; from `starts_at` on, and before `ends_at`."""

    cron: str | None = None
    every: int | None = None
    starts_at: datetime | None = None
    ends_at: datetime | None = None

    def check(self) -> None:
        """Raise Invalid for a schedule that is malformed or never fires."""
        if (self.cron is None) == (self.every is None):
            raise Invalid("Give cron, or every with a number of seconds: one of the two.", kind=KIND)
        if self.next_after(max(self.starts_at or timezone.now(), timezone.now())) is None:
            raise Invalid("This schedule never fires: it ends before its first time.", kind=KIND)

    def next_after(self, moment: datetime) -> datetime | None:
        """The first firing after a moment; None if there is none. Raises Invalid for a malformed cron."""
        if self.cron is not None:
            fields = _fields(self.cron)
            try:
                waits = crontab(**fields, nowfun=lambda: moment).remaining_estimate(moment)
            except (ValueError, RuntimeError, OverflowError) as wrong:
                raise Invalid(f"cron: {str(wrong).rstrip('.')}.", kind=KIND) from None
        else:
            waits = timedelta(seconds=self.every or 0)
        time = moment + waits
        return None if self.ends_at is not None and time >= self.ends_at else time


def _fields(cron: str) -> dict[str, str]:
    names = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
    fields = cron.split()
    if len(fields) != len(names):
        raise Invalid("cron: has five fields: minute, hour, day of the month, month, day of the week.", kind=KIND)
    return dict(zip(names, fields, strict=True))


def when_of(row: Schedule) -> When:
    return When(row.cron or None, row.every, row.starts_at, row.ends_at)


def next_at(row: Schedule) -> datetime | None:
    """When the schedule starts its next run; None if it never does."""
    if not row.enabled:
        return None
    clock = clocks_of([row.pk]).first()
    since = (clock and clock.last_run_at) or row.create_time if row.every else timezone.now()
    return when_of(row).next_after(max(row.starts_at or since, since))


def list_schedules(actor: Actor, metalake: str) -> list[Schedule]:
    top = enter(actor, metalake)
    policy.require(actor, operations.LIST_JOBS, top)
    return list(visible(actor, top).order_by("name"))


def visible(actor: Actor, top: Located) -> QuerySet[Schedule]:
    """All schedules for the metalake's owner, for others their own."""
    rows = Schedule.objects.filter(metalake_id=top.id).select_related("user", "template")
    return rows if policy.permits(actor, operations.MANAGE_JOBS, top) else rows.filter(user_id=actor.id)


def load(actor: Actor, metalake: str, name: str) -> Schedule:
    """A schedule. Raises NotFound, also for one that the actor may not see."""
    return _seen(actor, enter(actor, metalake), name)


def _seen(actor: Actor, top: Located, name: str) -> Schedule:
    row = visible(actor, top).filter(name=name).first()
    if row is None:
        raise NotFound(f"Schedule {name:.64} does not exist.", kind=KIND)
    return row


def create(
    actor: Actor,
    metalake: str,
    name: str,
    template: str,
    conf: Mapping[str, str],
    when: When,
    *,
    enabled: bool = True,
) -> Schedule:
    """Requires what starting such a run requires. Raises Invalid for unsuitable values or times, AlreadyExists."""
    require_person(actor, "makes no schedules")
    check_strict(name, KIND)
    return write_to(actor, runs.to_run(metalake, template, KIND), _create, name, template, conf, when, enabled)


def _create(write: Write, name: str, template: str, conf: Mapping[str, str], when: When, enabled: bool) -> Schedule:
    actor, top = write.actor, write.located
    chosen = load_template(actor, top.name, template)
    when.check()
    runs.require_runnable(chosen, conf)
    if Schedule.objects.filter(metalake_id=top.id, name=name).exists():
        raise AlreadyExists(f"Schedule {name} already exists.", kind=KIND)
    row = Schedule.objects.create(
        metalake_id=top.id,
        name=name,
        template=chosen.row,
        template_name=chosen.name,
        conf=dict(conf),
        content=chosen.row and chosen.row.content,
        standing=_standing(actor, None),
        user_id=account_of(actor),
        **{field: getattr(when, field) for field in ("every", "starts_at", "ends_at")},
        cron=when.cron or "",
        enabled=enabled,
        creator=actor.name,
    )
    _wind(row, top.name)
    record(_event(actor, row, "schedule.created", template=chosen.name))
    return row


def set_enabled(actor: Actor, metalake: str, name: str, enabled: bool) -> Schedule:
    """Disable or enable a schedule. Only its owner, whose rights it uses, may enable it; this pins the template."""
    if enabled:
        require_person(actor, "enables no schedules")
    return write_to(actor, _inside(metalake, check=partial(_require_seen, name=name)), _set_enabled, name, enabled)


def _inside(metalake: str, check: Callable[[Actor, Located], None] | None = None) -> Target:
    return Target(Address(metalake=metalake), operations.LOAD_METALAKE, Lock.HANGS, check=check, kind=KIND)


def _require_seen(actor: Actor, top: Located, *, name: str) -> None:
    _seen(actor, top, name)


def _set_enabled(write: Write, name: str, enabled: bool) -> Schedule:
    actor, top = write.actor, write.located
    row = _seen(actor, top, name)
    if enabled and row.user_id != actor.id:
        raise Forbidden(f"Schedule {name} runs as {row.user}, who alone may enable it.", kind=KIND)
    fields = {"enabled": enabled} | (_as_of_now(actor, top.name, row) if enabled else {})
    if changed := {field: value for field, value in fields.items() if getattr(row, field) != value}:
        changed |= {"last_modifier": actor.name, "last_modified_time": timezone.now()}
        Schedule.objects.filter(pk=row.pk).update(**changed)
        row = _seen(actor, top, name)
        _wind(row, top.name)
        record(_event(actor, row, "schedule.enabled" if enabled else "schedule.disabled"))
    return row


def _as_of_now(actor: Actor, metalake: str, row: Schedule) -> dict[str, Any]:
    """The fields to update when a schedule is enabled. Raises NotFound if its owner may no longer load the template."""
    template = load_template(actor, metalake, row.template.name if row.template else row.template_name).row
    return {
        "content": template and template.content,
        "standing": _standing(actor, row.standing),
        "last_failure": "",
    }


def _standing(actor: Actor, before: Mapping[str, Any] | None) -> dict[str, Any]:
    """What runs keep of the owner's request: the active roles, and the claimed groups as denying ones.

    Whether a later token would still claim the groups is unknown, so their ALLOWs are dropped and their DENYs stay.
    """
    denying = sorted({*(before or {}).get("denying", ()), *actor.claimed, *actor.denying})
    return {"denying": denying, "active": None if actor.active is None else sorted(actor.active)}


def template_changes(actor: Actor, metalake: str, row: Schedule) -> list[dict[str, Any]]:
    """Changes of the template since the owner created or enabled the schedule; empty if the actor may not load it."""
    if row.template is None or not (fields := changed_fields(row.content or {}, row.template.content)):
        return []
    try:
        load_template(actor, metalake, row.template.name)
    except (Forbidden, NotFound):
        return []
    was, is_now = row.content or {}, row.template.content
    return [{"field": field, "was": was.get(field), "is": is_now.get(field)} for field in fields]


def drop(actor: Actor, metalake: str, name: str) -> bool:
    """Delete a schedule; False if the actor sees none. Its runs stay."""
    return write_to(actor, _inside(metalake), _drop, name)


def _drop(write: Write, name: str) -> bool:
    row = visible(write.actor, write.located).filter(name=name).first()
    if row is None:
        return False
    record(_event(write.actor, row, "schedule.dropped"))
    stop_clocks([row.pk])
    row.delete()
    return True


def _event(actor: Any, row: Schedule, name: str, **details: Any) -> Any:
    return event_of(actor, name, KIND, row.pk, [row.name], row.metalake_id, **details)


# Clocks


def _wind(row: Schedule, metalake: str) -> None:
    """Set the clock of a schedule, in the caller's transaction."""
    clock = clocks_of([row.pk]).first() or PeriodicTask(task=TASK, args=json.dumps([row.pk]))
    clock.name = f"{f'job {metalake}.{row.name}'[: LONGEST_NAME - 24]} ({row.pk})"  # names are unique
    if row.cron:
        fields = _fields(row.cron)
        clock.crontab = CrontabSchedule.objects.filter(**fields, timezone="UTC").first() or (
            CrontabSchedule.objects.create(**fields, timezone="UTC")
        )
    else:
        clock.interval, _ = IntervalSchedule.objects.get_or_create(every=row.every, period=IntervalSchedule.SECONDS)
    clock.start_time, clock.expires, clock.enabled = row.starts_at, row.ends_at, row.enabled
    clock.save()


def begin(schedule_id: int) -> JobRun | None:
    """Start a run of a due schedule; None if it starts none. Refusals are stored in `last_failure`, not raised."""
    row = Schedule.objects.select_related("user", "metalake", "template").filter(pk=schedule_id).first()
    if row is None:
        stop_clocks([schedule_id])  # dropped with its template or metalake
        return None
    now = timezone.now()
    if not row.enabled or (row.starts_at and now < row.starts_at) or (row.ends_at and now >= row.ends_at):
        return None
    run, failure = None, ""
    try:
        if JobRun.objects.filter(schedule=row, status__in=JobRun.LIVE).exists():
            failure = NOT_ENDED
        elif not row.user.is_active:
            failure = f"The account {row.user} is disabled."
        else:
            name = row.template.name if row.template else row.template_name
            owner = actor_from({"id": row.user_id, "name": row.user.username, **(row.standing or {})})
            run = runs.start(owner, row.metalake.name, name, row.conf, row)
    except MetalakeError as refusal:
        failure = refusal.message
        if isinstance(refusal, Altered):
            Schedule.objects.filter(pk=row.pk).update(enabled=False)
            stop_clocks([row.pk])
        log.warning("schedule %s started no run: %s", row.pk, failure)
    Schedule.objects.filter(pk=row.pk).exclude(last_failure=failure).update(last_failure=failure)
    return run


def begin_due() -> int:
    """Start the runs that are due, unless celery beat does; returns how many clocks fired."""
    return beat_schedules.run_due(TASK, begin)
