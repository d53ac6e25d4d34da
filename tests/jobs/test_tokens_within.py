"""A token that is accepted in one metalake only, on both wires and on every way that reads who calls."""

from __future__ import annotations

import pytest

from authz.actor import actor_from
from authz.callers.identity import issue_token
from authz.models import Token, User
from authz.services.tokens import issue
from metalake.models import Metalake
from tests.catalogs.callers import Answer, Caller
from tests.demo import actor

pytestmark = pytest.mark.store


@pytest.fixture
def secret(admin: Caller) -> str:
    """Of admin, who owns the metalakes demo and other; accepted in demo."""
    admin.post("metalakes", {"name": "other"})
    return issue_token(User.objects.get(username="admin"), "job 1", within=demo())


def demo() -> int:
    return Metalake.objects.get(name="demo").pk


def with_token(secret: str, path: str) -> Answer:
    return Caller("").raw("GET", path, Authorization=f"Bearer {secret}")


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
