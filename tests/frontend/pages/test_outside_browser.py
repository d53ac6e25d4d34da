"""Outside catalogs in a real browser: registered by keyboard alone, refreshed with progress, a stuck write settled."""

from __future__ import annotations

import base64
import json
import sqlite3
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.frontend import signed_in
from tests.frontend.test_browser import focused
from tests.providers.world import World
from tests.servers import MetalakeServer, running_metalake

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

pytestmark = pytest.mark.server
PROVIDERS = ",".join(
    f"{name}=tests.providers.{class_}"
    for name, class_ in (("memory", "memory:MemoryProvider"), ("memory-flat", "flat:FlatMemoryProvider"))
)
HASTY = {"DJANGO_SETTINGS_MODULE": "tests.outside.hasty"}  # what is tried again every 15 seconds is so every 2
CANARY = "canary-52c1aa90"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetalakeServer]:
    with running_metalake(tmp_path_factory.mktemp("metalake"), METALAKE_PROVIDERS=PROVIDERS, **HASTY) as server:
        call(server, "POST", "", {"name": "acme", "comment": "", "properties": {}})
        yield server


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path / "world.json")
    for schema in ("arrivals", "departures"):
        world.put_schema(schema)
        for number in range(6):
            world.put_table(schema, f"day{number}")
    return world


