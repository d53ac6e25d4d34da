"""The record of use of a server: written while it runs and at its end, by every wire, its fast path included."""

from __future__ import annotations

from typing import Any

import pytest
import requests

from tests.servers import MetalakeServer, StartMetalake
from tests.waiting import eventually

pytestmark = [pytest.mark.server, pytest.mark.slow]

ADMIN = "admin"


def send(server: MetalakeServer, method: str, path: str, body: Any = None, **headers: str) -> requests.Response:
    who = (ADMIN, server.admin_password)
    return requests.request(method, f"{server.url}/{path}", json=body, auth=who, headers=headers, timeout=60)


def uses(server: MetalakeServer, type_: str, name: str) -> dict[tuple[str, str, str, str], int]:
    answer = send(server, "GET", f"api/metalakes/shop/access/objects/{type_}/{name}/use").json()
    return {
        (line["operation"], line["outcome"], line["wire"], line.get("engine", "")): line["times"]
        for line in answer["uses"]
    }


def test_a_server_writes_what_it_counts(start_metalake: StartMetalake) -> None:
    server = start_metalake()
    assert send(server, "POST", "api/metalakes", {"name": "shop"}).status_code == 200
    catalog = {"name": "lake", "type": "RELATIONAL", "provider": "lakehouse-iceberg", "properties": {}}
    assert send(server, "POST", "api/metalakes/shop/catalogs", catalog).status_code == 200
    listed = "iceberg/shop/v1/lake/namespaces"
    assert send(server, "GET", listed, **{"User-Agent": "duckdb/v1.5.5"}).status_code == 200
    server.environment["DJANGO_SETTINGS_MODULE"] = "tests.authz.hasty"  # from the next start on
    server.restart()
    assert uses(server, "catalog", "lake")["list_schemas", "allowed", "iceberg", "duckdb"] == 1, "at its end"
    for _ in range(3):
        assert send(server, "GET", listed, **{"User-Agent": "PyIceberg/0.12.0"}).status_code == 200
    question = ("list_schemas", "allowed", "iceberg", "pyiceberg")
    assert eventually(lambda: uses(server, "catalog", "lake").get(question) == 3), "while it runs"
    assert "PyIceberg" not in server.log.read_text(), "in no log"
    assert send(server, "GET", "api/metalakes/shop/access/use").json()["gaps"] == [], "it ended by itself"
