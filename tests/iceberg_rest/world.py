"""What the tests of this door share: a caller of the wire, and names and tables to send."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import orjson
from django.test import Client

from tests.demo import PASSWORD

LONG_COLUMN = {"id": 1, "name": "id", "type": "long", "required": False}
COLUMNS = {"type": "struct", "schema-id": 0, "fields": [LONG_COLUMN]}


LATE = "SELECT id FROM flights WHERE delay > 60"


def view_version(*dialects: str, sql: str = LATE, **parts: Any) -> dict[str, Any]:
    """A version of a view as Java's client sends it."""
    queries = [{"type": "sql", "sql": sql, "dialect": dialect} for dialect in dialects or ("spark",)]
    return {
        "version-id": 1,
        "timestamp-ms": 1_700_000_000_000,
        "schema-id": 0,
        "summary": {"engine-name": "spark"},
        "default-namespace": ["a"],
        "representations": queries,
    } | parts


def replacing(*dialects: str, uuid: str | None = None, **parts: Any) -> dict[str, Any]:
    """The commit by which Java's client replaces a view."""
    requirements = [{"type": "assert-view-uuid", "uuid": uuid}] if uuid else []
    updates = [
        {"action": "add-schema", "schema": COLUMNS},
        {"action": "add-view-version", "view-version": view_version(*dialects, **parts) | {"schema-id": -1}},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]
    return {"requirements": requirements, "updates": updates}


def basic(name: str, password: str = PASSWORD) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def segment(*levels: str) -> str:
    """A namespace or a name as PyIceberg writes it into a path."""
    return "%1F".join(quote(level, safe="") for level in levels)


# A failure must come as a response, as it does on a server.
_client = Client(raise_request_exception=False)


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.content)

    @property
    def error(self) -> tuple[int, str, str]:
        """Status, type and message; fails where the body is not the wire's error, which views have twice."""
        body = self.json
        assert body in ({"error": body["error"]}, {"error": body["error"], **body["error"]}), body
        assert set(body["error"]) == {"message", "type", "code"}, body
        assert body["error"]["code"] == self.status
        assert self.headers["Content-Type"] == "application/json"
        return self.status, body["error"]["type"], body["error"]["message"]


@dataclass
class Caller:
    """One user's view of one catalog; paths are relative to it and sent exactly as given."""

    name: str
    metalake: str = "demo"
    catalog: str = "lake"
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def base(self) -> str:
        return f"/iceberg/{self.metalake}/v1"

    def ask(self, verb: str, path: str, body: Any = None, **headers: str) -> Answer:
        """`body` is sent as JSON, bytes as they are."""
        target = path if path.startswith("/iceberg/") else f"{self.base}/{self.catalog}/{path}"
        content = body if isinstance(body, bytes) else b"" if body is None else orjson.dumps(body)
        sent = {"HTTP_AUTHORIZATION": basic(self.name)} | self.headers | headers
        extra: dict[str, Any] = {key: value for key, value in sent.items() if value} | {"RAW_URI": target}
        response = _client.generic(verb, target, content, content_type="application/json", **extra)
        return Answer(response.status_code, dict(response.items()), response.content)

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, **headers)

    def post(self, path: str, body: Any = None) -> Answer:
        return self.ask("POST", path, body)

    def head(self, path: str) -> Answer:
        return self.ask("HEAD", path)

    def delete(self, path: str) -> Answer:
        return self.ask("DELETE", path)

    def make_namespace(self, *levels: str, properties: dict[str, str] | None = None) -> None:
        answer = self.post("namespaces", {"namespace": levels, "properties": properties or {}})
        assert answer.status == 200, answer.content

    def make_table(self, namespace: str, name: str, **fields: Any) -> dict[str, Any]:
        """`namespace` as it stands in a path."""
        answer = self.post(f"namespaces/{namespace}/tables", {"name": name, "schema": COLUMNS, **fields})
        assert answer.status == 200, answer.content
        return answer.json

    def make_view(self, namespace: str, name: str, *dialects: str, **fields: Any) -> dict[str, Any]:
        """`namespace` as it stands in a path."""
        view = {"name": name, "schema": COLUMNS, "view-version": view_version(*dialects), "properties": {}}
        answer = self.post(f"namespaces/{namespace}/views", view | fields)
        assert answer.status == 200, answer.content
        return answer.json

    def tables(self, namespace: str) -> list[str]:
        answer = self.get(f"namespaces/{namespace}/tables")
        assert answer.status == 200, answer.content
        return [identifier["name"] for identifier in answer.json["identifiers"]]

    def children(self, parent: str = "") -> list[list[str]]:
        answer = self.get(f"namespaces?parent={parent}" if parent else "namespaces")
        assert answer.status == 200, answer.content
        return answer.json["namespaces"]
