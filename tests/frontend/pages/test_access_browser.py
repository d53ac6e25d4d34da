"""Access and its reasons in a real browser: narrowed as one types, walked by keyboard, explained by one key."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from tests.frontend.shop import Shop, made_shop, sign_in
from tests.frontend.test_browser import focused
from tests.servers import MetalakeServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HOSTILE = "=<img src=x onerror=alert(1)>"
TABLE = "shop.orders:eu:retail.sales"
TWO_WAYS = (
    "() => document.querySelectorAll('table.ways tbody tr').length === 2 && !document.querySelector('.htmx-request')"
)


@pytest.fixture(scope="module")
def shop(metalake_server: MetalakeServer) -> Shop:
    """mia may select from a table and lacks use_schema on the way to it; who is named HOSTILE has both."""
    shop = made_shop(metalake_server)
    shop.add_role("visitors", "shop", "use_catalog", kind="CATALOG")
    shop.add_role("users", "shop.orders", "use_schema")
    shop.add_role("half", TABLE, "select_table", kind="TABLE")
    for user, roles in (("mia", ["visitors", "half"]), (HOSTILE, ["visitors", "half", "users"])):
        shop.native(f"/{shop.metalake}/users", {"name": user})
        granted = f"/{shop.metalake}/permissions/users/{quote(user, safe='')}/grant"
        shop.native(granted, {"roleNames": roles}, "PUT")
    return shop


def test_a_reason_is_one_key_away(desk: Page, shop: Shop) -> None:
    desk.goto(f"{shop.server.url}/objects/{shop.ids()['sales']}/access")
    desk.get_by_label("Names with").press_sequentially("mia")
    desk.wait_for_url("**q=mia*")
    ways = desk.locator("table.ways tbody tr")
    desk.wait_for_function(TWO_WAYS)  # and what would come later, and take the focus from a cell, is there
    assert desk.get_by_label("Names with").input_value() == "mia", "what was typed stays"
    assert "select_table, but no use_schema on schema shop.orders" in ways.nth(0).inner_text()
    while not desk.evaluate("document.activeElement.closest('table.ways')"):
        desk.keyboard.press("Tab")
    walk = {"End": "Revoke", "ArrowLeft": "?", "ArrowDown": "?", "ArrowUp": "?", "Home": "Grant use_schema"}
    for key, cell in walk.items():
        desk.keyboard.press(key)
        assert focused(desk) == cell
    desk.keyboard.press("?")
    desk.wait_for_url("**/why?*")
    desk.wait_for_selector("text=No. mia may not use select_table")
    assert "no use_schema on schema" in (desk.locator("svg.drawing.wide").first.text_content() or "")
    desk.locator("form.ask").get_by_label("Person").fill(HOSTILE)
    desk.keyboard.press("Enter")
    desk.wait_for_selector(".verdict-line.yes")
    assert f"{HOSTILE} may use select_table" in desk.locator("#answer").inner_text()
    desk.evaluate("history.back()")
    desk.wait_for_selector("text=No. mia may not use select_table")


def test_the_slider_shows_access_as_of_a_change(desk: Page, shop: Shop) -> None:
    desk.goto(f"{shop.server.url}/objects/{shop.ids()['sales']}/access?by=role")
    everything = desk.locator("table.ways tbody tr").count()
    slider = desk.get_by_label("Access as of a change")
    slider.wait_for()
    slider.focus()
    assert slider.get_attribute("aria-valuetext") == "Now"
    desk.keyboard.press("Home")
    desk.wait_for_url("**asOf=2*")
    desk.wait_for_function(f"document.querySelectorAll('table.ways tbody tr').length < {everything}")
    desk.keyboard.press("End")
    desk.wait_for_url("**asOf=")
    desk.wait_for_function(f"document.querySelectorAll('table.ways tbody tr').length === {everything}")


def test_a_moment_is_picked_in_local_time_and_sent_in_utc(browser: Browser, shop: Shop) -> None:
    context = browser.new_context(timezone_id="Asia/Kolkata", reduced_motion="reduce")
    page = context.new_page()
    sign_in(page, shop)
    ids = shop.ids()
    query = f"people=mia&objects={TABLE}&privilege=select_table&asOf=2026-01-02T00:00Z"
    page.goto(f"{shop.server.url}/metalakes/{ids[shop.metalake]}/matrix?{query}")
    picker = page.get_by_label("As of", exact=True)
    assert picker.input_value() == "2026-01-02T05:30"
    assert picker.get_attribute("title") == "Fri, 02 Jan 2026 00:00:00 UTC"
    assert "Asia/" in page.locator("local-moment .zone").inner_text()
    page.get_by_label("Access as of a change").press("End")
    page.wait_for_selector("#answers td.no")
    assert "as of" not in page.locator("#answers").inner_text(), "the end of the slider is now"
    page.goto(f"{shop.server.url}/objects/{ids['sales']}/why?user=mia&privilege=select_table")
    slider = page.get_by_label("Access as of a change")
    slider.press("Home")
    page.wait_for_url("**asOf=2*")
    page.wait_for_selector("text=mia could not use")
    assert slider.evaluate("slider => slider === document.activeElement"), "the focus stays on the slider"
    context.close()


def test_a_phone_never_scrolls_sideways(browser: Browser, shop: Shop) -> None:
    ids = shop.ids()
    table, user = f"{shop.server.url}/objects/{ids['sales']}", quote(HOSTILE)
    context = browser.new_context(viewport={"width": 390, "height": 760}, reduced_motion="reduce")
    page = context.new_page()
    sign_in(page, shop)
    question = f"people=mia%0A{user}&objects={TABLE}&privilege=select_table&privilege=modify_table"
    for url in (
        f"{table}/access",
        f"{table}/access/changes",
        f"{table}/why?user=mia&privilege=select_table",
        f"{table}/why?user={user}&privilege=select_table",
        f"{shop.server.url}/metalakes/{ids[shop.metalake]}/matrix?{question}",
    ):
        page.goto(url)
        assert page.locator("main").evaluate("main => main.scrollWidth - main.clientWidth") <= 0, url
    context.close()
