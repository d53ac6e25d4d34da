"""Worlds that are replayed are the ones that were built, and are built wherever that is not certain."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from authz.models import User
from catalogs.models import Catalog
from tests import replaying
from tests.emptying import Tables
from tests.frontend.conftest import small_world
from tests.replaying import replayed

pytestmark = pytest.mark.django_db

Build = Callable[..., str]


@pytest.fixture
def built() -> list[str]:
    """The names by which `build` was really called."""
    return []


@pytest.fixture
def build(built: list[str], monkeypatch: pytest.MonkeyPatch) -> Build:
    monkeypatch.setattr(replaying, "_recordings", {})

    def make(name: str) -> str:
        built.append(name)
        User.objects.create_user(name, "a long enough password")
        return name

    return replayed(make)


def undone(act: Callable[[], Any]) -> Any:
    """What an act returns, once all is as before; as between two tests."""
    savepoint = transaction.savepoint()
    result = act()
    transaction.savepoint_rollback(savepoint)
    replaying.pytest_runtest_setup()
    return result


def store_and_files() -> tuple[Any, ...]:
    ids = small_world()
    warehouse = Path(Catalog.objects.get().properties["warehouse"].removeprefix("file://"))
    return ids, Tables.as_migrated.rows(), {path: path.read_bytes() for path in warehouse.rglob("*.json")}


def test_the_second_is_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replaying, "_recordings", {})
    ids, rows, files = undone(store_and_files)
    (path,) = files
    path.unlink()
    monkeypatch.delattr("catalogs.services.catalogs.create_catalog")
    assert undone(store_and_files) == (ids, rows, files)
    assert rows["catalogs_catalog"] and rows["authz_auditentry"] and rows["metalake_outbox"]


def test_one_is_built_once(build: Build, built: list[str]) -> None:
    for _ in range(3):
        assert undone(lambda: [build("mia"), build("nils")]) == ["mia", "nils"]
    assert built == ["mia", "nils"]


def test_others_before_it_make_it_another_one(build: Build, built: list[str]) -> None:
    undone(lambda: [build("mia"), build("nils")])
    undone(lambda: build("nils"))
    assert built == ["mia", "nils", "nils"]


def test_it_is_built_where_a_test_made_rows(build: Build, built: list[str]) -> None:
    undone(lambda: build("mia"))
    User.objects.create_user("nils", "a long enough password")
    build("mia")
    assert built == ["mia", "mia"]


def test_it_is_built_where_rows_were_changed_since(build: Build, built: list[str]) -> None:
    undone(lambda: [build("mia"), build("nils")])
    build("mia")
    User.objects.update(is_active=False)
    build("nils")
    assert built == ["mia", "nils", "nils"]


def test_it_is_built_where_a_setting_was_changed(build: Build, built: list[str], settings: Any) -> None:
    undone(lambda: build("mia"))
    settings.METALAKE_REMOTE_ALLOW = ("10.0.0.1",)
    build("mia")
    assert built == ["mia", "mia"]


def test_what_it_changed_is_changed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replaying, "_recordings", {})

    @replayed
    def make() -> None:
        User.objects.create_user("mia", "a long enough password")

    @replayed
    def close() -> None:
        User.objects.update(is_active=False)

    @replayed
    def leave() -> None:
        User.objects.all().delete()

    def state() -> list[list[bool]]:
        states = []
        for act in (make, close, leave):
            act()
            states.append(list(User.objects.values_list("is_active", flat=True)))
        return states

    assert undone(state) == undone(state) == [[True], [False], []]
