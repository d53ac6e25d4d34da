"""Snapshots, branches, tags, the snapshot log, and what goes with a removed snapshot."""

import signal

import pytest

from formats.iceberg.builder import apply_updates
from metalake.errors import Conflict, Invalid
from tests.cases import each
from tests.formats.iceberg.table_samples import (
    NOW,
    add,
    append,
    commit,
    partition_field,
    point,
    snapshot,
    sort_field,
    table,
)


def remove(*numbers):
    return {"action": "remove-snapshots", "snapshot-ids": list(numbers)}


def remove_ref(name):
    return {"action": "remove-snapshot-ref", "ref-name": name}


def statistics(number, path="s3://lake/events/stats.puffin"):
    return {
        "snapshot-id": number,
        "statistics-path": path,
        "file-size-in-bytes": 10,
        "file-footer-size-in-bytes": 2,
        "blob-metadata": [
            {"type": "apache-datasketches-theta-v1", "snapshot-id": number, "sequence-number": 1, "fields": [1]}
        ],
    }


def logged(metadata):
    return [entry["snapshot-id"] for entry in metadata["snapshot-log"]]


def three_appends():
    return append(append(append(table(), 1), 2), 3)


def test_append():
    after = append(table(), 1)
    assert after["snapshots"] == [snapshot(1, sequence=1)]
    assert after["current-snapshot-id"] == 1
    assert after["refs"] == {"main": {"type": "branch", "snapshot-id": 1}}
    assert after["snapshot-log"] == [{"snapshot-id": 1, "timestamp-ms": NOW + 1}]
    assert after["last-updated-ms"] == NOW + 1
    assert after["last-sequence-number"] == 1


def test_version_1_has_no_sequence_numbers():
    after = append(append(table(1), 1), 2)
    assert "last-sequence-number" not in after
    with pytest.raises(Invalid, match="Sequence number must be 0 in v1"):
        commit(after, add(snapshot(3, sequence=1)))


def test_version_1_may_list_its_manifests():
    made = snapshot(1)
    del made["manifest-list"], made["summary"]
    assert commit(table(1), add({**made, "manifests": ["s3://lake/m.avro"]}))["snapshots"]


def test_same_snapshot_twice():
    with pytest.raises(Invalid, match="Snapshot already exists for id: 1"):
        commit(append(table(), 1), add(snapshot(1, sequence=2)))


def test_stale_sequence_number_is_a_conflict():
    base = append(append(table(), 1), 2)
    with pytest.raises(Conflict) as refusal:
        commit(base, add(snapshot(3, sequence=2, parent=1)))
    assert refusal.value.message == (
        "Validation failed, please retry: Cannot add snapshot with sequence number 2 older than last sequence number 2"
    )


def test_snapshot_without_a_parent_may_repeat_a_sequence_number():
    after = commit(append(append(table(), 1), 2), add(snapshot(3, sequence=1)), point("main", 3))
    assert after["last-sequence-number"] == 2


def test_row_ids_of_version_3():
    first = commit(table(3), add(snapshot(1, sequence=1, **{"first-row-id": 0, "added-rows": 40})), point("main", 1))
    assert first["next-row-id"] == 40
    with pytest.raises(Conflict, match=r"please retry: .*first-row-id is behind table next-row-id: 39 < 40"):
        commit(first, add(snapshot(2, sequence=2, parent=1, **{"first-row-id": 39, "added-rows": 1})))
    with pytest.raises(Invalid, match="first-row-id is null"):
        commit(first, add(snapshot(2, sequence=2, parent=1)))
    with pytest.raises(Invalid, match="added-rows"):
        commit(first, add(snapshot(2, sequence=2, parent=1, **{"first-row-id": 40})))
    with pytest.raises(Invalid, match=r"first-row-id \+ added-rows must be between"):
        commit(first, add(snapshot(2, sequence=2, parent=1, **{"first-row-id": 2**63 - 1, "added-rows": 1})))
    ahead = commit(first, add(snapshot(2, sequence=2, parent=1, **{"first-row-id": 50, "added-rows": 5})))
    assert ahead["next-row-id"] == 55


@pytest.mark.parametrize("key", ["snapshot-id", "timestamp-ms", "manifest-list", "summary"])
def test_snapshot_lacks_what_it_needs(key):
    made = snapshot(1, sequence=1)
    del made[key]
    with pytest.raises(Invalid, match=f"{key} of the snapshot is required .'add-snapshot', updates.0.."):
        commit(table(), add(made))


@each(
    "wrong",
    [
        {"snapshot-id": "1"},
        {"snapshot-id": True},
        {"snapshot-id": -1},
        {"snapshot-id": 2**63},
        {"timestamp-ms": 1.5},
        {"timestamp-ms": float("nan")},
        {"manifest-list": ["x"]},
        {"summary": {}},
        {"summary": {"operation": "merge"}},
        {"summary": {"operation": "append", "added-files": 3}},
        {"parent-snapshot-id": "1"},
        {"schema-id": 1.0},
        {"key-id": 4},
    ],
)
def test_malformed_snapshot_is_refused(wrong):
    with pytest.raises(Invalid) as refusal:
        commit(table(), add(snapshot(1, sequence=1) | wrong))
    assert next(iter(wrong)) in refusal.value.message


