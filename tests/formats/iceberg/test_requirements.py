"""What a commit requires, in the words that clients look for."""

from copy import deepcopy
from typing import Any

import pytest

from formats.iceberg.requirements import check_requirements
from metalake.errors import Conflict, Invalid
from tests.cases import each
from tests.formats.iceberg.table_samples import EVENTS, NOW, OTHER_UUID, UUID, append, commit, point, table


def holds(metadata, kind, **more):
    before = deepcopy(metadata)
    check_requirements([{"type": kind, **more}], metadata)
    assert metadata == before


def fails(metadata, kind, **more):
    with pytest.raises(Conflict) as refusal:
        check_requirements([{"type": kind, **more}], metadata)
    return refusal.value.message


def test_no_requirements():
    check_requirements([], table())
    check_requirements([], None)


def test_assert_create():
    holds(None, "assert-create")
    assert fails(table(), "assert-create") == "Requirement failed: table already exists"


def test_assert_create_is_alone():
    for others in ([{"type": "assert-create"}], [{"type": "assert-table-uuid", "uuid": UUID}]):
        for base in (None, table()):
            with pytest.raises(Invalid, match="assert-create must be the only requirement"):
                check_requirements([*others, {"type": "assert-create"}], base)


def test_assert_table_uuid():
    holds(table(), "assert-table-uuid", uuid=UUID)
    holds(table(), "assert-table-uuid", uuid=UUID.upper())
    said = fails(table(), "assert-table-uuid", uuid=OTHER_UUID)
    assert said == f"Requirement failed: UUID does not match: expected {UUID} != {OTHER_UUID}"


def test_assert_ref_snapshot_id():
    base = commit(append(table(), 7), point("v1", 7, "tag"))
    kind = "assert-ref-snapshot-id"
    holds(base, kind, ref="main", **{"snapshot-id": 7})
    holds(base, kind, ref="other", **{"snapshot-id": None})
    holds(table(), kind, ref="main")
    failed = "Requirement failed: "
    assert fails(base, kind, ref="main", **{"snapshot-id": None}) == f"{failed}branch main was created concurrently"
    assert fails(base, kind, ref="v1") == f"{failed}tag v1 was created concurrently"
    said = fails(base, kind, ref="main", **{"snapshot-id": 6})
    assert said == f"{failed}branch main has changed: expected id 6 != 7"
    said = fails(base, kind, ref="v1", **{"snapshot-id": 6})
    assert said == f"{failed}tag v1 has changed: expected id 6 != 7"
    said = fails(base, kind, ref="gone", **{"snapshot-id": 6})
    assert said == f"{failed}branch or tag gone is missing, expected 6"


@pytest.mark.parametrize(
    ("kind", "key", "known", "what"),
    [
        ("assert-last-assigned-field-id", "last-assigned-field-id", 3, "last assigned field id"),
        ("assert-current-schema-id", "current-schema-id", 0, "current schema"),
        ("assert-last-assigned-partition-id", "last-assigned-partition-id", 1000, "last assigned partition id"),
        ("assert-default-spec-id", "default-spec-id", 0, "default partition spec"),
        ("assert-default-sort-order-id", "default-sort-order-id", 0, "default sort order"),
    ],
)
def test_assert_a_number(kind, key, known, what):
    holds(table(), kind, **{key: known})
    assert fails(table(), kind, **{key: 42}) == f"Requirement failed: {what} changed: expected id 42 != {known}"
    malformed: list[Any] = [None, "0", True, 1.5, [], {}]
    for wrong in malformed:
        with pytest.raises(Invalid, match=f"{key} .*'{kind}', requirements.0."):
            check_requirements([{"type": kind, key: wrong}], table())


@each(
    "requirements, said",
    [
        ([{"type": "assert-moon-phase"}], "Unknown requirement ('assert-moon-phase', requirements[0])"),
        ([{"type": "assert-view-uuid", "uuid": UUID}], "Unknown requirement"),
        ([{}], "type is required (requirements[0])"),
        ([{"type": {}}], "type must be a string"),
        ([[]], "a requirement must be an object"),
        ([{"type": "assert-table-uuid"}], "uuid is required"),
        ([{"type": "assert-table-uuid", "uuid": 5}], "uuid must be a string"),
        ([{"type": "assert-ref-snapshot-id"}], "ref is required"),
        ([{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": "7"}], "snapshot-id must be a whole number"),
        (None, "requirements must be a list"),
        ("x", "requirements must be a list"),
    ],
)
def test_malformed_requirement_is_refused(requirements, said):
    for base in (table(), None):
        with pytest.raises(Invalid) as refusal:
            check_requirements(requirements, base)
        assert said in refusal.value.message


def test_unknown_requirement_is_refused_before_any_is_compared():
    stale = {"type": "assert-current-schema-id", "current-schema-id": 9}
    with pytest.raises(Invalid):
        check_requirements([stale, {"type": "assert-moon-phase"}], table())


def test_the_first_that_does_not_hold_is_told():
    stale = {"type": "assert-current-schema-id", "current-schema-id": 9}
    with pytest.raises(Conflict, match="current schema changed"):
        check_requirements([stale, {"type": "assert-default-spec-id", "default-spec-id": 9}], table())


def test_no_table_to_compare_with():
    assert fails(None, "assert-table-uuid", uuid=UUID) == "Requirement failed: table does not exist"


def test_table_of_an_old_writer():
    old = {
        "format-version": 1,
        "location": "s3://lake/old",
        "last-updated-ms": NOW,
        "last-column-id": 3,
        "schema": EVENTS,
        "partition-spec": [],
        "current-snapshot-id": 4,
        "snapshots": [],
    }
    holds(old, "assert-ref-snapshot-id", ref="main", **{"snapshot-id": 4})
    holds(old, "assert-current-schema-id", **{"current-schema-id": 0})
    holds(old, "assert-last-assigned-partition-id", **{"last-assigned-partition-id": 999})
    assert "expected None !=" in fails(old, "assert-table-uuid", uuid=UUID)
