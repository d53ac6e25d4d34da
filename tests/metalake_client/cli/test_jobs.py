"""`gcli job` against a real server, whose built-in job needs no program of an operator's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.metalake_client.gcli import Gcli
from tests.metalake_client.stand_in import StandIn

CHECK = "builtin-check_server"


@pytest.mark.slow
def test_jobs(gcli: Gcli, tmp_path: Path) -> None:
    assert CHECK in [each["name"] for each in gcli.json("job", "templates")]
    assert gcli.json("job", "template-details", "--name", CHECK)["jobType"] == "shell"
    ended = gcli.json("job", "run", "--template", CHECK, "--value", "times=2", "--wait")
    assert ended["status"] == "succeeded" and ended["progress"]["done"] == 2
    assert gcli.ok("job", "log", "--id", ended["jobId"]).out.count("catalogs of") == 2
    assert [each["jobId"] for each in gcli.json("job", "list", "--template", CHECK)] == [ended["jobId"]]
    assert gcli.json("job", "details", "--id", ended["jobId"])["status"] == "succeeded"
    assert gcli.json("job", "cancel", "--id", ended["jobId"])["status"] == "succeeded"
    failed = gcli("job", "run", "--template", CHECK, "--value", "times=none", "--wait")
    assert failed.code == 1 and "failed" in failed.err
    wrong = gcli("job", "run", "--template", CHECK, "--value", "x=1")
    assert wrong.code == 2 and "'x'" in wrong.err
    file = tmp_path / "template.json"
    file.write_text(json.dumps({"name": "sh", "jobType": "shell", "executable": "/bin/sh"}))
    refused = gcli("job", "register", "--file", str(file))
    assert refused.code == 2 and "METALAKE_JOB_PATHS" in refused.err
    assert gcli("job", "drop-template", "--name", "none", "--yes").code == 4
    made = gcli.json("job", "schedule", "--name", "nightly", "--template", CHECK, "--cron", "0 2 * * *")
    assert made["enabled"] is True and made["cron"] == "0 2 * * *"
    assert gcli.json("job", "switch-schedule", "--name", "nightly", "--stop")["enabled"] is False
    assert gcli.json("job", "switch-schedule", "--name", "nightly", "--start")["enabled"] is True
    assert [each["name"] for each in gcli.json("job", "schedules")] == ["nightly"]
    gcli.ok("job", "drop-schedule", "--name", "nightly", "--yes")
    assert gcli("job", "schedule", "--name", "never", "--template", CHECK, "--cron", "0 0 30 2 *").code == 2


def test_values_that_are_none(stand_in: StandIn, alone: Gcli, tmp_path: Path) -> None:
    for value in ("x", "=1"):
        ended = alone("job", "run", "--template", "say", "--value", "a=b=c", "--value", value)
        assert ended.code == 2 and "number 2" in ended.err
    ended = alone("job", "register", "--file", str(tmp_path / "none.json"))
    assert ended.code == 2 and "cannot be read" in ended.err
