"""An object's forms in a real browser: opened and sent by keyboard, on a desk and on a phone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.frontend.axe import violations
from tests.frontend.shop import Shop

if TYPE_CHECKING:
    from playwright.sync_api import Page

FORMS = "details.edit"


def test_a_comment_is_changed_by_keyboard_and_nothing_is_cut(desk: Page, shop: Shop) -> None:
    table = shop.ids()["table sales"]
    desk.goto(f"{shop.server.url}/objects/{table}")
    desk.focus(f"{FORMS}:has([name=comment]) > summary")
    desk.keyboard.press("Enter")
    desk.keyboard.press("Tab")
    desk.keyboard.type("One row a sale")
    desk.keyboard.press("Tab")
    desk.keyboard.press("Enter")
    desk.wait_for_selector("text=After: One row a sale")
    desk.focus("button.danger, button[value=apply]")
    desk.keyboard.press("Enter")
    desk.wait_for_selector(".lead >> text=One row a sale")
    assert "is changed" in desk.inner_text("#toasts")
    for width in (1440, 390):
        desk.set_viewport_size({"width": width, "height": 800})
        desk.evaluate(f"document.querySelectorAll('{FORMS}').forEach(form => form.open = true)")
        assert desk.evaluate("document.documentElement.scrollWidth") <= width
        assert not violations(desk)
