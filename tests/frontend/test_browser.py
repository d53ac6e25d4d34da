"""The pages in a real browser, against a real server: by keyboard, on a phone, with hostile names.

The `page` fixture fails a test in which a script or the content security policy complained.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from tests.frontend import hostile
from tests.frontend.shop import Shop, sign_in
from tests.servers import MetalakeServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page


def open_menu(page: Page, name: str) -> None:
    page.get_by_role("button", name="Your account").click()
    page.get_by_role("link", name=name).click()


def focused(page: Page) -> str:
    """The object of the tree that has the focus, or the text of what has it."""
    return str(page.evaluate("document.activeElement.dataset.name ?? document.activeElement.innerText")).strip()


def press_until(page: Page, key: str, name: str) -> None:
    for _ in range(30):
        if focused(page).endswith(name):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{key} never came to {name}; it stopped at {focused(page)!r}")


def to_tree(page: Page, name: str) -> None:
    """To an object of the first level: the tree is one stop of the Tab key, and the arrow keys walk in it."""
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.locator("[role=treeitem]:focus").count():
            break
    page.keyboard.press("Home")
    press_until(page, "ArrowDown", name)


def open_level(page: Page, name: str) -> None:
    """Walk to an object and open what it holds, by arrow keys alone."""
    press_until(page, "ArrowDown", name)
    page.keyboard.press("ArrowRight")
    page.locator(".tree li:has(> a:focus) > ul > li").first.wait_for()


def item(page: Page, name: str) -> Locator:
    return page.get_by_role("treeitem", name=name).first


def test_the_tree_is_walked_by_keyboard(desk: Page, shop: Shop) -> None:
    to_tree(desk, shop.metalake)
    for name in (shop.metalake, "shop", "orders", "eu", "retail"):
        open_level(desk, name)
    press_until(desk, "ArrowDown", "sales")
    assert desk.locator(".tree [tabindex='0']").count() == 1, "one stop of the Tab key"
    assert desk.locator("[role=treeitem]:focus").get_attribute("aria-level") == "6"
    desk.keyboard.press("Enter")
    desk.wait_for_selector("main h1:has-text('sales')")
    assert re.search(r"/objects/\d+$", desk.url)
    assert desk.title() == "sales · Metalake"
    assert focused(desk).endswith("sales"), "the focus stays in the tree"
    desk.locator("#tab-access").click()
    desk.wait_for_selector(".tabs [aria-current]:has-text('Access')")
    assert focused(desk) == "Access", "and then on the tab"
    desk.get_by_text("Roles", exact=True).click()
    desk.wait_for_url("**by=role*")
    for expected in ("readers", "select_table", "modify_table", "from schema orders", "nobody"):
        desk.locator(".folds", has_text=expected).wait_for()
    assert desk.locator(".tree a[aria-selected=true]").get_attribute("data-name") == "sales"
    item(desk, "table sales").focus()
    desk.keyboard.press("ArrowLeft")
    assert focused(desk).endswith("retail")
    desk.keyboard.press("ArrowLeft")
    assert desk.locator(".tree a:has-text('sales')").is_hidden()


def test_letters_home_and_end_find_their_way(desk: Page, shop: Shop) -> None:
    to_tree(desk, shop.metalake)
    for name in (shop.metalake, "shop", "orders"):
        open_level(desk, name)
    desk.keyboard.type("sho")
    assert focused(desk).endswith("shop"), "from anywhere, in what is open"
    desk.wait_for_timeout(800)
    desk.keyboard.type("e")
    assert focused(desk).endswith("eu")
    desk.keyboard.press("Home")
    assert desk.locator(".tree > li:first-child > a:focus").count()
    desk.keyboard.press("End")
    assert desk.evaluate(
        "[...document.querySelectorAll('.tree a')].filter(a => a.offsetParent).at(-1).matches(':focus')"
    )
    desk.keyboard.press("Home")
    open_level(desk, shop.metalake)
    desk.keyboard.press("ArrowRight")
    desk.keyboard.press("ArrowRight")
    desk.keyboard.press("*")
    desk.wait_for_selector("#announcements:has-text('All of this level are open')")
    assert not desk.locator(".tree a[aria-level='3'][aria-expanded=false]").count()
    desk.keyboard.press("/")
    assert desk.evaluate("document.activeElement.matches('.top input[type=search]')")
    desk.keyboard.type("a/b")
    assert desk.locator(".top input[type=search]").input_value() == "a/b", "in a field it is a letter"


def test_the_tree_is_opened_by_mouse_too(desk: Page, shop: Shop) -> None:
    metalake = item(desk, f"metalake {shop.metalake}")
    metalake.locator(".toggle").click()
    inner = item(desk, "catalog shop")
    inner.wait_for()
    assert metalake.get_attribute("aria-expanded") == "true"
    assert desk.url == f"{shop.server.url}/", "it is opened and not shown"
    inner.focus()
    metalake.locator(".toggle").click()
    assert metalake.get_attribute("aria-expanded") == "false"
    assert inner.is_hidden()
    assert focused(desk).endswith(shop.metalake), "the focus is not lost with what is closed"


def test_a_page_opens_the_tree_down_to_its_object(desk: Page, shop: Shop) -> None:
    desk.locator("main a", has_text=shop.metalake).click()
    for name in ("shop", "orders", "eu", "retail", "sales"):
        desk.locator("main table.children a", has_text=name).first.click()
        desk.wait_for_selector(f"main h1:has-text('{name}')")
        assert desk.evaluate("document.activeElement !== document.body"), "the focus is not lost with the link"
    desk.wait_for_selector(".tree a[aria-current]:has-text('sales')")
    desk.reload()
    chosen = desk.locator(".tree a[aria-current]")
    chosen.wait_for()
    assert chosen.get_attribute("data-name") == "sales" and chosen.get_attribute("tabindex") == "0"
    assert desk.evaluate("(() => { const a = document.querySelector('.tree [aria-current]').getBoundingClientRect();"
                         " return a.top >= 0 && a.bottom <= innerHeight; })()")  # fmt: skip


def test_a_long_level_goes_on_by_keyboard(desk: Page, shop: Shop) -> None:
    for number in range(203):
        shop.add_namespace("many", f"n{number:03}")
    to_tree(desk, shop.metalake)
    for name in (shop.metalake, "shop", "many"):
        open_level(desk, name)
    last = item(desk, "schema n199")
    last.focus()
    desk.keyboard.press("ArrowDown")
    assert focused(desk).startswith("Show more")
    desk.keyboard.press("Enter")
    desk.wait_for_selector("#announcements:has-text('3 more')")
    assert focused(desk).endswith("n200"), "the first of the new ones"
    item(desk, "schema n202").click()
    desk.wait_for_selector("main h1:has-text('n202')")
    desk.reload()
    desk.wait_for_selector(".tree a[aria-current]:has-text('n202')")
    desk.locator(".tree li.more a").click()
    item(desk, "schema n201").wait_for()
    assert [desk.locator(f".tree a:has-text('n20{n}')").count() for n in range(3)] == [1, 1, 1]


def test_back_and_reload_show_the_same(desk: Page, shop: Shop) -> None:
    item(desk, f"metalake {shop.metalake}").click()
    desk.wait_for_selector(f"main h1:has-text('{shop.metalake}')")
    item(desk, f"metalake {shop.metalake}").locator(".toggle").click()
    item(desk, "catalog shop").click()
    desk.wait_for_selector("main h1:has-text('shop')")
    desk.reload()
    assert desk.locator("main h1").inner_text().startswith("shop")
    desk.wait_for_selector(".tree a[aria-current]:has-text('shop')")
    desk.go_back()
    desk.wait_for_selector(f"main h1:has-text('{shop.metalake}')")
    desk.wait_for_selector("main:focus")


def test_hostile_names_open_no_dialog(desk: Page, shop: Shop) -> None:
    to_tree(desk, shop.metalake)
    for name in (shop.metalake, "shop"):
        open_level(desk, name)
    for name in map(hostile.as_name, hostile.SOME):
        row = desk.locator(".tree .item").filter(has_text=name).first
        row.locator(".toggle").click()
        table = desk.locator(f".tree a:has(use[href='#icon-table']):has-text({json.dumps(name)})").first
        table.wait_for()
        row.click()
        desk.locator("main h1 > span:first-of-type").get_by_text(name, exact=True).wait_for()
        table.click()
        desk.wait_for_selector("main h1 .kind:has-text('table')")
        row.locator(".toggle").click()


def test_a_token_is_issued_and_revoked(desk: Page) -> None:
    open_menu(desk, "Tokens")
    desk.get_by_label("Name").fill("from the browser")
    desk.get_by_role("button", name="Issue").click()
    secret = desk.get_by_label("The new token")
    secret.wait_for()
    assert secret.input_value().startswith("mlk_")
    desk.get_by_label("Revoke from the browser", exact=True).click()
    desk.get_by_role("button", name="Yes, revoke from the browser").click()
    desk.wait_for_selector("text=You have none")
    assert not desk.locator("input.token").count()


def test_signing_out_ends_what_a_left_open_page_can_do(desk: Page, shop: Shop) -> None:
    other = desk.context.new_page()
    other.goto(f"{shop.server.url}/")
    other.get_by_role("button", name="Your account").click()
    other.get_by_role("button", name="Sign out").click()
    other.wait_for_url("**/login")
    desk.locator(".tree a", has_text=shop.metalake).click()
    desk.wait_for_url(f"{shop.server.url}/login*")


def test_a_phone_never_scrolls_sideways(browser: Browser, shop: Shop) -> None:
    context = browser.new_context(viewport={"width": 380, "height": 760}, reduced_motion="reduce")
    page = context.new_page()
    sign_in(page, shop)
    page.get_by_role("button", name="Objects").click()
    for name in (f"metalake {shop.metalake}", "catalog shop"):
        item(page, name).locator(".toggle").click()
    item(page, "schema orders").click()
    page.wait_for_selector("main h1:has-text('orders')")
    assert not page.locator(".tree").is_visible(), "the drawer closes over what was chosen"
    for path in (page.url, f"{shop.server.url}/", f"{shop.server.url}/tokens", f"{shop.server.url}/nowhere"):
        page.goto(path)
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollWidth") <= 380, path
    context.close()


def test_the_drawer_of_a_phone_has_the_focus_until_it_closes(desk: Page) -> None:
    desk.set_viewport_size({"width": 390, "height": 760})
    opener = desk.get_by_role("button", name="Browse the objects")
    opener.focus()
    inside = "document.querySelector('#side').contains(document.activeElement)"
    for leave in ("Escape", "Close", "Enter"):
        desk.keyboard.press("Enter")
        desk.wait_for_selector("#side:popover-open [role=treeitem]:focus")
        for key in [*["Tab"] * 3, *["Shift+Tab"] * 6]:
            desk.keyboard.press(key)
            assert desk.evaluate(f"{inside} || document.activeElement === document.body"), "or the browser's own bar"
        if leave == "Close":
            desk.get_by_role("button", name="Close").press("Enter")
        else:
            desk.get_by_role("treeitem").first.press(leave)
        assert not desk.locator("#side:popover-open").count()
        assert leave == "Enter" or opener.evaluate("button => button === document.activeElement")
    desk.wait_for_selector("#main:focus")


def test_the_operators_pages_work_under_their_policy(desk: Page, shop: Shop) -> None:
    open_menu(desk, "Operators")
    desk.wait_for_url("**/admin/")
    desk.goto(f"{shop.server.url}/admin/authz/grant/")
    assert "select_table" in desk.locator("#result_list").inner_text()


def test_the_api_is_described_by_our_own_scripts_alone(page: Page, metalake_server: MetalakeServer) -> None:
    answer = page.goto(f"{metalake_server.url}/api/schema/ui/")
    assert answer is not None
    assert "script-src" not in (policy := answer.headers["content-security-policy"])
    assert "default-src 'self'" in policy
    assert not re.search(r"<script(?![^>]* src=)", answer.text())
    operation = page.locator(".opblock", has_text="The version of the wire").first
    while operation.count() == 0:  # operations are drawn as one scrolls to them; the test's own limit ends this
        page.mouse.wheel(0, 2_000)
        page.wait_for_timeout(100)
    operation.click()  # the description was fetched and drawn
    operation.get_by_role("button", name="Try it out").click()
    operation.get_by_role("button", name="Execute").click()
    operation.locator(".live-responses-table", has_text="compileDate").wait_for()
