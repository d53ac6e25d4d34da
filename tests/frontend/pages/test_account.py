"""The own account: the password, and the sessions that are signed in by it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.sessions.backends.db import SessionStore as Plain
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from authz import passwords, sessions
from authz.callers.identity import issue_token
from authz.models import Token, User
from authz.services import own_password
from frontend.templatetags.wording import browser
from metalake.errors import Conflict
from tests.demo import PASSWORD, actor
from tests.frontend.conftest import sign_in

NEW = "a password that is new here"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


def change(client: Client, old: str = PASSWORD, new: str = NEW, again: str | None = None, **more: str) -> Any:
    return client.post("/account/password", {"old": old, "password": new, "again": again or new, **more})


def text(client: Client) -> str:
    return client.get("/account").content.decode()


def is_in(client: Client) -> bool:
    return client.get("/account").status_code == 200


def test_a_new_password_ends_other_sessions_and_tokens(rita: Client) -> None:
    other, user = sign_in("rita"), User.objects.get(username="rita")
    issue_token(user, "spark")
    answer = change(rita)
    assert answer.headers["Location"] == "/account"
    assert "1 other session ended. Your tokens ended with the old one." in text(rita)
    assert not is_in(other) and Session.objects.count() == 1
    assert not Token.objects.filter(revoked_at=None).exists()
    user.refresh_from_db()
    assert user.check_password(NEW) and user.guest_of is None


def test_tokens_are_kept_where_the_box_is_ticked(rita: Client) -> None:
    issue_token(User.objects.get(username="rita"), "spark")
    assert "Otherwise your token ends" in text(rita)
    change(rita, keep_tokens="on")
    assert Token.objects.filter(revoked_at=None).exists()


def test_a_guest_stays_one(rita: Client, ids: dict[str, int]) -> None:
    User.objects.filter(username="rita").update(guest_of=ids["demo"])
    change(rita)
    assert User.objects.get(username="rita").guest_of == ids["demo"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"old": "not the password"}, "This is not your password."),
        ({"new": "short"}, "at least 12 characters"),
        ({"new": PASSWORD}, "This is the old password."),
        ({"again": "another one, mistyped"}, "These two passwords differ."),
        ({"old": "a\x00b"}, "Null characters"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(rita: Client, given: dict[str, str], says: str) -> None:
    before = User.objects.get(username="rita").password
    answer = change(rita, **given)
    assert answer.status_code == 422 and says in answer.content.decode()
    assert NEW not in answer.content.decode() and User.objects.get(username="rita").password == before


def test_the_old_password_is_not_guessed_with_a_session(rita: Client) -> None:
    for _ in range(passwords.PER_ACCOUNT):
        assert change(rita, "a guess").status_code == 422
    answer = change(rita, "a guess")
    assert answer.status_code == 429 and "Too many sign-ins failed." in answer.content.decode()


def test_a_password_that_was_set_in_between_stands(rita: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def meanwhile(*_: object) -> None:
        account = User.objects.get(username="rita")
        account.set_password("set by an operator!")
        account.save()

    monkeypatch.setattr(own_password, "validate_password", meanwhile)
    with pytest.raises(Conflict, match="by somebody else"):
        own_password.change_password(actor("rita"), PASSWORD, NEW)
    assert User.objects.get(username="rita").check_password("set by an operator!")


def test_an_account_without_a_password_has_none_to_change(rita: Client) -> None:
    user = User.objects.get(username="rita")
    user.set_unusable_password()
    user.save()
    client = Client()
    client.force_login(user, backend="authz.passwords.PasswordBackend")
    assert "Your account has no password" in text(client)
    assert change(client).status_code == 422


def test_sessions_are_listed_and_ended(rita: Client, otto: Client) -> None:
    other = Client(headers={"User-Agent": FIREFOX})
    assert other.login(username="rita", password=PASSWORD)
    other.post("/login", {"username": "rita", "password": PASSWORD})
    third = Client(headers={"User-Agent": "<script>alert(1)</script>"})
    third.post("/login", {"username": "rita", "password": PASSWORD})
    shown = text(rita)
    assert shown.count('name="session"') == 2 and "this session" in shown
    assert "An unknown browser" in shown and "<script>alert" not in shown
    user = User.objects.get(username="rita")
    (id,) = [one.id for one in sessions.list_sessions(user, other.session.session_key) if one.is_this]
    assert str(other.session.session_key) not in shown and id in shown
    otto.post("/account/sessions", {"session": id})
    assert is_in(other), "nobody else ends it"
    rita.post("/account/sessions", {"session": id})
    assert not is_in(other) and is_in(third)
    for gone in (id, "x", "é", "x" * 3000):
        rita.post("/account/sessions", {"session": gone})
        assert "This session had ended already." in text(rita)
    rita.post("/account/sessions")
    assert "1 other session ended." in text(rita)
    assert not is_in(third) and is_in(otto) and "everywhere else" not in text(rita)


def test_sessions_of_a_former_password_are_not_listed(rita: Client) -> None:
    user = User.objects.get(username="rita")
    user.set_password(NEW)
    user.save()
    client = Client()
    client.login(username="rita", password=NEW)
    assert 'name="session"' not in text(client) and not is_in(rita)


def test_a_session_ends_two_weeks_after_its_sign_in_however_much_it_is_used(rita: Client) -> None:
    session = rita.session
    ends = Session.objects.get(pk=session.session_key).expire_date
    session[sessions.SEEN] = (timezone.now() - timedelta(hours=1)).isoformat()
    session.save()
    assert is_in(rita)
    assert timezone.now().isoformat()[:15] == rita.session[sessions.SEEN][:15]
    assert abs(Session.objects.get(pk=session.session_key).expire_date - ends) < timedelta(seconds=1)


def test_a_session_that_could_not_be_listed_signs_nobody_in(rita: Client) -> None:
    old = Plain()
    old.update(dict(rita.session.items()))
    old.create()
    assert is_in(rita)
    rita.cookies["sessionid"] = str(old.session_key)
    assert not is_in(rita)


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        (FIREFOX, "Firefox on Linux"),
        ("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140 Safari/537.36 Edg/140", "Edge on Windows"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Safari/604.1", "Safari on iPhone"),
        ("", "An unknown browser"),
    ],
)
def test_browsers_are_named(user_agent: str, name: str) -> None:
    assert browser(user_agent) == name
