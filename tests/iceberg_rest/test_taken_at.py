"""Answers of outside catalogs say how old they are, and are as new as their caller asks."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import orjson
import pytest
from django.utils import timezone

from authz.callers.identity import actor_of
from authz.models import User
from catalogs.models import Listing, Mirror
from catalogs.services import catalogs
from tests.iceberg_rest.world import COLUMNS, Answer, Caller
from tests.providers.memory import MemoryTables
from tests.providers.pointers import MemoryPointers
from tests.providers.world import World

pytestmark = pytest.mark.django_db(transaction=True)

METADATA = orjson.dumps({"format-version": 2, "schemas": [COLUMNS], "refs": {}, "snapshots": []})
PATHS = ["namespaces", "namespaces/flights", "namespaces/flights/tables", "namespaces/flights/tables/delays"]


class Files:
    """Whatever file is asked for."""

    def allowed_place(self, location: str) -> str:
        return location

    def read(self, location: str) -> bytes:
        return METADATA


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path / "world.json")
    made.put_schema("flights")
    made.put_table("flights", "delays", pointer="s3://lake/flights/delays/metadata/00001.json")
    return made


@pytest.fixture
def outside(owner: Caller, world: World, monkeypatch: pytest.MonkeyPatch) -> Caller:
    """An outside catalog whose tables are Iceberg's, and whose answers are good for ten minutes."""

    monkeypatch.setattr(MemoryPointers, "parameter", "pointer")
    monkeypatch.setattr(MemoryPointers, "files", lambda self, *places: Files())
    monkeypatch.setattr(MemoryTables, "pointers", MemoryPointers)
    admin = actor_of(User.objects.get(username="admin"))
    properties = {"world": str(world.path), "cache-ttl": "600"}
    catalogs.create_catalog(admin, "demo", "deep", "relational", "memory", None, properties)
    return Caller(owner.name, catalog="deep")


def age_of(answer: Answer) -> int:
    assert answer.status in (200, 304), answer.content
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", answer.headers["X-Metalake-Taken-At"])
    return int(answer.headers["Age"])


@pytest.mark.parametrize("path", PATHS)
def test_an_answer_says_how_old_it_is(outside: Caller, path: str) -> None:
    assert age_of(outside.get(path)) < 300
    past = timezone.now() - timedelta(seconds=400)
    Mirror.objects.update(taken_at=past)
    Listing.objects.update(taken_at=past)
    assert age_of(outside.get(path)) >= 400
    assert age_of(outside.get(f"{path}?refresh=TRUE")) < 300
    assert age_of(outside.get(path)) < 300, "what was asked for is known to others, too"


def test_what_changed_is_seen_with_a_refresh(outside: Caller, world: World) -> None:
    assert [name["name"] for name in outside.get(PATHS[2]).json["identifiers"]] == ["delays"]
    assert outside.get(PATHS[1]).json["properties"] == {}
    world.put_schema("sales")
    world.put_table("flights", "airports", pointer="s3://lake/flights/airports/metadata/00001.json")
    with world.open() as state:
        state["schemas"]["flights"]["definition"]["properties"]["team"] = "ops"
    assert outside.get(PATHS[0]).json["namespaces"] == [["flights"], ["sales"]], "it was never listed before"
    assert len(outside.get(PATHS[2]).json["identifiers"]) == 1
    assert len(outside.get(f"{PATHS[2]}?refresh=true").json["identifiers"]) == 2
    assert outside.get(f"{PATHS[1]}?refresh=true").json["properties"] == {"team": "ops"}


def test_a_page_and_an_unchanged_table_say_it_too(outside: Caller) -> None:
    assert age_of(outside.get("namespaces/flights/tables?pageToken=&pageSize=1")) < 300
    etag = outside.get(PATHS[3]).headers["ETag"]
    unchanged = outside.get(PATHS[3], HTTP_IF_NONE_MATCH=etag)
    assert (unchanged.status, age_of(unchanged) < 300) == (304, True)


def test_what_is_our_own_has_no_age(owner: Caller) -> None:
    owner.post("namespaces", {"namespace": ["flights"]})
    for path in PATHS[:3]:
        answer = owner.get(f"{path}?refresh=true")
        assert answer.status == 200
        assert not {"Age", "X-Metalake-Taken-At"} & set(answer.headers)


def test_anything_else_is_no_wish(outside: Caller) -> None:
    status, type_, message = outside.get(f"{PATHS[2]}?refresh=always").error
    assert (status, type_) == (400, "BadRequestException")
    assert "refresh" in message
