"""A role edited in a browser: parts are replaced in place, the whole change is one plan, by keyboard and on a phone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.frontend.axe import violations
from tests.frontend.shop import Shop

if TYPE_CHECKING:
    from playwright.sync_api import Page


def test_a_role_is_filled_previewed_applied_and_undone(desk: Page, shop: Shop) -> None:
    shop.native(f"/{shop.metalake}/users", {"name": "mia"})
    ids = shop.ids()
    desk.goto(f"{shop.server.url}/metalakes/{ids[shop.metalake]}/people/roles/{ids['role readers']}/edit")
    desk.get_by_label("Full names").fill("shop.nowhere\nshop.orders:eu:retail.sales")
    desk.locator("#add").press("Enter")
    desk.get_by_text("Schema shop.nowhere does not exist.").wait_for()
    assert desk.get_by_label("Full names").input_value() == "shop.nowhere"
    assert desk.evaluate("document.activeElement.id") == "add", "the focus stays where it was"
    desk.get_by_label("Full names").fill("")
    choice = desk.locator("input[name$='-select_table'][value='']").last
    choice.focus()
    desk.keyboard.press("ArrowRight")
    desk.get_by_label("Give it to").fill("mia")
    desk.keyboard.press("Enter")
    desk.get_by_role("button", name="Preview").click()
    apply = desk.get_by_role("button", name="Apply")
    apply.wait_for()
    assert violations(desk) == []
    desk.set_viewport_size({"width": 390, "height": 800})
    assert violations(desk) == []
    assert desk.evaluate("document.documentElement.scrollWidth") <= 390
    for expected in ("ALLOW select_table on table shop.orders:eu:retail.sales", "User mia gets role readers"):
        assert expected.casefold() in desk.locator(".plan").inner_text().casefold()
    apply.click()
    desk.get_by_text("Role readers is changed.").wait_for()
    desk.get_by_role("button", name="Undo").click()
    desk.get_by_text("Undone:").wait_for()
    assert "sales" not in desk.locator("main").inner_text()
