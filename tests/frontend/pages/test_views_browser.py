"""Views in a real browser: a dialect is refused in place, added, compared with before and rolled back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.frontend.axe import violations
from tests.frontend.hands import Keyboard
from tests.frontend.shop import Shop

if TYPE_CHECKING:
    from playwright.sync_api import Page


def test_a_dialect_is_added_compared_and_rolled_back(desk: Page, shop: Shop) -> None:
    shop.add_view("orders", "eu", "retail", name="totals")
    desk.goto(f"{shop.server.url}/objects/{shop.ids()['view totals']}/dialects/change")
    form = desk.locator("form", has=desk.get_by_label("SQL"))
    form.get_by_label("Dialect").fill("SPARK")
    form.get_by_label("SQL").fill("SELECT amount\nFROM sales -- typed")
    form.get_by_role("button", name="Add it").click()
    desk.get_by_text("update it instead").wait_for()
    assert form.get_by_label("SQL").input_value().endswith("-- typed"), "what is refused stays"
    assert violations(desk) == []
    form.get_by_label("Dialect").fill("trino")
    form.get_by_role("button", name="Add it").click()
    desk.get_by_text("trino is added.").wait_for()
    assert desk.locator("pre.sql .keyword").count() > 2 and violations(desk) == []
    desk.locator("#tab-versions").click()
    desk.get_by_role("button", name="Compare the two").click()
    desk.locator("ins", has_text="-- typed").wait_for()
    desk.set_viewport_size({"width": 390, "height": 800})
    assert desk.evaluate("document.documentElement.scrollWidth") <= 390 and violations(desk) == []
    desk.get_by_role("link", name="All versions").click()
    desk.get_by_role("link", name="Roll back to version 1").click()
    desk.get_by_role("button", name="Roll back to version 1").click()
    desk.get_by_text("The view is as it was in version 1.").wait_for()


def test_a_suggested_dialect_is_added_by_keyboard_alone(desk: Page, shop: Shop) -> None:
    shop.add_view("orders", "eu", "retail", name="sums")
    keyboard = Keyboard(desk)
    desk.goto(f"{shop.server.url}/objects/{shop.ids()['view sums']}")
    keyboard.press(desk.locator("#tab-dialects"))
    keyboard.press(desk.get_by_role("link", name="Add a dialect"))
    suggestion = desk.locator("form", has=desk.get_by_role("button", name="Suggest"))
    keyboard.fill(suggestion.get_by_label("To"), "trino")
    keyboard.press(suggestion.get_by_role("button", name="Suggest"))
    desk.get_by_text("The form below has what spark becomes.").wait_for()
    form = desk.locator("form", has=desk.get_by_label("SQL"))
    assert form.get_by_label("Dialect").input_value() == "trino"
    assert form.get_by_label("SQL").input_value().split() == ["SELECT", "amount", "FROM", "sales"]
    keyboard.press(form.get_by_role("button", name="Add it"))
    desk.get_by_text("trino is added.").wait_for()
    keyboard.press(desk.get_by_role("button", name="Check all dialects"))
    desk.get_by_text("It yields the columns that the view declares.").nth(1).wait_for()
