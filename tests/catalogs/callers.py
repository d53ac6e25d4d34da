"""Callers of the native wire, and what every one of its answers must be, whatever was asked."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import orjson
from django.test import Client

from tests.demo import PASSWORD


@dataclass
class Answer:
    """A JSON object with the wire's code: 0 if and only if it worked, and never a failure of the server's own."""

    status: int
    body: dict[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, key: str) -> Any:
        assert self.status == 200, self.body
        return self.body[key]

    @property
    def error(self) -> tuple[int, int, str]:
        """Status, code and type of a refusal."""
        return self.status, self.body["code"], self.body.get("type", "")

    @property
    def message(self) -> str:
        return str(self.body["message"])


def checked(status: int, content_type: str, content: bytes) -> Answer:
    assert content_type == "application/json", (status, content_type, content[:200])
    body = orjson.loads(content)
    assert status < 500, body
    assert (body["code"] == 0) == (status == 200), body
    if status != 200:
        assert body["type"].strip() and body["message"].strip(), body
        assert "%" not in body["message"], "the Python client cannot read it"
    return Answer(status, body)


@dataclass
class Caller:
    """One user of the native wire; paths are relative to /api and sent exactly as given."""

    name: str
    password: str = PASSWORD

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        content = body if isinstance(body, bytes) else b"" if body is None else orjson.dumps(body)
        return self.raw(method, path, content, **({"Content-Type": "application/json"} | headers))

    def raw(self, method: str, path: str, content: bytes = b"", **headers: str) -> Answer:
        credential = base64.b64encode(f"{self.name}:{self.password}".encode()).decode()
        given = {"Authorization": f"Basic {credential}"} | headers
        target = f"/api/{path}"
        answer = Client(raise_request_exception=False).generic(
            method,
            target,
            content,
            content_type=given.pop("Content-Type", ""),
            headers=given,
            RAW_URI=target,  # as the server passes it on: still encoded
        )
        said = checked(answer.status_code, answer["Content-Type"], answer.content)
        said.headers = answer.headers
        return said

    def get(self, path: str, **headers: str) -> Answer:
        return self.send("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        return self.send("POST", path, body, **headers)

    def put(self, path: str, *updates: dict[str, Any]) -> Answer:
        return self.send("PUT", path, {"updates": list(updates)})

    def patch(self, path: str, in_use: bool) -> Answer:
        return self.send("PATCH", path, {"inUse": in_use})

    def delete(self, path: str) -> Answer:
        return self.send("DELETE", path)


def segment(name: str) -> str:
    """A name as the Python client writes it into a path."""
    return quote(name, safe="")


def update(kind: str, **fields: Any) -> dict[str, Any]:
    return {"@type": kind, **fields}
