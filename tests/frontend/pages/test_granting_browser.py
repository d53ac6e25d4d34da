"""A grant in a real browser: how few interactions it takes (printed), by keyboard alone, and asking others for it."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from tests.frontend import signed_in
from tests.frontend.shop import Shop
from tests.names import own_name
from tests.servers import MetalakeServer

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

MOST, BY_PALETTE = 4, 3  # interactions
PASSWORD = "a long enough password"


@dataclass
class Hands:
    """What somebody does by mouse: each click and each field that is filled counts as one interaction."""

    page: Page
    done: list[str] = field(default_factory=list)

    def click(self, target: Locator, what: str) -> None:
        target.click()
        self.done.append(f"click {what}")

    def fill(self, target: Locator, text: str) -> None:
        target.fill(text)
        self.done.append(f'fill in "{text}"')

    def report(self, what: str, most: int = MOST) -> None:
        steps = (f"  {number}. {one}" for number, one in enumerate(self.done, 1))
        sys.stdout.write("\n".join(["", f"{what}: {len(self.done)} interactions", *steps, ""]))
        assert len(self.done) <= most


@pytest.fixture(scope="module")
def shop(metalake_server: MetalakeServer) -> Shop:
    """shop.travel:nyc with a table; olga owns the metalake, sam the schema, the others have nothing."""
    shop = Shop(metalake_server, own_name("granting"))
    shop.open()
    shop.add_namespace("travel", "nyc")
    shop.add_table("travel", "nyc", name="trips")
    for person in ("analyst", "clerk", "dana", "erik", "finn"):
        shop.native(f"/{shop.metalake}/users", {"name": name_of(shop, person)})
    for person in ("olga", "sam"):
        invitation = shop.native(f"/{shop.metalake}/users/{name_of(shop, person)}/invitation", {})["invitation"]
        signed_in.accept(shop.server, name_of(shop, person), invitation["path"], PASSWORD)
    give(shop, "guests", "sam", "allow", {"catalog shop": ["use_catalog"]})
    levels = {"catalog shop": ["use_catalog"], "schema shop.travel:nyc": ["use_schema", "select_table", "select_view"]}
    give(shop, "readers", "erik", "allow", levels)
    give(shop, "no_pii", "finn", "deny", {"table shop.travel:nyc.trips": ["select_table"]})
    for person, kind, full_name in (("sam", "schema", "shop.travel:nyc"), ("olga", "metalake", shop.metalake)):
        owner = {"name": name_of(shop, person), "type": "USER"}
        shop.native(f"/{shop.metalake}/owners/{kind}/{quote(full_name, safe='')}", owner, "PUT")
    return shop


def give(shop: Shop, role: str, person: str, condition: str, held: dict[str, list[str]]) -> None:
    """A new role that holds privileges on objects, as in {"catalog shop": ["use_catalog"]}, for one person."""
    on = [
        {
            "fullName": where.partition(" ")[2],
            "type": where.partition(" ")[0].upper(),
            "privileges": [{"name": each, "condition": condition} for each in privileges],
        }
        for where, privileges in held.items()
    ]
    shop.native(f"/{shop.metalake}/roles", {"name": role, "properties": {}, "securableObjects": on})
    path = f"/{shop.metalake}/permissions/users/{name_of(shop, person)}/grant"
    shop.native(path, {"roleNames": [role]}, "PUT")


def name_of(shop: Shop, person: str) -> str:
    """Accounts are of the whole server, which other tests share."""
    return f"{person}-{shop.metalake}"


def sign_in(page: Page, shop: Shop, person: str) -> None:
    signed_in.sign_in(page, shop.server, name_of(shop, person), PASSWORD)


def open_drawer(hands: Hands, path: str = "travel:nyc") -> None:
    hands.fill(hands.page.get_by_role("searchbox"), path)
    hands.page.locator("#palette-results a", has_text="nyc").first.wait_for()
    hands.page.keyboard.press("Enter")
    hands.click(hands.page.get_by_role("link", name="Grant", exact=True), "Grant")
    hands.page.wait_for_selector("dialog[open] #grant-more")


def test_the_owner_of_all_grants_by_mouse_and_takes_it_back(page: Page, shop: Shop) -> None:
    sign_in(page, shop, "olga")
    hands, analyst = Hands(page), name_of(shop, "analyst")
    open_drawer(hands)
    hands.fill(page.locator("#grant-more"), analyst)
    page.wait_for_selector("#grant-apply:enabled")
    hands.click(page.get_by_role("button", name="Apply"), "Apply")
    toast = page.locator(".toast", has_text=f"{analyst} may read shop.travel:nyc and everything below it")
    toast.wait_for()
    hands.report("The metalake's owner")
    toast.get_by_role("button", name="Undo").click()
    page.locator(".toast", has_text="Undone: drop role shop_travel_nyc_reader").wait_for()


def test_a_grant_by_keyboard_alone(page: Page, shop: Shop) -> None:
    sign_in(page, shop, "olga")
    page.get_by_role("searchbox").fill("travel:nyc")
    page.locator("#palette-results a", has_text="nyc").first.wait_for()
    page.keyboard.press("Enter")
    page.wait_for_selector("main h1:has-text('nyc')")
    page.keyboard.press("g")
    page.wait_for_selector("#grant-more:focus")
    page.keyboard.type(f"{name_of(shop, 'analyst')},")
    page.locator("dialog .chip", has_text="analyst").wait_for()
    page.keyboard.type("nobody-of-that-name")
    page.locator("#grant-more-error", has_text="1 name is nobody's here").wait_for()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.press("Delete")
    page.wait_for_selector("#grant-apply:enabled")
    for _ in range(40):
        if page.evaluate("document.activeElement.id") == "grant-apply":
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.locator(".toast", has_text="may read").wait_for()
    assert re.search(r"/objects/\d+/access$", page.url)


def test_the_role_is_chosen_and_what_stays_refused_is_seen_by_keyboard(page: Page, shop: Shop) -> None:
    sign_in(page, shop, "olga")
    open_drawer(Hands(page))
    page.keyboard.type(f"{name_of(shop, 'finn')},")
    page.locator("#grant-preview h2", has_text="except what stays refused").wait_for()
    refused = page.locator("#grant-preview li.beaten").inner_text()
    assert "gets no select_table on table shop.travel:nyc.trips: role no_pii denies select_table." in refused
    page.locator("#grant-take-1", has_text="By readers instead").focus()
    page.keyboard.press("Enter")
    page.locator(".by-role strong", has_text="readers").wait_for()
    assert page.locator("#grant-role").input_value() == "readers"
    assert page.evaluate("document.activeElement.id") == "grant-take-1", "the focus stays where one was"
    page.wait_for_selector("#grant-apply:enabled")
    page.locator("#grant-apply").press("Enter")
    page.locator(".toast", has_text="except what stays refused").wait_for()


def test_a_schemas_owner_learns_what_to_ask_whom_for(page: Page, shop: Shop) -> None:
    sign_in(page, shop, "sam")
    hands = Hands(page)
    open_drawer(hands, "shop.travel:nyc")
    hands.fill(page.locator("#grant-more"), name_of(shop, "clerk"))
    hands.click(page.get_by_role("button", name="Preview"), "Preview")
    asks = page.locator(".asks li")
    asks.first.wait_for()
    hands.report("A schema's owner, who has to ask others")
    sys.stdout.write("  then asks: " + " ".join(asks.all_inner_texts()) + "\n")
    assert name_of(shop, "olga") in asks.first.inner_text()
    link = page.get_by_label("A link that opens this form filled").first.input_value()
    assert link.startswith(f"{shop.server.url}/objects/")
    assert not page.locator("#grant-apply").count()


def test_the_palette_takes_a_wish_and_opens_the_filled_form(page: Page, shop: Shop) -> None:
    sign_in(page, shop, "olga")
    hands, dana = Hands(page), name_of(shop, "dana")
    page.keyboard.press("ControlOrMeta+k")
    hands.done.append("press Ctrl-K")
    page.wait_for_selector(".palette input:focus")
    field = page.locator(".palette input[type=search]")
    hands.fill(field, f"{dana} reads travel:nyc")
    page.locator("#palette-results a", has_text=f"{dana} may read nyc").wait_for()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.innerText").startswith(dana)
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.name") == "q"
    field.press("Enter")
    page.wait_for_selector("#grant-apply:enabled")
    page.keyboard.press("ControlOrMeta+Enter")
    hands.done.append("press Ctrl-Enter")
    page.locator(".toast", has_text=f"{dana} may read shop.travel:nyc").wait_for()
    hands.report("The metalake's owner, by palette", BY_PALETTE)
    assert page.evaluate("document.activeElement.localName") == "toast-note", "the focus is on what was done"
    page.keyboard.press("ControlOrMeta+k")
    field.fill("sales")
    page.locator(".offers").wait_for()
    page.keyboard.press("Escape")
    page.locator(".offers").wait_for(state="hidden")
