"""From a store with an operator to a second person who reads one schema, by pages alone, in a real browser."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from pipelines import demo, flights
from pipelines.rest import Client
from tests.frontend.shop import Shop, sign_in
from tests.names import own_name
from tests.parts import needs
from tests.servers import BROWSER_PATIENCE, MetalakeServer

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

PASSWORD = "a password of noras own"


def make_metalake(page: Page, name: str) -> str:
    page.get_by_role("link", name="Make a metalake").click()
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Make it").click()
    page.wait_for_url(re.compile(r"/objects/\d+$"))
    return page.url


def make_catalog(page: Page) -> str:
    page.get_by_role("link", name="Register a catalog").first.click()
    page.locator("a[href*='lakehouse-iceberg']").click()
    page.get_by_label("Name").first.fill("lake")
    page.get_by_role("button", name="Register").click()
    page.wait_for_url(re.compile(r"/objects/\d+$"))
    return page.url


def make_schema(page: Page, name: str) -> str:
    """A nested schema, with its parent, which is shown before."""
    page.get_by_role("link", name="New schema").click()
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Make it").click()
    assert page.locator("ol.notes code").all_inner_texts() == ["travel", "travel:nyc"]
    page.get_by_role("button", name="Make all 2").click()
    page.wait_for_url(re.compile(r"/objects/\d+$"))
    return page.url


def add_person(page: Page, name: str) -> str:
    """A new user; the link that is shown once."""
    page.get_by_role("link", name="People").click()
    page.get_by_label("User name").fill(name)
    page.get_by_role("button", name="Add").click()
    return page.get_by_label("The link").input_value()


def let_read(page: Page, schema: str, name: str) -> None:
    page.goto(f"{schema}/grant")
    page.locator("#grant-more").fill(name)
    page.get_by_text(f"{name} may read").first.wait_for()
    page.locator("#grant-apply").click()
    page.locator(".toast").wait_for()


def test_from_an_empty_metalake_to_a_second_person_who_reads_one_schema(
    page: Page, browser: Browser, metalake_server: MetalakeServer
) -> None:
    name, person = own_name("first"), own_name("nora")
    sign_in(page, Shop(metalake_server))
    metalake = make_metalake(page, name)
    make_catalog(page)
    schema = make_schema(page, "travel:nyc")
    page.goto(metalake)
    link = add_person(page, person)
    let_read(page, schema, person)

    other = browser.new_context().new_page()
    other.set_default_timeout(BROWSER_PATIENCE)
    other.goto(link)
    for field in ("password", "again"):
        other.locator(f"[name={field}]").fill(PASSWORD)
    other.get_by_role("button", name="Set the password").click()
    other.wait_for_url(f"{metalake_server.url}/")
    other.goto(f"{metalake_server.url}/search?q=travel:n")
    other.get_by_role("link", name="nyc").click()
    other.wait_for_url(schema)
    assert "nyc" in other.locator("h1").inner_text()
    other.goto(link)
    assert "good no more" in other.locator("main").inner_text(), "the link was used"
    other.context.close()


@pytest.fixture
def small_demo(monkeypatch: pytest.MonkeyPatch, metalake_server: MetalakeServer) -> str:
    """The demo with one flight of a hundred, on a metalake and as an analyst of its own; the metalake's name."""
    whole = flights.table
    few = whole("flights")[::100]
    metalake, shop = own_name("demo"), Shop(metalake_server)
    shop.native("", {"name": metalake, "comment": "", "properties": {}})
    catalog = {"name": demo.CATALOG, "type": "RELATIONAL", "provider": "lakehouse-iceberg", "properties": {}}
    shop.native(f"/{metalake}/catalogs", catalog)
    monkeypatch.setattr(flights, "table", lambda name: few if name == "flights" else whole(name))
    monkeypatch.setattr(flights, "FLIGHTS", few.num_rows)
    monkeypatch.setattr(flights, "JANUARY", flights.months(few)[0].num_rows)
    monkeypatch.setattr(demo, "METALAKE", metalake)
    monkeypatch.setenv("JAVA_HOME", "/nowhere")  # the review has tests of its own
    monkeypatch.setattr(demo, "ANALYST", own_name("analyst"))
    monkeypatch.setenv("METALAKE_URL", metalake_server.url)
    monkeypatch.setenv("METALAKE_ADMIN_PASSWORD", metalake_server.admin_password)
    return metalake


def test_the_demo_ends_with_the_page_where_its_grant_is_taken_back(
    page: Page, small_demo: str, metalake_server: MetalakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo.main() == 0
    output = capsys.readouterr().out
    assert "There is no review here: Spark needs Java 17 or newer, and JAVA_HOME, /nowhere, has none" in output
    address = output.split()[-1]
    sign_in(page, Shop(metalake_server))
    page.goto(address)
    page.locator(".folds summary", has_text=demo.ANALYST).click()
    page.get_by_role("link", name=f"Revoke select_table of role {demo.ROLE}").first.click()
    page.get_by_role("button", name="Revoke").click()
    page.locator(".toast").get_by_role("button", name="Undo").wait_for()
    admin = Client(metalake_server.url, "admin", metalake_server.admin_password)
    role = admin.call("GET", "metalakes", small_demo, "roles", demo.ROLE)["role"]
    assert [p["name"] for on in role["securableObjects"] for p in on["privileges"]] == ["use_catalog", "use_schema"]


def test_a_review_that_fails_ends_the_demo(
    small_demo: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    needs("spark")
    needs("java")
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("METALAKE_SPARK_JARS", "/nowhere/iceberg.jar")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert demo.main() == 1
    failed, advice = capsys.readouterr().out.splitlines()[-2:]
    assert failed == "  The review failed: There is no jar /nowhere/iceberg.jar."
    (log,) = tmp_path.iterdir()
    assert str(log) in advice and "call 'make demo' again" in advice
    assert log.read_text().strip().endswith(failed.partition("failed: ")[2])