def test_unknown_fields_of_a_snapshot_are_kept():
    made = snapshot(1, sequence=1, **{"key-id": "k1", "future": {"a": [1]}})
    assert commit(table(), add(made))["snapshots"] == [made]


def test_snapshot_far_older_than_the_log_is_refused():
    base = append(table(), 100_000)
    late = snapshot(2, sequence=2, parent=100_000)
    with pytest.raises(Invalid, match="Invalid snapshot timestamp"):
        commit(base, add(late), point("main", 2))
    near = commit(base, add(late | {"timestamp-ms": NOW + 50_000}), point("main", 2))
    assert near["last-updated-ms"] == NOW + 100_000


def test_branch_and_tag():
    base = append(table(), 1)
    after = commit(
        base,
        point("audit", 1, **{"min-snapshots-to-keep": 2, "max-snapshot-age-ms": 9, "max-ref-age-ms": 8}),
        point("v1", 1, "tag", **{"max-ref-age-ms": 7, "future": "x"}),
    )
    assert after["refs"]["v1"] == {"type": "tag", "snapshot-id": 1, "max-ref-age-ms": 7, "future": "x"}
    assert after["refs"]["audit"]["min-snapshots-to-keep"] == 2
    assert after["snapshot-log"] == base["snapshot-log"]
    assert commit(after, point("v1", 1, "tag", **{"max-ref-age-ms": 7, "future": "x"})) is after


@each(
    "wrong, said",
    [
        (point("main", 1, "tag"), "main must be a branch"),
        (point("b", 9), "Cannot set b to unknown snapshot: 9"),
        (point("b", 1, "fork"), "'branch' or 'tag'"),
        (point("b", 1, **{"min-snapshots-to-keep": 0}), "min-snapshots-to-keep"),
        (point("b", 1, **{"min-snapshots-to-keep": True}), "min-snapshots-to-keep"),
        (point("b", 1, **{"max-ref-age-ms": 0}), "max-ref-age-ms"),
        (point("b", 1, **{"max-snapshot-age-ms": -5}), "max-snapshot-age-ms"),
        (point("t", 1, "tag", **{"min-snapshots-to-keep": 1}), "Tags do not support setting min-snapshots-to-keep"),
        (point("t", 1, "tag", **{"max-snapshot-age-ms": 1}), "Tags do not support setting max-snapshot-age-ms"),
        (point(None, 1), "ref-name is required"),
        (point("b", None), "snapshot-id is required"),
        (point("b", "1"), "snapshot-id must be a whole number"),
    ],
)
def test_wrong_ref_is_refused(wrong, said):
    with pytest.raises(Invalid) as refusal:
        commit(append(table(), 1), wrong)
    assert said in refusal.value.message


def test_roll_back_is_logged_at_the_time_of_the_server():
    after = commit(three_appends(), point("main", 1), now_ms=NOW + 500)
    assert after["snapshot-log"][-1] == {"snapshot-id": 1, "timestamp-ms": NOW + 500}
    assert after["last-updated-ms"] == NOW + 500


def test_a_server_clock_behind_the_writers_refuses_nothing():
    after = commit(three_appends(), point("main", 1), now_ms=NOW - 10_000_000)
    assert after["snapshot-log"][-1]["timestamp-ms"] == NOW + 3
    assert after["last-updated-ms"] == NOW + 3


def test_only_the_last_of_several_new_snapshots_is_logged():
    after = commit(
        append(table(), 1),
        add(snapshot(2, sequence=2, parent=1)),
        point("main", 2),
        add(snapshot(3, sequence=3, parent=2)),
        point("main", 3),
    )
    assert logged(after) == [1, 3]
    assert [each["snapshot-id"] for each in after["snapshots"]] == [1, 2, 3]


def test_removing_the_main_branch():
    after = commit(append(table(), 1), remove_ref("main"))
    assert after["current-snapshot-id"] == -1
    assert after["refs"] == {}
    empty_v3 = commit(
        commit(append(table(), 1), {"action": "upgrade-format-version", "format-version": 3}), remove_ref("main")
    )
    assert empty_v3["current-snapshot-id"] is None


def test_removing_a_ref_that_is_not_there():
    base = append(table(), 1)
    assert commit(base, remove_ref("ghost")) is base


def test_removed_snapshots_take_refs_and_statistics_along():
    base = commit(
        three_appends(),
        point("old", 1, "tag"),
        {"action": "set-statistics", "statistics": statistics(1)},
        {"action": "set-statistics", "statistics": statistics(3)},
        {"action": "set-partition-statistics", "partition-statistics": statistics(1)},
    )
    after = commit(base, remove(1, 77))
    assert [each["snapshot-id"] for each in after["snapshots"]] == [2, 3]
    assert set(after["refs"]) == {"main"}
    assert [each["snapshot-id"] for each in after["statistics"]] == [3]
    assert after["partition-statistics"] == []
    assert logged(after) == [2, 3]


