"""`make pictures`: the pictures of the README, taken from a real browser on a server that the demo filled.

The server, its data and the browser are its own, and are gone afterwards; only docs/pictures changes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.rest import Client
from tests.parts import chromium
from tests.servers import CHROMIUM_FLAGS, REPOSITORY, MetalakeServer, prepare

if TYPE_CHECKING:
    from playwright.sync_api import Page

FOLDER = REPOSITORY / "docs" / "pictures"
SIZE = {"width": 1280, "height": 800}
PEOPLE = ("ada", "grace", "linus", "mary")


def main() -> int:
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder:
        server = prepare(Path(folder))
        server.start()
        try:
            fill(server)
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=chromium(), args=CHROMIUM_FLAGS)
                for scheme in ("light", "dark"):
                    context = browser.new_context(viewport=SIZE, color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
                    take(Pictures(context.new_page(), server, scheme))
                browser.close()
        finally:
            server.stop()
    print(f"The pictures are in {FOLDER.relative_to(REPOSITORY)}. Look at them, then commit them.")  # noqa: T201
    return 0


def fill(server: MetalakeServer) -> None:
    """The demo's flights, and people whose rights have something to look at: groups, a DENY, a chain that is broken."""
    environment = os.environ | {"METALAKE_URL": server.url, "METALAKE_ADMIN_PASSWORD": server.admin_password}
    subprocess.run([sys.executable, "-m", "pipelines.demo"], cwd=REPOSITORY, env=environment, check=True)
    admin = Client(server.url, "admin", server.admin_password)
    top = ("metalakes", "demo")
    for person in PEOPLE:
        admin.call("POST", *top, "users", body={"name": person})
    admin.call("POST", *top, "groups", body={"name": "planners"})
    roles: dict[str, list[dict[str, Any]]] = {
        "planning": [
            on("catalog", "lake", "use_catalog"),
            on("schema", "lake.travel", "use_schema", "select_table", "modify_table"),
        ],
        "embargo": [on("schema", "lake.travel:nyc", "modify_table", condition="deny")],
        "auditing": [on("schema", "lake.travel:nyc:2013", "select_table")],
    }
    for role, grants in roles.items():
        body = {"name": role, "properties": {}, "securableObjects": grants}
        admin.call("POST", *top, "roles", body=body)
    for sort, who, role in (
        ("groups", "planners", "planning"),
        ("users", "ada", "planning"),
        ("users", "ada", "embargo"),
        ("users", "linus", "auditing"),
    ):
        admin.call("PUT", *top, "permissions", sort, who, "grant", body={"roleNames": [role]})


def on(kind: str, full_name: str, *privileges: str, condition: str = "allow") -> dict[str, Any]:
    granted = [{"name": privilege, "condition": condition} for privilege in privileges]
    return {"type": kind, "fullName": full_name, "privileges": granted}


class Pictures:
    """One page of a browser, signed in as the admin, in light or dark."""

    def __init__(self, page: Page, server: MetalakeServer, scheme: str) -> None:
        self.page, self.server, self.scheme = page, server, scheme
        self.client = Client(server.url, "admin", server.admin_password)
        page.goto(f"{server.url}/login")
        page.get_by_label("User name").fill("admin")
        page.get_by_label("Password").fill(server.admin_password)
        page.keyboard.press("Enter")
        page.wait_for_url(f"{server.url}/")

    def open(self, kind: str, path: str, rest: str = "") -> None:
        """Open the page of an object, or what belongs to it."""
        answer = self.client.call("GET", "metalakes", "demo", "search", query={"q": path})
        one = next(each for each in answer["results"]["objects"] if each["type"] == kind)
        self.page.goto(f"{self.server.url}/objects/{one['id']}{rest}")

    def take(self, name: str) -> None:
        self.page.wait_for_load_state("networkidle")
        FOLDER.mkdir(exist_ok=True)
        self.page.screenshot(path=FOLDER / f"{name}-{self.scheme}.png", animations="disabled")


def take(pictures: Pictures) -> None:
    """All pictures in light, the first one in dark too."""
    page = pictures.page
    pictures.open("table", "lake.travel:nyc:2013.flights", "/snapshots")
    page.locator(".tree a", has_text="weather").wait_for()
    pictures.take("object")
    if pictures.scheme == "dark":
        return
    pictures.open("table", "lake.travel:nyc:2013.flights", "/access")
    pictures.take("access")
    pictures.open("table", "lake.travel:nyc:2013.flights", "/why?user=ada&privilege=modify_table")
    pictures.take("why")
    pictures.open("schema", "lake.travel:nyc", "/grant?principal=user:mary&level=reader")
    page.wait_for_selector("#grant-apply:enabled")
    pictures.take("grant")
    page.goto(pictures.server.url)
    page.keyboard.press("ControlOrMeta+k")
    page.locator(".palette input[type=search]").fill("grace reads travel:nyc")
    page.locator("#palette-results a", has_text="grace may read nyc").wait_for()
    pictures.take("palette")


if __name__ == "__main__":
    sys.exit(main())
