"""The calls of docs/jobs.md, as they stand there."""

from __future__ import annotations

import json
import re
from typing import Any

from jobs.running import runner
from tests.architecture.rooms import REPOSITORY
from tests.catalogs.callers import Caller
from tests.jobs.bodies import RUNS, SCHEDULES, TEMPLATES
from tests.jobs.conftest import Write

TEXT = (REPOSITORY / "docs" / "jobs.md").read_text()


def test_the_calls_of_the_page(admin: Caller, program: Write) -> None:
    text = re.search(r"<<'PROGRAM'\n(.*?)\nPROGRAM", TEXT, re.DOTALL)
    bodies = [json.loads(body) for body in re.findall(r"-d '\s*(\{.*?\})'", TEXT, re.DOTALL)]
    assert text and len(bodies) == 3
    template, run, schedule = bodies
    assert template["jobTemplate"]["executable"] == "/opt/jobs/greet.sh"
    template["jobTemplate"]["executable"] = program(text[1].replace("curl -s", "echo curl -s"), "greet.sh")
    assert admin.post(TEMPLATES, template).status == 200
    job: Any = admin.post(RUNS, run)["job"]
    assert runner.work() == 1
    assert admin.get(f"{RUNS}/{job['jobId']}")["job"]["status"] == "succeeded"
    said = admin.get(f"{RUNS}/{job['jobId']}/logs")["log"]["text"]
    assert said.startswith("Hello, Mia: curl -s -H Authorization: Bearer ******")
    assert admin.post(SCHEDULES, schedule)["schedule"]["cron"] == "0 6 * * 1-5"


def test_the_settings_stand_in_the_page_of_operations() -> None:
    settings = set(re.findall(r"METALAKE_(?:JOB|SPARK)\w*", (REPOSITORY / "metalake" / "settings.py").read_text()))
    operations = (REPOSITORY / "docs" / "operations.md").read_text()
    assert settings and not [name for name in settings if f"`{name}`" not in operations]