def test_history_before_a_gap_is_cleared():
    assert logged(commit(three_appends(), remove(2))) == [3]


def test_removing_the_current_snapshot_empties_the_table():
    after = commit(three_appends(), remove(3))
    assert after["current-snapshot-id"] == -1
    assert after["refs"] == {}
    assert logged(after) == []


def test_removing_unknown_snapshots_changes_nothing():
    base = three_appends()
    assert commit(base, remove(8, 9)) is base
    assert commit(base, remove()) is base


SNAPSHOTS = range(1, 20_001)
LAYOUTS = range(1, 10_001)


def past_snapshots():
    known = {"snapshots": [snapshot(number) for number in SNAPSHOTS], "statistics": list(map(statistics, SNAPSHOTS))}
    tags = {f"t{number}": {"snapshot-id": number, "type": "tag"} for number in SNAPSHOTS}
    return table() | known | {"refs": tags}


MANY = {
    "snapshots": lambda: [remove(number) for number in SNAPSHOTS],
    "specs": lambda: [
        {"action": "add-spec", "spec": {"fields": [partition_field(1, f"bucket[{number}]", f"b{number}")]}}
        for number in LAYOUTS
    ],
    "orders": lambda: [
        {"action": "add-sort-order", "sort-order": {"fields": [sort_field(1, f"bucket[{number}]")]}}
        for number in LAYOUTS
    ],
}


@pytest.mark.parametrize("what", MANY)
def test_many_updates_take_as_much_longer_as_they_are_more(what):
    """Where each of them went through what there is, they took minutes."""

    def too_slow(*_):
        raise AssertionError("each update goes through what there is")

    base, updates = past_snapshots() if what == "snapshots" else table(), MANY[what]()
    before = signal.signal(signal.SIGALRM, too_slow)
    signal.alarm(45)
    try:
        after = apply_updates(base, updates, now_ms=NOW)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    if what == "snapshots":
        assert (after["snapshots"], after["statistics"], after["refs"]) == ([], [], {})
    else:
        assert len(after["partition-specs"]) + len(after["sort-orders"]) == len(LAYOUTS) + 2


def test_statistics_are_kept_one_for_each_snapshot():
    base = commit(three_appends(), {"action": "set-statistics", "statistics": statistics(1)})
    newer = statistics(1, "s3://lake/events/newer.puffin")
    after = commit(base, {"action": "set-statistics", "snapshot-id": 1, "statistics": newer})
    assert after["statistics"] == [newer]
    assert commit(after, {"action": "set-statistics", "statistics": newer}) is after
    assert commit(after, {"action": "remove-statistics", "snapshot-id": 1})["statistics"] == []
    assert commit(after, {"action": "remove-statistics", "snapshot-id": 2}) is after


@pytest.mark.parametrize("key", ["statistics", "partition-statistics"])
def test_two_statistics_of_a_snapshot_stay_until_that_snapshot_gets_others(key):
    a, b, c = statistics(1, "s3://lake/a"), statistics(1, "s3://lake/b"), statistics(2)
    base = three_appends() | {key: [a, c, b]}
    after = commit(base, {"action": f"set-{key}", key: statistics(3)})
    assert after[key] == [a, b, c, statistics(3)]
    assert commit(after, {"action": f"set-{key}", key: a})[key] == [c, statistics(3), a]
    assert commit(after, {"action": f"remove-{key}", "snapshot-id": 1})[key] == [c, statistics(3)]


def test_partition_statistics_are_kept_one_for_each_snapshot():
    one = {"snapshot-id": 1, "statistics-path": "s3://lake/p.parquet", "file-size-in-bytes": 4}
    base = commit(three_appends(), {"action": "set-partition-statistics", "partition-statistics": one})
    assert base["partition-statistics"] == [one]
    two = one | {"statistics-path": "s3://lake/q.parquet"}
    after = commit(base, {"action": "set-partition-statistics", "partition-statistics": two})
    assert after["partition-statistics"] == [two]
    assert commit(after, {"action": "remove-partition-statistics", "snapshot-id": 1})["partition-statistics"] == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"statistics": None},
        {"statistics": statistics(1) | {"statistics-path": 1}},
        {"statistics": statistics(1) | {"file-size-in-bytes": -1}},
        {"statistics": statistics(1) | {"blob-metadata": [1]}},
        {"statistics": statistics(1) | {"blob-metadata": [{"type": "t"}]}},
        {"statistics": statistics(1), "snapshot-id": 2},
    ],
)
def test_malformed_statistics_are_refused(wrong):
    with pytest.raises(Invalid, match=r"'set-statistics', updates\[0\]"):
        commit(three_appends(), {"action": "set-statistics", **wrong})
