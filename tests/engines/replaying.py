"""Conversations of engines with the Iceberg REST wire: recorded once, held again with a server of today.

A file of `conversations/` says who spoke and which statements made it speak, and has every request with the answer to
it, as they were, but for what differs from run to run:

    <catalog>                the catalog's name
    <warehouse>, <folder>    the place of its tables, as URL and as path
    <id 1>, <id 2>           what the server chose: UUIDs, page tokens, ETags
    <time>                   milliseconds of the clock, in requests those of today

Held again, each answer has to be the same down to the last field. A name that stands twice stands for one value.
"""

from __future__ import annotations

import json
import re
import time
from base64 import b64encode
from collections.abc import Mapping, Sequence
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.catalogs.racing import Client
from tests.names import own_name
from tests.recording import Exchange
from tests.servers import MetalakeServer

FOLDER = Path(__file__).with_name("conversations")
SENT = ("accept", "content-type", "if-none-match", "x-iceberg-access-delegation", "idempotency-key")
"""The headers that may change an answer; who asks is told by a token of the replay's own."""
CHOSEN = re.compile(r"[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}")
OF_THE_CLOCK = re.compile(r'("[a-z-]+-ms":\s*)\d+')
NAMED = re.compile(r"(<(?:id \d+|time)>)")
TIME = "<time>"

Json = Any


class Changed(AssertionError):
    """An answer is not the recorded one; says where."""


def new_catalog(server: MetalakeServer) -> tuple[str, str]:
    """Its name, and the place of its tables."""
    name = own_name("talk")
    place = (server.home / "warehouse" / name).as_uri()
    body = {"name": name, "type": "relational", "provider": "lakehouse-iceberg", "properties": {"warehouse": place}}
    made = Client(server.url).send("POST", "/api/metalakes/demo/catalogs", body)
    assert made.status == 200, made.body
    return name, place


def _places(catalog: str, warehouse: str) -> dict[str, str]:
    return {"<warehouse>": warehouse, "<folder>": warehouse.removeprefix("file://"), "<catalog>": catalog}


# -- Recording


class Names:
    """What is said instead of what differs from run to run."""

    def __init__(self, catalog: str, warehouse: str) -> None:
        self.known = {value: name for name, value in _places(catalog, warehouse).items()}
        self._given = len(self.known)
        self._asked = ""

    def in_request(self, text: str) -> str:
        self._asked += text
        return self._named(text)

    def in_answer(self, text: str, *more: str) -> str:
        """`more` are values that the server chose beside those that look like it."""
        for value in (*more, *CHOSEN.findall(text)):
            if value not in self.known and value not in self._asked:  # else its client chose it
                self.known[value] = f"<id {len(self.known) - self._given + 1}>"
        return self._named(text)

    def _named(self, text: str) -> str:
        for value, name in self.known.items():
            text = text.replace(value, name)
        return OF_THE_CLOCK.sub(rf'\1"{TIME}"', text)


def recorded(exchanges: list[Exchange], catalog: str, warehouse: str) -> list[Json]:
    """The exchanges as a file has them."""
    names = Names(catalog, warehouse)
    return [_exchange(exchange, names) for exchange in exchanges]


def _exchange(exchange: Exchange, names: Names) -> Json:
    request = {
        "request": names.in_request(f"{exchange.method} {exchange.target}"),
        "headers": {name: names.in_request(exchange.headers[name]) for name in SENT if name in exchange.headers},
        "body": json.loads(names.in_request(exchange.body.decode() or "null")),
    }
    answer, etag = exchange.answer.decode() or "null", exchange.answer_headers.get("etag", "")
    chosen = [*re.findall(r'"next-page-token":\s*"([^"]+)"', answer), *re.findall('"(.+)"', etag)]
    said = {"status": exchange.status, "answer": json.loads(names.in_answer(answer, *chosen))}
    return request | said | ({"etag": names.in_answer(etag)} if etag else {})


def write(name: str, engine: str, statements: Sequence[str], exchanges: list[Json]) -> None:
    """A conversation, one exchange a line."""
    lines = ",\n".join(f"  {json.dumps(exchange)}" for exchange in exchanges)
    head = json.dumps({"engine": engine, "statements": list(statements)}, indent=1).removesuffix("\n}")
    (FOLDER / f"{name}.json").write_text(f'{head},\n "exchanges": [\n{lines}\n ]\n}}\n')


def read(name: str) -> Json:
    return json.loads((FOLDER / f"{name}.json").read_text())


def questions(exchanges: list[Json]) -> list[str]:
    """What was asked, without what was sent along."""
    return [exchange["request"] for exchange in exchanges]


# -- Held again


def replay(exchanges: list[Json], server: MetalakeServer) -> None:
    """With a new catalog of the server. Raises Changed."""
    catalog, warehouse = new_catalog(server)
    known = _places(catalog, warehouse)
    login = b64encode(f"admin:{server.admin_password}".encode()).decode()
    with closing(HTTPConnection(urlsplit(server.url).netloc, timeout=60)) as connection:
        for number, exchange in enumerate(exchanges):
            method, target = filled(exchange["request"], known).split(" ", 1)
            headers = {name: filled(value, known) for name, value in exchange["headers"].items()}
            body = None if exchange["body"] is None else filled(json.dumps(exchange["body"]), known)
            connection.request(method, target, body, headers | {"authorization": f"Basic {login}"})
            response = connection.getresponse()
            answer = json.loads(response.read() or "null")
            where = f"{number}: {exchange['request']}"
            _same(f"{where}: status", exchange["status"], response.status, known)
            _same(f"{where}: ETag", exchange.get("etag", ""), response.headers["ETag"] or "", known)
            _same(where, exchange["answer"], answer, known)


def filled(text: str, known: Mapping[str, str]) -> str:
    """With the values of this run."""
    for name, value in known.items():
        text = text.replace(name, value)
    return text.replace(f'"{TIME}"', str(int(time.time() * 1000)))


def _same(where: str, wanted: Json, found: Json, known: dict[str, str]) -> None:
    """Raises Changed; learns the values of names that are new."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        if wanted.keys() != found.keys():
            raise Changed(f"{where} has the fields {sorted(found)}, and had {sorted(wanted)}")
        for key, value in wanted.items():
            _same(f"{where}.{key}", value, found[key], known)
    elif isinstance(wanted, list) and isinstance(found, list):
        if len(wanted) != len(found):
            raise Changed(f"{where} has {len(found)} parts, and had {len(wanted)}: {found}")
        for index, value in enumerate(wanted):
            _same(f"{where}[{index}]", value, found[index], known)
    elif wanted == TIME:
        if not isinstance(found, int):
            raise Changed(f"{where} is {found!r}, and was a time")
    elif isinstance(wanted, str) and isinstance(found, str):
        _same_text(where, wanted, found, known)
    elif wanted != found or type(wanted) is not type(found):
        raise Changed(f"{where} is {found!r}, and was {wanted!r}")


def _same_text(where: str, wanted: str, found: str, known: dict[str, str]) -> None:
    parts, names = NAMED.split(filled(wanted, known)), []
    pattern = ""
    for part in parts:
        if NAMED.fullmatch(part) and part not in names:
            names.append(part)
            pattern += "(.+)"
        else:
            pattern += f"\\{names.index(part) + 1}" if part in names else re.escape(part)
    match = re.fullmatch(pattern, found, re.DOTALL)
    if match is None:
        raise Changed(f"{where} is {found!r}, and was {wanted!r}")
    known.update(zip(names, match.groups(), strict=True))
