"""Runs: queued on the wire, run by this process as a worker would, and seen by who may see them."""

from __future__ import annotations

import os
from typing import Any

import pytest

from authz.models import AuditEntry, Token
from jobs.models import JobRun
from jobs.running import cleanup, runner
from metalake.kinds import Kind
from metalake.models import Outbox
from tests.catalogs.callers import Answer, Caller, update
from tests.demo import add_member, give
from tests.jobs.bodies import RUNS, TEMPLATES, run, shell
from tests.jobs.conftest import Write

pytestmark = pytest.mark.store


def started(caller: Caller, template: str = "say", **conf: str) -> str:
    job: str = caller.post(RUNS, run(template, **conf))["job"]["jobId"]
    return job


def ran(caller: Caller, template: str = "say", **conf: str) -> dict[str, Any]:
    """The job of a run that has ended."""
    job = started(caller, template, **conf)
    assert runner.work() == 1
    ended: dict[str, Any] = caller.get(f"{RUNS}/{job}")["job"]
    return ended


def log_of(caller: Caller, job: str, query: str = "") -> dict[str, Any]:
    log: dict[str, Any] = caller.get(f"{RUNS}/{job}/logs{query}")["log"]
    return log


def test_it_works(admin: Caller, program: Write) -> None:
    admin.post(TEMPLATES, shell(program(), "--x={{x}}", "{{y}} {{y}}"))
    queued = admin.post(RUNS, run(x="a b", y="$(id) 'c'"))["job"]
    assert queued["status"] == "queued" and queued["jobTemplateName"] == "say" and queued["audit"]["creator"] == "admin"
    assert Outbox.objects.filter(topic="job.run").count() == 1
    assert runner.work() == 1
    job = admin.get(f"{RUNS}/{queued['jobId']}")["job"]
    assert (job["status"], job["exitCode"]) == ("succeeded", 0) and job["queuedAt"] <= job["startedAt"]
    assert job["startedAt"] <= job["finishedAt"] and "error" not in job
    log = log_of(admin, job["jobId"])
    assert log == {"text": "said --x=a b $(id) 'c' $(id) 'c'\n", "offset": 0, "next": 33, "total": 33, "leftOut": 0}
    events = AuditEntry.objects.filter(kind="job").order_by("pk").values_list("event", "actor", "details__status")
    assert list(events) == [("job.queued", "admin", None), ("job.ended", "metalake", "succeeded")]
    assert not runner.folder_of(int(job["jobId"])).exists()


def test_how_it_ends(admin: Caller, program: Write) -> None:
    for name, text, status, code, error in [
        ("fails", "#!/bin/sh\nexit 3\n", "failed", 3, "It ended with 3."),
        ("dies", "#!/bin/sh\nkill -9 $$\n", "failed", -9, "It was ended by signal 9."),
        ("no-program", "#!/no/such/program\n", "failed", None, "It could not be started: No such file or directory."),
    ]:
        admin.post(TEMPLATES, shell(program(text, f"{name}.sh"), name=name))
        job = ran(admin, name)
        assert (job["status"], job.get("exitCode"), job["error"]) == (status, code, error)


def test_the_limits_of_time_and_memory(admin: Caller, program: Write, settings: Any) -> None:
    admin.post(TEMPLATES, shell(program("#!/bin/sh\nsleep 600\n", "sleep.sh"), name="sleep"))
    settings.METALAKE_JOB_TIMEOUT = 1
    job = ran(admin, "sleep")
    assert job["status"] == "failed" and "METALAKE_JOB_TIMEOUT" in job["error"]
    settings.METALAKE_JOB_TIMEOUT = 600
    settings.METALAKE_JOB_MEMORY = 64 << 20
    greedy = "#!/usr/bin/env python3\nimport time\nx = b'x' * (256 << 20)\ntime.sleep(600)\n"
    admin.post(TEMPLATES, shell(program(greedy, "greedy.py"), name="greedy"))
    job = ran(admin, "greedy")
    assert job["status"] == "failed" and "METALAKE_JOB_MEMORY" in job["error"]


def test_the_environment_is_made_from_nothing(
    admin: Caller, program: Write, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METALAKE_SECRET_OF_THE_SERVER", "canary")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary")
    settings.METALAKE_JOB_ENVIRONMENT = ("TEAM",)
    text = "#!/bin/sh\nenv; pwd; ls; cat /proc/self/status | grep -c . >/dev/null; echo $METALAKE_TOKEN\n"
    admin.post(
        TEMPLATES, shell(program(text, "env.sh"), environments={"TEAM": "{{team}}"}, scripts=[program(name="b.sh")])
    )
    text = log_of(admin, ran(admin, team="x=1")["jobId"])["text"]
    variables = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    assert variables.pop("_", "") is not None
    assert set(variables) - {"PWD", "SHLVL", "OLDPWD"} == {
        "PATH", "HOME", "TMPDIR", "LANG", "TEAM", "METALAKE_URL", "METALAKE_METALAKE", "METALAKE_TOKEN", "METALAKE_RUN",
    }  # fmt: skip
    assert variables["TEAM"] == "x=1" and variables["METALAKE_METALAKE"] == "demo"
    assert "canary" not in text and "mlk_" not in text
    assert variables["METALAKE_TOKEN"] == "******" and text.endswith("******\n")
    assert "b.sh\n" in text


