"""A job in a real browser, by keyboard alone: started, watched to its end, and put on a schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.frontend.axe import violations
from tests.frontend.hands import Keyboard
from tests.frontend.shop import Shop
from tests.servers import MetalakeServer

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def shop(metalake_server: MetalakeServer) -> Shop:
    """A metalake with nothing in it."""
    shop = Shop(metalake_server)
    shop.native("", {"name": shop.metalake})
    return shop


def test_a_job_is_run_and_scheduled_by_keyboard_alone(desk: Page, shop: Shop) -> None:
    hands = Keyboard(desk)
    desk.goto(f"{shop.server.url}/objects/{shop.ids()[shop.metalake]}")
    hands.press(desk.get_by_role("link", name="Jobs").first)
    desk.wait_for_selector("text=Nothing has run yet.")
    assert violations(desk) == []
    hands.press(desk.get_by_role("link", name="Templates"))
    hands.press(desk.get_by_role("link", name="Run builtin-check_server"))
    desk.wait_for_selector("h1:has-text('builtin-check_server')")
    assert violations(desk) == []
    hands.fill(desk.get_by_label("times"), "2")
    hands.press(desk.get_by_role("button", name="Run it now"))
    desk.wait_for_selector("text=succeeded")  # the page follows the run by itself
    assert "2: http" in desk.locator(".outcome").inner_text() and not desk.locator("#log").is_visible()
    hands.press(desk.locator("details.log summary"))
    assert desk.locator("#log").inner_text().count("catalogs of") == 2
    assert desk.locator("dt:has-text('Did') + dd").inner_text().startswith("2") and not desk.locator("progress").count()
    assert desk.locator("#run[hx-get]").count() == 0, "it is not asked for any more"
    assert violations(desk) == []
    desk.go_back()
    hands.fill(desk.get_by_label("Name of the schedule"), "nightly")
    hands.fill(desk.get_by_label("Cron"), "0 2 * * *")
    hands.press(desk.get_by_role("button", name="Make the schedule"))
    desk.wait_for_selector("text=Schedule nightly is made.")
    assert violations(desk) == []
    hands.press(desk.get_by_role("link", name="Delete nightly"))
    hands.press(desk.get_by_role("button", name="Delete the schedule"))
    desk.wait_for_selector("text=Schedule nightly is deleted.")
