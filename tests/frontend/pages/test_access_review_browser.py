"""What jobs found out, in a real browser and by keyboard alone: a grant is revoked, dormant objects are read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from pipelines.job import written
from tests.frontend.axe import violations
from tests.frontend.hands import Keyboard
from tests.frontend.shop import Shop
from tests.servers import MetalakeServer

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def shop(metalake_server: MetalakeServer) -> Shop:
    """Two catalogs, on one of which a role has a grant that it has on the metalake, too."""
    shop = Shop(metalake_server)
    shop.native("", {"name": shop.metalake})
    for name in ("shop", "weather"):
        catalog = {"name": name, "type": "RELATIONAL", "provider": "lakehouse-iceberg"}
        shop.native(f"/{shop.metalake}/catalogs", catalog | {"comment": None, "properties": {}})
    shop.add_role("readers", "shop", "select_table", kind="CATALOG")
    return shop


def moment(days: int) -> str:
    return written(datetime.now(UTC) - timedelta(days=days))


def test_a_reviewed_grant_is_revoked_by_keyboard_alone(desk: Page, shop: Shop) -> None:
    ids = shop.ids()
    grant = {"role": ids["role readers"], "on": ids["shop"], "privilege": "select_table", "effect": "allow"}
    finding = grant | {"unused": True, "last": moment(60), "verdict": "redundant", "by": ids[shop.metalake]}
    counts = {"unusedCount": 1, "redundantCount": 1, "shadowedCount": 0}
    times = {"asOf": moment(0), "recordedFrom": moment(90), "completeUntil": moment(0)}
    report = {"place": 1, "days": 30, "findings": [finding]} | counts | times
    shop.call("PUT", f"/api/bulk/metalakes/{shop.metalake}/access/review", report)

    hands = Keyboard(desk)
    desk.goto(f"{shop.server.url}/metalakes/{ids[shop.metalake]}/access/findings")
    hands.press(desk.get_by_role("link", name="Look at them"))
    desk.wait_for_selector("text=Its role has the same on")
    assert violations(desk, in_dark=True) == []
    hands.press(desk.get_by_role("link", name="Revoke select_table of role readers"))
    desk.wait_for_selector("h1:has-text('Revoke select_table')")
    hands.press(desk.get_by_role("button", name="Revoke"))
    desk.wait_for_url("**/access**")
    desk.goto(f"{shop.server.url}/metalakes/{ids[shop.metalake]}/reviewed")
    desk.wait_for_selector("text=No grant here is left to revoke.")


def test_dormant_objects_are_read_by_keyboard_alone(desk: Page, shop: Shop) -> None:
    ids = shop.ids()
    unused = [{"on": ids["weather"], "last": moment(60)}, {"on": ids["shop"]}]
    report = {"completeUntil": moment(1), "days": 30, "objectCount": 2, "peopleCount": 0, "people": []}
    shop.call("PUT", f"/api/bulk/metalakes/{shop.metalake}/access/dormant", report | {"objects": unused})

    hands = Keyboard(desk)
    desk.goto(f"{shop.server.url}/metalakes/{ids[shop.metalake]}/jobs/findings")
    hands.press(desk.get_by_role("link", name="Dormant objects"))
    link = desk.locator("main").get_by_role("link", name="weather")
    link.wait_for()
    assert violations(desk, in_dark=True) == []
    hands.press(link)
    desk.wait_for_selector("h1:has-text('weather')")
