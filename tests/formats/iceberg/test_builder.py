"""apply_updates as a whole: order, errors, no change, the metadata log, upgrades, nothing lost, nothing touched."""

import json
from copy import deepcopy

import pytest
from pyiceberg.table.metadata import TableMetadataUtil

from formats.iceberg.builder import ACTIONS, apply_updates
from metalake.errors import Invalid
from tests.cases import each
from tests.formats.iceberg.table_samples import (
    EVENTS,
    NOW,
    OTHER_UUID,
    UUID,
    Json,
    add,
    append,
    column,
    commit,
    partition_field,
    point,
    schema,
    snapshot,
    table,
)


def set_properties(**updates):
    return {"action": "set-properties", "updates": updates}


def upgrade(version):
    return {"action": "upgrade-format-version", "format-version": version}


def creation(version=2, **without):
    """What a client sends to commit a table that it staged."""
    staged = table(version)
    updates = [
        {"action": "assign-uuid", "uuid": staged["table-uuid"]},
        upgrade(version),
        {"action": "add-schema", "schema": staged["schemas"][0], "last-column-id": 3},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": staged["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": staged["sort-orders"][0]},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": staged["location"]},
        {"action": "set-properties", "updates": staged["properties"]},
    ]
    return [update for update in updates if update["action"] not in without.get("without", ())]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_create_transaction_makes_what_was_staged(version):
    assert apply_updates(None, creation(version), now_ms=NOW) == table(version)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_spec_before_there_is_a_current_schema_belongs_to_the_one_added_last(version):
    """The order in which DuckDB commits what it staged."""
    late = [*creation(version, without=["set-current-schema"]), {"action": "set-current-schema", "schema-id": -1}]
    assert apply_updates(None, late, now_ms=NOW) == table(version)


def test_a_spec_before_any_schema_is_refused():
    early = creation(without=["add-schema"])
    with pytest.raises(Invalid, match="no schema"):
        apply_updates(None, early, now_ms=NOW)


def test_create_transaction_with_a_first_snapshot():
    updates = [*creation(), add(snapshot(1, sequence=1)), point("main", 1)]
    made = apply_updates(None, updates, now_ms=NOW, previous_location="s3://never/used")
    assert made["current-snapshot-id"] == 1
    assert made["metadata-log"] == []
    assert made["last-updated-ms"] == NOW + 1


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ("assign-uuid", "needs a table-uuid"),
        ("add-schema", "no schema has been added"),
        ("set-current-schema", "needs a current-schema-id: send set-current-schema"),
        ("add-spec", "no spec has been added"),
        ("set-default-spec", "needs a default-spec-id"),
        ("set-default-sort-order", "needs a default-sort-order-id"),
        ("set-location", "needs a location"),
    ],
)
def test_incomplete_creation_is_refused(action, said):
    with pytest.raises(Invalid, match=said):
        apply_updates(None, creation(without=[action]), now_ms=NOW)


def test_snapshot_before_a_schema_is_refused():
    with pytest.raises(Invalid, match="before a schema is added"):
        apply_updates(None, [add(snapshot(1, sequence=1)), *creation()], now_ms=NOW)


def test_all_23_updates_are_known():
    assert len(ACTIONS) == 23


@each(
    "updates, said",
    [
        ([set_properties(a="b"), {"action": "drop-everything"}], "Unknown action ('drop-everything', updates[1])"),
        ([{"action": "add-view-version"}], "Unknown action"),
        ([{}], "action is required (updates[0])"),
        ([{"action": ["x"]}], "action must be a string, not a list (updates[0])"),
        ([None], "an update must be an object, not null (updates[0])"),
        ([{"action": "set-location"}], "location is required ('set-location', updates[0])"),
        ({}, "updates must be a list"),
        (None, "updates must be a list"),
    ],
)
def test_refusal_says_which_update_and_why(updates, said):
    with pytest.raises(Invalid) as refusal:
        apply_updates(table(), updates, now_ms=NOW)
    assert said in refusal.value.message


def test_nothing_to_do_gives_the_same_object():
    base = append(table(), 1)
    assert apply_updates(base, [], now_ms=NOW, previous_location="s3://lake/v1.json") is base
    updates = [
        {"action": "assign-uuid", "uuid": UUID.upper()},
        upgrade(2),
        {"action": "set-current-schema", "schema-id": 0},
        {"action": "set-default-spec", "spec-id": 0},
        {"action": "set-default-sort-order", "sort-order-id": 0},
        {"action": "set-location", "location": "s3://lake/events/"},
        set_properties(owner="ada"),
        {"action": "remove-properties", "removals": ["ghost"]},
        point("main", 1),
        {"action": "remove-encryption-key", "key-id": "ghost"},
    ]
    assert apply_updates(base, updates, now_ms=NOW, previous_location="s3://lake/v1.json") is base


def test_uuid_cannot_be_reassigned():
    with pytest.raises(Invalid, match="Cannot reassign uuid"):
        commit(table(), {"action": "assign-uuid", "uuid": OTHER_UUID})


