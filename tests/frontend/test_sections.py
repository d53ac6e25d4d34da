"""The top bar: which metalake its sections are about, and the way to another."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from catalogs.services import metalakes
from tests.demo import actor

pytestmark = pytest.mark.django_db
Ids = dict[str, int]


def top(client: Client, path: str, status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status
    bar = re.search(r'<header class="top">.*?</header>', answer.content.decode(), re.DOTALL)
    assert bar
    return bar[0]


def links(bar: str, place: str) -> list[str]:
    part = re.search(rf"<{place}.*?</{place.split()[0]}>", bar, re.DOTALL)
    return re.findall(r'<a href="([^"]*)"', part[0]) if part else []


def test_with_one_metalake_all_pages_are_about_it(admin: Client, ids: Ids) -> None:
    for path in ("/", "/tokens", f"/objects/{ids['sales']}"):
        bar = top(admin, path)
        assert f"/metalakes/{ids['demo']}/people" in links(bar, "nav"), path
        assert 'id="metalakes"' not in bar, "there is none to switch to"


def test_with_several_the_bar_says_which_and_leads_to_the_same_page_of_another(admin: Client, ids: Ids) -> None:
    other = metalakes.create_metalake(actor("admin"), "second", None, {}).id
    people = f"/metalakes/{other}/people"
    bar = top(admin, f"/metalakes/{ids['demo']}/people?sort=roles")
    assert "Metalake demo: choose another" in bar
    assert links(bar, 'div id="metalakes"') == [f"/metalakes/{ids['demo']}/people", people]
    assert links(top(admin, f"/objects/{ids['sales']}"), 'div id="metalakes"')[1] == f"/objects/{other}"
    bar = top(admin, "/tokens")
    assert "/choose/people" in links(bar, "nav") and "Choose a metalake" in bar


def test_the_pages_of_others_are_not_shown_with_a_refusal(rita: Client, admin: Client, ids: Ids) -> None:
    other = metalakes.create_metalake(actor("admin"), "second", None, {}).id
    bar = top(rita, f"/objects/{other}", 404)
    assert "second" not in bar and f"/metalakes/{ids['demo']}/people" in links(bar, "nav")


def test_every_page_of_access_has_the_same_tabs(admin: Client, rita: Client, ids: Ids) -> None:
    demo = ids["demo"]
    pages = [
        f"/objects/{demo}/access",
        *(f"/metalakes/{demo}/{each}" for each in ("access/requests", "matrix", "plan")),
    ]
    of_readers = [f"/metalakes/{demo}/access/findings", f"/objects/{demo}/access/changes"]
    for client, expected in ((admin, {*pages, *of_readers}), (rita, set(pages))):
        for path in expected:
            page = client.get(path).content.decode()
            nav = re.search(r'<nav class="tabs" aria-label="Access">.*?</nav>', page, re.DOTALL)
            assert nav and set(links(nav[0], "nav")) == expected, path
            assert f'href="{path}" aria-current="page"' in nav[0]
            assert f'href="/objects/{demo}/access" aria-current="page"' in top(client, path), path