def test_a_log_that_is_too_long(admin: Caller, program: Write, settings: Any) -> None:
    settings.METALAKE_JOB_LOG = 4096
    text = "#!/bin/sh\nhead -c 20000000 /dev/zero | tr '\\0' x\necho\necho the end\n"
    admin.post(TEMPLATES, shell(program("#!/bin/sh\necho the beginning\n" + text[10:], "long.sh")))
    job = ran(admin)["jobId"]
    log = log_of(admin, job)
    assert log["total"] == 20000000 + 14 + 1 + 8 and log["leftOut"] == log["total"] - 4096
    assert log["text"].startswith("the beginning\nxxx") and log["next"] == 1024
    rest = log_of(admin, job, "?offset=1024")
    assert rest["offset"] == log["total"] - 3072 and rest["text"].endswith("x\nthe end\n")
    part = log_of(admin, job, f"?offset={log['total'] - 8}&limit=7")
    assert (part["text"], part["next"]) == ("the end", log["total"] - 1)
    assert log_of(admin, job, "?offset=999999999999")["text"] == ""
    assert admin.get(f"{RUNS}/{job}/logs?offset=-1").error == (400, 1001, "IllegalArgumentException")


# Values


def refused(answer: Answer, *words: str) -> None:
    assert answer.error == (400, 1001, "IllegalArgumentException"), answer.body
    assert all(word in answer.message for word in words), answer.message
    assert not JobRun.objects.exists()


def test_values_that_do_not_fit(admin: Caller, program: Write) -> None:
    admin.post(TEMPLATES, shell(program(), "--x={{x}}", "{{y}}"))
    refused(admin.post(RUNS, run(x="1")), "y")
    refused(admin.post(RUNS, run(x="1", y="2", z="3")), "'z'", "x, y")
    refused(admin.post(RUNS, run(x="1", y="--delete")), "y", "dash")
    refused(admin.post(RUNS, run(x="1", y="x" * 9000)), "jobConf.y")
    refused(admin.post(RUNS, {"jobTemplateName": "say", "jobConf": {"x": 1, "y": "2"}}), "jobConf.x")
    refused(admin.post(RUNS, {"jobTemplateName": "say", "jobConf": ["x"]}), "jobConf")
    refused(admin.post(RUNS, {"jobConf": {}}), "jobTemplateName")
    assert admin.post(RUNS, run("none")).error == (404, 1003, "NoSuchJobTemplateException")
    assert admin.post(RUNS, run(x="-", y="-1.5e3")).status == 200


# Rights


def test_who_may_run(admin: Caller, mia: Caller, program: Write) -> None:
    admin.post(TEMPLATES, shell(program()))
    assert mia.post(RUNS, run()).error == (403, 1008, "ForbiddenException")
    give("mia", Kind.METALAKE, "demo", "run_job")
    assert mia.post(RUNS, run()).error == (404, 1003, "NoSuchJobTemplateException")
    give("mia", Kind.JOB_TEMPLATE, "say", "use_job_template")
    assert mia.post(RUNS, run()).status == 200
    give("mia", Kind.METALAKE, "demo", "deny run_job")
    assert mia.post(RUNS, run()).status == 403


def test_who_sees_runs(admin: Caller, mia: Caller, program: Write) -> None:
    add_member("nils")
    nils = Caller("nils")
    for name in ("mia", "nils"):
        give(name, Kind.METALAKE, "demo", "run_job", "use_job_template")
    admin.post(TEMPLATES, shell(program()))
    hers, his = started(mia), started(nils)
    listed = admin.get(RUNS)
    assert [job["jobId"] for job in listed["jobs"]] == [his, hers] and listed["statusCounts"]["queued"] == 2
    assert [job["jobId"] for job in mia.get(RUNS)["jobs"]] == [hers]
    for path in ("", "/progress", "/logs"):
        hidden, missing = nils.get(f"{RUNS}/{hers}{path}"), nils.get(f"{RUNS}/{int(hers) + 1}{path}")
        assert hidden.error == missing.error == (404, 1003, "NoSuchJobException")
        assert mia.get(f"{RUNS}/{hers}{path}").status == admin.get(f"{RUNS}/{hers}{path}").status == 200
    assert nils.post(f"{RUNS}/{hers}").status == 404
    assert admin.post(f"{RUNS}/{hers}")["job"]["status"] == "cancelled"
    assert mia.get(f"{RUNS}/{hers}")["job"]["audit"]["lastModifier"] == "admin"
    for odd in ("x", "9" * 30, "-1", "%C2%B2"):
        assert mia.get(f"{RUNS}/{odd}").error == (404, 1003, "NoSuchJobException")


