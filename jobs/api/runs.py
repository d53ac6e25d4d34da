"""Runs on the native wire, with their progress and logs, which are not part of upstream's."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pydantic import TypeAdapter, ValidationError

from authz.actor import Actor
from jobs import wire
from jobs.models import JobRun
from jobs.replies import job_reply, log_reply, progress_reply
from jobs.services import runs
from jobs.services.runs import Choice
from metalake.errors import Invalid
from metalake.rest.views import Endpoint, answers
from metalake.wire import Moment, quote

JOB = {"job": wire.JobReply}
_MOMENT: TypeAdapter[Any] = TypeAdapter(Moment)


class Jobs(Endpoint):
    @answers(
        "list_jobs",
        reply={"jobs": list[wire.JobReply], "statusCounts": dict[str, int]},
        query=("jobTemplateName", "queuedAfter", "startedAfter", "finishedAfter", "sortBy", "sortOrder"),
    )
    def get(self, actor: Actor, metalake: str) -> dict[str, Any]:
        """List runs, the newest first: one's own, and for the metalake's owner all; at most 1,000."""
        listed = runs.list_runs(actor, metalake, self._choice())
        counts = Counter(run.status for run in listed)
        return {
            "jobs": [job_reply(run) for run in listed],
            "statusCounts": {status: counts[status] for status in JobRun.Status.values},
        }

    def _choice(self) -> Choice:
        sort_by = self.text("sortBy") or "queuedAt"
        order = (self.text("sortOrder") or "desc").lower()
        if sort_by not in runs.SORTED_BY or order not in ("asc", "desc"):
            raise Invalid(f"sortBy is one of {', '.join(runs.SORTED_BY)}, and sortOrder is asc or desc.")
        return Choice(
            self.text("jobTemplateName") or None,
            self._moment("queuedAfter"),
            self._moment("startedAfter"),
            self._moment("finishedAfter"),
            sort_by,
            order == "asc",
        )

    def _moment(self, name: str) -> Any:
        value = self.text(name)
        try:
            return _MOMENT.validate_python(value, strict=True) if value else None
        except ValidationError:
            raise Invalid(f"Query parameter {name} is a moment in ISO 8601, not {quote(value or '')}.") from None

    @answers("run_job", body=wire.RunRequest, reply=JOB)
    def post(self, actor: Actor, metalake: str, body: wire.RunRequest) -> dict[str, Any]:
        """Run a job template, with the rights of the caller."""
        return {"job": job_reply(runs.start(actor, metalake, body.job_template_name, body.job_conf))}


class Job(Endpoint):
    @answers("list_jobs", reply=JOB, id="getJob")
    def get(self, actor: Actor, metalake: str, job: str) -> dict[str, Any]:
        """Load a run: one's own, or any for the metalake's owner."""
        return {"job": job_reply(runs.load_run(actor, metalake, job))}

    @answers("list_jobs", body=wire.CancelRequest, body_is_optional=True, reply=JOB, id="cancelJob")
    def post(self, actor: Actor, metalake: str, job: str, body: wire.CancelRequest | None) -> dict[str, Any]:
        """Cancel a run; its processes are ended."""
        return {"job": job_reply(runs.cancel(actor, metalake, job))}


class JobProgress(Endpoint):
    @answers("list_jobs", reply={"progress": wire.ProgressReply}, id="getJobProgress")
    def get(self, actor: Actor, metalake: str, job: str) -> dict[str, Any]:
        """How far a run is."""
        return {"progress": progress_reply(runs.load_run(actor, metalake, job))}

    @answers("list_jobs", body=wire.ProgressRequest, reply={"progress": wire.ProgressReply}, id="setJobProgress")
    def put(self, actor: Actor, metalake: str, job: str, body: wire.ProgressRequest) -> dict[str, Any]:
        """Say how far a run is; the run itself does, with its token."""
        run = runs.progress(actor, metalake, job, body.done, body.total, body.stage)
        return {"progress": progress_reply(run)}


class JobLog(Endpoint):
    @answers("list_jobs", reply={"log": wire.LogReply}, query=("offset", "limit"), id="getJobLog")
    def get(self, actor: Actor, metalake: str, job: str) -> dict[str, Any]:
        """What a run wrote, from a byte on."""
        offset, limit = self._number("offset", 0), min(self._number("limit", runs.LOG_PAGE), runs.LOG_PAGE)
        return {"log": log_reply(runs.read_log(actor, metalake, job, offset, limit))}

    def _number(self, name: str, default: int) -> int:
        value = self.text(name)
        if value is None:
            return default
        if not (value.isascii() and value.isdigit() and len(value) <= 18):
            raise Invalid(f"Query parameter {name} is a whole number, not {quote(value)}.")
        return int(value)
