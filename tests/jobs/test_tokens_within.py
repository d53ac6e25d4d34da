"""A token that is accepted in one metalake only, on both wires and on every way that reads who calls."""

from __future__ import annotations

import pytest

from authz.actor import actor_from
from authz.callers.identity import issue_token
from authz.models import Group, Token, User
from authz.services import people, roles
from authz.services.tokens import issue
from jobs.models import JobRun
from jobs.running import run_rows
from metalake.kinds import Kind
from metalake.models import Metalake, Securable
from tests.catalogs.callers import Answer, Caller
from tests.demo import actor, give
from tests.jobs.bodies import RUNS, TEMPLATES, run, shell
from tests.jobs.conftest import Write

pytestmark = pytest.mark.store
ACTIVE = "X-Gravitino-Active-Roles"


@pytest.fixture
def secret(admin: Caller) -> str:
    """Of admin, who owns the metalakes demo and other; accepted in demo."""
    admin.post("metalakes", {"name": "other"})
    return issue_token(User.objects.get(username="admin"), "job 1", within_id=demo())


def demo() -> int:
    return Metalake.objects.get(name="demo").pk


def with_token(secret: str, path: str, active: str = "") -> Answer:
    return Caller("").raw("GET", path, b"", **{"Authorization": f"Bearer {secret}", ACTIVE: active})


def test_it_is_accepted_in_its_metalake_alone(admin: Caller, secret: str) -> None:
    for path in ("metalakes/{}", "metalakes/{}/catalogs", "metalakes/{}/users", "metalakes/{}/jobs/runs"):
        assert with_token(secret, path.format("demo")).status == 200
        hidden, missing = (with_token(secret, path.format(name)) for name in ("other", "nowhere"))
        assert hidden.error == missing.error == (404, 1003, "NoSuchMetalakeException")
    # The way of hot reads, past the framework, asks the same.
    assert with_token(secret, "metalakes/demo/catalogs/lake").status == 200
    assert [each["name"] for each in with_token(secret, "metalakes")["metalakes"]] == ["demo"]
    assert with_token(secret, "authn/me")["principal"] == "admin"


def test_it_ends_with_its_metalake(admin: Caller, secret: str) -> None:
    admin.delete("metalakes/demo?force=true")
    assert not Token.objects.exists()
    assert with_token(secret, "authn/me").status == 401


def test_an_actor_that_is_sent_to_a_worker_stays_within(admin: Caller, secret: str) -> None:
    whole = actor("admin")
    assert actor_from(whole.as_json()).within is None and "within" not in whole.as_json()
    within = actor_from(whole.as_json() | {"within": demo()})
    assert within.is_member(demo()) and not within.is_member(demo() + 1)
    assert actor_from(within.as_json()).within == demo()
    assert issue(whole, "other").row.within_id is None


def test_it_acts_with_the_standing_that_it_was_issued_with(admin: Caller, mia: Caller) -> None:
    give("mia", Kind.CATALOG, "lake", "use_catalog", role="reader")
    people.add_group(actor("admin"), "demo", "night")
    give(None, Kind.CATALOG, "lake", "use_catalog", role="watch")
    roles.assign_roles(actor("admin"), "demo", "group", "night", ["watch"])
    night = Group.objects.get(name="night").pk

    def lake(active: list[str] | None, claimed: tuple[int, ...] = (), named: str = "") -> int:
        ids = None if active is None else [Securable.objects.get(kind=Kind.ROLE, name=name).pk for name in active]
        standing = {"claimed": claimed, "active": ids}
        secret = issue_token(User.objects.get(username="mia"), "job 1", within_id=demo(), standing=standing)
        return with_token(secret, "metalakes/demo/catalogs/lake", named).status

    assert lake(None) == lake(["reader"]) == lake(["watch"], (night,)) == 200
    assert lake([]) == lake(["watch"]) == 404  # she does not hold watch without the claim
    assert lake([], named="ALL") == 404
    assert lake([], named="reader") == lake(["reader"], (night,), named="watch") == 403
    assert lake(None, (night,), named="watch") == 200


def test_a_run_acts_with_the_roles_that_its_request_named(admin: Caller, mia: Caller, program: Write) -> None:
    give("mia", Kind.METALAKE, "demo", "run_job", "use_job_template", "use_catalog", role="runner")
    give("mia", Kind.CATALOG, "lake", "use_catalog", role="reader")
    admin.post(TEMPLATES, shell(program()))
    for named, roles_then in ((None, None), ("runner", ["runner"])):
        headers = {} if named is None else {ACTIVE: named}
        job = JobRun.objects.get(pk=mia.post(RUNS, run(), **headers)["job"]["jobId"])
        secrets = run_rows.prepare(run_rows.take() or job, "/unused")[1]
        mine = Token.objects.get(name=f"job {job.pk}")
        assert mine.standing["claimed"] == [] and (mine.standing["active"] is None) == (roles_then is None)
        refused = with_token(secrets.own, "metalakes/demo/catalogs", "reader")
        assert refused.status == (200 if roles_then is None else 403)
