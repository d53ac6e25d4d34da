"""Jobs of a real server: what a run's token may do and for how long, and what is left when anything dies."""

from __future__ import annotations

import pytest

from authz.callers.identity import TOKEN_PREFIX
from metalake_client.failures import Failure
from metalake_client.rest import Client
from tests.jobs.serving import Serving, StartServing, processes_of
from tests.names import own_name
from tests.waiting import eventually

pytestmark = pytest.mark.slow


def refused(client: Client, *call: str, **more: object) -> str:
    with pytest.raises(Failure) as failure:
        client.call(*call, **more)  # type: ignore[arg-type]
    return str(failure.value)


def test_a_token_ends_with_its_run(serving: Serving) -> None:
    job, secret = serving.start_waiting()
    client = Client(serving.server.url, token=secret)
    assert secret.startswith(TOKEN_PREFIX)
    assert client.get("authn", "me")["principal"] == "admin"
    # In its metalake it may do what admin may, elsewhere and beyond the run nothing.
    assert [each["name"] for each in client.get("metalakes")["metalakes"]] == [serving.metalake]
    assert client.get("metalakes", serving.metalake, "catalogs")["identifiers"] == []
    assert "does not exist" in refused(client, "GET", "metalakes", "demo")
    assert "service administrator" in refused(client, "POST", "metalakes", body={"name": "third"})
    assert "password" in refused(client, "POST", "tokens", body={"name": "lasting"})
    run = {"jobTemplateName": "waits", "jobConf": {"file": "x"}}
    assert "starts no other runs" in refused(client, "POST", *serving.runs, body=run)
    schedule = {"name": "again", "every": 60, **run}
    schedules = ("metalakes", serving.metalake, "jobs", "schedules")
    assert "makes no schedules" in refused(client, "POST", *schedules, body=schedule)
    serving.admin.call("POST", *serving.runs, job)
    assert serving.ends(job)["status"] == "cancelled"
    assert "revoked" in refused(client, "GET", "authn", "me")
    assert serving.is_gone(job)
    log = serving.server.log.read_text()
    assert secret not in log and secret not in str(serving.admin.get(*serving.runs, job, "logs"))


def test_the_built_in_job_says_how_far_it_is(serving: Serving) -> None:
    job = serving.start("builtin-check_server", times="3")
    assert serving.ends(job)["status"] == "succeeded", serving.admin.get(*serving.runs, job, "logs")
    progress = serving.admin.get(*serving.runs, job, "progress")["progress"]
    assert (progress["done"], progress["total"], progress["status"]) == (3, 3, "succeeded")
    text = serving.admin.get(*serving.runs, job, "logs")["log"]["text"]
    assert text.count(f"catalogs of {serving.metalake}: none") == 3
    job = serving.start("builtin-check_server", times="many")
    assert serving.ends(job)["status"] == "failed"
    assert "whole number" in serving.admin.get(*serving.runs, job, "logs")["log"]["text"]


def test_a_member_who_is_removed(serving: Serving) -> None:
    admin, people = serving.admin, ("metalakes", serving.metalake)
    admin.call("POST", *people, "users", body={"name": "mia"})
    secret = admin.call("POST", "tokens", body={"name": own_name("t"), "user": "mia"})["token"]["secret"]
    privileges = [{"name": name, "condition": "allow"} for name in ("run_job", "use_job_template")]
    on = [{"type": "metalake", "fullName": serving.metalake, "privileges": privileges}]
    admin.call("POST", *people, "roles", body={"name": "runner", "securableObjects": on})
    admin.call("PUT", *people, "permissions", "users", "mia", "grant", body={"roleNames": ["runner"]})
    mia = Client(serving.server.url, token=secret)
    job, token = serving.start_waiting(by=mia)
    assert Client(serving.server.url, token=token).get("authn", "me")["principal"] == "mia"
    admin.call("DELETE", *people, "users", "mia")
    assert "revoked" in refused(Client(serving.server.url, token=token), "GET", "authn", "me")
    assert serving.ends(job)["status"] == "cancelled" and serving.is_gone(job)


def test_a_token_that_is_revoked_half_way(serving: Serving) -> None:
    """The run goes on, and may do nothing any more."""
    job, secret = serving.start_waiting()
    (token,) = [each for each in serving.admin.get("tokens")["tokens"] if each["name"] == f"job {job}"]
    serving.admin.call("DELETE", "tokens", str(token["id"]))
    assert "revoked" in refused(Client(serving.server.url, token=secret), "GET", "authn", "me")
    assert serving.job(job)["status"] == "started"


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_run_that_was_lost_is_shown_as_failed(start_serving: StartServing, workers: str) -> None:
    serving = start_serving(METALAKE_WORKERS=workers)
    job, secret = serving.start_waiting()
    serving.server.kill()
    assert eventually(lambda: serving.is_gone(job))
    serving.server.start()
    lost = serving.ends(job)
    assert lost["status"] == "failed" and "gone" in lost["error"]
    assert "revoked" in refused(Client(serving.server.url, token=secret), "GET", "authn", "me")
    assert serving.ends(serving.start("builtin-check_server"))["status"] == "succeeded"


def test_a_metalake_is_dropped_under_a_run(serving: Serving) -> None:
    job, secret = serving.start_waiting()
    serving.admin.call("DELETE", "metalakes", serving.metalake, query={"force": "true"})
    assert "revoked" in refused(Client(serving.server.url, token=secret), "GET", "authn", "me")
    assert eventually(lambda: serving.is_gone(job))


def test_the_server_is_killed(serving: Serving) -> None:
    job, _ = serving.start_waiting()
    assert len(processes_of(job)) == 3
    serving.server.kill()
    assert eventually(lambda: serving.is_gone(job))
