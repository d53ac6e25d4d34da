"""What only a browser proves of the top bar and the keys: the field of the palette, `?`, presets of times, a phone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.frontend.axe import violations, violations_now
from tests.frontend.shop import Shop

if TYPE_CHECKING:
    from playwright.sync_api import Page

NAME = "document.activeElement.name"
ENDS = "document.querySelector('#grant-ends').closest('local-moment').value"
FITS = "document.documentElement.scrollWidth <= innerWidth"


def test_one_field_finds_and_goes_by_keyboard(desk: Page, shop: Shop) -> None:
    for key in ("/", "ControlOrMeta+k"):
        desk.keyboard.press(key)
        assert desk.evaluate(NAME) == "q"
        desk.locator(".offers", has_text="who reads travel:nyc").wait_for()
        assert violations_now(desk) == []
        desk.keyboard.press("Escape")
        desk.locator(".offers").wait_for(state="hidden")
    desk.keyboard.press("/")
    desk.keyboard.type("orders:eu:retail.sales")
    desk.locator("#palette-results a", has_text=shop.metalake).first.wait_for()
    desk.keyboard.press("ArrowDown")
    assert desk.evaluate("document.activeElement === document.querySelector('#palette-results a')")
    desk.keyboard.press("ArrowUp")
    assert desk.evaluate(NAME) == "q"
    assert violations(desk) == []
    desk.keyboard.press("Enter")
    desk.locator("h1", has_text="sales").wait_for()
    desk.keyboard.press("?")
    desk.locator("#keys[open]").wait_for()
    assert violations_now(desk) == []
    desk.keyboard.press("Escape")
    desk.set_viewport_size({"width": 390, "height": 844})
    assert desk.evaluate(FITS)
    tab, bar = desk.locator("#tab-history").bounding_box(), desk.locator(".top nav").bounding_box()
    assert tab and tab["x"] + tab["width"] <= 390, "the last tab is not cut"
    assert bar and bar["height"] < 48, "the sections are in one line"
    desk.locator(".palette input[type=search]").fill("jobs")
    desk.locator("#palette-results a", has_text="Jobs").first.wait_for()
    assert desk.evaluate(FITS) and violations_now(desk) == []


def test_a_preset_sets_the_time_and_the_preview_follows(desk: Page, shop: Shop) -> None:
    desk.goto(f"{shop.server.url}/objects/{shop.ids()['schema orders']}/grant?principal=user:admin&ends=2099-01-01")
    with desk.expect_response(lambda answer: answer.request.method == "POST" and "/grant" in answer.url):
        desk.get_by_role("button", name="in a week").last.click()
    days = desk.evaluate(f"(Date.parse({ENDS}) - Date.now()) / 86400000")
    assert 6.9 < days < 7.1
