"""Personal tokens: made with the password, good until revoked or expired, nobody's but their owner's."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command, get_commands
from django.utils import timezone

from authz.models import Token, User
from authz.services import tokens
from metalake.errors import AlreadyExists, Forbidden, Invalid
from tests.authz.small_world import PASSWORD, Wire, World

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
    from authz.actor import NOBODY, Actor

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


def test_they_end_with_the_password(world: World, wire: Wire) -> None:
    bearer = f"Bearer {tokens.issue(world.mia, 'laptop').secret}"
    hers = f"Bearer {tokens.issue(world.olga, 'laptop').secret}"
    mia = User.objects.get(username="mia")
    mia.changed_by = "root"
    mia.set_password("another long password")
    mia.save()
    assert wire("GET", "authn/me", authorization=bearer)[0] == 401
    assert wire("GET", "authn/me", authorization=hers)[0] == 200
    (entry,) = world.events("account.password_set")
    assert (entry.actor, entry.full_name) == ("root", "mia")
    assert entry.details == {"endedTokens": 1, "keepsTokens": False}
    (entry,) = world.events("token.revoked")
    assert (entry.actor, entry.full_name, entry.details) == ("root", "laptop", {"user": "mia"})
    again = f"Bearer {tokens.issue(world.mia, 'laptop').secret}"
    mia.set_unusable_password()
    mia.save()
    assert wire("GET", "authn/me", authorization=again)[0] == 401, "nor do they outlive that there is none"


def test_they_outlive_what_is_no_new_password(world: World, wire: Wire, settings: Any) -> None:
    bearer = f"Bearer {tokens.issue(world.mia, 'laptop').secret}"
    mia = User.objects.get(username="mia")
    mia.is_staff = True
    mia.save()
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher", *settings.PASSWORD_HASHERS]
    before = mia.password
    assert mia.check_password(PASSWORD)
    assert User.objects.get(username="mia").password != before, "hashed anew"
    assert wire("GET", "authn/me", authorization=bearer)[0] == 200
    mia.set_password("another long password")
    mia.keeps_tokens = True
    mia.save()
    assert wire("GET", "authn/me", authorization=bearer)[0] == 200, "since the change says so"


@pytest.mark.parametrize("command", ["changepassword", "set_password"])
def test_commands_that_set_passwords_end_them(
    world: World, wire: Wire, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    bearer = f"Bearer {tokens.issue(world.mia, 'laptop').secret}"
    module = f"{get_commands()[command]}.management.commands.{command}.getpass"
    asked = f"{module}.getpass" if command == "changepassword" else module  # Django's imports the module
    monkeypatch.setattr(asked, lambda prompt: "a third long password")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    call_command(command, "mia")
    assert User.objects.get(username="mia").check_password("a third long password")
    assert wire("GET", "authn/me", authorization=bearer)[0] == 401
    assert len(world.events("account.password_set")) == 1


def test_a_command_may_keep_them(world: World, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    bearer = f"Bearer {tokens.issue(world.mia, 'laptop').secret}"
    monkeypatch.setattr("sys.stdin", StringIO("short\n"))
    with pytest.raises(CommandError, match="too short"):
        call_command("set_password", "mia")
    monkeypatch.setattr("sys.stdin", StringIO("a third long password\n"))
    call_command("set_password", "mia", "--keep-tokens", stdout=StringIO())
    assert User.objects.get(username="mia").check_password("a third long password")
    assert wire("GET", "authn/me", authorization=bearer)[0] == 200
    with pytest.raises(CommandError, match="no account"):
        call_command("set_password", "nobody")
