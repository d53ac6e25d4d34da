"""From a store with an operator to a second person who is let in, refused, asks, and is let in for a week: pages alone,
in a real browser, the owner by mouse and the person by keyboard.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.frontend.hands import Keyboard, Mouse
from tests.frontend.shop import Shop, sign_in
from tests.names import own_name
from tests.servers import BROWSER_PATIENCE, MetalakeServer, without_complaints

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

PASSWORD, PURPOSE = "a password of noras own", "The report of the quarter"
OBJECT = re.compile(r"/objects/\d+$")


@dataclass
class Owner(Mouse):
    """Who begins with nothing but a sign-in."""

    def opens(self, label: str) -> None:
        """Follow a link of the top bar, which then marks its section."""
        bar = self.page.get_by_role("navigation", name="Pages")
        bar.get_by_role("link", name=label, exact=True).click()
        self.page.wait_for_load_state()
        assert self.section() == label

    def section(self) -> str:
        return self.page.get_by_role("navigation", name="Pages").locator("[aria-current]").inner_text()

    def follow(self, name: str) -> None:
        self.press(self.page.get_by_role("link", name=name, exact=True).first)

    def click(self, name: str) -> None:
        self.press(self.page.get_by_role("button", name=name, exact=True).first)

    def write(self, **fields: str) -> None:
        for name, text in fields.items():
            self.fill(self.page.locator(f"main [name='{name.replace('__', '-')}']"), text)

    def made(self) -> str:
        """The address of the page of what was just made."""
        self.page.wait_for_url(OBJECT)
        return self.page.url

    def toast(self) -> Locator:
        return self.page.locator(".toast").first


def text(page: Page) -> str:
    return re.sub(r"\s+", " ", page.locator("main").inner_text())


def make_objects(owner: Owner, metalake: str) -> tuple[str, str]:
    """The metalake, a catalog, nested schemas, a table and a view; the addresses of the inner schema and the table."""
    owner.follow("Make a metalake")
    owner.write(name=metalake)
    owner.click("Make it")
    owner.made()
    owner.follow("Register a catalog")
    assert owner.section() == "Objects"
    owner.press(owner.page.locator("a[href*='lakehouse-iceberg']"))
    owner.write(name="lake")
    owner.click("Register")
    owner.made()
    owner.follow("Make a schema")
    owner.write(name="travel:nyc")
    owner.click("Make it")
    assert owner.page.locator("ol.notes code").all_inner_texts() == ["travel", "travel:nyc"]
    owner.click("Make all 2")
    schema = owner.made()
    owner.follow("New table")
    owner.write(name="trips", columns__0__name="fare", columns__0__type="double")
    owner.click("Make it")
    table = owner.made()
    owner.follow("nyc")
    owner.follow("New view")
    owner.write(name="fares", dialect="spark", sql="SELECT fare FROM trips")
    owner.click("Make it")
    owner.made()
    return schema, table


def make_people(owner: Owner, person: str) -> str:
    """A person in a group, and a role that lets them into the catalog; the link that is shown once."""
    owner.opens("People")
    owner.write(name=person)
    owner.click("Add")
    link = owner.page.get_by_label("The link").input_value()
    owner.opens("People")
    owner.follow("Groups")
    owner.write(name="analysts", people=person)
    owner.click("Make")
    owner.opens("People")
    owner.follow("Roles")
    owner.write(name="traveller")
    owner.click("Make")
    owner.fill(owner.page.get_by_label("Full names"), "lake")
    owner.press(owner.page.locator("#add"))
    owner.page.locator("input[name$='-use_catalog'][value=allow]").check(force=True)
    owner.fill(owner.page.get_by_label("Give it to"), person)
    owner.click("Preview")
    owner.click("Apply")
    owner.page.get_by_text("Role traveller is changed.").wait_for()
    return link


def accept(person: Keyboard, link: str) -> None:
    person.page.goto(link)
    for field in ("password", "again"):
        person.fill(person.page.locator(f"[name={field}]"), PASSWORD)
    person.page.keyboard.press("Enter")
    person.page.get_by_role("heading", name="What is here").wait_for()
    person.page.goto(link)
    assert "good no more" in text(person.page), "the link was used"


def ask_for_access(person: Keyboard, table: str) -> None:
    """Refused at the columns, the person asks why, and from the answer for access."""
    page = person.page
    page.goto(f"{table}/columns/change")
    assert "You may not do this" in text(page)
    assert page.get_by_role("link", name="Ask for access").is_visible()
    page.goto(table)
    person.press(page.get_by_role("link", name="Why?"))
    person.choose(page.get_by_label("Privilege"), "modify_table")
    person.press(page.get_by_role("button", name="Explain"))
    page.get_by_text("may not use").wait_for()
    person.press(page.get_by_role("link", name="Ask for access"))
    person.fill(page.locator("[name=purpose]"), PURPOSE)
    person.press(page.get_by_role("button", name="Ask for it"))
    page.get_by_text("You asked for access to lake.travel:nyc.trips.").wait_for()


def test_a_newcomers_hour(page: Page, browser: Browser, metalake_server: MetalakeServer) -> None:
    metalake, name = own_name("first"), own_name("nora")
    sign_in(page, Shop(metalake_server))
    owner = Owner(page)
    schema, table = make_objects(owner, metalake)
    link = make_people(owner, name)
    page.goto(schema)
    owner.follow("Grant")
    owner.fill(page.locator("#grant-more"), "analysts")
    page.get_by_text("analysts may read").first.wait_for()
    owner.press(page.locator("#grant-apply"))
    owner.toast().wait_for()

    other = browser.new_context(reduced_motion="reduce").new_page()
    other.set_default_timeout(BROWSER_PATIENCE)
    with without_complaints(other):
        person = Keyboard(other)
        accept(person, link)
        other.goto(f"{metalake_server.url}/search?q=travel:n")
        person.press(other.get_by_role("link", name="nyc"))
        other.wait_for_url(schema)
        assert "trips" in text(other)
        ask_for_access(person, table)

        page.goto(metalake_server.url)
        owner.press(page.locator("main .needs").get_by_role("link", name=name))
        assert PURPOSE in text(page)
        assert f"modify_table {name} on 1 table" in text(page), "the preview"
        owner.click("Approve and grant")
        page.get_by_text(f"{name} may use modify_table").wait_for()
        other.goto(f"{table}/columns/change")
        assert "Change the columns of trips" in text(other)

        owner.press(owner.toast().get_by_role("button", name="Undo"))
        page.get_by_text("Undone:").wait_for()
        assert other.goto(f"{table}/columns/change").status == 403
        other.context.close()

    owner.opens("Objects")
    owner.follow(metalake)
    page.get_by_role("heading", name="Changed lately").wait_for()
    assert "undone" in text(page)
    owner.opens("Audit")
    assert f"{name} may not alter table lake.travel:nyc.trips" in text(page)
    for done in ("metalake", "view lake.travel:nyc.fares", f"invited user {name}", f"as {name} asked: {PURPOSE}"):
        assert done in text(page)
    owner.opens("Access")
    owner.follow("Findings")
    assert "Nothing to mend" in text(page)
    owner.press(page.get_by_role("button", name="Your account"))
    owner.follow("Account")
    assert "this session" in text(page)
