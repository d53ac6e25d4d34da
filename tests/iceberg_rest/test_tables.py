"""Tables on the wire: create, load, list, rename, register, drop, metrics."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from formats.iceberg.metadata_json import MAX_METADATA_BYTES
from metalake.headers import BY_CALLER
from metalake.kinds import Kind
from metalake.outbox import drain
from providers.metadata_files import PARSED
from tests.demo import give
from tests.iceberg_rest.world import COLUMNS, Caller

MISS = (404, "NoSuchTableException", "Table does not exist: a.t")


@pytest.fixture
def home(owner: Caller) -> Caller:
    owner.make_namespace("a")
    return owner


def file_of(result: dict[str, Any]) -> Path:
    return Path(result["metadata-location"].removeprefix("file://"))


def test_create_and_load(home: Caller) -> None:
    made = home.post(
        "namespaces/a/tables",
        {
            "name": "t",
            "schema": COLUMNS,
            "partition-spec": {"fields": [{"name": "p", "transform": "identity", "source-id": 1}]},
            "write-order": None,
            "properties": {"k": "v"},
            "a-field-of-the-future": {"x": 1},
        },
    )
    assert made.status == 200
    assert set(made.json) == {"metadata-location", "config", "metadata"}
    assert made.json["metadata"]["properties"]["k"] == "v"
    assert made.json["metadata"]["partition-specs"][0]["fields"][0]["name"] == "p"
    assert file_of(made.json).exists()

    loaded = home.get("namespaces/a/tables/t")
    assert loaded.content == made.content
    assert home.head("namespaces/a/tables/t").status == 204


def test_the_stored_bytes_are_given_back_unparsed(home: Caller) -> None:
    made = home.make_table("a", "t")
    content = file_of(made).read_bytes()
    assert home.get("namespaces/a/tables/t").content.endswith(b'"metadata":' + content + b"}")


def test_the_response_tells_no_secret(home: Caller) -> None:
    assert home.make_table("a", "t")["config"] == {}


def test_create_twice(home: Caller) -> None:
    home.make_table("a", "t")
    error = home.post("namespaces/a/tables", {"name": "t", "schema": COLUMNS}).error
    assert error == (409, "AlreadyExistsException", "Table already exists: a.t")


def test_create_in_a_missing_namespace(home: Caller) -> None:
    error = home.post("namespaces/a%1Fb/tables", {"name": "t", "schema": COLUMNS}).error
    assert error == (404, "NoSuchNamespaceException", "Namespace does not exist: a.b")


@pytest.mark.store
def test_staging_keeps_nothing(home: Caller) -> None:
    staged = home.post("namespaces/a/tables", {"name": "t", "schema": COLUMNS, "stage-create": True})
    assert staged.status == 200
    assert staged.json["metadata-location"] is None
    assert "ETag" not in staged.headers
    assert home.tables("a") == []
    assert home.get("namespaces/a/tables/t").error == MISS


def test_list(home: Caller) -> None:
    home.make_namespace("a", "b")
    for name in ("t2", "t1"):
        home.make_table("a", name)
    home.make_table("a%1Fb", "deeper")
    answer = home.get("namespaces/a/tables").json
    assert answer["identifiers"] == [{"namespace": ["a"], "name": "t1"}, {"namespace": ["a"], "name": "t2"}]
    assert home.get("namespaces/a%1Fb/tables").json["identifiers"] == [{"namespace": ["a", "b"], "name": "deeper"}]
    assert home.get("namespaces/x/tables").error[:2] == (404, "NoSuchNamespaceException")


def test_a_table_that_is_not_there(home: Caller) -> None:
    assert home.get("namespaces/a/tables/t").error == MISS
    assert home.get("namespaces/b/tables/t").error == (404, "NoSuchTableException", "Table does not exist: b.t")
    assert home.delete("namespaces/a/tables/t").error == MISS
    assert home.post("namespaces/a/tables/t", {"requirements": [], "updates": []}).error == MISS
    assert home.post("namespaces/a/tables/t/metrics", {}).error == MISS
    missing = home.head("namespaces/a/tables/t")
    assert (missing.status, missing.content) == (404, b"")


def test_a_metadata_file_that_is_gone(home: Caller) -> None:
    from catalogs.models import Catalog
    from providers.metadata_files import METADATA

    made = home.make_table("a", "t")
    file_of(made).unlink()
    METADATA.forget(Catalog.objects.get(name="lake").pk, made["metadata-location"])
    status, type_, message = home.get("namespaces/a/tables/t").error
    assert (status, type_) == (404, "NotFoundException")
    assert message == f"Failed to open input stream for file: {made['metadata-location']}"


def test_of_a_table_its_current_metadata_alone_is_remembered(home: Caller) -> None:
    from catalogs.models import Catalog
    from providers.metadata_files import METADATA

    catalog, made = Catalog.objects.get(name="lake").pk, home.make_table("a", "t")
    assert METADATA.get(catalog, made["metadata-location"])
    update = {"action": "set-properties", "updates": {"k": "v"}}
    done = home.post("namespaces/a/tables/t", {"requirements": [], "updates": [update]}).json
    assert METADATA.get(catalog, made["metadata-location"]) is None
    assert METADATA.get(catalog, done["metadata-location"])


def test_while_commits_lose_their_races_the_current_metadata_is_remembered(
    home: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    from catalogs.managed.pointers import ManagedPointers
    from catalogs.models import Catalog
    from providers.metadata_files import METADATA

    catalog, made = Catalog.objects.get(name="lake").pk, home.make_table("a", "t")
    monkeypatch.setattr(ManagedPointers, "swap", lambda *_: None)
    update = {"action": "set-properties", "updates": {"k": "v"}}
    lost = home.post("namespaces/a/tables/t", {"requirements": [], "updates": [update]})
    assert (lost.status, "others keep committing" in lost.error[2]) == (409, True)
    assert METADATA.get(catalog, made["metadata-location"])


# ETags


def test_not_modified(home: Caller) -> None:
    home.make_table("a", "t")
    loaded = home.get("namespaces/a/tables/t")
    etag = loaded.headers["ETag"]
    for sent in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        same = home.get("namespaces/a/tables/t", HTTP_IF_NONE_MATCH=sent)
        assert (same.status, same.content, same.headers["ETag"]) == (304, b"", etag)
    assert home.get("namespaces/a/tables/t", HTTP_IF_NONE_MATCH='"other"').status == 200


def test_the_etag_tells_modes_and_versions_apart(home: Caller) -> None:
    made = home.post("namespaces/a/tables", {"name": "t", "schema": COLUMNS}).headers["ETag"]
    everything = home.get("namespaces/a/tables/t").headers["ETag"]
    refs = home.get("namespaces/a/tables/t?snapshots=refs").headers["ETag"]
    assert made == everything != refs
    committed = home.post(
        "namespaces/a/tables/t", {"updates": [{"action": "set-properties", "updates": {"k": "v"}}]}
    ).headers["ETag"]
    assert committed == home.get("namespaces/a/tables/t").headers["ETag"] != everything
    assert home.get("namespaces/a/tables/t", HTTP_IF_NONE_MATCH=everything).status == 200


def test_an_etag_is_no_key(home: Caller, member: Caller) -> None:
    """Whoever may not load the table is not told that it is unchanged."""
    home.make_table("a", "t")
    etag = home.get("namespaces/a/tables/t").headers["ETag"]
    assert member.get("namespaces/a/tables/t", HTTP_IF_NONE_MATCH=etag).error == MISS


# snapshots=refs


def test_only_referenced_snapshots(home: Caller) -> None:
    home.make_table("a", "t")
    for number in (1, 2, 3):
        updates: list[dict[str, Any]] = [_snapshot(number), _ref("main", "branch", number)]
        if number == 1:
            updates.append(_ref("first", "tag", 1))
        assert home.post("namespaces/a/tables/t", {"updates": updates}).status == 200
    assert _snapshot_ids(home, "all") == [1, 2, 3]
    assert _snapshot_ids(home, "refs") == [1, 3]
    PARSED._entries.clear()
    assert _snapshot_ids(home, "refs") == [1, 3] and not PARSED._entries, "the history is not read again"
    assert home.get("namespaces/a/tables/t?snapshots=some").error[:2] == (400, "BadRequestException")


def _snapshot(number: int) -> dict[str, Any]:
    snapshot = {
        "snapshot-id": number,
        "sequence-number": number,
        "timestamp-ms": 4_000_000_000_000 + number,
        "manifest-list": f"file:///x/{number}.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    if number > 1:
        snapshot["parent-snapshot-id"] = number - 1
    return {"action": "add-snapshot", "snapshot": snapshot}


def _ref(name: str, type_: str, number: int) -> dict[str, Any]:
    return {"action": "set-snapshot-ref", "ref-name": name, "type": type_, "snapshot-id": number}


def _snapshot_ids(caller: Caller, mode: str) -> list[int]:
    metadata = caller.get(f"namespaces/a/tables/t?snapshots={mode}").json["metadata"]
    return [snapshot["snapshot-id"] for snapshot in metadata["snapshots"]]


# Rename


def rename(caller: Caller, source: tuple[list[str], str], target: tuple[list[str], str]) -> Any:
    body = {
        "source": {"namespace": source[0], "name": source[1]},
        "destination": {"namespace": target[0], "name": target[1]},
    }
    return caller.post("tables/rename", body)


def test_rename(home: Caller) -> None:
    home.make_namespace("b", "c")
    made = home.make_table("a", "t")
    answer = rename(home, (["a"], "t"), (["b", "c"], "u"))
    assert (answer.status, answer.content) == (204, b"")
    assert home.tables("a") == []
    assert home.get("namespaces/b%1Fc/tables/u").json == made


def test_rename_onto_what_is_there(home: Caller) -> None:
    home.make_table("a", "t")
    home.make_table("a", "u")
    for name in ("t", "u"):
        error = rename(home, (["a"], "t"), (["a"], name)).error
        assert error == (409, "AlreadyExistsException", f"Cannot rename a.t to a.{name}. Table already exists")


def test_rename_from_or_to_nowhere(home: Caller) -> None:
    home.make_table("a", "t")
    assert rename(home, (["a"], "x"), (["a"], "y")).error == (
        404,
        "NoSuchTableException",
        "Table does not exist: a.x",
    )
    assert rename(home, (["x"], "t"), (["y"], "t")).error == (
        404,
        "NoSuchTableException",
        "Table does not exist: x.t",
    )
    assert rename(home, (["a"], "t"), (["b"], "t")).error == (
        404,
        "NoSuchNamespaceException",
        "Namespace does not exist: b",
    )


# Register


def test_register_after_drop(home: Caller) -> None:
    made = home.make_table("a", "t")
    assert home.delete("namespaces/a/tables/t").status == 204
    body = {"name": "back", "metadata-location": made["metadata-location"], "overwrite": False}
    answer = home.post("namespaces/a/register", body)
    assert (answer.status, answer.json) == (200, made)
    assert home.get("namespaces/a/tables/back").json == made


def test_register_refusals(home: Caller) -> None:
    made = home.make_table("a", "t")
    location = made["metadata-location"]
    for namespace, body, expected in [
        ("a", {"name": "u", "metadata-location": location}, 400),  # another table has it
        ("a", {"name": "t", "metadata-location": location}, 409),
        ("a", {"name": "u", "metadata-location": location, "overwrite": True}, 406),
        ("a", {"name": "u", "metadata-location": location + "x"}, 400),
        ("a", {"name": "u", "metadata-location": "file:///etc/passwd"}, 400),
        ("b", {"name": "u", "metadata-location": location}, 404),
    ]:
        assert home.post(f"namespaces/{namespace}/register", body).error[0] == expected, body
    assert home.tables("a") == ["t"]


def test_what_is_too_large_to_register_is_told_what_to_do_first(home: Caller) -> None:
    location = home.make_table("a", "t")["metadata-location"].replace("00000-", "00001-")
    with Path(location.removeprefix("file://")).open("wb") as file:
        file.truncate(MAX_METADATA_BYTES + 1)
    home.delete("namespaces/a/tables/t")
    message = home.post("namespaces/a/register", {"name": "u", "metadata-location": location}).error[2]
    assert str(MAX_METADATA_BYTES) in message and "expire_snapshots(table =>" in message, message


# Drop


@pytest.mark.parametrize("flag", ["", "?purgeRequested=false", "?purgeRequested=False"])
def test_drop_keeps_the_files(home: Caller, flag: str) -> None:
    made = home.make_table("a", "t")
    dropped = home.delete(f"namespaces/a/tables/t{flag}")
    assert (dropped.status, dropped.content) == (204, b"")
    drain()
    assert home.get("namespaces/a/tables/t").error == MISS
    assert file_of(made).exists()


@pytest.mark.parametrize("word", ["true", "True", "TRUE"])
def test_purge_takes_the_files(home: Caller, word: str) -> None:
    made = home.make_table("a", "t")
    assert home.delete(f"namespaces/a/tables/t?purgeRequested={word}").status == 204
    drain()
    assert not file_of(made).exists()


def test_purge_maybe(home: Caller) -> None:
    home.make_table("a", "t")
    assert home.delete("namespaces/a/tables/t?purgeRequested=yes").error[:2] == (400, "BadRequestException")
    assert home.tables("a") == ["t"]


# Metrics


def test_metrics_are_accepted_whatever_they_say(home: Caller, reader: Caller) -> None:
    home.make_table("a", "t")
    for report in ({"report-type": "scan-report", "metrics": {"x": {}}}, {}):
        answer = reader.post("namespaces/a/tables/t/metrics", report)
        assert (answer.status, answer.content) == (204, b"")


# Who may


def test_what_a_reader_may(home: Caller, reader: Caller) -> None:
    home.make_table("a", "t")
    assert reader.tables("a") == ["t"]
    assert reader.get("namespaces/a/tables/t").status == 200
    for answer in (
        reader.post("namespaces/a/tables", {"name": "u", "schema": COLUMNS}),
        reader.post("namespaces/a/tables/t", {"updates": []}),
        reader.delete("namespaces/a/tables/t"),
        rename(reader, (["a"], "t"), (["a"], "u")),
    ):
        assert answer.error[:2] == (403, "ForbiddenException")
    assert home.tables("a") == ["t"]


@pytest.mark.store
def test_lists_hide_what_cannot_be_loaded(home: Caller, member: Caller) -> None:
    home.make_table("a", "seen")
    home.make_table("a", "unseen")
    give(member.name, Kind.CATALOG, "lake", "use_catalog")
    give(member.name, Kind.SCHEMA, "lake.a", "use_schema")
    give(member.name, Kind.TABLE, "lake.a.seen", "select_table")
    assert member.tables("a") == ["seen"]
    assert member.get("namespaces/a/tables/unseen").error[0] == 404


def test_moving_tells_nothing_about_hidden_namespaces(home: Caller, member: Caller) -> None:
    """One who may alter a table but not move it is refused before the destination is looked for."""
    home.make_table("a", "t")
    home.make_namespace("hidden")
    give(member.name, Kind.CATALOG, "lake", "use_catalog")
    give(member.name, Kind.SCHEMA, "lake.a", "use_schema", "modify_table")
    hidden, missing = (rename(member, (["a"], "t"), ([name], "t")) for name in ("hidden", "missing"))
    assert hidden.error[0] == 403
    assert hidden.content == missing.content


def test_a_load_is_packed_for_who_accepts_it_once_for_each_version(home: Caller) -> None:
    home.make_table("a", "t", properties={f"key{n}": "value" * 10 for n in range(50)})
    plain = home.get("namespaces/a/tables/t")
    packed = home.get("namespaces/a/tables/t", HTTP_ACCEPT_ENCODING="deflate, gzip;q=0.9")
    assert packed.headers["Content-Encoding"] == "gzip" and "Content-Encoding" not in plain.headers
    assert plain.headers["Vary"] == packed.headers["Vary"] == f"Accept-Encoding, {BY_CALLER}"
    assert gzip.decompress(packed.content) == plain.content and len(packed.content) < len(plain.content) / 4
    assert packed.headers["ETag"] != plain.headers["ETag"]
    again = home.get("namespaces/a/tables/t", HTTP_ACCEPT_ENCODING="gzip")
    assert (again.content, again.headers["ETag"]) == (packed.content, packed.headers["ETag"])
    for answer in (plain, packed):
        same = home.get("namespaces/a/tables/t", HTTP_IF_NONE_MATCH=answer.headers["ETag"], HTTP_ACCEPT_ENCODING="gzip")
        assert (same.status, same.content) == (304, b"")
    change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"key1": "new"}}]}
    assert home.post("namespaces/a/tables/t", change).status == 200
    newer = home.get("namespaces/a/tables/t", HTTP_ACCEPT_ENCODING="gzip")
    assert b'"key1":"new"' in gzip.decompress(newer.content)


@pytest.mark.parametrize("asked", ["", "identity", "gzip;q=0", "br", "gzipped"])
def test_a_load_is_not_packed_for_others(home: Caller, asked: str) -> None:
    home.make_table("a", "t", properties={f"key{n}": "value" * 10 for n in range(50)})
    assert "Content-Encoding" not in home.get("namespaces/a/tables/t", HTTP_ACCEPT_ENCODING=asked).headers


@pytest.mark.parametrize("staged", [False, True])
def test_what_asks_for_a_table_of_hive_makes_none_of_iceberg(owner: Caller, staged: bool) -> None:
    """Iceberg's catalog of Spark sends STORED AS as this property."""
    owner.make_namespace("a")
    body = {"name": "t", "schema": COLUMNS, "properties": {"hive.stored-as": "parquet"}, "stage-create": staged}
    status, _, message = owner.post("namespaces/a/tables", body).error
    assert status == 400 and "leave them out" in message and owner.tables("a") == []
