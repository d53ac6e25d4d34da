"""What is refused: a whole page keeps its navigation, a part is a sentence, and what was typed is not lost."""

from __future__ import annotations

import json
import re
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import OperationalError
from django.test import Client

from authz.models import Token
from authz.services import people
from catalogs.services import browsing
from metalake import refusal_audit
from tests.demo import actor
from tests.frontend.conftest import add_view, sign_in

START = "/metalakes/{demo}/jobs/start?template=builtin-check_server"
REGISTER = "/metalakes/{demo}/catalogs/new?provider=lakehouse-iceberg"
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


def test_what_a_page_refuses_is_in_the_audit(rita: Client, admin: Client, ids: dict[str, int]) -> None:
    refusal_audit.forget()  # what other tests were refused in this minute
    path = f"/objects/{ids['eu']}/views/new"
    assert rita.get(path).status_code == 403
    assert f"GET {path}" in admin.get(f"/metalakes/{ids['demo']}/audit").content.decode()
    assert rita.get(f"/objects/{ids['payroll']}").status_code == 404
    assert f"GET /objects/{ids['payroll']}" not in admin.get(f"/metalakes/{ids['demo']}/audit").content.decode()


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


def test_a_field_that_asks_after_the_session_ended_leaves_its_form(rita: Client, ids: dict[str, int]) -> None:
    asks = PART | {"HX-Trigger-Name": "more", "HX-Current-URL": f"http://testserver/objects/{ids['eu']}"}
    for path in (f"/objects/{ids['eu']}/grant/people?more=r", f"/catalogs/{ids['lake']}/nesting"):
        answer = Client().get(path, headers=asks)
        assert answer.status_code == 401 and is_a_sentence(answer)
        assert answer.headers["HX-Retarget"] == "#trouble" and "HX-Redirect" not in answer.headers


TYPED: dict[str, tuple[str, str, dict[str, str]]] = {
    "schemas": ("/objects/{eu}/schemas/new", "/objects/{eu}/schemas/new", {"name": "t-1", "comment": "t-2"}),
    "metalakes": ("/metalakes/new", "/metalakes/new", {"name": "t-1", "comment": "t-2"}),
    "people": ("/metalakes/{demo}/people?sort=users", "/metalakes/{demo}/people/users", {"name": "t-1"}),
    "groups": ("/metalakes/{demo}/people?sort=groups", "/metalakes/{demo}/people/groups", {"name": "t-1"}),
    "roles": ("/metalakes/{demo}/people?sort=roles", "/metalakes/{demo}/people/roles", {"name": "t-1"}),
    "plan": ("/metalakes/{demo}/plan", "/metalakes/{demo}/plan", {"text": "t-1"}),
    "changes": ("/tokens", "/metalakes/{demo}/people/change", {"what": "put-in", "group": "crew", "people": "t-1"}),
    "jobs": (START, START, {"name": "t-1", "cron": "t-2"}),
}


@pytest.mark.parametrize("kind", TYPED)
def test_what_was_typed_is_there_after_signing_in_again(ids: dict[str, int], kind: str) -> None:
    page, action, typed = TYPED[kind]
    people.add_group(actor("admin"), "demo", "crew")
    referer = {"Referer": f"http://testserver{page.format(**ids)}"}
    sent = typed | {"csrfmiddlewaretoken": "k", "act": "make"}
    answer = Client().post(action.format(**ids), sent, headers=referer)
    (path,) = parse_qs(urlsplit(answer.headers["Location"]).query)["next"]
    assert answer.status_code == 302 and "csrf" not in path and "act=" not in path
    shown = sign_in("admin").get(path).content.decode()
    assert all(text in shown for text in typed.values() if text.startswith("t-")), path


def test_what_is_secret_or_sent_from_elsewhere_is_in_no_address(ids: dict[str, int]) -> None:
    here, elsewhere = ({"Referer": f"http://{host}/catalogs/1/settings"} for host in ("testserver", "x.example"))
    secret = Client().post(f"/catalogs/{ids['lake']}/settings", {"name": "do-not-show"}, headers=here)
    assert secret.headers["Location"] == "/login?next=%2Fcatalogs%2F1%2Fsettings"
    answer = Client().post(f"/metalakes/{ids['demo']}/people/users", {"name": "x"}, headers=elsewhere)
    assert answer.headers["Location"] == "/login"


@pytest.mark.parametrize("header", ["Referer", "HX-Current-URL"])
def test_a_page_that_is_no_address_leads_home(db: None, header: str) -> None:
    part = {"HX-Request": "true"} if header != "Referer" else {}
    ask = Client().get if part else Client().post
    answer = ask("/tokens", headers=part | {header: "http://[bad"})
    assert answer.headers.get("Location", answer.headers.get("HX-Redirect")) == "/login"


def test_what_is_too_long_for_an_address_is_said_to_be_lost(ids: dict[str, int]) -> None:
    page = REGISTER.format(**ids)
    for text in ("д" * 850, "n" * 1990, "😀" * 460):
        answer = Client().post(f"/metalakes/{ids['demo']}/people/roles", {"name": text}, headers=at(page))
        query = parse_qs(urlsplit(answer.headers["Location"]).query)
        assert (query["next"], query["cut"]) == ([page], ["1"])
        assert "too long to keep" in Client().get(answer.headers["Location"]).content.decode()
    url = Client().get("/search", {"q": "д" * 700}).headers["Location"]
    assert url == "/login?next=%2Fsearch&cut=1"


def test_fields_of_secret_names_are_left_out(ids: dict[str, int]) -> None:
    start = START.format(**ids)
    secret = {"value-password": "s-1", "value-pin": "s-2", "property-s3.secret-access-key": "s-3", "api_key": "s-4"}
    answer = Client().post(start, secret | {"value-table": "t-1"}, headers=at(start))
    assert "s-" not in answer.headers["Location"] and "t-1" in answer.headers["Location"]


def at(page: str) -> dict[str, str]:
    return {"Referer": f"http://testserver{page}"}


IDS = re.compile(r'\bid="([^"]+)"')
FORMS: dict[str, tuple[str, str, dict[str, str]]] = {
    "settings": ("/catalogs/{lake}/settings", "/catalogs/{lake}/settings", {"name": "", "act": "keep"}),
    "register": (REGISTER, REGISTER, {"provider": "lakehouse-iceberg", "name": "", "act": "keep"}),
    "view": ("/objects/{eu}/views/new", "/objects/{eu}/views/new", {"name": ""}),
    "dialect": ("/objects/{view}/dialects/change", "/objects/{view}/dialects/change", {"sql": ""}),
    "grant": ("/objects/{eu}/grant", "/objects/{eu}/grant", {"more": "nobody"}),
    "tokens": ("/tokens", "/tokens", {"name": "one", "days": "30"}),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_part_of_an_answer_has_its_place_on_the_page(ids: dict[str, int], form: str) -> None:
    ids = ids | {"view": add_view("orders", "eu", "totals")}
    page, action, sent = FORMS[form]
    client = sign_in("admin")
    places = set(IDS.findall(client.get(page.format(**ids)).content.decode()))
    answer = client.post(action.format(**ids), sent, headers=PART).content.decode()
    parts = re.findall(r"<[^>]+hx-swap-oob[^>]*>", answer)
    assert parts and {IDS.findall(part)[0] for part in parts} <= places


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
