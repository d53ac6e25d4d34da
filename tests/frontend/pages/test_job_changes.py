"""Job templates and the system catalog are made, changed and dropped on pages, each shown before it is done."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from authz import snapshot
from jobs.models import JobRun, JobTemplate, Schedule, SystemCatalog
from jobs.services import runs, schedules, templates
from metalake.kinds import Kind
from tests.demo import actor, give
from tests.frontend.hostile import SOME

Ids = dict[str, int]


@pytest.fixture
def program(tmp_path: Path, settings: Any) -> str:
    settings.METALAKE_JOB_PATHS = (str(tmp_path),)
    settings.METALAKE_HOME = tmp_path / "home"
    settings.METALAKE_JOB_ENVIRONMENT = ("TEAM",)
    path = tmp_path / "say.sh"
    path.write_text("#!/bin/sh\necho $@\n")
    path.chmod(0o700)
    return str(path)


@pytest.fixture
def jobs(ids: Ids) -> str:
    return f"/metalakes/{ids['demo']}/jobs"


def typed(program: str, **more: str) -> dict[str, str]:
    given = {"what": "register-template", "name": "say", "type": "shell", "executable": program, "act": "preview"}
    return given | {"arguments": "{{day}}\r\n--loud", "environments": "TEAM=data"} | more


def fields_of(page: str) -> dict[str, str]:
    """The texts that a form holds."""
    given = dict(re.findall(r'<input[^>]* name="(\w+)" value="([^"]*)"', page))
    given |= dict(re.findall(r'<textarea[^>]* name="(\w+)"[^>]*>\n?(.*?)</textarea>', page, re.DOTALL))
    return {name: html.unescape(text) for name, text in given.items()}


def registered(program: str, arguments: list[str] | None = None) -> None:
    content = {"executable": program, "arguments": ["{{day}}"] if arguments is None else arguments}
    templates.register(actor("admin"), "demo", "say", "shell", content, "says it")
    snapshot.forget()


def test_a_template_is_made_after_a_preview(admin: Client, jobs: str, program: str) -> None:
    assert f"{jobs}/template" in admin.get(f"{jobs}?sort=templates").content.decode()
    assert 'name="executable"' in admin.get(f"{jobs}/template").content.decode()
    shown = admin.post(f"{jobs}/change", typed(program, comment="says it")).content.decode()
    assert "Make job template say?" in shown and "--loud" in shown and not JobTemplate.objects.exists()
    answer = admin.post(f"{jobs}/change", fields_of(shown) | {"act": "apply"})
    assert answer.headers["Location"] == f"{jobs}/start?template=say"
    row = JobTemplate.objects.get()
    assert (row.comment, row.content["arguments"], row.content["environments"]) == (
        "says it", ["{{day}}", "--loud"], {"TEAM": "data"},
    )  # fmt: skip
    page = admin.get(answer.headers["Location"]).content.decode()
    assert "Its last runs" in page and "Who may use it" in page and "admin" in page and ">Drop</a>" in page


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"name": ""}, "name"),
        ({"name": "builtin-x"}, "are built in"),
        ({"executable": "/bin/none"}, "executable"),
        ({"environments": "LD_PRELOAD=x"}, "cannot be set"),
        ({"environments": "no pair"}, "Environment: Line 1 is not of the form name=value."),
        ({"arguments": "{{a b}}"}, "is no placeholder"),
        ({"type": "x"}, "shell or Spark"),
        ({"configs": "a=b"}, "Spark settings: only for a spark job."),
        *(({"executable": text}, "executable") for text in SOME),
    ],
)
def test_what_is_wrong_is_said_and_the_form_stays(
    admin: Client, jobs: str, program: str, given: dict[str, str], says: str
) -> None:
    answer = admin.post(f"{jobs}/change", typed(program, **given))
    page = answer.content.decode()
    assert answer.status_code == 400 and says in html.unescape(page) and "Nothing was changed" in page
    assert fields_of(page)["executable"] == given.get("executable", program)
    assert not re.search(r"<script>|<img|<svg on", page)
    assert fields_of(page)["environments"] == given.get("environments", "TEAM=data")
    assert not JobTemplate.objects.exists()


def test_an_alteration_shows_what_changes_and_whom_it_stops(admin: Client, jobs: str, program: str) -> None:
    registered(program)
    add_schedule("nightly")
    form = fields_of(admin.get(f"{jobs}/template?template=say").content.decode())
    assert (form["arguments"], form["comment"]) == ("{{day}}", "says it")
    changed = form | {"arguments": "{{day}}\n<b>", "name": "shout", "comment": "", "act": "preview"}
    shown = admin.post(f"{jobs}/change", changed).content.decode()
    assert "&lt;b&gt;" in shown and "called shout" in shown and "1 schedule at work" in shown
    answer = admin.post(f"{jobs}/change", fields_of(shown) | {"act": "apply"})
    assert answer.headers["Location"] == f"{jobs}/start?template=shout"
    row = JobTemplate.objects.get()
    assert (row.name, row.comment, row.content["arguments"]) == ("shout", None, ["{{day}}", "<b>"])
    stale = admin.post(f"{jobs}/change", changed | {"template": "shout"})
    assert stale.status_code == 409 and "altered in the meantime" in stale.content.decode()


def add_schedule(name: str) -> None:
    schedules.create(actor("admin"), "demo", name, "say", {"day": "1"}, schedules.When(every=3600))


def test_what_a_form_cannot_hold_stays_as_it_is(admin: Client, jobs: str, program: str) -> None:
    registered(program, ["two\nlines", ""])
    page = admin.get(f"{jobs}/template?template=say").content.decode()
    form = fields_of(page)
    assert "Arguments: has line breaks" in page and "arguments" not in form
    same = admin.post(f"{jobs}/change", form | {"act": "preview"})
    assert same.status_code == 400 and "Nothing of it was changed." in same.content.decode()
    admin.post(f"{jobs}/change", form | {"comment": "new", "act": "apply"})
    row = JobTemplate.objects.get()
    assert (row.comment, row.content["arguments"]) == ("new", ["two\nlines", ""])


def test_a_template_is_dropped_once_its_runs_ended(admin: Client, jobs: str, program: str) -> None:
    registered(program)
    run = runs.start(actor("admin"), "demo", "say", {"day": "1"})
    add_schedule("nightly")
    drop = {"what": "drop-template", "template": "say"}
    assert "have not ended" in admin.get(f"{jobs}/change", drop).content.decode()
    runs.cancel(actor("admin"), "demo", str(run.pk))
    shown = admin.get(f"{jobs}/change", drop).content.decode()
    assert "1 run with the logs, and 1 schedule, go with it." in shown
    admin.post(f"{jobs}/change", drop | {"act": "apply"})
    assert not JobTemplate.objects.exists() and not JobRun.objects.exists() and not Schedule.objects.exists()


def test_others_change_no_template_and_learn_of_none(admin: Client, rita: Client, jobs: str, program: str) -> None:
    registered(program)
    add_schedule("nightly")
    for path in (
        "template?template=say",
        "change?what=drop-template&template=say",
        "change?what=alter-template&template=say",
    ):
        hidden, missing = (rita.get(f"{jobs}/{each}") for each in (path, path.replace("=say", "=none")))
        assert hidden.status_code == missing.status_code == 404, path
        pages = [re.sub(r"say|none|csrf\S+ value=\S+", "", each.content.decode()) for each in (hidden, missing)]
        assert pages[0] == pages[1]
    assert rita.get(f"{jobs}/change?what=drop-schedule&schedule=nightly").status_code == 404
    for path in ("template", "change?what=register-template", "change?what=make-system"):
        assert rita.get(f"{jobs}/{path}").status_code == 403, path
    give("rita", Kind.JOB_TEMPLATE, "say", "use_job_template")
    page = rita.get(f"{jobs}/start?template=say").content.decode()
    assert ">Drop</a>" not in page and ">Change</a>" not in page and "Who may use it" not in page
    for what in ("drop-template", "alter-template"):
        assert rita.post(f"{jobs}/change", {"what": what, "template": "say", "act": "apply"}).status_code == 403
    assert admin.get(f"{jobs}/template?template=builtin-check_server").status_code == 400
    assert JobTemplate.objects.exists()


def test_the_system_catalog_is_made(admin: Client, jobs: str) -> None:
    assert "Make the system catalog" in admin.get(f"{jobs}?sort=templates").content.decode()
    assert "system.access" in admin.get(f"{jobs}/change?what=make-system").content.decode()
    admin.post(f"{jobs}/change", {"what": "make-system", "act": "apply"})
    assert SystemCatalog.objects.exists()
    assert "Make the system catalog" not in admin.get(f"{jobs}?sort=templates").content.decode()
