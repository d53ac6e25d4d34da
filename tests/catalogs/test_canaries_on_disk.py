"""The planted secrets again, over a real server that logs at DEBUG: no file that it leaves behind holds one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.catalogs.canaries import NAMES, Canary, canaries, leaks
from tests.catalogs.racing import Client
from tests.servers import StartMetalake

pytestmark = pytest.mark.slow

CATALOGS = "/api/metalakes/demo/catalogs"


def planted(seed: int) -> list[Canary]:
    """Those that need no provider to declare them."""
    return [canary for canary in canaries(seed) if not canary.key.startswith("dial")]


def test_no_file_holds_a_canary(start_metalake: StartMetalake, tmp_path: Path) -> None:
    events = tmp_path / "events"
    server = start_metalake(METALAKE_LOG_LEVEL="DEBUG", METALAKE_EVENT_LOG=str(events))
    client, kept, offered = Client(server.url), planted(1), planted(2)
    body = {"name": "flights", "type": "relational", "provider": "lakehouse-iceberg"}
    properties = {canary.key: canary.value for canary in kept}
    assert client.send("POST", CATALOGS, body | {"properties": properties}).status == 200
    refused = {canary.key: canary.value for canary in offered} | {"in-use": "true"}
    assert client.send("POST", CATALOGS, body | {"name": "sales", "properties": refused}).status == 400
    change = [{"@type": "setProperty", "property": NAMES[0], "value": offered[0].value}]
    assert client.send("PUT", f"{CATALOGS}/flights", {"updates": change}).status == 200
    assert client.send("POST", f"{CATALOGS}/flights/testConnection").status == 200
    assert client.send("POST", f"{CATALOGS}/flights/schemas", {"name": "orders"}).status == 200
    server.kill()
    server.start()
    assert Client(server.url).send("GET", f"{CATALOGS}/flights").body["catalog"]["properties"][NAMES[0]] == "******"
    assert Client(server.url).send("POST", f"{CATALOGS}/flights/testConnection").status == 200
    server.kill()

    ring = server.home / "secrets.keys"
    files = [path for path in (*server.home.rglob("*"), events) if path.is_file() and path != ring]
    assert {"metalake.sqlite3", "server.log", "events"} <= {path.name for path in files}
    found = leaks([(path.name, path.read_bytes().decode("latin-1")) for path in files], [*kept, *offered])
    # What is not ASCII reads otherwise in latin-1; the part before it is enough to be told by.
    parts = [Canary(canary.key, "", canary.sung[:12]) for canary in (*kept, *offered)]
    found += leaks([(path.name, path.read_bytes().decode("latin-1")) for path in files], parts)
    assert not found, found[:5]
    masters = [
        Canary("ring", "", line.split()[1]) for line in ring.read_text().splitlines() if not line.startswith("#")
    ]
    assert len(masters) == 1
    assert not leaks([(path.name, path.read_bytes().decode("latin-1")) for path in files], masters)
