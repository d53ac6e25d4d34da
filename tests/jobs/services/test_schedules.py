"""Schedules: what they start and as whom, and those that could never start anything."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from django_celery_beat.models import PeriodicTask

from authz.models import AuditEntry
from jobs.models import JobRun, Schedule
from jobs.running import runner
from jobs.services import schedules
from jobs.services.schedules import When
from metalake.kinds import Kind
from tests.cases import each
from tests.catalogs.callers import Caller
from tests.demo import give
from tests.jobs.bodies import RUNS, SCHEDULES, TEMPLATES, shell
from tests.jobs.conftest import Write

pytestmark = pytest.mark.store


@pytest.fixture
def say(admin: Caller, program: Write) -> None:
    admin.post(TEMPLATES, shell(program(), "{{x}}"))


def body(**more: Any) -> dict[str, Any]:
    return {"name": "nightly", "jobTemplateName": "say", "jobConf": {"x": "1"}, "every": 3600} | more


def ring(name: str = "nightly") -> int:
    """Have the clock of a schedule ring, as if its time had come."""
    row = Schedule.objects.get(name=name)
    PeriodicTask.objects.filter(args=f"[{row.pk}]").update(last_run_at=timezone.now() - timedelta(days=400))
    return schedules.begin_due()


def test_it_works(admin: Caller, say: None) -> None:
    made = admin.post(SCHEDULES, body())["schedule"]
    assert (made["every"], made["enabled"], made["owner"], made["jobConf"]) == (3600, True, "admin", {"x": "1"})
    assert admin.get(SCHEDULES)["schedules"] == [made] and admin.get(f"{SCHEDULES}/nightly")["schedule"] == made
    assert schedules.begin_due() == 0  # an hour has not passed
    assert ring() == 1 and schedules.begin_due() == 0
    (job,) = admin.get(RUNS)["jobs"]
    assert (job["schedule"], job["audit"]["creator"], job["status"]) == ("nightly", "admin", "queued")
    assert ring() == 1 and JobRun.objects.count() == 1  # the first one has not ended
    assert admin.get(f"{SCHEDULES}/nightly")["schedule"]["lastFailure"] == schedules.NOT_ENDED
    assert runner.work() == 1 and ring() == 1 and JobRun.objects.count() == 2
    assert "lastFailure" not in admin.get(f"{SCHEDULES}/nightly")["schedule"]
    assert admin.delete(f"{SCHEDULES}/nightly")["dropped"] is True
    assert admin.delete(f"{SCHEDULES}/nightly")["dropped"] is False
    assert admin.get(f"{SCHEDULES}/nightly").status == 404 and JobRun.objects.count() == 2
    assert not PeriodicTask.objects.filter(task=schedules.TASK).exists()
    events = AuditEntry.objects.filter(kind="schedule").order_by("pk").values_list("event", flat=True)
    assert list(events) == ["schedule.created", "schedule.dropped"]


def test_a_clock_rings_between_its_first_and_its_last_moment(admin: Caller, say: None) -> None:
    admin.post(SCHEDULES, body())
    now, day = timezone.now(), timedelta(days=1)
    for bounds in ({"start_time": now + day, "expires": None}, {"start_time": None, "expires": now - day}):
        PeriodicTask.objects.filter(task=schedules.TASK).update(**bounds)
        assert ring() == 0 and not JobRun.objects.exists()
    PeriodicTask.objects.filter(task=schedules.TASK).update(start_time=now - day, expires=now + day)
    assert ring() == 1


def test_with_a_broker_beat_rings(admin: Caller, say: None, settings: Any) -> None:
    admin.post(SCHEDULES, body())
    settings.METALAKE_BROKER_URL = "redis://elsewhere"
    assert ring() == 0
    (clock,) = PeriodicTask.objects.filter(task=schedules.TASK)
    assert clock.enabled and clock.interval.every == 3600
    assert schedules.begin(Schedule.objects.get().pk) is not None


def test_stopping(admin: Caller, say: None) -> None:
    admin.post(SCHEDULES, body())
    stopped = admin.send("PATCH", f"{SCHEDULES}/nightly", {"enabled": False})["schedule"]
    assert stopped["enabled"] is False and "nextAt" not in stopped
    assert ring() == 0
    admin.send("PATCH", f"{SCHEDULES}/nightly", {"enabled": True})
    assert ring() == 1 and JobRun.objects.count() == 1


# What never fires


@each(
    "given, word",
    [
        ({"cron": "0 0 30 2 *"}, "never occurs"),
        ({"cron": "0 0 31 4,6,9,11 *"}, "never occurs"),
        ({"cron": "61 * * * *"}, "61"),
        ({"cron": "* * * *"}, "five fields"),
        ({"cron": "@hourly"}, "five fields"),
        ({"cron": "a b c d e"}, "cron"),
        ({"cron": ""}, "five fields"),
        ({"cron": "0 0 * * *", "every": 3600}, "one of the two"),
        ({}, "one of the two"),
        ({"every": 0}, "every"),
        ({"every": 59}, "every"),
        ({"every": "3600"}, "every"),
        ({"every": 3600, "endsAt": "2020-01-01T00:00:00Z"}, "never fires"),
        ({"every": 3600, "startsAt": "2099-01-01T00:00:00Z", "endsAt": "2099-01-01T00:30:00Z"}, "never fires"),
        ({"cron": "0 0 29 2 *", "startsAt": "2097-01-01T00:00:00Z", "endsAt": "2098-12-31T00:00:00Z"}, "never fires"),
        ({"every": 3600, "startsAt": "2026-02-30T00:00:00Z"}, "startsAt"),
        ({"every": 3600, "endsAt": "soon"}, "endsAt"),
        ({"every": 3600, "endsAt": "9999-12-31T23:59:59-12:00"}, "endsAt"),
    ],
)
def test_a_schedule_that_never_fires(admin: Caller, say: None, given: dict[str, Any], word: str) -> None:
    asked = body(**given)
    if "every" not in given:
        del asked["every"]
    answer = admin.post(SCHEDULES, asked)
    assert answer.error == (400, 1001, "IllegalArgumentException"), answer.body
    assert word in answer.message
    assert not Schedule.objects.exists() and not PeriodicTask.objects.filter(task=schedules.TASK).exists()


def test_values_and_names(admin: Caller, say: None) -> None:
    assert "x" in admin.post(SCHEDULES, body(jobConf={})).message
    assert admin.post(SCHEDULES, body(name="a b")).status == 400
    assert admin.post(SCHEDULES, body(jobTemplateName="none")).error[2] == "NoSuchJobTemplateException"
    assert admin.post(SCHEDULES, body()).status == 200
    assert admin.post(SCHEDULES, body()).error == (409, 1004, "AlreadyExistsException")


def test_when_it_fires() -> None:
    moment = datetime(2026, 3, 1, 10, 30, tzinfo=UTC)
    assert When(cron="15 2 * * *").next_after(moment) == datetime(2026, 3, 2, 2, 15, tzinfo=UTC)
    assert When(cron="0 0 29 2 *").next_after(moment) == datetime(2028, 2, 29, tzinfo=UTC)
    assert When(every=60).next_after(moment) == moment + timedelta(seconds=60)


# As whom


def test_it_runs_as_its_owner(admin: Caller, mia: Caller, say: None) -> None:
    give("mia", Kind.METALAKE, "demo", "run_job", role="runner")
    assert mia.post(SCHEDULES, body()).error == (404, 1003, "NoSuchJobTemplateException")
    give("mia", Kind.JOB_TEMPLATE, "say", "use_job_template")
    assert mia.post(SCHEDULES, body()).status == 200
    assert ring() == 1
    (job,) = mia.get(RUNS)["jobs"]
    assert job["audit"]["creator"] == "mia"
    runner.work()
    admin.delete("metalakes/demo/roles/runner")
    assert ring() == 1 and JobRun.objects.count() == 1
    assert "may not run job" in mia.get(f"{SCHEDULES}/nightly")["schedule"]["lastFailure"]
    assert mia.post(SCHEDULES, body(name="other")).error == (403, 1008, "ForbiddenException")


def test_who_sees_and_stops_it(admin: Caller, mia: Caller, say: None) -> None:
    admin.post(SCHEDULES, body())
    for method, sent in (("GET", None), ("PATCH", {"enabled": False})):
        hidden, missing = (mia.send(method, f"{SCHEDULES}/{name}", sent) for name in ("nightly", "none"))
        assert hidden.error == missing.error == (404, 1003, "NotFoundException")
    assert mia.delete(f"{SCHEDULES}/nightly")["dropped"] is False and mia.get(SCHEDULES)["schedules"] == []
    give("mia", Kind.METALAKE, "demo", "run_job", "use_job_template")
    mia.post(SCHEDULES, body(name="hers"))
    assert [each["name"] for each in admin.get(SCHEDULES)["schedules"]] == ["hers", "nightly"]
    assert admin.send("PATCH", f"{SCHEDULES}/hers", {"enabled": False}).status == 200
    assert admin.send("PATCH", f"{SCHEDULES}/hers", {"enabled": True}).error == (403, 1008, "ForbiddenException")


def test_what_is_left_of_it(admin: Caller, mia: Caller, say: None) -> None:
    """Its owner leaves, its template is dropped, its metalake is."""
    give("mia", Kind.METALAKE, "demo", "run_job", "use_job_template")
    mia.post(SCHEDULES, body(name="hers"))
    admin.delete("metalakes/demo/users/mia")
    assert ring("hers") == 0 and admin.get(f"{SCHEDULES}/hers")["schedule"]["enabled"] is False
    admin.post(SCHEDULES, body())
    admin.delete(f"{TEMPLATES}/say")
    assert not Schedule.objects.exists()
    PeriodicTask.objects.filter(task=schedules.TASK).update(last_run_at=timezone.now() - timedelta(days=1))
    schedules.begin_due()
    assert not PeriodicTask.objects.filter(task=schedules.TASK).exists() and not JobRun.objects.exists()
    admin.post(SCHEDULES, body(jobTemplateName="builtin-check_server", jobConf={}))
    assert admin.delete("metalakes/demo?force=true")["dropped"] is True
    assert not Schedule.objects.exists()
