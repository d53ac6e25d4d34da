"""Signing in and out: who is let in, where they are sent, and that no form of another site is taken."""

from __future__ import annotations

import pytest
from django.test import Client

from authz.models import User
from tests.cases import each
from tests.demo import PASSWORD
from tests.frontend.conftest import sign_in

OURS = ["/", "/tokens", "/objects/12", "/objects/12?x=//elsewhere.example", "/a%2F%2Fb", "/x:y@z", "/path;v=1"]
ELSEWHERE = [
    "", " ", "//", "///", "//elsewhere.example", "///elsewhere.example", "////elsewhere.example",
    "/\\elsewhere.example", "\\\\elsewhere.example", "\\/elsewhere.example", "/\\/elsewhere.example",
    "http://elsewhere.example", "https://elsewhere.example", "HTTPS://elsewhere.example", "http:elsewhere.example",
    "http:/elsewhere.example", "http:///elsewhere.example", "https:\\\\elsewhere.example", "ftp://elsewhere.example",
    "javascript:alert(1)", "JaVaScRiPt:alert(1)", " javascript:alert(1)", "java\tscript:alert(1)", "data:text/html,hi",
    "vbscript:x", "file:///etc/passwd", "mailto:a@elsewhere.example", "elsewhere.example", "www.elsewhere.example/",
    "@elsewhere.example", "user@elsewhere.example/", ".elsewhere.example", "..//elsewhere.example",
    "\t//elsewhere.example", "\n//elsewhere.example", "/\t/elsewhere.example", "/\n/elsewhere.example",
    "/\r\nLocation: //elsewhere.example", " //elsewhere.example", "\x00//elsewhere.example", "/\x00/elsewhere.example",
    "//elsewhere.example\\@testserver/", "//testserver@elsewhere.example/", "http://testserver/", "//testserver/tokens",
    "https://testserver/", "\u3000//elsewhere.example", "/\u2028/elsewhere.example", "//[::1]/", "//[elsewhere",
    "?next=/",
]  # fmt: skip


@pytest.fixture
def nora(db: None) -> User:
    return User.objects.create_user("nora", PASSWORD)


def submit(client: Client, next_: str = "", password: str = PASSWORD):
    return client.post("/login", {"username": "nora", "password": password, "next": next_})


@pytest.mark.store
def test_it_works(nora: User) -> None:
    client = Client()
    assert client.get("/").headers["Location"] == "/login"
    assert client.get("/tokens?x=1").headers["Location"] == "/login?next=%2Ftokens%3Fx%3D1"
    answer = submit(client, "/tokens?x=1")
    assert answer.status_code == 302
    assert answer.headers["Location"] == "/tokens?x=1"
    assert "nora" in client.get("/").content.decode()
    assert client.get("/login").headers["Location"] == "/", "whoever is signed in is sent on"


def test_a_wrong_password_says_no_more_than_an_unknown_name(nora: User) -> None:
    wrong = submit(Client(), password="something else")
    unknown = Client().post("/login", {"username": "nobody", "password": PASSWORD})
    assert wrong.status_code == unknown.status_code == 400
    for answer in (wrong, unknown):
        assert "correct username and password" in answer.content.decode()
    assert PASSWORD not in unknown.content.decode()


def test_a_disabled_account_is_out_at_once(nora: User) -> None:
    client = sign_in("nora")
    assert client.get("/").status_code == 200
    User.objects.update(is_active=False)
    assert client.get("/").status_code == 302
    assert submit(Client()).status_code == 400


@pytest.mark.parametrize("next_", OURS)
def test_next_leads_to_our_own_pages(nora: User, next_: str) -> None:
    assert submit(Client(), next_).headers["Location"] == next_


@each("next_", ELSEWHERE)
def test_next_leads_nowhere_else(nora: User, next_: str) -> None:
    assert submit(Client(), next_).headers["Location"] == "/"
    asked = Client().get("/login", {"next": next_}).content.decode()
    assert '<input type="hidden" name="next" value="/">' in asked


@pytest.mark.store
def test_signing_out_ends_the_session_and_takes_a_form(nora: User) -> None:
    client = sign_in("nora")
    assert client.get("/logout").status_code == 405
    assert client.get("/").status_code == 200
    assert client.post("/logout").headers["Location"] == "/login"
    assert client.get("/").status_code == 302


@pytest.mark.parametrize("path", ["/login", "/logout", "/tokens", "/tokens/1/revoke"])
def test_a_form_of_another_site_is_refused(nora: User, path: str) -> None:
    client = sign_in("nora", enforce_csrf_checks=True)
    answer = client.post(path, {"username": "nora", "password": PASSWORD, "name": "stolen"})
    assert answer.status_code == 403
    assert "The form was not accepted" in answer.content.decode()
    assert client.get("/").status_code == 200, "still signed in"
    assert not nora.tokens.exists()


def test_a_part_of_a_page_sends_the_whole_page_to_sign_in(nora: User) -> None:
    headers = {"HX-Request": "true", "HX-Current-URL": "http://testserver/tokens"}
    answer = Client().get("/objects/1/children", headers=headers)
    assert answer.headers["HX-Redirect"] == "/login?next=%2Ftokens"
    assert not answer.content