def test_properties():
    after = commit(table(), set_properties(a="1", b="2"), {"action": "remove-properties", "removals": ["owner", "no"]})
    assert after["properties"] == {"write.parquet.compression-codec": "zstd", "a": "1", "b": "2"}


def test_reserved_properties_are_never_stored():
    base = table()
    assert commit(base, {"action": "set-properties", "updates": {"format-version": "3", "uuid": "x"}}) is base


@pytest.mark.parametrize("updates", [None, [], {"a": 1}, {"a": None}, {"a": {}}])
def test_properties_are_strings(updates):
    with pytest.raises(Invalid, match="updates"):
        commit(table(), {"action": "set-properties", "updates": updates})


def test_location():
    assert commit(table(), {"action": "set-location", "location": "s3://b/t//"})["location"] == "s3://b/t"


def test_metadata_log_keeps_the_newest():
    metadata = commit(table(), set_properties(**{"write.metadata.previous-versions-max": "2"}))
    for number in range(1, 5):
        metadata = commit(metadata, set_properties(n=str(number)), previous_location=f"v{number}", now_ms=NOW + number)
    assert [entry["metadata-file"] for entry in metadata["metadata-log"]] == ["v3", "v4"]
    unkept = commit(metadata, set_properties(**{"write.metadata.previous-versions-max": "0"}), previous_location="v5")
    assert [entry["metadata-file"] for entry in unkept["metadata-log"]] == ["v5"]


def test_metadata_log_entry_bears_the_time_of_its_file():
    after = commit(table(), set_properties(a="b"), previous_location="v1", now_ms=NOW + 9)
    assert after["metadata-log"] == [{"metadata-file": "v1", "timestamp-ms": NOW}]
    assert after["last-updated-ms"] == NOW + 9


def test_a_hundred_previous_versions_by_default():
    base = table() | {"metadata-log": [{"metadata-file": f"v{n}", "timestamp-ms": NOW} for n in range(100)]}
    after = commit(base, set_properties(a="b"), previous_location="last")
    assert len(after["metadata-log"]) == 100
    assert after["metadata-log"][-1]["metadata-file"] == "last"


def test_log_size_must_be_a_number():
    with pytest.raises(Invalid, match="previous-versions-max must be a whole number"):
        commit(table(), set_properties(**{"write.metadata.previous-versions-max": "many"}))


def test_upgrades():
    two = commit(append(table(1), 1), upgrade(2))
    assert (two["format-version"], two["last-sequence-number"]) == (2, 0)
    assert "schema" not in two
    assert "partition-spec" not in two
    three = commit(two, upgrade(3))
    assert three["next-row-id"] == 0
    assert commit(table(), upgrade(3))["current-snapshot-id"] is None


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (1, "Cannot downgrade v2 table to v1"),
        (0, "Cannot downgrade v2 table to v0"),
        (4, "Cannot upgrade table to unsupported format version: v4 (supported: v3)"),
        ("3", "format-version must be a whole number"),
        (True, "format-version must be a whole number"),
        (None, "format-version is required"),
    ],
)
def test_wrong_format_version(wanted, said):
    with pytest.raises(Invalid) as refusal:
        commit(table(), upgrade(wanted))
    assert refusal.value.message.startswith(said)


def test_types_of_version_3_in_the_request_that_upgrades():
    wanted = schema(*EVENTS["fields"], column(4, "v", "variant"))
    assert commit(table(), upgrade(3), {"action": "add-schema", "schema": wanted})["format-version"] == 3


def test_encryption_keys():
    key = {"key-id": "k1", "encrypted-key-metadata": "c2VjcmV0", "encrypted-by-id": "k0", "future": 1}
    base = commit(table(3), {"action": "add-encryption-key", "encryption-key": key})
    assert base["encryption-keys"] == [key]
    same_id = key | {"encrypted-key-metadata": "b3RoZXI="}
    assert commit(base, {"action": "add-encryption-key", "encryption-key": same_id}) is base
    assert commit(base, {"action": "remove-encryption-key", "key-id": "k1"})["encryption-keys"] == []


@pytest.mark.parametrize(
    "key",
    [None, {}, {"key-id": "k"}, {"key-id": 1, "encrypted-key-metadata": "YQ=="}]
    + [{"key-id": "k", "encrypted-key-metadata": wrong} for wrong in ("not base64!", "ä", 5)],
)
def test_malformed_encryption_key_is_refused(key):
    with pytest.raises(Invalid, match=r"'add-encryption-key', updates\[0\]"):
        commit(table(3), {"action": "add-encryption-key", "encryption-key": key})


