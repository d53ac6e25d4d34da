"""Each main flow by mouse and by keyboard alone, on a wide screen and on a phone, in light and dark.

A flow is a function of the hands that do it and the world that they find; what they make has names of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import pytest

from tests.frontend import axe, signed_in
from tests.frontend.hands import Hands, Keyboard, Mouse
from tests.frontend.shop import Shop
from tests.names import own_name
from tests.servers import BROWSER_PATIENCE, MetalakeServer, without_complaints

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

PASSWORD = "a long enough password"
OBJECT = re.compile(r"/objects/\d+$")
WIDTHS = {1440: 900, 390: 800}
"""Of a wide screen and a phone, each with its height."""


@dataclass
class World:
    """shop.travel:nyc with the table trips, all of it the operator's, who is signed in."""

    shop: Shop
    ids: dict[str, int]

    def open(self, hands: Hands, path: str) -> None:
        hands.page.goto(f"{self.shop.server.url}{path.format(**self.ids)}")

    def person(self) -> str:
        """A new user, who holds nothing."""
        name = own_name("ann")
        self.shop.native(f"/{self.shop.metalake}/users", {"name": name})
        return name

    def reader(self) -> str:
        """A new role that may read the schema, and somebody holds."""
        role, path = own_name("readers"), f"/{self.shop.metalake}/permissions/users/{self.person()}/grant"
        self.shop.add_role(role, "shop.travel:nyc", "select_table")
        self.shop.native(path, {"roleNames": [role]}, "PUT")
        return role


@pytest.fixture(scope="module")
def world(metalake_server: MetalakeServer) -> World:
    shop = Shop(metalake_server, own_name("flows"))
    shop.open()
    shop.add_namespace("travel", "nyc")
    shop.add_table("travel", "nyc", name="trips")
    ids = shop.ids()
    return World(shop, ids | {"metalake": ids[shop.metalake]})


@pytest.fixture(scope="module")
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(reduced_motion="reduce")
    context.set_default_timeout(BROWSER_PATIENCE)
    yield context
    context.close()


# Flows


def sign_in(hands: Hands, world: World) -> None:
    hands.page.context.clear_cookies()
    world.open(hands, "/login")
    hands.fill(hands.page.get_by_label("User name"), "admin")
    hands.fill(hands.page.get_by_label("Password"), world.shop.server.admin_password)
    hands.press(hands.page.get_by_role("button", name="Sign in"))
    hands.page.wait_for_url(f"{world.shop.server.url}/")


def apply_grant(hands: Hands) -> None:
    """The preview is there: apply it, and take it back."""
    hands.page.wait_for_selector("#grant-apply:enabled")
    hands.press(hands.page.locator("#grant-apply"))
    undo(hands, "may read")


def undo(hands: Hands, text: str) -> None:
    toast = hands.page.locator(".toast", has_text=text)
    toast.wait_for()
    hands.press(toast.get_by_role("button", name="Undo"))
    hands.page.locator(".toast", has_text="Undone").wait_for()


def grant_with_preview(hands: Hands, world: World) -> None:
    person = world.person()
    world.open(hands, "/objects/{nyc}")
    hands.press(hands.page.get_by_role("link", name="Grant", exact=True))
    hands.page.wait_for_selector("dialog[open] #grant-more")
    hands.fill(hands.page.locator("#grant-more"), person)
    apply_grant(hands)


def revoke(hands: Hands, world: World) -> None:
    role = world.reader()
    world.open(hands, f"/objects/{{nyc}}/access?by=role&q={role}")
    hands.press(hands.page.get_by_role("link", name=f"Revoke select_table of role {role}"))
    hands.press(hands.page.get_by_role("button", name="Revoke"))
    undo(hands, role)


def why_and_mend(hands: Hands, world: World) -> None:
    person = world.person()
    world.open(hands, "/objects/{trips}/why")
    form = hands.page.locator("form.ask")
    hands.fill(form.locator("[name=user]"), person)
    hands.choose(form.locator("[name=privilege]"), "select_table")
    hands.press(form.get_by_role("button", name="Explain"))
    hands.page.locator(".verdict-line.no").wait_for()
    hands.press(hands.page.locator("#answer .step a.button").first)
    hands.page.wait_for_selector("#grant-apply:enabled")
    hands.press(hands.page.locator("#grant-apply"))
    hands.page.locator(".toast", has_text=person).wait_for()


def add_person(hands: Hands, world: World) -> None:
    """The person sets the password by the link, and is signed in."""
    name = own_name("nora")
    world.open(hands, "/metalakes/{metalake}/people")
    hands.fill(hands.page.get_by_label("User name"), name)
    hands.press(hands.page.get_by_role("button", name="Add", exact=True))
    link = hands.page.get_by_label("The link").input_value()
    hands.page.context.clear_cookies()
    hands.page.goto(link)
    for field in ("password", "again"):
        hands.fill(hands.page.locator(f"[name={field}]"), PASSWORD)
    hands.press(hands.page.get_by_role("button", name="Set the password"))
    hands.page.wait_for_url(f"{world.shop.server.url}/")


