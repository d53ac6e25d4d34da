"""A catalog whose provider offers no views, so that Metalake stores them itself, with real names and queries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from authz.actor import Actor
from catalogs.services import catalogs
from providers import registry
from tests.catalogs.callers import Caller
from tests.catalogs.conftest import admin as admin
from tests.catalogs.conftest import mia as mia
from tests.demo import actor
from tests.providers.world import World

SCHEMA = "metalakes/demo/catalogs/flights/schemas/nyc"
VIEWS = f"{SCHEMA}/views"
DELAYS = "SELECT carrier, avg(arr_delay) AS delay FROM flights GROUP BY carrier"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world.json")


@pytest.fixture
def flights(admin: Caller, world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """The catalog `flights` with the schema `nyc`; its tables are in another system, its views here."""
    monkeypatch.setitem(registry.PROVIDERS, "half", "tests.providers.half:HalfMemoryProvider")
    owner: Actor = actor("admin")
    catalogs.create_catalog(owner, "demo", "flights", "relational", "half", None, {"world": str(world.path)})
    assert admin.send("POST", "metalakes/demo/catalogs/flights/schemas", {"name": "nyc"}).status == 200
    return world


def sql(dialect: str, text: str = DELAYS, **defaults: str) -> dict[str, Any]:
    return {"type": "sql", "dialect": dialect, "sql": text, **defaults}


def body(name: str = "delays", *representations: dict[str, Any], **parts: Any) -> dict[str, Any]:
    """A create request."""
    columns = [{"name": "carrier", "type": "string"}, {"name": "delay", "type": "double", "comment": "minutes"}]
    return {"name": name, "columns": columns, "representations": list(representations or [sql("spark")])} | parts


def update(kind: str, **parts: Any) -> dict[str, Any]:
    return {"@type": kind, **parts}