def call(server: MetalakeServer, method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """On the native wire, as admin."""
    credential = base64.b64encode(f"admin:{server.admin_password}".encode()).decode()
    headers = {"Authorization": f"Basic {credential}", "Content-Type": "application/json"}
    url = f"{server.url}/api/metalakes{path}"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refusal:
        return refusal.code, json.load(refusal)


def register(server: MetalakeServer, name: str, world: World, **properties: str) -> None:
    given = {"world": str(world.path), **properties}
    body = {"name": name, "type": "RELATIONAL", "provider": "memory-flat", "comment": "", "properties": given}
    assert call(server, "POST", "/acme/catalogs", body)[0] == 200


def rows(server: MetalakeServer, statement: str) -> list[Any]:
    with sqlite3.connect(server.home / "metalake.sqlite3", timeout=20) as database:
        return database.execute(statement).fetchall()


def sign_in(page: Page, server: MetalakeServer, path: str = "/") -> None:
    signed_in.sign_in(page, server)
    page.goto(f"{server.url}{path}")


def place_of(server: MetalakeServer, name: str) -> str:
    ((object_id,),) = rows(server, f"SELECT id FROM metalake_securable WHERE name = '{name}' AND kind = 'catalog'")
    return f"/objects/{object_id}"


def pass_on(route: Route, texts: list[str]) -> None:
    """Note what the server answers before the browser has it."""
    answer = route.fetch(max_redirects=0)
    if "html" in answer.headers.get("content-type", ""):
        texts.append(answer.text())
    route.fulfill(response=answer)


def tab_to(page: Page, name: str) -> None:
    """Press Tab until the focus is on what has this text, or a label that begins so."""
    said = "document.activeElement.labels?.[0]?.innerText ?? document.activeElement.innerText"
    for _ in range(60):
        if " ".join(str(page.evaluate(said)).split()).startswith(name):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab never came to {name}; it stopped at {focused(page)!r}")


def test_a_catalog_is_registered_and_refreshed_by_keyboard_alone(
    page: Page, server: MetalakeServer, world: World
) -> None:
    sign_in(page, server)
    tab_to(page, "metalake acme")
    page.keyboard.press("Enter")
    page.wait_for_selector("main h1:has-text('acme')")
    for link in ("Register a catalog", "Flat memory memory-flat"):
        tab_to(page, link)
        with page.expect_navigation():
            page.keyboard.press("Enter")
    for label, typed in (("Name", "timetable"), ("world", str(world.path)), ("More", "Enter"), ("Other", "no line")):
        tab_to(page, label)
        page.keyboard.press(typed) if typed == "Enter" else page.keyboard.type(typed)
    tab_to(page, "More")
    page.keyboard.press("Enter")  # which folds it again
    tab_to(page, "world")
    page.keyboard.press("Enter")
    page.wait_for_selector("#id_others[aria-invalid]:focus")
    assert "Line 1 is not of the form" in page.locator("#id_others-error").inner_text()
    page.keyboard.press("Control+A")
    page.keyboard.press("Delete")
    tab_to(page, "Test the connection")
    page.keyboard.press("Enter")
    page.wait_for_selector("#said:has-text('The connection works.')")
    assert not page.locator("[aria-invalid]").count()
    page.keyboard.press("Shift+Tab")
    assert focused(page) == "Register"
    page.keyboard.press("Enter")
    page.wait_for_selector("main h1:has-text('timetable')")
    tab_to(page, "Refresh now")
    page.keyboard.press("Enter")
    page.wait_for_selector("#outside-said:has-text('The refresh is done: 14 seen')")
    page.wait_for_selector("#refresh")


def test_a_failing_connection_keeps_what_was_typed_and_shows_no_secret(
    page: Page, server: MetalakeServer, world: World
) -> None:
    texts: list[str] = []
    page.route("**/*", lambda route: pass_on(route, texts))
    sign_in(page, server)
    page.locator("main a", has_text="acme").click()
    page.get_by_role("link", name="Register a catalog").first.click()
    page.get_by_role("link", name="Flat memory").click()
    page.get_by_label("Name required").fill("gates")
    page.get_by_label("world").fill(str(world.path))
    page.get_by_role("heading", name="More").click()
    others = page.get_by_label("Other properties")
    others.fill(f"owner-team=ground\nstation.secret-key={CANARY}")
    world.fail("test_connection", "down")
    page.get_by_role("button", name="Test the connection").click()
    page.wait_for_selector("#said .warn:has-text('Memory refused the connection.')")
    assert page.get_by_label("Name required").input_value() == "gates"
    assert CANARY in others.input_value(), "what was typed stays in the browser"
    page.get_by_role("button", name="Test the connection").click()
    page.wait_for_selector("#said .good")
    page.get_by_role("button", name="Register").click()
    page.wait_for_selector("main h1:has-text('gates')")
    assert CANARY not in page.content()
    page.get_by_role("link", name="Settings", exact=True).click()
    page.wait_for_selector("h1:has-text('Settings of gates')")
    assert CANARY not in page.content()
    assert "station.secret-key=******" in page.get_by_label("Other properties").input_value()
    page.get_by_label("Comment").fill("All of them")
    page.get_by_role("button", name="Save").click()
    page.wait_for_selector("main .comment:has-text('All of them')")
    page.unroute_all(behavior="ignoreErrors")
    assert len(texts) > 5
    assert not [text for text in texts if CANARY in text]


def test_a_refresh_shows_its_progress_and_the_focus_stays(page: Page, server: MetalakeServer, world: World) -> None:
    register(server, "slow", world)
    world.fail("list_tables", *["slow:1.5"] * 4)
    sign_in(page, server, place_of(server, "slow"))
    page.get_by_role("button", name="Refresh now").click()
    page.wait_for_selector("#outside-said:focus:has-text('The refresh begins.')")
    page.wait_for_selector(".progress:has-text('objects,')")
    page.get_by_role("button", name="Stop").focus()
    seen = page.locator(".progress label").inner_text()
    page.wait_for_function("seen => document.querySelector('.progress label')?.innerText !== seen", arg=seen)
    assert focused(page) == "Stop", "however often the part is fetched anew"
    page.wait_for_selector("#outside-said:focus:has-text('The refresh is done: 14 seen')")
    assert "done" in page.locator("table.runs").inner_text()
    assert not page.locator("progress").count()


def test_a_refresh_is_stopped(page: Page, server: MetalakeServer, world: World) -> None:
    register(server, "apron", world)
    world.fail("list_tables", *["slow:3"] * 4)
    sign_in(page, server, place_of(server, "apron"))
    page.get_by_role("button", name="Refresh now").click()
    page.get_by_role("button", name="Stop").click()
    page.wait_for_selector("#outside-said:has-text('The refresh is stopped.')")
    assert "Stopped by admin." in page.locator("table.runs").inner_text()


def test_a_stuck_write_is_tried_again_until_it_is_there(page: Page, server: MetalakeServer, world: World) -> None:
    register(server, "tower", world)
    world.fail("create_table", "lost")
    world.fail("load_table", *["denied"] * 50)
    column = {"name": "id", "type": "long", "nullable": True}
    table = {"name": "runways", "columns": [column], "comment": "", "properties": {}}
    status, _ = call(server, "POST", "/acme/catalogs/tower/schemas/arrivals/tables", table)
    assert status == 504, "nobody can say whether it is there"
    rows(server, "UPDATE catalogs_intent SET state = 'stuck', attempts = 10 WHERE state = 'open'")
    sign_in(page, server, place_of(server, "tower"))
    page.wait_for_selector("table.writes:has-text('stuck after 10 tries. Memory knows no such key.')")
    world.heal()
    page.get_by_role("button", name="Try again: create table tower.arrivals.runways").click()
    page.wait_for_selector("#outside-said:focus:has-text('tried again within 15 seconds')")
    page.wait_for_selector("table.writes", state="detached")
    assert rows(server, "SELECT state FROM catalogs_intent WHERE full_name LIKE '%runways'") == [("committed",)]


def test_conflicts_of_nesting_show_as_soon_as_it_is_chosen(page: Page, server: MetalakeServer, world: World) -> None:
    world.put_schema("gates_x001f_north")
    register(server, "terminal", world)
    sign_in(page, server, place_of(server, "terminal"))
    page.get_by_role("link", name="Settings", exact=True).click()
    page.locator("details > summary", has_text="Schemas").click()
    nested = page.get_by_label("nested-namespaces")
    nested.select_option("true")
    page.wait_for_selector("#nesting:has-text('gates_x001f_north would be read as gates:north')")
    nested.select_option("false")
    page.wait_for_selector("#nesting .note", state="detached")


def test_a_phone_never_scrolls_sideways(browser: Browser, server: MetalakeServer, world: World) -> None:
    register(server, "phone", world, **{"refresh-interval": "3600"})
    context = browser.new_context(viewport={"width": 380, "height": 760}, reduced_motion="reduce")
    page = context.new_page()
    place = place_of(server, "phone")
    sign_in(page, server, place)
    page.get_by_role("button", name="Refresh now").click()
    page.wait_for_selector("table.runs:has-text('done')")
    settings = place.replace("objects", "catalogs") + "/settings"
    ((metalake_id,),) = rows(server, "SELECT id FROM metalake_securable WHERE name = 'acme'")
    new = f"/metalakes/{metalake_id}/catalogs/new"
    for path in (place, settings, new, f"{new}?provider=memory-flat"):
        page.goto(f"{server.url}{path}")
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollWidth") <= 380, path
    context.close()
