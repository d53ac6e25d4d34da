"""JSON replies of the native API for templates, runs and schedules."""

from __future__ import annotations

from typing import Any

from authz.actor import Actor
from jobs.models import JobRun, Schedule
from jobs.services import schedules, system
from jobs.services.runs import LogPart, speed
from jobs.services.templates import Template
from metalake.rest.replies import audit_of, moment_text

_LISTS = {"shell": ("scripts",), "spark": ("jars", "files", "archives")}


def template_reply(template: Template) -> dict[str, Any]:
    content = template.content
    reply: dict[str, Any] = {
        "jobType": template.job_type,
        "name": template.name,
        "executable": content["executable"],
        "arguments": content.get("arguments", []),
        "environments": content.get("environments", {}),
        "customFields": content.get("customFields", {}),
        **{name: content.get(name, []) for name in _LISTS[template.job_type]},
        "audit": audit_of(template.audit),
    }
    if template.comment is not None:
        reply["comment"] = template.comment
    if template.job_type == "spark":
        reply["configs"] = content.get("configs", {})
        if "className" in content:
            reply["className"] = content["className"]
    return reply


def job_reply(run: JobRun) -> dict[str, Any]:
    audit = {"creator": run.user_name, "createTime": moment_text(run.queued_at)}
    if run.last_modified_time:
        audit |= {"lastModifier": run.last_modifier, "lastModifiedTime": moment_text(run.last_modified_time)}
    reply: dict[str, Any] = {
        "jobId": str(run.pk),
        "jobTemplateName": run.template_name,
        "status": run.status,
        "audit": audit,
        "queuedAt": moment_text(run.queued_at),
    }
    if run.started_at:
        reply["startedAt"] = moment_text(run.started_at)
    if run.finished_at:
        reply["finishedAt"] = moment_text(run.finished_at)
    if run.exit_code is not None:
        reply["exitCode"] = run.exit_code
    if run.error:
        reply["error"] = run.error
    if run.schedule is not None:
        reply["schedule"] = run.schedule.name
    return reply


def progress_reply(run: JobRun) -> dict[str, Any]:
    rate, eta = speed(run)
    values = {
        "status": run.status,
        "done": run.done,
        "total": run.total,
        "stage": run.stage or None,
        "rate": None if rate is None else round(rate, 1),
        "eta": eta,
        "updatedAt": moment_text(run.progressed_at) if run.progressed_at else None,
    }
    return {name: value for name, value in values.items() if value is not None}


def log_reply(part: LogPart) -> dict[str, Any]:
    return {
        "text": part.content.decode(errors="replace").replace("\0", "\ufffd"),
        "offset": part.offset,
        "next": part.offset + len(part.content),
        "total": part.total,
        "leftOut": part.left_out,
    }


def schedule_reply(actor: Actor, metalake: str, schedule: Schedule) -> dict[str, Any]:
    next_at = schedules.next_at(schedule)
    reply: dict[str, Any] = {
        "name": schedule.name,
        "jobTemplateName": schedule.template_name,
        "jobConf": schedule.conf,
        "owner": schedule.user.username,
        "enabled": schedule.enabled,
        "audit": audit_of(schedule),
    }
    moments = {"startsAt": schedule.starts_at, "endsAt": schedule.ends_at, "nextAt": next_at}
    reply |= {name: moment_text(moment) for name, moment in moments.items() if moment}
    given: dict[str, Any] = {"cron": schedule.cron, "every": schedule.every, "lastFailure": schedule.last_failure}
    given["templateChanges"] = schedules.template_changes(actor, metalake, schedule)
    return reply | {name: value for name, value in given.items() if value}


def system_reply(made: system.System) -> dict[str, Any]:
    return {
        "catalog": system.CATALOG,
        "principal": system.PRINCIPAL,
        "role": system.ROLE,
        "privileges": [privilege.value for privilege in system.RIGHTS],
        "made": list(made.made),
        "readers": made.readers,
        "moreReaders": made.more_readers,
    }
