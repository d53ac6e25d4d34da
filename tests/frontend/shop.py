"""A metalake of a test file's own on the shared server, for tests in a real browser."""

from __future__ import annotations

import base64
import json
import sqlite3
import urllib.request
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from formats.native.view_definition import MOST_REPRESENTATIONS
from tests.frontend import hostile, signed_in
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

    def open(self, comment: str = "", **properties: str) -> None:
        """Make the metalake and its empty catalog, both with this comment and these properties."""
        described: dict[str, Any] = {"comment": comment, "properties": properties}
        self.native("", {"name": self.metalake, **described})
        catalog = {"name": "shop", "type": "RELATIONAL", "provider": "lakehouse-iceberg", **described}
        self.native(f"/{self.metalake}/catalogs", catalog)

    def add_namespace(self, *levels: str, **properties: str) -> None:
        body = {"namespace": list(levels), "properties": properties}
        self.call("POST", f"/iceberg/{self.metalake}/v1/shop/namespaces", body)

    def add_table(self, *levels: str, name: str, fields: list[dict[str, Any]] | None = None, **properties: str) -> None:
        path = quote("\x1f".join(levels), safe="")
        schema = {"type": "struct", "schema-id": 0, "fields": fields or [FIELD]}
        body = {"name": name, "schema": schema, "properties": properties}
        self.call("POST", f"/iceberg/{self.metalake}/v1/shop/namespaces/{path}/tables", body)

    def add_view(self, *levels: str, name: str, **parts: Any) -> None:
        path = quote(":".join(levels), safe="")
        spark = {"type": "sql", "dialect": "spark", "sql": "SELECT amount FROM sales"}
        body = {"name": name, "representations": [spark], "columns": [{"name": "amount", "type": "long"}], **parts}
        self.native(f"/{self.metalake}/catalogs/shop/schemas/{path}/views", body)

    def add_hostile(self, text: str, *others: str) -> None:
        """A schema, and in it a table and a view with the texts in every field, and in names what a name may have.

        Of more texts than a view has dialects, the rest are those of further views: `view 1 ...`, and so on.
        """
        name, texts = hostile.as_name(text), (text, *others)
        self.add_namespace(name, comment=text, **{text: text})
        columns = [FIELD | {"id": number, "name": each, "doc": each} for number, each in enumerate(texts, 1)]
        properties = {each: each for each in texts}
        self.add_table(name, name=name, fields=columns, comment="\n".join(texts), **properties)
        query = {"type": "sql", "defaultCatalog": name, "defaultSchema": name, "sql": "\n".join(texts)}
        dialects = [query | {"dialect": each} for each in texts]
        fields = [{"name": each, "type": "long", "comment": each} for each in texts]
        of_all = {"columns": fields, "comment": text, "properties": properties}
        for first in range(0, len(dialects), MOST_REPRESENTATIONS):
            some = dialects[first : first + MOST_REPRESENTATIONS]
            number = f"{first // MOST_REPRESENTATIONS} " if first else ""
            self.add_view(name, name=f"view {number}{name}", representations=some, **of_all)

    def add_hostile_people(self, role: str, *texts: str) -> None:
        """Users and groups of these names; all hold the role, which has the texts in its properties."""
        grant = {"name": "select_table", "condition": "allow"}
        on = {"fullName": "shop", "type": "CATALOG", "privileges": [grant]}
        body = {"name": role, "properties": {text: text for text in texts}, "securableObjects": [on]}
        self.native(f"/{self.metalake}/roles", body)
        for name in map(hostile.as_name, texts):
            for kind in ("users", "groups"):
                self.native(f"/{self.metalake}/{kind}", {"name": name})
                granted = f"/{self.metalake}/permissions/{kind}/{quote(name, safe='')}/grant"
                self.native(granted, {"roleNames": [role]}, "PUT")
            self.native(f"/{self.metalake}/groups/{quote(name, safe='')}", {"usersToAdd": [name]}, "PUT")

    def add_tokens(self, *names: str) -> list[str]:
        """Tokens of the operator; their ids."""
        return [self.call("POST", "/api/tokens", {"name": name})["token"]["id"] for name in names]

    def revoke_tokens(self, *ids: str) -> None:
        for token in ids:
            self.call("DELETE", f"/api/tokens/{token}", {})

    def add_role(self, name: str, on: str, *allowed: str, denied: tuple[str, ...] = (), kind: str = "SCHEMA") -> None:
        privileges = [{"name": each, "condition": "allow"} for each in allowed]
        privileges += [{"name": each, "condition": "deny"} for each in denied]
        granted = [{"fullName": on, "type": kind, "privileges": privileges}]
        self.native(f"/{self.metalake}/roles", {"name": name, "properties": {}, "securableObjects": granted})

    def ids(self) -> dict[str, int]:
        """The ids of the metalake and what is in it, by name, and by kind and name: `sales` and `table sales`.

        Pages address them so, and the wires do not tell them.
        """
        with self._store() as store:
            (metalake,) = store.execute("SELECT id FROM metalake_securable WHERE name = ?", [self.metalake]).fetchone()
            below = "SELECT kind, name, id FROM metalake_securable WHERE lineage LIKE ? ORDER BY id"
            rows = store.execute(below, [f"/{metalake}/%"]).fetchall()
        by_name = {name: id for _, name, id in rows}
        return by_name | {f"{kind} {name}": id for kind, name, id in rows} | {self.metalake: metalake}

    def id_of(self, table: str, name: str) -> int:
        """The newest row of this name, of the accounts or the groups."""
        column = "username" if table == "authz_user" else "name"
        with self._store() as store:
            (row,) = store.execute(f"SELECT max(id) FROM {table} WHERE {column} = ?", [name]).fetchone()
            return int(row)

    def _store(self) -> sqlite3.Connection:
        return sqlite3.connect(f"file:{self.server.home / STORE}?mode=ro", uri=True)


def made_shop(server: MetalakeServer) -> Shop:
    shop = Shop(server)
    comment, properties = "\n".join(hostile.SOME), {text: text for text in hostile.SOME}
    shop.open(comment, **properties)
    shop.add_namespace("orders", "eu", "retail")
    shop.add_table("orders", "eu", "retail", name="sales")
    first, *others = hostile.SOME
    shop.add_hostile(first, *others)
    for text in others:
        shop.add_hostile(text)
    shop.add_role("readers", "shop.orders", "select_table", denied=("modify_table",))
    return shop


def sign_in(page: Page, shop: Shop) -> None:
    """The first page, as the operator."""
    signed_in.sign_in(page, shop.server)