def confirm(hands: Hands, text: str) -> None:
    """A change of people is shown before it is made."""
    hands.press(hands.page.locator("main form.card button[value=apply]"))
    hands.page.locator("main table", has_text=text).first.wait_for()


def make_group(hands: Hands, world: World) -> None:
    person, group = world.person(), own_name("planners")
    world.open(hands, "/metalakes/{metalake}/people?sort=groups")
    hands.fill(hands.page.get_by_label("Name").first, group)
    hands.press(hands.page.get_by_role("button", name="Make", exact=True))
    hands.page.locator("h1", has_text=group).wait_for()
    hands.fill(hands.page.get_by_label("Put people in"), person)
    hands.press(hands.page.get_by_role("button", name="Put in"))
    confirm(hands, person)


def make_role(hands: Hands, world: World) -> None:
    person, role = world.person(), own_name("auditors")
    world.open(hands, "/metalakes/{metalake}/people?sort=roles")
    hands.fill(hands.page.get_by_label("Name").first, role)
    hands.press(hands.page.get_by_role("button", name="Make", exact=True))
    hands.page.locator("h1", has_text=role).wait_for()
    hands.fill(hands.page.get_by_label("Assign it to a user"), person)
    hands.press(hands.page.locator("form", has_text="Assign it to a user").get_by_role("button"))
    confirm(hands, person)


def make_metalake(hands: Hands, world: World) -> None:
    world.open(hands, "/")
    hands.press(hands.page.get_by_role("link", name="Make a metalake"))
    hands.fill(hands.page.get_by_label("Name"), own_name("new"))
    hands.press(hands.page.get_by_role("button", name="Make it"))
    hands.page.wait_for_url(OBJECT)


def make_nested_schema(hands: Hands, world: World) -> None:
    world.open(hands, "/objects/{shop}")
    hands.press(hands.page.get_by_role("link", name="New schema"))
    hands.fill(hands.page.get_by_label("Name"), f"{own_name('rail')}:north")
    hands.press(hands.page.get_by_role("button", name="Make it"))
    hands.press(hands.page.get_by_role("button", name="Make all 2"))
    hands.page.wait_for_url(OBJECT)


def search(hands: Hands, world: World) -> None:
    world.open(hands, "/")
    hands.fill(hands.page.get_by_role("banner").get_by_role("searchbox"), "travel:nyc")
    hands.press(hands.page.get_by_role("link", name="All results"))
    hands.press(hands.page.locator("main a", has_text=world.shop.metalake).first)
    hands.page.locator("h1", has_text="nyc").wait_for()


def palette(hands: Hands, world: World) -> None:
    world.open(hands, "/objects/{metalake}")
    hands.page.keyboard.press("ControlOrMeta+k")
    hands.fill(hands.page.locator(".palette input[type=search]"), "travel:nyc")
    hands.press(hands.page.locator("#palette-results a", has_text=world.shop.metalake).first)
    hands.page.locator("h1", has_text="nyc").wait_for()


def see_as(hands: Hands, world: World) -> None:
    person = world.person()
    world.open(hands, "/objects/{nyc}")
    hands.press(hands.page.get_by_role("button", name="See as"))
    hands.fill(hands.page.locator("#see-as input[name=user]"), person)
    hands.press(hands.page.locator("#see-as").get_by_role("button", name="Show"))
    hands.page.locator(".seeing", has_text=person).wait_for()
    hands.press(hands.page.get_by_role("button", name="See as yourself"))
    hands.page.locator(".seeing").wait_for(state="detached")


FLOWS: tuple[Callable[[Hands, World], None], ...] = (
    sign_in,
    grant_with_preview,
    revoke,
    why_and_mend,
    add_person,
    make_group,
    make_role,
    make_metalake,
    make_nested_schema,
    search,
    palette,
    see_as,
)
WAYS = list(product((Mouse, Keyboard), WIDTHS, ("light", "dark")))


@pytest.mark.long
@pytest.mark.timeout(180)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way[0].__name__.lower()}-{way[1]}-{way[2]}")
@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.__name__)
def test_a_flow_in_every_way(
    flow: Callable[[Hands, World], None],
    way: tuple[Callable[[Page], Hands], int, str],
    world: World,
    context: BrowserContext,
) -> None:
    hands_of, width, scheme = way
    page = context.new_page()
    page.set_viewport_size({"width": width, "height": WIDTHS[width]})
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    with without_complaints(page):
        signed_in.sign_in(page, world.shop.server)
        flow(hands_of(page), world)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, "nothing is beside the screen"
        assert axe.violations_now(page) == []
    page.close()
