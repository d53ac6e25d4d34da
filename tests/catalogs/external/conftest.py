"""Catalogs `deep` and `flat` of an outside system in memory, owned by `admin` of the metalake `demo`."""

from __future__ import annotations

from pathlib import Path

import pytest

from authz.callers import actor_of
from authz.models import User
from authz.policy import Actor
from catalogs import steps
from catalogs.providers import remote
from catalogs.services import catalogs
from metalake.privileges import Kind
from tests.catalogs.callers import Caller
from tests.catalogs.conftest import admin, give, mia, otto  # noqa: F401 (fixtures)
from tests.catalogs.external.writes import Bench
from tests.providers.memory import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world.json")


@pytest.fixture
def actor(admin: Caller, world: World, tmp_path: Path) -> Actor:  # noqa: F811
    """The owner of both catalogs; `flat` has a world of its own and lets schemas lie inside schemas here."""
    remote._lines.clear()
    made = actor_of(User.objects.get(username="admin"))
    catalogs.create_catalog(made, "demo", "deep", "relational", "memory", None, {"world": str(world.path)})
    flat = {"world": str(tmp_path / "flat.json"), "nested-namespaces": "true"}
    catalogs.create_catalog(made, "demo", "flat", "relational", "memory-flat", None, flat)
    return made


@pytest.fixture
def flat_world(tmp_path: Path) -> World:
    return World(tmp_path / "flat.json")


@pytest.fixture
def benches(
    actor: Actor,
    mia: Caller,  # noqa: F811
    world: World,
    flat_world: World,
    monkeypatch: pytest.MonkeyPatch,
) -> dict[str, Bench]:
    """Both catalogs for Mia, who may make schemas and tables in them; no call waits before it is tried again."""
    monkeypatch.setattr(steps, "READ_BACK", 0.01)
    monkeypatch.setattr(remote, "_pause", lambda failure, attempt: 0.0)
    give("mia", Kind.METALAKE, "demo", "use_catalog", "use_schema", "create_schema", "create_table")
    caller = actor_of(User.objects.get(username="mia"))
    return {"deep": Bench("deep", world, caller), "flat": Bench("flat", flat_world, caller)}


@pytest.fixture
def bench(benches: dict[str, Bench]) -> Bench:
    return benches["deep"]
