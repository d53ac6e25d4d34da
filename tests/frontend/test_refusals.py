"""What is refused: a whole page keeps its navigation, a part is a sentence, and what was typed is not lost."""

from __future__ import annotations

import json

import pytest
from django.db import OperationalError
from django.test import Client

from authz.models import Token
from catalogs.services import browsing
from tests.frontend.conftest import sign_in

PART = {"HX-Request": "true", "HX-Current-URL": "http://testserver/tokens"}


def is_a_sentence(answer) -> bool:
    return "<html" not in answer.content.decode() and 'class="note warn"' in answer.content.decode()


@pytest.mark.parametrize("path", ["/nowhere", "/objects/4611686018427387904", "/tokens/4611686018427387904/none"])
def test_a_page_that_refuses_keeps_its_navigation(rita: Client, path: str) -> None:
    page = rita.get(path).content.decode()
    assert "There is nothing here" in page
    for part in ('aria-label="Pages"', 'id="account"', "Sign out", 'href="#main"'):
        assert part in page


def test_a_stranger_is_offered_to_sign_in(db: None) -> None:
    page = Client().get("/nowhere").content.decode()
    assert "There is nothing here" in page
    assert 'href="/login"' in page
    assert "Sign out" not in page


def test_a_form_without_its_key_keeps_the_navigation(rita: Client) -> None:
    answer = sign_in("rita", enforce_csrf_checks=True).post("/tokens", {"name": "x"})
    assert answer.status_code == 403
    assert "The form was not accepted" in answer.content.decode()
    assert 'id="account"' in answer.content.decode()


def test_an_address_that_only_takes_forms_says_so(rita: Client) -> None:
    answer = rita.get("/tokens/1/revoke")
    assert answer.status_code == 405 and answer.headers["Allow"] == "POST"
    assert "It only takes forms" in answer.content.decode() and 'id="account"' in answer.content.decode()


@pytest.mark.parametrize("as_part", [False, True])
def test_a_failure_asks_the_store_for_nothing(rita: Client, monkeypatch: pytest.MonkeyPatch, as_part: bool) -> None:
    def fail(*args: object) -> None:
        raise OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(browsing, "top_level", fail)
    rita.raise_request_exception = False
    answer = rita.get("/", headers=PART if as_part else {})
    assert answer.status_code == 503
    assert answer.headers["Retry-After"]
    assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
    page = answer.content.decode()
    assert "try again" in page.lower()
    assert is_a_sentence(answer) if as_part else 'aria-label="Pages"' in page and "rita" not in page


def test_what_is_asked_for_is_replaced_by_the_sentence(rita: Client) -> None:
    answer = rita.get("/objects/4611686018427387904", headers=PART)
    assert answer.status_code == 404 and is_a_sentence(answer)
    assert "HX-Retarget" not in answer.headers
    assert is_a_sentence(rita.get("/nowhere", headers=PART))


def test_a_form_that_is_sent_after_the_session_ended_stays(rita: Client) -> None:
    answer = Client().post("/tokens", {"name": "spark"}, headers=PART)
    assert answer.status_code == 401 and is_a_sentence(answer)
    assert (answer.headers["HX-Retarget"], answer.headers["HX-Reswap"]) == ("#trouble", "innerHTML")
    assert "HX-Redirect" not in answer.headers
    assert "what you typed is still here" in answer.content.decode()


def test_a_form_of_before_a_new_sign_in_gets_a_new_key(rita: Client) -> None:
    client = sign_in("rita", enforce_csrf_checks=True)
    client.get("/tokens")
    stale = {"name": "spark", "days": "30", "csrfmiddlewaretoken": "a" * 64}
    answer = client.post("/tokens", stale, headers=PART)
    assert answer.status_code == 403 and is_a_sentence(answer)
    assert answer.headers["HX-Retarget"] == "#trouble"
    assert "as rita" in answer.content.decode(), "it may be somebody else's session by now"
    assert not Token.objects.exists()
    renewed = json.loads(answer.headers["HX-Trigger"])["renewed"]["value"]
    assert client.post("/tokens", stale | {"csrfmiddlewaretoken": renewed}, headers=PART).status_code == 200
    assert Token.objects.get().name == "spark"


@pytest.mark.parametrize("headers", [{}, PART])
def test_revoking_a_token_twice_says_so_above_the_list(rita: Client, headers: dict[str, str]) -> None:
    for name in ("one", "two"):
        rita.post("/tokens", {"name": name, "days": "30"})
    gone = Token.objects.get(name="one").pk
    rita.post(f"/tokens/{gone}/revoke")
    answer = rita.post(f"/tokens/{gone}/revoke", headers=headers)
    assert answer.status_code == 404
    assert "it may be revoked already" in answer.content.decode()
    assert "Revoke two" in answer.content.decode(), "the list stays, as it is now"
