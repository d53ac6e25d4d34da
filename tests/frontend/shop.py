"""A metalake of a test file's own on the shared server, for tests in a real browser."""

from __future__ import annotations

import base64
import json
import sqlite3
import urllib.request
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tests.frontend import hostile
from tests.names import own_name
from tests.servers import STORE, MetalakeServer

if TYPE_CHECKING:
    from playwright.sync_api import Page

FIELD = {"id": 1, "name": "amount", "type": "long", "required": False}


@dataclass
class Shop:
    """The catalog shop with nested, long and hostile levels."""

    server: MetalakeServer
    metalake: str = field(default_factory=lambda: own_name("browser"))

    def call(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        credential = base64.b64encode(f"admin:{self.server.admin_password}".encode()).decode()
        headers = {"Authorization": f"Basic {credential}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.server.url}{path}", json.dumps(body).encode(), headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def native(self, path: str, body: dict[str, Any], method: str = "POST") -> dict[str, Any]:
        return self.call(method, f"/api/metalakes{path}", body)

    def add_namespace(self, *levels: str, **properties: str) -> None:
        body = {"namespace": list(levels), "properties": properties}
        self.call("POST", f"/iceberg/{self.metalake}/v1/shop/namespaces", body)

    def add_table(self, *levels: str, name: str, fields: list[dict[str, Any]] | None = None, **properties: str) -> None:
        path = quote("\x1f".join(levels), safe="")
        schema = {"type": "struct", "schema-id": 0, "fields": fields or [FIELD]}
        body = {"name": name, "schema": schema, "properties": properties}
        self.call("POST", f"/iceberg/{self.metalake}/v1/shop/namespaces/{path}/tables", body)

    def add_hostile(self, text: str) -> None:
        """A schema and a table in it that have the text in every field, and in their names what a name may have."""
        name = hostile.as_name(text)
        self.add_namespace(name, comment=text, **{text: text})
        column = FIELD | {"name": text, "doc": text}
        self.add_table(name, name=name, fields=[column], comment=text, **{text: text})

    def add_role(self, name: str, on: str, *allowed: str, denied: tuple[str, ...] = (), kind: str = "SCHEMA") -> None:
        privileges = [{"name": each, "condition": "allow"} for each in allowed]
        privileges += [{"name": each, "condition": "deny"} for each in denied]
        granted = [{"fullName": on, "type": kind, "privileges": privileges}]
        self.native(f"/{self.metalake}/roles", {"name": name, "properties": {}, "securableObjects": granted})

    def ids(self) -> dict[str, int]:
        """The ids of the metalake's objects, by name; pages address them so, and the wires do not tell them."""
        with sqlite3.connect(f"file:{self.server.home / STORE}?mode=ro", uri=True) as store:
            (metalake,) = store.execute("SELECT id FROM metalake_securable WHERE name = ?", [self.metalake]).fetchone()
            below = "SELECT name, id FROM metalake_securable WHERE lineage LIKE ? ORDER BY id"
            rows = store.execute(below, [f"/{metalake}/%"])
            return dict(rows.fetchall()) | {self.metalake: metalake}


def made_shop(server: MetalakeServer) -> Shop:
    shop = Shop(server)
    shop.native("", {"name": shop.metalake, "comment": "", "properties": {}})
    catalog = {"name": "shop", "type": "RELATIONAL", "provider": "lakehouse-iceberg", "comment": "", "properties": {}}
    shop.native(f"/{shop.metalake}/catalogs", catalog)
    shop.add_namespace("orders", "eu", "retail")
    shop.add_table("orders", "eu", "retail", name="sales")
    for name in hostile.SOME:
        shop.add_hostile(name)
    shop.add_role("readers", "shop.orders", "select_table", denied=("modify_table",))
    return shop


def sign_in(page: Page, shop: Shop) -> None:
    page.goto(f"{shop.server.url}/")
    assert page.url.endswith("/login")
    page.wait_for_selector("input[name=username]:focus")
    page.keyboard.type("admin")
    page.keyboard.press("Tab")
    page.keyboard.type(shop.server.admin_password)
    page.keyboard.press("Enter")
    page.wait_for_url(f"{shop.server.url}/")
