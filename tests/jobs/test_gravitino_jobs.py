"""The published Python client's calls about jobs, unmodified, against a real server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from gravitino import GravitinoClient
from gravitino.api.authorization.privileges import UseJobTemplate
from gravitino.api.authorization.securable_objects import SecurableObjects
from gravitino.api.job.job_handle import JobHandle
from gravitino.api.job.job_template import JobType
from gravitino.api.job.job_template_change import JobTemplateChange, ShellTemplateUpdate
from gravitino.api.job.shell_job_template import ShellJobTemplate
from gravitino.api.job.spark_job_template import SparkJobTemplate
from gravitino.auth.basic_auth_provider import BasicAuthProvider
from gravitino.exceptions import base as errors

from tests.jobs.serving import Serving
from tests.servers import ADMIN_PASSWORD
from tests.waiting import eventually

pytestmark = pytest.mark.slow
Status = JobHandle.Status


@pytest.fixture
def client(serving: Serving) -> Iterator[GravitinoClient]:
    """The metalake's owner."""
    provider = BasicAuthProvider("admin", ADMIN_PASSWORD)
    client = GravitinoClient(serving.server.url, serving.metalake, auth_data_provider=provider)
    yield client
    client.close()


def say(serving: Serving, **more: Any) -> ShellJobTemplate:
    program = serving.named / "say.sh"
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o700)
    made = ShellJobTemplate.builder().with_name("say").with_comment("says").with_executable(str(program))
    return made.with_arguments(["{{first}}", "--second={{second}}"]).with_custom_fields({"team": "a"}).build()


def ended(client: GravitinoClient, job: JobHandle) -> JobHandle.Status:
    live = (Status.QUEUED, Status.STARTED, Status.CANCELLING)
    assert eventually(lambda: client.get_job(job.job_id()).job_status() not in live)
    return client.get_job(job.job_id()).job_status()


def test_templates(client: GravitinoClient, serving: Serving) -> None:
    client.register_job_template(say(serving))
    with pytest.raises(errors.JobTemplateAlreadyExistsException):
        client.register_job_template(say(serving))
    assert {each.name for each in client.list_job_templates()} >= {"say", "waits", "builtin-check_server"}
    loaded = client.get_job_template("say")
    assert loaded == say(serving) and loaded.job_type() is JobType.SHELL
    altered = client.alter_job_template(
        "say",
        JobTemplateChange.rename("tell"),
        JobTemplateChange.update_comment("tells"),
        JobTemplateChange.update_template(ShellTemplateUpdate(new_arguments=["{{third}}"])),
    )
    assert (altered.name, altered.comment, altered.arguments) == ("tell", "tells", ["{{third}}"])
    with pytest.raises(errors.NoSuchJobTemplateException):
        client.get_job_template("say")
    assert client.delete_job_template("tell") is True and client.delete_job_template("tell") is False


def test_templates_of_spark(client: GravitinoClient, serving: Serving) -> None:
    program = serving.named / "pi.py"
    program.write_text("print(3)\n")
    template = (
        SparkJobTemplate.builder()
        .with_name("pi")
        .with_executable(str(program))
        .with_arguments(["{{slices}}"])
        .with_configs({"spark.executor.memory": "{{memory}}"})
        .with_files([str(program)])
        .build()
    )
    client.register_job_template(template)
    assert client.get_job_template("pi") == template
    refused = SparkJobTemplate.builder().with_name("no").with_executable("/usr/bin/env").with_class_name("a.B").build()
    with pytest.raises(errors.IllegalArgumentException, match="METALAKE_JOB_PATHS"):
        client.register_job_template(refused)


def test_runs(client: GravitinoClient, serving: Serving) -> None:
    client.register_job_template(say(serving))
    job = client.run_job("say", {"first": "a b", "second": "$HOME"})
    assert job.job_template_name() == "say" and job.job_status() is Status.QUEUED
    assert ended(client, job) is Status.SUCCEEDED
    assert [each.job_id() for each in client.list_jobs("say")] == [job.job_id()]
    assert job.job_id() in [each.job_id() for each in client.list_jobs()]
    text = serving.admin.get(*serving.runs, job.job_id(), "logs")["log"]["text"]
    assert text == "a b --second=$HOME\n"
    with pytest.raises(errors.IllegalArgumentException, match="second"):
        client.run_job("say", {"first": "a"})
    with pytest.raises(errors.NoSuchJobTemplateException):
        client.run_job("none", {})
    with pytest.raises(errors.NoSuchJobTemplateException):
        client.list_jobs("none")


def test_cancelling(client: GravitinoClient, serving: Serving) -> None:
    job, _ = serving.start_waiting()
    with pytest.raises(errors.InUseException):
        client.delete_job_template("waits")
    assert client.cancel_job(job).job_status() is Status.CANCELLING
    assert ended(client, client.get_job(job)) is Status.CANCELLED
    assert client.cancel_job(job).job_status() is Status.CANCELLED
    with pytest.raises(errors.NoSuchJobException):
        client.cancel_job("1")
    with pytest.raises(errors.NoSuchJobException):
        client.get_job("no-such-job")
    assert client.delete_job_template("waits") is True


def test_grants_on_templates(client: GravitinoClient, serving: Serving) -> None:
    on = SecurableObjects.of_job_template("waits", [UseJobTemplate.allow()])
    client.create_role("users", {}, [on])
    (granted,) = client.get_role("users").securable_objects()
    assert granted.full_name() == "waits"
