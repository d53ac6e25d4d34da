"""Jobs that run for somebody else: pinned templates, what a schedule may do, and what a run's token may not."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.db import OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django_celery_beat.models import PeriodicTask

from authz import policy
from authz.actor import Actor
from authz.callers.identity import authenticate, issue_token
from authz.models import AuditEntry, Group, Role, Token, User
from authz.objects import find_object
from authz.services import people, roles
from jobs.definition import fill
from jobs.models import JobRun, Schedule
from jobs.running import run_rows
from jobs.running.fair_share import has_room, in_turn
from jobs.services import runs, schedules, templates
from jobs.services.schedules import When
from metalake.errors import Forbidden, Invalid
from metalake.kinds import Kind
from metalake.models import Metalake, Securable
from tests.catalogs.callers import Answer, Caller
from tests.demo import actor, give
from tests.jobs.bodies import RUNS, SCHEDULES, TEMPLATES, run, shell
from tests.jobs.conftest import Write
from tests.jobs.services.test_schedules import ring

pytestmark = pytest.mark.store
HOURLY = When(every=3600)


@pytest.fixture
def say(admin: Caller, mia: Caller, program: Write) -> None:
    """A template of admin's that mia may run."""
    admin.post(TEMPLATES, shell(program(), "{{x}}"))
    give("mia", Kind.METALAKE, "demo", "run_job", "use_job_template", role="runner")


def scheduled(caller: Caller, name: str = "nightly", **more: Any) -> Answer:
    body = {"name": name, "jobTemplateName": "say", "jobConf": {"x": "1"}, "every": 3600}
    return caller.post(SCHEDULES, body | more)


def arguments(*given: str, **more: Any) -> dict[str, Any]:
    return {"@type": "updateTemplate", "newTemplate": {"@type": "shell", "newArguments": [*given], **more}}


def enable(caller: Caller, name: str = "nightly") -> Answer:
    return caller.send("PATCH", f"{SCHEDULES}/{name}", {"enabled": True})


# A template that is altered


def test_an_altered_template_stops_the_schedules_of_others(admin: Caller, mia: Caller, say: None) -> None:
    scheduled(mia)
    scheduled(admin, "own")
    assert admin.put(f"{TEMPLATES}/say", arguments("{{x}}", "--more")).status == 200
    stopped = mia.get(f"{SCHEDULES}/nightly")["schedule"]
    assert stopped["enabled"] is False and "nextAt" not in stopped
    assert "Job template say was altered (arguments), last by admin" in stopped["lastFailure"]
    assert stopped["templateChanges"] == [{"field": "arguments", "was": ["{{x}}"], "is": ["{{x}}", "--more"]}]
    assert not PeriodicTask.objects.filter(args=f"[{Schedule.objects.get(name='nightly').pk}]", enabled=True).exists()
    (event,) = AuditEntry.objects.filter(event="schedule.stopped")
    assert (event.actor, event.full_name) == ("admin", "nightly")
    assert ring() == 0 and ring("own") == 1  # whoever alters a template knows it
    again = enable(mia)["schedule"]
    assert again["enabled"] is True and not {"lastFailure", "templateChanges"} & set(again)
    assert ring() == 1 and JobRun.objects.get(user__username="mia").content["arguments"] == ["{{x}}", "--more"]


def test_what_changes_no_run_stops_no_schedule(admin: Caller, mia: Caller, say: None) -> None:
    scheduled(mia)
    changes = [
        {"@type": "rename", "newName": "tell"}, {"@type": "updateComment", "newComment": "says it"},
        arguments("{{x}}", newCustomFields={"team": "night"}),
    ]  # fmt: skip
    admin.put(f"{TEMPLATES}/say", *changes)
    assert ring() == 1 and JobRun.objects.get().template_name == "tell"


def test_a_template_that_changed_by_whatever_way_is_not_started(admin: Caller, mia: Caller, say: None) -> None:
    """As by a store that was restored, or between the moments in which a clock rings and its run is queued."""
    scheduled(mia)
    row = templates.JobTemplate.objects.get()
    templates.JobTemplate.objects.filter(pk=row.pk).update(content=row.content | {"arguments": ["{{x}}", "--evil"]})
    assert ring() == 1 and not JobRun.objects.exists()
    assert "arguments" in mia.get(f"{SCHEDULES}/nightly")["schedule"]["lastFailure"]


def test_a_template_with_a_new_owner_is_the_one_that_was_scheduled(admin: Caller, mia: Caller, say: None) -> None:
    people.add_user(actor("admin"), "demo", "eve")
    scheduled(mia)
    admin.send("PUT", "metalakes/demo/owners/job_template/say", {"name": "eve", "type": "USER"})
    assert ring() == 1 and JobRun.objects.filter(user__username="mia").count() == 1
    eve = actor("eve")
    templates.alter(eve, "demo", "say", [templates.Changes(job_type="shell", content={"arguments": ["--hers"]})])
    assert "last by eve" in mia.get(f"{SCHEDULES}/nightly")["schedule"]["lastFailure"]


