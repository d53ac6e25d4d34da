"""Schedules on the native wire. Not part of upstream's wire."""

from __future__ import annotations

from typing import Any

from authz.actor import Actor
from jobs import wire
from jobs.replies import schedule_reply
from jobs.services import schedules
from jobs.services.schedules import When
from metalake.rest.views import Endpoint, answers

SCHEDULE = {"schedule": wire.ScheduleReply}


class Schedules(Endpoint):
    @answers("list_jobs", reply={"schedules": list[wire.ScheduleReply]}, id="listSchedules")
    def get(self, actor: Actor, metalake: str) -> dict[str, Any]:
        """List schedules: one's own, and for the metalake's owner all."""
        rows = schedules.list_schedules(actor, metalake)
        return {"schedules": [schedule_reply(actor, metalake, row) for row in rows]}

    @answers("run_job", body=wire.ScheduleRequest, reply=SCHEDULE, id="createSchedule")
    def post(self, actor: Actor, metalake: str, body: wire.ScheduleRequest) -> dict[str, Any]:
        """Have a template run by itself, with the rights of the caller."""
        when = When(body.cron, body.every, body.starts_at, body.ends_at)
        row = schedules.create(
            actor, metalake, body.name, body.job_template_name, body.job_conf, when, enabled=body.enabled
        )
        return {"schedule": schedule_reply(actor, metalake, row)}


class Schedule(Endpoint):
    @answers("list_jobs", reply=SCHEDULE, id="getSchedule")
    def get(self, actor: Actor, metalake: str, schedule: str) -> dict[str, Any]:
        """Load a schedule."""
        return {"schedule": schedule_reply(actor, metalake, schedules.load(actor, metalake, schedule))}

    @answers("list_jobs", body=wire.EnableScheduleRequest, reply=SCHEDULE, id="enableSchedule")
    def patch(self, actor: Actor, metalake: str, schedule: str, body: wire.EnableScheduleRequest) -> dict[str, Any]:
        """Let a schedule start runs, or stop it; only its owner lets it start them."""
        row = schedules.set_enabled(actor, metalake, schedule, body.enabled)
        return {"schedule": schedule_reply(actor, metalake, row)}

    @answers("list_jobs", reply={"dropped": bool}, id="dropSchedule")
    def delete(self, actor: Actor, metalake: str, schedule: str) -> dict[str, Any]:
        """Delete a schedule."""
        return {"dropped": schedules.drop(actor, metalake, schedule)}
