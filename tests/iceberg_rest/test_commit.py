"""POST .../tables/{table}: requirements, updates, creation by commit, and which failures are told how."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from authz import transactions
from catalogs.managed import pointers as managed_pointers
from catalogs.managed import tables as managed_tables
from catalogs.services import commits, tables
from formats.iceberg import files, metadata_cache
from formats.iceberg.metadata_json import parse_metadata as parse
from metalake.errors import OutcomeUnknown, ProviderUnavailable
from metalake.kinds import Kind
from tests.cases import each
from tests.demo import give
from tests.iceberg_rest.world import COLUMNS, Caller

pytestmark = pytest.mark.store

TABLE = "namespaces/a/tables/t"
SET = {"action": "set-properties", "updates": {"k": "v"}}


@pytest.fixture
def home(owner: Caller) -> Caller:
    owner.make_namespace("a")
    owner.make_table("a", "t")
    return owner


def commit(caller: Caller, *updates: Any, requirements: Any = (), **more: Any) -> Any:
    return caller.post(TABLE, {"requirements": list(requirements), "updates": list(updates), **more})


def test_it_works(home: Caller) -> None:
    before = home.get(TABLE).json
    uuid = before["metadata"]["table-uuid"]
    answer = commit(home, SET, requirements=[{"type": "assert-table-uuid", "uuid": uuid}])
    assert answer.status == 200
    assert set(answer.json) == {"metadata-location", "metadata"}
    assert answer.json["metadata"]["properties"]["k"] == "v"
    assert answer.json["metadata"]["metadata-log"][-1]["metadata-file"] == before["metadata-location"]
    assert home.get(TABLE).json == answer.json | {"config": {}}


def test_what_this_process_wrote_is_not_parsed_again(home: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = []

    def noted(content: bytes) -> dict[str, Any]:
        parsed.append(content)
        return parse(content)

    monkeypatch.setattr(metadata_cache, "parse_metadata", noted)
    for value in ("v", "w"):
        set_it = {"action": "set-properties", "updates": {"k": value}}
        assert commit(home, set_it).json["metadata"]["properties"]["k"] == value
    assert parsed == []


def test_a_commit_that_changes_nothing(home: Caller) -> None:
    before = home.get(TABLE).json["metadata-location"]
    assert commit(home).json["metadata-location"] == before


def test_a_requirement_that_does_not_hold(home: Caller) -> None:
    before = home.get(TABLE).content
    status, type_, message = commit(
        home, SET, requirements=[{"type": "assert-current-schema-id", "current-schema-id": 7}]
    ).error
    assert (status, type_) == (409, "CommitFailedException")
    assert message == "Requirement failed: current schema changed: expected id 7 != 0"
    assert home.get(TABLE).content == before


@each(
    "requirements, updates",
    [
        ([{"type": "assert-the-future"}], [SET]),
        ([], [{"action": "do-the-future"}]),
        ([], [{}]),
        ([{}], []),
        ([{"type": "assert-create"}, {"type": "assert-current-schema-id", "current-schema-id": 0}], [SET]),
        ([], [{"action": "set-properties", "updates": {"py-io-impl": "os.path"}}]),
        ([], [{"action": "set-properties", "updates": {"s3.endpoint": "http://example.org"}}]),
        ([], [{"action": "set-location", "location": "file:///elsewhere"}]),
        ([], [{"action": "assign-uuid", "uuid": "00000000-0000-0000-0000-000000000000"}]),
    ],
)
def test_what_is_refused_changes_nothing(home: Caller, requirements: list, updates: list) -> None:
    before = home.get(TABLE).content
    status, type_, _ = commit(home, *updates, requirements=requirements).error
    # An assert-create beside others is refused for either reason: there is a table already.
    assert (status, type_) in ((400, "BadRequestException"), (409, "CommitFailedException"))
    assert status == 400 or len(requirements) == 2
    assert home.get(TABLE).content == before


def test_the_identifier_may_be_left_out_but_not_contradict(home: Caller) -> None:
    assert commit(home, SET, identifier={"namespace": ["a"], "name": "t"}).status == 200
    for identifier in ({"namespace": ["a"], "name": "u"}, {"namespace": ["a", "b"], "name": "t"}):
        status, type_, message = commit(home, SET, identifier=identifier).error
        assert (status, type_) == (400, "BadRequestException")
        assert "identifier" in message


# Creation


def creation() -> dict[str, Any]:
    return {
        "requirements": [{"type": "assert-create"}],
        "updates": [
            {"action": "assign-uuid", "uuid": "11111111-2222-3333-4444-555555555555"},
            {"action": "upgrade-format-version", "format-version": 2},
            {"action": "add-schema", "schema": COLUMNS, "last-column-id": 1},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
            {"action": "set-default-sort-order", "sort-order-id": -1},
        ],
    }


def staged(caller: Caller, name: str) -> dict[str, Any]:
    """A commit that makes the table where the server said that it would be."""
    answer = caller.post("namespaces/a/tables", {"name": name, "schema": COLUMNS, "stage-create": True}).json
    body = creation()
    body["updates"][0]["uuid"] = answer["metadata"]["table-uuid"]
    body["updates"].append({"action": "set-location", "location": answer["metadata"]["location"]})
    return body


def test_create_by_commit(home: Caller) -> None:
    body = staged(home, "u")
    answer = home.post("namespaces/a/tables/u", body)
    assert answer.status == 200, answer.content
    assert home.tables("a") == ["t", "u"]
    status, type_, message = home.post("namespaces/a/tables/u", body).error
    assert (status, type_) == (409, "CommitFailedException")
    assert message == "Requirement failed: table already exists"


def test_create_by_commit_in_a_missing_namespace(home: Caller) -> None:
    error = home.post("namespaces/b/tables/u", creation()).error
    assert error == (404, "NoSuchNamespaceException", "Namespace does not exist: b")


def test_create_by_commit_asks_for_creation(home: Caller, reader: Caller) -> None:
    assert reader.post("namespaces/a/tables/u", staged(home, "u")).error[:2] == (403, "ForbiddenException")
    assert home.tables("a") == ["t"]


# Which failures are told how: 5xx only where the outcome is unknown


def test_a_storage_that_does_not_answer_is_a_known_failure(home: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    before = home.get(TABLE).content

    def fails(*args: Any, **more: Any) -> None:
        raise ProviderUnavailable("The storage did not answer.", kind="storage")

    with monkeypatch.context() as broken:
        broken.setattr(files, "write_metadata", fails)
        assert commit(home, SET).error == (409, "CommitFailedException", "The storage did not answer.")
        refused = home.post("namespaces/a/tables", {"name": "u", "schema": COLUMNS})
        assert refused.error[:2] == (503, "ServiceUnavailableException")
        assert refused.headers["Retry-After"]
    assert home.get(TABLE).content == before


def test_a_full_disk_is_told_and_leaves_everything_as_it_was(home: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    before = home.get(TABLE).content
    folder = Path(home.get(TABLE).json["metadata-location"].removeprefix("file://")).parent
    files_before = sorted(folder.iterdir())

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        refused = commit(home, SET)
        assert refused.error[:2] == (503, "ServiceUnavailableException")
        assert refused.error[2].startswith(f"The storage takes no more at the moment, not file://{folder}/00001-")
        assert refused.headers["Retry-After"]
    assert (home.get(TABLE).content, sorted(folder.iterdir())) == (before, files_before)
    assert commit(home, SET).status == 200


def test_an_unknown_outcome_is_told_as_such(home: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*args: Any, **more: Any) -> None:
        raise OutcomeUnknown("The database did not answer the commit.")

    monkeypatch.setattr(managed_pointers, "write", lost)
    monkeypatch.setattr(managed_tables, "write_to", lost)
    assert commit(home, SET).error[:2] == (500, "CommitStateUnknownException")
    assert home.delete(TABLE).error[:2] == (500, "ServiceFailureException")


def test_an_unforeseen_failure_is_told_without_its_text(home: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*args: Any, **more: Any) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(tables, "load_table", breaks)
    answer = home.get(TABLE)
    assert answer.error[:2] == (500, "ServiceFailureException")
    assert b"secret" not in answer.content
    monkeypatch.setattr(commits, "commit_table", breaks)
    assert commit(home, SET).error[:2] == (500, "CommitStateUnknownException")


def test_who_may_commit(home: Caller, reader: Caller, member: Caller) -> None:
    assert commit(reader, SET).error[:2] == (403, "ForbiddenException")
    assert commit(member, SET).error == (404, "NoSuchTableException", "Table does not exist: a.t")
    give(reader.name, Kind.SCHEMA, "lake.a", "modify_table")
    assert commit(reader, SET).status == 200


def test_a_lost_race_starts_over(home: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another commit lands between reading and swapping: both changes are kept and the loser's file is gone."""
    original = transactions.write
    raced: list[bool] = []

    def race(actor: Any, act: Any, **more: Any) -> Any:
        if not raced:
            raced.append(True)
            assert commit(home, {"action": "set-properties", "updates": {"other": "1"}}).status == 200
        return original(actor, act, **more)

    monkeypatch.setattr(managed_pointers, "write", race)
    properties = commit(home, SET).json["metadata"]["properties"]
    assert properties["k"] == "v"
    assert properties["other"] == "1"
