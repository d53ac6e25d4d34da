"""Personal tokens: made with the password, good until revoked or expired, nobody's but their owner's."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from authz.models import Token, User
from authz.services import tokens
from metalake.errors import AlreadyExists, Forbidden, Invalid
from tests.authz.small_world import Wire, World

pytestmark = pytest.mark.store


def test_a_token_stands_for_its_owner_until_it_is_revoked(world: World, wire: Wire) -> None:
    status, answer = wire("POST", "tokens", {"name": "laptop"}, user="mia")
    assert status == 200
    token = answer["token"]
    bearer = f"Bearer {token['secret']}"
    assert wire("GET", "authn/me", authorization=bearer)[1]["principal"] == "mia"
    assert wire("DELETE", f"tokens/{token['id']}", user="mia") == (200, {"code": 0, "revoked": True})
    assert wire("GET", "authn/me", authorization=bearer)[0] == 401
    assert wire("DELETE", f"tokens/{token['id']}", user="mia") == (200, {"code": 0, "revoked": False})


def test_a_list_shows_no_secret_and_nobody_elses(world: World, wire: Wire) -> None:
    secret = wire("POST", "tokens", {"name": "laptop"}, user="mia")[1]["token"]["secret"]
    tokens.issue(world.olga, "hers")
    status, answer = wire("GET", "tokens", user="mia")
    assert status == 200 and [token["name"] for token in answer["tokens"]] == ["laptop"]
    assert set(answer["tokens"][0]) == {"id", "name", "createdAt"}
    row = Token.objects.get(name="laptop")
    assert secret not in str(answer) and secret not in row.digest


def test_a_token_makes_no_token(world: World, wire: Wire) -> None:
    secret = tokens.issue(world.mia, "laptop").secret
    status, answer = wire("POST", "tokens", {"name": "another"}, authorization=f"Bearer {secret}")
    assert (status, answer["code"]) == (403, 1008)
    assert Token.objects.count() == 1


def test_nobody_revokes_anothers_token(world: World) -> None:
    row = tokens.issue(world.mia, "laptop").row
    assert tokens.revoke(world.olga, row.pk) is False
    assert list(tokens.list_tokens(world.mia)) == [row]


def test_names_are_taken_while_the_token_is_good(world: World) -> None:
    first = tokens.issue(world.mia, "laptop")
    with pytest.raises(AlreadyExists):
        tokens.issue(world.mia, "laptop")
    tokens.issue(world.olga, "laptop")
    tokens.revoke(world.mia, first.row.pk)
    assert tokens.issue(world.mia, "laptop").row.pk != first.row.pk
    with pytest.raises(Invalid):
        tokens.issue(world.mia, "")


def test_an_expiry_lies_ahead_and_ends_the_token(world: World, wire: Wire) -> None:
    ahead, past = timezone.now() + timedelta(hours=1), timezone.now() - timedelta(seconds=1)
    status, answer = wire("POST", "tokens", {"name": "a", "expiresAt": ahead.isoformat()}, user="mia")
    assert status == 200 and answer["token"]["expiresAt"].endswith("Z")
    bearer = f"Bearer {answer['token']['secret']}"
    assert wire("GET", "authn/me", authorization=bearer)[0] == 200
    Token.objects.update(expires_at=past)
    assert wire("GET", "authn/me", authorization=bearer)[0] == 401
    assert list(tokens.list_tokens(world.mia)) == []
    for wrong in (past.isoformat(), "tomorrow", 5):
        assert wire("POST", "tokens", {"name": "b", "expiresAt": wrong}, user="mia")[0] == 400


def test_changes_are_audited_without_the_secret(world: World) -> None:
    issued = tokens.issue(world.mia, "laptop")
    tokens.revoke(world.mia, issued.row.pk)
    entries = [*world.events("token.issued"), *world.events("token.revoked")]
    assert [(entry.actor, entry.full_name, entry.object_id) for entry in entries] == [
        ("mia", "laptop", issued.row.pk)
    ] * 2
    assert all(issued.secret not in str(vars(entry)) for entry in entries)


def test_a_name_without_an_account_has_no_token(world: World) -> None:
    from authz.policy import NOBODY, Actor

    with pytest.raises(Forbidden):
        tokens.issue(Actor(NOBODY, "ghost", world.mia.policy), "laptop")


@pytest.mark.parametrize("id", ["x", "-1", "99999999999999999999", "%D9%A1"])
def test_an_id_is_a_number(world: World, wire: Wire, id: str) -> None:
    assert wire("DELETE", f"tokens/{id}")[0] == 400


def test_an_operator_issues_tokens_for_others_and_nobody_else_does(world: World, wire: Wire) -> None:
    User.objects.filter(username="olga").update(is_superuser=True)
    status, answer = wire("POST", "tokens", {"name": "job", "user": "mia"}, user="olga")
    assert status == 200
    first = f"Bearer {answer['token']['secret']}"
    assert wire("GET", "authn/me", authorization=first)[1]["principal"] == "mia"
    again = wire("POST", "tokens", {"name": "job", "user": "mia"}, user="olga")[1]["token"]["secret"]
    assert wire("GET", "authn/me", authorization=first)[0] == 401, "the one it replaces is revoked"
    assert wire("GET", "authn/me", authorization=f"Bearer {again}")[0] == 200
    assert wire("POST", "tokens", {"name": "job", "user": "olga"}, user="mia")[0] == 403
    assert wire("POST", "tokens", {"name": "job", "user": "nobody"}, user="olga")[0] == 404
