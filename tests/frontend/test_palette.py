"""What the palette offers: pages and commands that exist and one may use, and phrases as filled pages."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.test import Client

from catalogs.services import browsing
from frontend.palette import ALONE, COMMANDS, pages_named
from metalake.kinds import Kind
from tests.demo import actor, give

pytestmark = pytest.mark.django_db
Ids = dict[str, int]


def offered(client: Client, text: str, **more: str) -> dict[str, str]:
    """What is offered while one types, by its words: the page that each leads to."""
    answer = client.get("/search", {"q": text, **more}, headers={"HX-Request": "true"})
    assert answer.status_code == 200, answer.content
    page = unescape(answer.content.decode())
    pairs = re.findall(r'<a href="([^"]*)">(.*?)</a>', page, re.DOTALL)
    return {" ".join(re.sub(r"<[^>]*>", " ", words).split()): url for url, words in pairs}


def opened(client: Client, text: str, words: str) -> str:
    """The page that the offer of these words leads to."""
    answer = client.get(offered(client, text)[words])
    assert answer.status_code == 200
    return unescape(answer.content.decode())


def test_every_page_and_command_leads_somewhere(admin: Client, ids: Ids) -> None:
    owner, urls = actor("admin"), set()
    for label in [*(command.label for command in COMMANDS), *(label for label, _ in ALONE)]:
        hits = pages_named(owner, browsing.top_level(owner).children, label.upper(), None)
        assert hits[0].label == label
        urls.add(hits[0].url)
    for url in urls:
        assert admin.get(url).status_code == 200, url


def test_commands_are_for_whoever_may(admin: Client, rita: Client, ids: Ids) -> None:
    demo = ids["demo"]
    assert offered(admin, "reg cat")["Register a catalog demo"] == f"/metalakes/{demo}/catalogs/new"
    assert "Jobs demo" in offered(rita, "jobs") and "New metalake" in offered(admin, "new")
    for text in ("register", "new group", "see as mia", "new schema in lake", "new metalake"):
        assert set(offered(rita, text)) <= {"All results"}, text
    name = "New schema in eu demo.lake.orders"
    assert offered(admin, "new schema in orders:eu")[name] == f"/objects/{ids['eu']}/schemas/new"
    assert f'action="/objects/{demo}/see-as"' in opened(admin, "see as mia", "See as mia demo")
    assert 'name="user" value="mia"' in opened(admin, "see as mia", "See as mia demo")
    assert rita.get(f"/objects/{demo}/see-as?user=mia").status_code == 403


def test_questions_open_the_filled_page(admin: Client, ids: Ids) -> None:
    assert offered(admin, "who reads sales") == {
        "Who reads sales in demo › lake › orders › eu": f"/objects/{ids['sales']}/access?privilege=select_table",  # noqa: RUF001
        "All results": "/search?q=who%20reads%20sales",
    }
    (words, _) = offered(admin, "why rita sales")
    assert "rita" in (page := opened(admin, "why rita sales", words)) and "<strong>Yes.</strong>" in page
    (words, _) = offered(admin, "mia reads sales until 2099-12-31")
    page = opened(admin, "mia reads sales until 2099-12-31", words)
    assert "mia may read lake.orders:eu.sales" in page and 'value="2100-01-01T00:00:00"' in page


def test_an_end_that_is_not_understood_is_told(admin: Client, ids: Ids) -> None:
    page = admin.get("/search?q=mia reads sales until whenever").content.decode()
    assert "“whenever” is no time" in page and f"/objects/{ids['sales']}/grant" in page


def test_what_is_hidden_is_nothing(rita: Client, ids: Ids) -> None:
    give("rita", Kind.SCHEMA, "lake.orders:eu", "manage_grants")

    def answer(text: str) -> str:
        page = rita.get("/search", {"q": text}).content.decode()
        return re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "", page)

    for text in ("who reads payroll", "why mia payroll", "mia reads payroll", "grant payroll", "new schema in payroll"):
        assert answer(text).replace("payroll", "nothing") == answer(text.replace("payroll", "nothing")), text


def test_a_comment_is_searched_for_whoever_may_load_it(admin: Client, otto: Client, ids: Ids) -> None:
    assert "table sales One row a sale" in offered(admin, "row")
    assert offered(otto, "row") == {}