def test_lists_are_chosen(admin: Caller, program: Write) -> None:
    admin.post(TEMPLATES, shell(program()))
    admin.post(TEMPLATES, shell(program(), name="other"))
    first = ran(admin)
    second = admin.post(RUNS, run("other"))["job"]
    for query, expected in {
        "": [second, first], "?sortOrder=asc": [first, second], "?jobTemplateName=say": [first],
        "?sortBy=finishedAt": [first, second], f"?queuedAfter={second['queuedAt']}": [second],
        "?finishedAfter=2020-01-01T00:00:00Z": [first], "?startedAfter=2999-01-01": [],
    }.items():  # fmt: skip
        jobs = admin.get(f"{RUNS}{query}")["jobs"]
        assert [job["jobId"] for job in jobs] == [job["jobId"] for job in expected], query
    assert admin.get(f"{RUNS}?jobTemplateName=none").status == 404
    for query in ("sortBy=x", "sortOrder=up", "queuedAfter=2026-02-30", "queuedAfter=soon"):
        assert admin.get(f"{RUNS}?{query}").error == (400, 1001, "IllegalArgumentException")


def test_runs_follow_a_renamed_template(admin: Caller, program: Write) -> None:
    admin.post(TEMPLATES, shell(program()))
    job = started(admin)
    admin.put(f"{TEMPLATES}/say", update("rename", newName="tell"))
    assert [each["jobId"] for each in admin.get(f"{RUNS}?jobTemplateName=tell")["jobs"]] == [job]
    assert runner.work() == 1 and admin.get(f"{RUNS}/{job}")["job"]["status"] == "succeeded"


def test_rights_are_asked_again_at_the_start(admin: Caller, mia: Caller, program: Write) -> None:
    give("mia", Kind.METALAKE, "demo", "run_job", "use_job_template", role="runner")
    admin.post(TEMPLATES, shell(program()))
    job = started(mia)
    admin.delete("metalakes/demo/roles/runner")
    assert runner.work() == 1
    ended = mia.get(f"{RUNS}/{job}")["job"]
    assert ended["status"] == "failed" and "may not run job" in ended["error"]
    assert not Token.objects.exists()


# Cancelling and progress


def test_cancelling_what_waits_and_what_has_ended(admin: Caller, program: Write) -> None:
    admin.post(TEMPLATES, shell(program()))
    job = started(admin)
    assert admin.post(f"{RUNS}/{job}", {})["job"]["status"] == "cancelled"
    assert runner.work() == 0
    ended = ran(admin)
    assert admin.post(f"{RUNS}/{ended['jobId']}")["job"] == ended
    assert AuditEntry.objects.filter(event="job.cancelled").count() == 1
    strange = admin.raw("POST", f"{RUNS}/{job}", Origin="https://elsewhere.example")
    assert strange.error == (403, 1008, "ForbiddenException")


def test_progress(admin: Caller, mia: Caller, program: Write) -> None:
    admin.post(TEMPLATES, shell(program()))
    job = started(admin)
    progress = {"done": 5, "total": 20, "stage": "reading"}
    waiting = admin.send("PUT", f"{RUNS}/{job}/progress", progress)
    assert waiting.error == (400, 1001, "IllegalArgumentException")
    assert runner.run_rows.take() is not None
    shown = admin.send("PUT", f"{RUNS}/{job}/progress", progress)["progress"]
    assert (shown["done"], shown["total"], shown["stage"], shown["status"]) == (5, 20, "reading", "started")
    assert shown["rate"] > 0 and shown["eta"] >= 0
    assert mia.send("PUT", f"{RUNS}/{job}/progress", progress).status == 404
    for wrong in ({"done": 21, "total": 20}, {"done": -1}, {"done": 1.5}, {"done": True}, {}, {"done": 1, "x": 1}):
        assert admin.send("PUT", f"{RUNS}/{job}/progress", wrong).error == (400, 1001, "IllegalArgumentException")


# What is kept, and for how long


def test_old_runs_are_forgotten(admin: Caller, program: Write, settings: Any) -> None:
    admin.post(TEMPLATES, shell(program()))
    old, new = ran(admin)["jobId"], ran(admin)["jobId"]
    JobRun.objects.filter(pk=old).update(finished_at="2020-01-01T00:00:00Z")
    left = runner.folder_of(int(new))
    (left / "work").mkdir(parents=True)
    cleanup.sweep()
    assert [job["jobId"] for job in admin.get(RUNS)["jobs"]] == [new]
    assert not left.exists()


def test_a_run_is_lost_when_its_lease_is_over(admin: Caller, program: Write) -> None:
    admin.post(TEMPLATES, shell(program()))
    job = started(admin)
    run = runner.run_rows.take()
    assert run is not None
    runner.run_rows.prepare(run, "/")
    cleanup.sweep()
    assert admin.get(f"{RUNS}/{job}")["job"]["status"] == "started"
    JobRun.objects.filter(pk=job).update(lease_until="2020-01-01T00:00:00Z")
    cleanup.sweep()
    lost = admin.get(f"{RUNS}/{job}")["job"]
    assert lost["status"] == "failed" and "gone" in lost["error"]
    assert Token.objects.get().revoked_at is not None
    with pytest.raises(runner.TakenOver):
        runner.run_rows.finish(run, "succeeded", 0, "", None)
    assert str(os.getpid()) in JobRun.objects.get().worker