# Every kind of change, so that all of the builder's copying is exercised.
EVERYTHING: list[Json] = [
    {"action": "add-schema", "schema": schema(*EVENTS["fields"], column(9, "size", "int"))},
    {"action": "set-current-schema", "schema-id": -1},
    {"action": "add-spec", "spec": {"fields": [partition_field(1, "bucket[4]", "b")]}},
    {"action": "set-default-spec", "spec-id": -1},
    {"action": "set-properties", "updates": {"a": "b"}},
    {"action": "remove-properties", "removals": ["owner"]},
    add(snapshot(8, sequence=8, parent=2)),
    point("main", 8),
    point("tag", 8, "tag"),
    {"action": "remove-snapshots", "snapshot-ids": [1]},
    {"action": "set-location", "location": "s3://lake/moved"},
    {"action": "add-encryption-key", "encryption-key": {"key-id": "k2", "encrypted-key-metadata": "YQ=="}},
]


def with_unknown_fields():
    """Metadata such as an engine newer than us would write."""
    metadata = deepcopy(append(append(table(), 1), 2))
    metadata["future"] = {"deep": [1, {"x": None}]}
    metadata["encryption-keys"] = [{"key-id": "k1", "encrypted-key-metadata": "YQ==", "future": 1}]
    metadata["schemas"][0]["future"] = "s"
    metadata["schemas"][0]["fields"][0]["future"] = "c"
    metadata["partition-specs"][0]["future"] = "p"
    metadata["sort-orders"][0]["future"] = "o"
    metadata["snapshots"][1] |= {"key-id": "k1", "future": ["n"]}
    metadata["refs"]["main"]["future"] = "r"
    metadata["refs"]["kept"] = {"type": "branch", "snapshot-id": 2, "future": "r"}
    metadata["snapshot-log"][1]["future"] = "l"
    metadata["statistics"] = [{"snapshot-id": 2, "future": "t"}]
    return metadata


def test_no_field_is_lost():
    base = with_unknown_fields()
    after = commit(base, *EVERYTHING)
    assert after["future"] == base["future"]
    assert after["encryption-keys"][0] == base["encryption-keys"][0]
    assert after["schemas"][0] == base["schemas"][0]
    assert after["partition-specs"][0] == base["partition-specs"][0]
    assert after["sort-orders"] == base["sort-orders"]
    assert after["snapshots"][0] == base["snapshots"][1]
    assert after["refs"]["kept"] == base["refs"]["kept"]
    assert after["snapshot-log"][0] == base["snapshot-log"][1]
    assert after["statistics"] == base["statistics"]
    assert set(base) <= set(after)


def test_one_property_changes_only_itself():
    base = with_unknown_fields()
    after = commit(base, set_properties(a="b"), now_ms=base["last-updated-ms"])
    assert after == base | {"properties": base["properties"] | {"a": "b"}}


def test_what_is_given_is_never_changed_even_by_a_refused_commit():
    base = with_unknown_fields()
    before = deepcopy(base)
    with pytest.raises(Invalid, match=r"updates\[12\]"):
        apply_updates(base, [*EVERYTHING, {"action": "no"}], now_ms=NOW)
    assert base == before


def test_unchanged_parts_are_shared():
    base = append(table(), 1)
    after = append(base, 2)
    assert after["snapshots"][0] is base["snapshots"][0]
    assert after["schemas"] is base["schemas"]


@pytest.mark.parametrize("version", [1, 2])
def test_result_parses_with_pyiceberg(version):
    updates = [
        update for update in EVERYTHING if version == 2 or update["action"] not in ("add-spec", "set-default-spec")
    ]
    if version == 1:
        updates = [add(snapshot(8)) if update["action"] == "add-snapshot" else update for update in updates]
    after = commit(append(append(table(version), 1), 2), *updates, previous_location="s3://lake/v1.json")
    parsed = TableMetadataUtil.parse_raw(json.dumps(after))
    assert parsed.format_version == version
    assert parsed.current_snapshot_id == 8
    assert parsed.schema().find_field("size").field_id == 9
    assert set(parsed.refs) == {"main", "tag"}
    assert parsed.metadata_log[0].metadata_file == "s3://lake/v1.json"


def test_table_of_an_old_writer():
    old = {
        "format-version": 1,
        "table-uuid": UUID,
        "location": "s3://lake/old",
        "last-updated-ms": NOW,
        "last-column-id": 3,
        "schema": EVENTS,
        "partition-spec": [partition_field(2, "day", "at_day")],
        "current-snapshot-id": 4,
        "snapshots": [snapshot(4)],
    }
    assert apply_updates(old, [], now_ms=NOW) is old
    after = commit(old, set_properties(a="b"))
    assert after["schemas"] == [{**EVENTS, "schema-id": 0}]
    assert after["schema"] == after["schemas"][0]
    assert after["partition-specs"][0]["fields"][0]["field-id"] == 1000
    assert after["partition-spec"] == after["partition-specs"][0]["fields"]
    assert after["last-partition-id"] == 1000
    assert after["refs"] == {"main": {"snapshot-id": 4, "type": "branch"}}
    assert TableMetadataUtil.parse_raw(json.dumps(after)).current_snapshot_id == 4


def test_old_writer_without_a_uuid_can_be_given_one():
    old = {key: value for key, value in table(1).items() if key != "table-uuid"}
    assert commit(old, {"action": "assign-uuid", "uuid": UUID})["table-uuid"] == UUID
