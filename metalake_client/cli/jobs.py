"""`gcli job`: templates of a metalake, runs with their progress and logs, and schedules."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import typer

from metalake_client.cli.commands import LIMIT, YES, add, family, option
from metalake_client.cli.output import plain, print_done, print_object, print_rows
from metalake_client.cli.session import Session
from metalake_client.failures import Exit, Failure

ID = option("id", str, help="The run's id.")
NAME = option("name", str, help="Its name.")
TEMPLATE = option("template", str, help="The template's name.")
VALUES = option("values", list[str], "--value", default=(), help="Of a placeholder: name=value; repeatable.")
FILE = option("file", Path, "--file", "-f", help="Its JSON, as the wire has it (docs/jobs.md).")
WAIT = option("wait", bool, "--wait", default=False, help="Show its progress until it ends.")
LIVE = ("queued", "started", "cancelling")
EVERY = 1.0  # seconds between two looks at a run


def add_to(app: typer.Typer) -> None:
    jobs = family(app, "job", "Jobs: templates, runs and schedules.")
    add(jobs, "templates", templates, help="List the templates that you may use.")
    add(jobs, "template-details", template, [NAME], help="Show a template.")
    add(jobs, "register", register, [FILE], help="Register a template.")
    add(jobs, "drop-template", drop_template, [NAME, YES], help="Delete a template and its runs.")
    add(jobs, "run", run, [TEMPLATE, VALUES, WAIT], help="Run a template.")
    of_template = option("template", str | None, default=None, help="Of this template alone.")
    add(jobs, "list", list_runs, [of_template, LIMIT], help="List runs, the newest first.")
    add(jobs, "details", show, [ID, WAIT], help="How a run stands.")
    add(jobs, "log", log, [ID], help="What a run wrote.")
    add(jobs, "cancel", cancel, [ID], help="Cancel a run.")
    add(jobs, "schedules", schedules, help="List schedules.")
    cron = option("cron", str | None, default=None, help="Five fields, in UTC.")
    every = option("every", int | None, default=None, min=60, help="Or a number of seconds.")
    add(jobs, "schedule", schedule, [NAME, TEMPLATE, VALUES, cron, every], help="Run a template by itself.")
    stops = option("stop", bool, "--stop/--start", help="Stop it, or let it start runs again.")
    add(jobs, "switch-schedule", switch, [NAME, stops], help="Stop a schedule, or start it again.")
    add(jobs, "drop-schedule", drop_schedule, [NAME, YES], help="Delete a schedule.")


def _path(session: Session, kind: str) -> list[str]:
    return ["metalakes", session.metalake, "jobs", kind]


def templates(session: Session) -> None:
    rows = session.client.get(*_path(session, "templates"), details="true")["jobTemplates"]
    print_rows(rows, ("name", "jobType", "executable", "comment"), session.output)


def template(session: Session, name: str) -> None:
    print_object(session.client.get(*_path(session, "templates"), name)["jobTemplate"], session.output)


def register(session: Session, file: Path) -> None:
    try:
        given = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as wrong:
        raise Failure(f"--file: {file} cannot be read as JSON: {wrong}", Exit.USAGE) from None
    session.client.call("POST", *_path(session, "templates"), body={"jobTemplate": given})
    print_done(f"Registered {given.get('name') if isinstance(given, dict) else 'it'}.")


def drop_template(session: Session, name: str, yes: bool) -> None:
    session.confirm(f"Delete job template {name} with its runs?", yes)
    if not session.client.call("DELETE", *_path(session, "templates"), name)["dropped"]:
        raise Failure(f"Job template {name} does not exist.", Exit.MISSING)
    print_done(f"Deleted job template {name}.")


def run(session: Session, template: str, values: list[str], wait: bool) -> None:
    body = {"jobTemplateName": template, "jobConf": _values(values)}
    _shown(session, session.client.call("POST", *_path(session, "runs"), body=body)["job"], wait)


def _values(given: list[str]) -> dict[str, str]:
    """Raises Failure for what is not name=value; the whole rest is the value, whatever is in it."""
    pairs = [each.partition("=") for each in given]
    if odd := next((number for number, (name, equals, _) in enumerate(pairs, 1) if not (name and equals)), None):
        raise Failure(f"--value: number {odd} is not name=value.", Exit.USAGE)
    return {name: value for name, _, value in pairs}


def show(session: Session, id: str, wait: bool) -> None:
    _shown(session, session.client.get(*_path(session, "runs"), id)["job"], wait)


def _shown(session: Session, job: dict[str, Any], wait: bool) -> None:
    if wait:
        job = _ended(session, job)
    progress = session.client.get(*_path(session, "runs"), job["jobId"], "progress")["progress"]
    print_object({**job, "progress": progress} if "done" in progress else job, session.output)
    if wait and job["status"] != "succeeded":
        raise Failure(f"Job {job['jobId']} {job['status']}. {job.get('error', '')}".strip())


def _ended(session: Session, job: dict[str, Any]) -> dict[str, Any]:
    """The run once it has ended, with its progress on the error stream."""
    path = [*_path(session, "runs"), job["jobId"]]
    try:
        while job["status"] in LIVE:
            _show_progress(session.client.get(*path, "progress")["progress"])
            time.sleep(EVERY)
            job = session.client.get(*path)["job"]
    finally:
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)
    return job


def _show_progress(progress: dict[str, Any]) -> None:
    line = progress["status"]
    if "done" in progress:
        total = f" of {progress['total']}" if "total" in progress else ""
        eta = f", about {progress['eta']} s left" if "eta" in progress else ""
        line += f": {progress['done']}{total}, {progress.get('rate', 0)}/s{eta}"
    if sys.stderr.isatty():
        print(f"\r\033[K{plain(line)}", end="", file=sys.stderr, flush=True)
    else:
        print_done(line)


def list_runs(session: Session, template: str | None, limit: int | None) -> None:
    rows = session.client.get(*_path(session, "runs"), jobTemplateName=template)["jobs"][:limit]
    print_rows(rows, ("jobId", "jobTemplateName", "status", "queuedAt", "finishedAt", "error"), session.output)


def log(session: Session, id: str) -> None:
    """Its text as it is, with a note on the error stream where a part of it is not stored."""
    at = 0
    while True:
        part = session.client.get(*_path(session, "runs"), id, "logs", offset=str(at))["log"]
        if part["offset"] > at:
            print_done(f"... {part['offset'] - at} bytes were not kept ...")
        print(plain(part["text"]), end="")
        if part["next"] >= part["total"]:
            return
        at = part["next"]


def cancel(session: Session, id: str) -> None:
    print_object(session.client.call("POST", *_path(session, "runs"), id)["job"], session.output)


def schedules(session: Session) -> None:
    rows = session.client.get(*_path(session, "schedules"))["schedules"]
    print_rows(rows, ("name", "jobTemplateName", "cron", "every", "enabled", "nextAt", "lastFailure"), session.output)


def schedule(
    session: Session, name: str, template: str, values: list[str], cron: str | None, every: int | None
) -> None:
    body = {"name": name, "jobTemplateName": template, "jobConf": _values(values), "cron": cron, "every": every}
    print_object(session.client.call("POST", *_path(session, "schedules"), body=body)["schedule"], session.output)


def switch(session: Session, name: str, stop: bool) -> None:
    changed = session.client.call("PATCH", *_path(session, "schedules"), name, body={"enabled": not stop})
    print_object(changed["schedule"], session.output)


def drop_schedule(session: Session, name: str, yes: bool) -> None:
    session.confirm(f"Delete schedule {name}?", yes)
    if not session.client.call("DELETE", *_path(session, "schedules"), name)["dropped"]:
        raise Failure(f"Schedule {name} does not exist.", Exit.MISSING)
    print_done(f"Deleted schedule {name}.")
