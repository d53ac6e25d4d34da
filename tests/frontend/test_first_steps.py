"""`make demo`: what it prints, and the page where it ends, in a real browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipelines import demo, flights
from pipelines.rest import Client
from tests.frontend.shop import Shop, sign_in
from tests.names import own_name
from tests.parts import needs
from tests.servers import MetalakeServer

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page


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
