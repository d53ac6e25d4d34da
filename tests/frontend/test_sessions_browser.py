"""What people typed, or have to copy, in a real browser: it outlives a session that ends and answers that refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.frontend import signed_in
from tests.frontend.shop import Shop
from tests.names import own_name
from tests.servers import MetalakeServer

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture(scope="module")
def shop(metalake_server: MetalakeServer) -> Shop:
    """shop.green, which the operator owns."""
    shop = Shop(metalake_server, own_name("typed"))
    shop.open()
    shop.add_namespace("green")
    return shop


@pytest.fixture
def desk(page: Page, shop: Shop) -> Page:
    signed_in.sign_in(page, shop.server)
    return page


def test_a_person_is_there_after_signing_in_again(desk: Page, shop: Shop) -> None:
    path = f"/metalakes/{shop.ids()[shop.metalake]}/people"
    desk.goto(f"{shop.server.url}{path}")
    desk.locator("#id_name").fill("typed-before")
    desk.context.clear_cookies(name=signed_in.COOKIE)
    desk.get_by_role("button", name="Add", exact=True).click()
    desk.locator("input[name=username]").fill("admin")
    desk.locator("input[name=password]").fill(shop.server.admin_password)
    desk.keyboard.press("Enter")
    desk.wait_for_url(f"**{path}?name=typed-before")
    assert desk.locator("#id_name").input_value() == "typed-before"


def test_the_grant_drawer_stays_while_somebody_types(desk: Page, shop: Shop) -> None:
    desk.goto(f"{shop.server.url}/objects/{shop.ids()['green']}")
    desk.get_by_role("link", name="Grant", exact=True).click()
    desk.wait_for_selector("dialog[open] #grant-more")
    desk.context.clear_cookies(name=signed_in.COOKIE)
    desk.locator("#grant-more").press_sequentially("mi")
    desk.locator("dialog .trouble", has_text="You are signed out").wait_for()
    assert desk.locator("#grant-more").input_value() == "mi" and "/login" not in desk.url


def test_a_key_of_the_page_works_on_the_item_that_was_opened(desk: Page, shop: Shop) -> None:
    desk.goto(f"{shop.server.url}/objects/{shop.ids()['shop']}")
    desk.locator(".tree a[data-name=shop][aria-current]").focus()
    desk.keyboard.press("ArrowRight")
    desk.locator(".tree a[data-name=green]").wait_for()
    desk.keyboard.press("ArrowRight")
    desk.keyboard.press("Enter")
    desk.wait_for_selector("main h1:has-text('green')")
    desk.keyboard.press("g")
    desk.wait_for_selector("dialog[open] #grant-more")


def test_secrets_stay_when_another_token_is_refused(desk: Page, shop: Shop) -> None:
    name = own_name("spark")
    desk.goto(f"{shop.server.url}/tokens")
    for _ in range(2):
        desk.get_by_label("Name", exact=True).fill(name)
        desk.get_by_role("button", name="Issue").click()
        desk.get_by_label("The new token").wait_for()
    desk.locator("#tokens p.error").wait_for()
    assert desk.get_by_label("The new token").input_value().startswith("mlk_")
    desk.get_by_label(f"Revoke {name}", exact=True).click()
    desk.get_by_role("button", name=f"Yes, revoke {name}").click()
    desk.get_by_label("The new token").wait_for(state="detached")
