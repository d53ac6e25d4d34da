"""POST .../transactions/commit: several tables at once, or none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from catalogs.managed import pointers as managed_pointers
from metalake.kinds import Kind
from tests.demo import give
from tests.iceberg_rest.world import Caller

pytestmark = pytest.mark.store

COMMIT, FIRST, SECOND = "transactions/commit", "namespaces/a/tables/t", "namespaces/a/tables/u"
STALE = {"type": "assert-current-schema-id", "current-schema-id": 7}


@pytest.fixture
def home(owner: Caller) -> Caller:
    owner.make_namespace("a")
    owner.make_table("a", "t")
    owner.make_table("a", "u")
    return owner


def change(name: str, value: str = "v", *requirements: Any) -> dict[str, Any]:
    updates = [{"action": "set-properties", "updates": {"k": value}}]
    return {
        "identifier": {"namespace": ["a"], "name": name}, "requirements": list(requirements), "updates": updates,
    }  # fmt: skip


def commit(caller: Caller, *changes: dict[str, Any]) -> Any:
    return caller.post(COMMIT, {"table-changes": list(changes)})


def states(caller: Caller) -> tuple[bytes, bytes]:
    return caller.get(FIRST).content, caller.get(SECOND).content


def test_it_works(home: Caller) -> None:
    assert commit(home, change("t"), change("u", "w")).status == 204
    values = [home.get(path).json["metadata"]["properties"].get("k") for path in (FIRST, SECOND)]
    assert values == ["v", "w"]


def test_one_refusal_undoes_all(home: Caller) -> None:
    before, files = states(home), metadata_files(home)
    assert commit(home, change("t"), change("u", "v", STALE)).error[:2] == (409, "CommitFailedException")
    assert commit(home, change("t"), change("nothing")).error[:2] == (404, "NoSuchTableException")
    assert commit(home, change("t"), change("t")).error[0] == 400
    assert commit(home).error[0] == 400
    assert commit(home, change("t"), change("u", "v", {"type": "assert-create"})).error[0] == 406
    assert states(home) == before and metadata_files(home) == files


def metadata_files(caller: Caller) -> list[str]:
    place = caller.get(FIRST).json["metadata-location"].removeprefix("file://")
    return sorted(str(each) for each in Path(place).parents[2].rglob("*.metadata.json"))


def test_a_lost_race_undoes_all_and_is_tried_again(home: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    files = len(metadata_files(home))
    move, lost = managed_pointers.move_pointer, iter([True])

    def loses_once(actor: Any, model: Any, located: Any, current: Any, new: Any) -> None:
        if located.name == "u" and next(lost, False):
            raise managed_pointers.Raced
        move(actor, model, located, current, new)

    monkeypatch.setattr(managed_pointers, "move_pointer", loses_once)
    assert commit(home, change("t"), change("u")).status == 204
    assert len(metadata_files(home)) == files + 2


def test_it_takes_the_right_on_each(home: Caller, member: Caller) -> None:
    give("mia", Kind.SCHEMA, "lake.a", "use_schema")
    give("mia", Kind.CATALOG, "lake", "use_catalog")
    give("mia", Kind.TABLE, "lake.a.t", "modify_table")
    before = states(home)
    assert commit(member, change("t"), change("u")).error[0] == 404  # which they do not see
    give("mia", Kind.TABLE, "lake.a.u", "select_table")
    assert commit(member, change("t"), change("u")).error[:2] == (403, "ForbiddenException")
    assert states(home) == before
    give("mia", Kind.TABLE, "lake.a.u", "modify_table")
    assert commit(member, change("t"), change("u")).status == 204
