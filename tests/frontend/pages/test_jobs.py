"""The pages of jobs: what one may run, how it goes, and when it runs by itself."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from access.usage import reports
from authz import snapshot
from jobs.models import JobRun, Schedule
from jobs.running import runner
from jobs.services import runs, templates
from metalake.kinds import Kind
from tests.demo import actor, add_member, add_user, give
from tests.frontend.conftest import add_view, sign_in
from views_mgmt.services import findings

HOSTILE = "<script>alert(1)</script>"
Ids = dict[str, int]


@pytest.fixture
def jobs(ids: Ids, tmp_path: Path, settings: Any) -> str:
    """The path of the pages; the template `say` echoes what it is given."""
    settings.METALAKE_JOB_PATHS = (str(tmp_path),)
    settings.METALAKE_HOME = tmp_path / "home"
    program = tmp_path / "say.sh"
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o700)
    content = {"executable": str(program), "arguments": ["{{first}}", "--second={{second}}"]}
    templates.register(actor("admin"), "demo", "say", "shell", content, "says it")
    snapshot.forget()
    return f"/metalakes/{ids['demo']}/jobs"


def text(client: Client, path: str, status: int = 200, *, part: bool = False) -> str:
    """What a page says, without the key of its forms."""
    answer = client.get(path, headers={"HX-Request": "true"} if part else {})
    assert answer.status_code == status, answer.content.decode()[:300]
    return re.sub(r'(name="csrfmiddlewaretoken" value=)"\w+"', r"\1", answer.content.decode())


def test_run_and_look(admin: Client, jobs: str) -> None:
    assert "Jobs</a>" in text(admin, f"/objects/{jobs.split('/')[2]}")
    listed = text(admin, f"{jobs}?sort=templates")
    assert "says it" in listed and "built in" in listed and f"{jobs}/start?template=say" in listed
    form = text(admin, f"{jobs}/start?template=say")
    assert 'name="value-first"' in form and 'name="value-second"' in form
    answer = admin.post(f"{jobs}/start?template=say", {"value-first": HOSTILE, "value-second": "x", "act": "run"})
    run = JobRun.objects.get()
    assert (answer.status_code, answer.headers["Location"]) == (302, f"{jobs}/runs/{run.pk}")
    waiting = text(admin, f"{jobs}/runs/{run.pk}")
    assert "waits" in waiting and "Cancel the run" in waiting and "every 2s" in waiting
    assert "every 3s" in text(admin, jobs)
    assert runner.work() == 1
    ended = text(admin, f"{jobs}/runs/{run.pk}")
    assert "succeeded" in ended and "&lt;script&gt;alert(1)&lt;/script&gt; --second=x" in ended
    assert "Cancel the run" not in ended and "every 2s" not in ended and HOSTILE not in ended
    part = text(admin, f"{jobs}/runs/{run.pk}", part=True)
    assert "<html" not in part and part.strip().startswith('<div id="run">')
    assert "<html" not in text(admin, jobs, part=True)


def test_a_run_that_ended_says_what_it_did_without_a_bar(admin: Client, ids: Ids) -> None:
    now = datetime.now(UTC)
    ended = {"status": JobRun.Status.SUCCEEDED, "metalake_id": ids["demo"], "user_id": actor("admin").id}
    moments = {"started_at": now - timedelta(seconds=2), "progressed_at": now, "finished_at": now}
    for done, says in ((0, ""), (5, "5, 2.5 a second")):
        run = JobRun.objects.create(template_name="t", user_name="admin", done=done, total=done, **ended, **moments)
        page = admin.get(f"/metalakes/{ids['demo']}/jobs/runs/{run.pk}").content.decode()
        assert "<progress" not in page and ("<dt>Did</dt>" in page) == bool(says) and says in page


def test_progress_and_cancelling(admin: Client, jobs: str) -> None:
    admin.post(f"{jobs}/start?template=say", {"value-first": "1", "value-second": "2", "act": "run"})
    run = runner.run_rows.take()
    assert run is not None
    runs.progress(actor("admin"), "demo", str(run.pk), 1500, 6000, "reading <b>")
    shown = text(admin, f"{jobs}/runs/{run.pk}")
    assert 'max="6000" value="1500"' in shown and "reading &lt;b&gt;" in shown and "to go" in shown
    answer = admin.post(f"{jobs}/runs/{run.pk}/cancel", headers={"HX-Request": "true"})
    assert "is being cancelled" in answer.content.decode()
    assert JobRun.objects.get().status == JobRun.Status.CANCELLING


def test_a_refusal_keeps_what_was_written(admin: Client, jobs: str) -> None:
    answer = admin.post(f"{jobs}/start?template=say", {"value-first": "--x", "value-second": "a b", "act": "run"})
    page = answer.content.decode()
    assert answer.status_code == 422 and "cannot begin" in page and 'value="a b"' in page
    given = {"value-first": "1", "value-second": "2", "act": "schedule", "name": "nightly", "cron": "0 0 30 2 *"}
    answer = admin.post(f"{jobs}/start?template=say", given)
    assert answer.status_code == 422 and "never occurs" in answer.content.decode()
    assert not JobRun.objects.exists() and not Schedule.objects.exists()


def test_schedules(admin: Client, jobs: str) -> None:
    given = {"value-first": "1", "value-second": "2", "act": "schedule", "name": "nightly", "cron": "0 2 * * *"}
    answer = admin.post(f"{jobs}/start?template=say", given)
    assert answer.headers["Location"] == f"{jobs}?sort=schedules"
    listed = text(admin, f"{jobs}?sort=schedules")
    assert "Schedule nightly is made." in listed and "<code>0 2 * * *</code>" in listed and "Stop" in listed
    admin.post(f"{jobs}/schedules", {"name": "nightly", "act": "disable"})
    listed = text(admin, f"{jobs}?sort=schedules")
    assert "stopped" in listed and "Start again" in listed and not Schedule.objects.get().enabled
    admin.post(f"{jobs}/schedules", {"name": "nightly", "act": "enable"})
    assert Schedule.objects.get().enabled
    gone = {"what": "drop-schedule", "schedule": "nightly"}
    assert "Its runs stay" in text(admin, f"{jobs}/change?what=drop-schedule&schedule=nightly")
    admin.post(f"{jobs}/change", gone | {"act": "apply"})
    assert "There is none." in text(admin, f"{jobs}?sort=schedules") and not Schedule.objects.exists()
    assert admin.post(f"{jobs}/schedules", {"name": "nightly", "act": "enable"}).status_code == 404


def test_a_schedule_that_stopped_shows_what_was_altered(admin: Client, jobs: str) -> None:
    given = {"value-first": "1", "value-second": "2", "act": "schedule", "name": "nightly", "cron": "0 2 * * *"}
    admin.post(f"{jobs}/start?template=say", given)
    altered = templates.Changes(job_type="shell", content={"arguments": [HOSTILE]})
    a_run = replace(actor("admin"), within=int(jobs.split("/")[2]))
    templates.alter(a_run, "demo", "say", [altered])
    listed = text(admin, f"{jobs}?sort=schedules")
    assert "was altered (arguments), last by admin" in listed and HOSTILE not in listed
    assert "{{first}}" in listed and "<ins>[&quot;&lt;script&gt;" in listed
    admin.post(f"{jobs}/schedules", {"name": "nightly", "act": "enable"})
    assert Schedule.objects.get().enabled and "<ins>" not in text(admin, f"{jobs}?sort=schedules")


def test_who_sees_what(admin: Client, rita: Client, jobs: str, ids: Ids) -> None:
    admin.post(f"{jobs}/start?template=say", {"value-first": "1", "value-second": "2", "act": "run"})
    run = JobRun.objects.get()
    assert "Nothing has run yet." in text(rita, jobs) and "You see your own." in text(rita, jobs)
    assert "none that you may use" in text(rita, f"{jobs}?sort=templates")
    hidden, missing = (text(rita, f"{jobs}/runs/{id}", 404) for id in (run.pk, 1))
    assert hidden == missing
    assert text(rita, f"{jobs}/start?template=say", 404) == text(rita, f"{jobs}/start?template=none", 404)
    assert rita.post(f"{jobs}/runs/{run.pk}/cancel").status_code == 404
    give("rita", Kind.JOB_TEMPLATE, "say", "use_job_template")
    assert "run_job" in text(rita, f"{jobs}/start?template=say")
    given = {"value-first": "1", "value-second": "2", "act": "run"}
    assert rita.post(f"{jobs}/start?template=say", given).status_code == 403
    add_user("nobody")
    assert sign_in("nobody").get(jobs).status_code == 404
    for odd in ("?sort=none", "/start", "/start?template=", "/start?template=%00"):
        text(admin, f"{jobs}{odd}", 404)


def test_templates_are_no_place_in_the_tree(admin: Client, jobs: str) -> None:
    template = templates.load_template(actor("admin"), "demo", "say").located
    assert template is not None
    for path in ("", "/children", "/access", "/grant", "/history"):
        assert admin.get(f"/objects/{template.id}{path}").status_code == 404, path


def test_what_jobs_say_of_views_and_of_what_is_dormant(admin: Client, ids: Ids) -> None:
    page = f"/metalakes/{ids['demo']}/jobs/findings"
    assert "None that you may load" in text(admin, page) and "No job has looked yet" in text(
        admin, f"{page}?of=objects"
    )
    until, used = "2026-03-01T00:00:00+00:00", datetime(2025, 1, 2, tzinfo=UTC)
    objects = [(ids["eu"], None), (ids["lake"], used), (10**12, None)]
    add_member("nina")
    report = reports.DormancyReport(datetime.fromisoformat(until), 90, 20_000, 1, objects, [("nina", None)])
    reports.deliver(actor("admin"), "demo", report)
    shown = text(admin, f"{page}?of=objects")
    assert "Without use for 90 days" in shown and "20000" in shown and "The longest unused are here" in shown
    assert f'href="/objects/{ids["eu"]}"' in shown and "none on record" in shown and "2025" in shown
    assert "nina" in text(admin, f"{page}?of=people")
    for wrong in ("of=x", "after=x", "after=-1", "of=objects&after=" + "9" * 30):
        assert admin.get(f"{page}?{wrong}").status_code == 404
    nina = sign_in("nina")
    assert "Dormant objects" not in text(nina, page)
    assert nina.get(f"{page}?of=objects").status_code == 403


def test_a_broken_view_is_listed_and_its_page_says_why(admin: Client, ids: Ids) -> None:
    view = add_view("orders", "eu", "late")
    wrong = {"text": f"There is no column {HOSTILE}.", "line": 1, "column": 8}
    reads = [{"catalog": "lake", "schemaName": "eu", "name": "sales"}]
    columns = [{"name": "nope", "type": "string", "madeOf": [{"source": 0, "name": "amount"}]}]
    dialect = {"dialect": "spark", "problems": [wrong], "differences": [], "reads": reads, "columns": columns}
    findings.deliver(actor("admin"), "demo", "Spark 4.1.4", [findings.Finding(view, 1, [dialect])])
    listed = text(admin, f"/metalakes/{ids['demo']}/jobs/findings")
    assert f"/objects/{view}/dialects" in listed and "There is no column" in listed and HOSTILE not in listed
    page = text(admin, f"/objects/{view}/dialects")
    assert "As Spark 4.1.4 reads it" in page and "It would not run" in page and "sales.amount" in page
    assert HOSTILE not in page
    add_member("nina")
    give("nina", Kind.CATALOG, "lake", "use_catalog", "use_schema", "select_view")
    nina = sign_in("nina")
    assert "None that you may load" in text(nina, f"/metalakes/{ids['demo']}/jobs/findings")
    page = text(nina, f"/objects/{view}/dialects")
    assert "What Spark 4.1.4 says of it is not shown" in page and "It would not run" not in page
