"""Every page in a real browser: no violation of accessibility in light and dark, no dialog, no report of the policy."""

from __future__ import annotations

import gzip
import urllib.request
from collections.abc import Collection
from typing import TYPE_CHECKING

import pytest

from tests.frontend import hostile
from tests.frontend.axe import violations
from tests.frontend.screens import ADDRESSES, PARTS, address
from tests.frontend.shop import Shop, sign_in

if TYPE_CHECKING:
    from playwright.sync_api import Page

SCREENS = [route for route in ADDRESSES if route not in PARTS]
HEAVIEST = 100_000  # bytes that the first load of a page may take, with all its files
HEAVIEST_OBJECT = 40_000


def ids_of(shop: Shop, table: str = "sales", schema: str = "eu") -> dict[str, int]:
    ids = shop.ids()
    return {"metalake": ids[shop.metalake], "catalog": ids["shop"], "schema": ids[schema], "table": ids[table]}


IN_DARK = ("components", "objects/<int:object_id>/access", "objects/<int:object_id>/grant", "tokens")
"""Pages whose colours are looked at in dark every day; the long run does so on all."""


def problems_of(desk: Page, shop: Shop, in_dark: Collection[str]) -> dict[str, list[str]]:
    """What axe finds, by address."""
    ids, problems, seen = ids_of(shop), {}, 0
    for route, path in [*((route, address(route, ids)) for route in SCREENS), ("", "/nowhere")]:
        answer = desk.goto(f"{shop.server.url}{path}")
        if answer and answer.status == 405:  # a form is sent there, and nothing else
            continue
        seen += 1
        if wrong := violations(desk, in_dark=route in in_dark):
            problems[path] = wrong
    assert seen > 20
    return problems


@pytest.mark.timeout(300)
def test_axe_finds_nothing(desk: Page, shop: Shop) -> None:
    assert problems_of(desk, shop, IN_DARK) == {}


@pytest.mark.long
@pytest.mark.timeout(900)
def test_axe_finds_nothing_in_dark_and_on_a_phone(desk: Page, shop: Shop) -> None:
    assert problems_of(desk, shop, SCREENS) == {}
    desk.set_viewport_size({"width": 390, "height": 800})
    assert problems_of(desk, shop, SCREENS) == {}


def test_the_sign_in_is_accessible(page: Page, shop: Shop) -> None:
    page.goto(f"{shop.server.url}/login")
    assert violations(page) == []


def test_a_form_outlives_a_new_sign_in_of_another_tab(desk: Page, shop: Shop) -> None:
    desk.goto(f"{shop.server.url}/tokens")
    desk.get_by_label("Name").fill("kept while away")
    other = desk.context.new_page()
    other.goto(f"{shop.server.url}/")
    other.get_by_role("button", name="Your account").click()
    other.get_by_role("button", name="Sign out").click()
    other.wait_for_url("**/login")
    trouble = desk.locator("#trouble")
    desk.get_by_role("button", name="Issue").click()
    trouble.get_by_text("You are signed out").wait_for()
    sign_in(other, shop)
    desk.get_by_role("button", name="Issue").click()
    trouble.get_by_text("You signed in anew meanwhile, as admin").wait_for()
    assert desk.get_by_label("Name").input_value() == "kept while away"
    desk.get_by_role("button", name="Issue").click()
    desk.get_by_label("The new token").wait_for()
    assert trouble.inner_text() == ""
    desk.get_by_role("button", name="Revoke kept while away").click()


def look_everywhere(desk: Page, shop: Shop, texts: list[str]) -> None:
    """Go to every page of hostile tables; the fixtures fail on a dialog and on a report of the policy."""
    ids = shop.ids()
    for text in texts:
        name = hostile.as_name(text)
        for route in SCREENS:
            if "{table}" in ADDRESSES[route]:
                desk.goto(f"{shop.server.url}{address(route, ids_of(shop) | {'table': ids[name]})}")
                assert name in desk.locator("main").inner_text(), "and it is all there"


def test_hostile_text_does_nothing_anywhere(desk: Page, shop: Shop) -> None:
    look_everywhere(desk, shop, hostile.SOME)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_no_hostile_text_does_anything_anywhere(desk: Page, shop: Shop) -> None:
    for text in set(hostile.ALL) - set(hostile.SOME):
        shop.add_hostile(text)
    look_everywhere(desk, shop, hostile.ALL)


def test_a_first_load_is_light(desk: Page, shop: Shop) -> None:
    sizes: dict[str, int] = {}
    session = desk.context.new_cdp_session(desk)
    session.send("Network.enable")
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    urls: dict[str, str] = {}
    session.on("Network.requestWillBeSent", lambda event: urls.update({event["requestId"]: event["request"]["url"]}))
    session.on(
        "Network.loadingFinished",
        lambda event: sizes.update({urls[event["requestId"]]: int(event["encodedDataLength"])}),
    )
    path = f"{shop.server.url}/objects/{shop.ids()['sales']}"
    desk.goto(path, wait_until="networkidle")
    assert sizes[path] < HEAVIEST_OBJECT
    assert sum(sizes.values()) < HEAVIEST, sizes
    assert all(url.startswith(shop.server.url) for url in sizes)


def test_files_have_their_checksum_in_their_names_and_are_kept_for_a_year(desk: Page, shop: Shop) -> None:
    hrefs = desk.evaluate(
        "[...document.querySelectorAll('link[rel=stylesheet], script[src]')].map(e => e.href || e.src)"
    )
    assert len(hrefs) > 4
    for href in hrefs:
        request = urllib.request.Request(href, headers={"Accept-Encoding": "gzip"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert int(answer.headers["Cache-Control"].split("max-age=")[1].split(",")[0]) >= 365 * 86400, href
            assert "immutable" in answer.headers["Cache-Control"]
            assert answer.headers["Content-Encoding"] == "gzip"
            assert gzip.decompress(answer.read())