def test_a_run_that_waits_runs_what_it_was_started_with(admin: Caller, mia: Caller, say: None) -> None:
    mia.post(RUNS, run(x="1"))
    admin.put(f"{TEMPLATES}/say", arguments("{{x}}", "--evil"))
    waiting = run_rows.take()
    assert waiting is not None
    assert run_rows.prepare(waiting, "/unused")[0].arguments[1:] == ["1"]


def test_a_run_alters_no_template_for_its_user(admin: Caller, mia: Caller, say: None) -> None:
    """Otherwise it would say what the schedules of its user run once it has ended."""
    scheduled(admin, "own")
    within = replace(actor("admin"), within=Metalake.objects.get(name="demo").pk)
    templates.alter(within, "demo", "say", [templates.Changes(job_type="shell", content={"arguments": ["--evil"]})])
    assert ring("own") == 0 and not JobRun.objects.exists()
    with pytest.raises(Forbidden, match="A run"):
        schedules.set_enabled(within, "demo", "own", True)


def test_what_a_store_of_before_has_scheduled_goes_on(admin: Caller, mia: Caller, say: None) -> None:
    scheduled(mia)
    mia.post(RUNS, run(x="1"))
    Schedule.objects.update(content=None, standing=None)
    JobRun.objects.update(content=None)
    import_module("jobs.migrations.0003_running_for_others").pin(apps, None)
    assert JobRun.objects.get().content == Schedule.objects.get().content == templates.JobTemplate.objects.get().content
    assert ring() == 1 and JobRun.objects.count() == 2


# What a schedule's runs may do


@pytest.fixture
def night(admin: Caller, mia: Caller) -> int:
    """A group that denies and allows, which only tokens of an issuer claim."""
    people.add_group(actor("admin"), "demo", "night")
    give(None, Kind.CATALOG, "lake", "deny use_schema", "create_schema", role="watch")
    roles.assign_roles(actor("admin"), "demo", "group", "night", ["watch"])
    give("mia", Kind.CATALOG, "lake", "use_catalog", "use_schema", role="reader")
    return Group.objects.get(name="night").pk


def scheduling(who: Actor, name: str = "nightly") -> None:
    schedules.create(who, "demo", name, "say", {"x": "1"}, HOURLY)


def run_of(name: str = "nightly") -> Actor:
    """As whom the next run of a schedule acts, by its token."""
    assert ring(name) == 1
    waiting = run_rows.take()
    assert waiting is not None
    secret = run_rows.prepare(waiting, "/unused")[1].own
    by = authenticate(f"Bearer {secret}")
    assert run_rows.actor_of(waiting).roles == by.roles
    run_rows.finish(waiting, JobRun.Status.SUCCEEDED, 0, "", None)
    return by


def rights(who: Actor) -> set[str]:
    return {each.value for each in policy.rights_on(who, find_object("demo", Kind.CATALOG, "lake")).effective()}


def test_a_schedule_keeps_the_denies_of_claimed_groups(mia: Caller, say: None, night: int) -> None:
    mine = actor("mia")
    scheduling(mine, "free")
    scheduling(replace(mine, claimed=(night,)))
    assert {"use_schema"} < rights(run_of("free")) and "use_schema" not in rights(run_of())
    later = run_of()  # whether the claim would still be made nobody knows
    assert "create_schema" not in rights(later) and night not in later.groups
    schedules.set_enabled(mine, "demo", "nightly", False)
    schedules.set_enabled(mine, "demo", "nightly", True)
    assert "use_schema" not in rights(run_of())  # nor does enabling it without the claim lift anything
    roles.unassign_roles(actor("admin"), "demo", "group", "night", ["watch"])
    assert "use_schema" in rights(run_of())  # who may lift the DENY did


def test_a_schedule_that_was_made_with_some_roles_uses_only_these(mia: Caller, say: None, night: int) -> None:
    runner = Role.objects.get(name="runner").pk
    scheduling(replace(actor("mia"), active=(runner,)))
    assert "use_catalog" not in rights(run_of())
    enable(mia)
    assert "use_catalog" in rights(run_of())  # it was enabled with all roles


# What a run's token may not


def test_a_run_s_token_reaches_nothing_of_its_user_s_account(admin: Caller, say: None) -> None:
    secret = issue_token(User.objects.get(username="admin"), "job 1", within_id=Metalake.objects.get(name="demo").pk)
    own = issue_token(User.objects.get(username="admin"), "laptop")
    laptop = Token.objects.get(name="laptop").pk

    def ask(method: str, path: str, bearer: str = secret) -> Answer:
        return Caller("").send(method, path, Authorization=f"Bearer {bearer}")

    invitation = "metalakes/demo/users/eve/invitation"
    for method, path in (("GET", "tokens"), ("DELETE", f"tokens/{laptop}"), ("POST", invitation)):
        assert ask(method, path).error == (403, 1008, "ForbiddenException"), path
    assert [row["name"] for row in ask("GET", "tokens", bearer=own)["tokens"]] == ["job 1", "laptop"]
    assert not User.objects.filter(username="eve").exists() and ask("GET", "authn/me")["principal"] == "admin"


