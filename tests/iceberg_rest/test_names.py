"""Odd names through a real HTTP server: what one client writes, every client finds again under the same name."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any
from urllib.parse import quote, quote_plus
from uuid import uuid4

import pytest

from tests.cases import each
from tests.iceberg_rest.world import COLUMNS, basic
from tests.servers import MetalakeServer

ODD_NAMES = [
    "a space",
    "a/slash",
    "a.dot",
    "100%",
    "a+plus",
    "größe",
    "why?",
    "#hash",
    "semi;colon",
    "%2F",
    "back\\slash",
    'quote"s',
    "apostrophe's",
    "雪と氷",
    "🦆",
    "a&b=c",
    "%1F",
    "%2520",
    "~tilde",
    "a,b",
    "...",
    "tables",
]


def by_python(*levels: str) -> str:
    return "%1F".join(quote(level, safe="") for level in levels)


def by_java(*levels: str) -> str:
    """Form rules: URLEncoder leaves the asterisk alone and writes a space as plus."""
    return "%1F".join(quote_plus(level, safe="*").replace("~", "%7E") for level in levels)


class Wire:
    """Sends paths byte by byte as they are given."""

    def __init__(self, server: MetalakeServer) -> None:
        self.connection = HTTPConnection("127.0.0.1", server.port, timeout=30)
        self.headers = {"Authorization": basic("admin", server.admin_password), "Content-Type": "application/json"}

    def ask(self, verb: str, path: str, body: Any = None) -> tuple[int, Any]:
        content = None if body is None else json.dumps(body)
        self.connection.request(verb, f"/iceberg/demo/v1/lake/{path}", content, self.headers)
        answer = self.connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None


@pytest.fixture
def wire(metalake_server: MetalakeServer) -> Wire:
    return Wire(metalake_server)


@each("encode", [by_python, by_java])
@each("name", ODD_NAMES)
def test_a_name_is_given_back_as_it_came(wire: Wire, name: str, encode: Any) -> None:
    top = f"top {uuid4()}"
    path, table = f"namespaces/{encode(top, name)}", encode(name)

    assert wire.ask("POST", "namespaces", {"namespace": [top, name]}) == (
        200,
        {"namespace": [top, name], "properties": {}},
    )
    status, loaded = wire.ask("GET", path)
    assert status == 200 and loaded["namespace"] == [top, name]
    folder = loaded["properties"].pop("location")
    assert loaded["properties"] == {}
    parent = quote_plus("\x1f".join((top,)))
    assert wire.ask("GET", f"namespaces?parent={parent}")[1]["namespaces"] == [[top, name]]
    deeper = quote_plus("\x1f".join((top, name)))
    assert wire.ask("GET", f"namespaces?parent={deeper}")[1]["namespaces"] == []

    status, made = wire.ask("POST", f"{path}/tables", {"name": name, "schema": COLUMNS})
    assert status == 200, made
    assert made["metadata"]["location"].startswith(f"{folder}/")
    assert wire.ask("GET", f"{path}/tables")[1]["identifiers"] == [{"namespace": [top, name], "name": name}]
    assert wire.ask("HEAD", f"{path}/tables/{table}") == (204, None)
    assert wire.ask("GET", f"{path}/tables/{table}") == (200, made)
    updates = [{"action": "set-properties", "updates": {"k": name}}]
    identifier = {"namespace": [top, name], "name": name}
    status, committed = wire.ask("POST", f"{path}/tables/{table}", {"identifier": identifier, "updates": updates})
    assert status == 200, committed
    assert committed["metadata"]["properties"]["k"] == name
    renamed = {"source": identifier, "destination": {"namespace": [top], "name": f"{name} 2"}}
    assert wire.ask("POST", "tables/rename", renamed) == (204, None)
    assert wire.ask("DELETE", f"namespaces/{encode(top)}/tables/{encode(name + ' 2')}") == (204, None)
    assert wire.ask("DELETE", path) == (204, None)
    assert wire.ask("HEAD", path) == (404, None)


def test_names_that_differ_stay_apart(wire: Wire) -> None:
    """Levels are no dotted text, an encoded name is another name, and no case or form of Unicode is folded."""
    top = f"top {uuid4()}"
    alike = [["a", "b"], ["a.c"], ["a%1Fb"], ["a/b"], ["a%2Fb"], ["A", "B"], ["u\u0308"], ["\u00fc"], ["a b"], ["a+b"]]
    for number, levels in enumerate(alike):
        body = {"namespace": [top, *levels], "properties": {"number": str(number)}}
        assert wire.ask("POST", "namespaces", body)[0] == 200
    for number, levels in enumerate(alike):
        for encode in (by_python, by_java):
            found = wire.ask("GET", f"namespaces/{encode(top, *levels)}")[1]
            assert (found["namespace"], found["properties"]["number"]) == ([top, *levels], str(number))


def test_both_spellings_of_the_separator(wire: Wire) -> None:
    top = str(uuid4())
    assert wire.ask("POST", "namespaces", {"namespace": [top, "b"]})[0] == 200
    assert wire.ask("GET", f"namespaces/{top}%1Fb")[0] == wire.ask("GET", f"namespaces/{top}%1fb")[0] == 200


def test_a_head_that_finds_nothing_leaves_its_connection_clean(wire: Wire) -> None:
    """A body after HEAD would be read as the beginning of the next response."""
    for _ in range(2):
        assert wire.ask("HEAD", f"namespaces/{uuid4()}") == (404, None)
        assert wire.ask("GET", "namespaces?pageToken=&pageSize=1")[0] == 200