# One queue for all


def queued(metalake: str, user: str, count: int) -> None:
    top, account = Metalake.objects.get(name=metalake), User.objects.get(username=user)
    JobRun.objects.bulk_create(JobRun(metalake=top, user=account, user_name=user) for _ in range(count))


def taken(count: int) -> list[tuple[str, str]]:
    rows = [run_rows.take() for _ in range(count)]
    return [(row.metalake.name, row.user_name) for row in rows if row]


def end_all() -> None:
    for row in JobRun.objects.filter(status=JobRun.Status.STARTED):
        run_rows.finish(row, JobRun.Status.SUCCEEDED, 0, "", None)


@pytest.fixture
def other(admin: Caller, mia: Caller) -> None:
    admin.post("metalakes", {"name": "other"})


def test_metalakes_and_their_users_take_turns(other: None, settings: Any) -> None:
    settings.METALAKE_JOBS_PER_METALAKE = 0
    queued("demo", "admin", 4)
    queued("demo", "mia", 2)
    queued("other", "admin", 2)
    assert taken(6) == [
        ("demo", "admin"), ("other", "admin"), ("demo", "mia"), ("other", "admin"), ("demo", "admin"), ("demo", "mia"),
    ]  # fmt: skip


def test_metalakes_take_turns_where_there_is_one_place(other: None) -> None:
    queued("demo", "admin", 3)
    queued("other", "admin", 2)
    seen = []
    for _ in range(4):
        seen += taken(1)
        end_all()
    assert [metalake for metalake, _ in seen] == ["demo", "other", "demo", "other"]


def test_one_metalake_leaves_a_place_to_others(admin: Caller, settings: Any) -> None:
    settings.METALAKE_JOBS_PER_METALAKE = 1
    queued("demo", "admin", 4)
    assert len(taken(2)) == 2, "the only metalake has all places"
    admin.post("metalakes", {"name": "other"})
    queued("other", "admin", 1)
    assert taken(2) == [("other", "admin")]
    end_all()
    assert taken(2) == [("demo", "admin")]


def test_a_full_metalake_is_asked_once_however_many_wait(other: None, settings: Any) -> None:
    settings.METALAKE_JOBS_PER_METALAKE = 1
    queued("demo", "admin", 2)
    queued("demo", "mia", 1)
    assert len(taken(1)) == 1
    with CaptureQueriesContext(connection) as captured:
        assert taken(1) == [] and len({user for _, user in in_turn()}) == 2
    assert len([each for each in captured if "SAVEPOINT" in each["sql"] and "RELEASE" not in each["sql"]]) == 1


@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="not offered: PostgreSQL plans by what the tables hold")
def test_whose_turn_it_is_is_found_without_reading_all_runs(other: None) -> None:
    queued("demo", "admin", 1)
    with CaptureQueriesContext(connection) as captured, connection.cursor() as cursor:
        assert len(in_turn()) == 1 and has_room(Metalake.objects.get(name="demo").pk) and run_rows.lose() == 0
        asked = [each["sql"] for each in captured if "jobs_jobrun" in each["sql"]]
        plans = [str(cursor.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()) for sql in asked]
    assert len(plans) == 4 and all("SEARCH jobs_jobrun USING INDEX run_finished" in plan for plan in plans)


@pytest.mark.skipif("connection.vendor == 'sqlite'", reason="not offered: it has one writer")
@pytest.mark.django_db(transaction=True)
def test_nodes_count_the_runs_of_a_metalake_one_after_the_other(other: None) -> None:
    queued("demo", "admin", 2)

    def counts() -> None:
        try:
            with transaction.atomic():
                Securable.objects.select_for_update(nowait=True, no_key=True).get(name="demo")
        finally:
            connection.close()

    with transaction.atomic(), ThreadPoolExecutor(1) as another:
        assert len(taken(1)) == 1
        with pytest.raises(OperationalError):
            another.submit(counts).result()


def test_one_user_leaves_room_in_the_queue_of_a_metalake(
    admin: Caller, mia: Caller, say: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "MOST_LIVE_OF_ONE", 1)
    assert admin.post(RUNS, run(x="1")).status == 200
    assert admin.post(RUNS, run(x="1")).status == 429 and mia.post(RUNS, run(x="1")).status == 200


# Arguments


@pytest.mark.parametrize(
    ("argument", "a", "b"),
    [("{{a}}{{b}}", "", "--delete"), ("{{a}}{{b}}", "-1", "x"), ("{{a}}-x{{b}}", "", "")],
)
def test_no_values_begin_an_argument_with_a_dash(argument: str, a: str, b: str) -> None:
    content = {"executable": "/jobs/say.sh", "arguments": [argument]}
    with pytest.raises(Invalid, match=r"jobConf\.a, b: .* \(arguments\[0\]\), so it cannot begin with a dash"):
        fill(content, {"a": a, "b": b})
    assert fill(content | {"arguments": ["{{a}}{{b}}"]}, {"a": "-1", "b": "5"})["arguments"] == ["-15"]
