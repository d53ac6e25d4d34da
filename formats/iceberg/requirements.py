"""Checks the requirements of a commit against a table or view.

Source: Iceberg REST specification, "TableRequirement" and "ViewRequirement".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from formats.iceberg.defaults import fill_in
from formats.iceberg.parsing import Json, as_list, as_object, get_int, get_long, get_text, has
from metalake.errors import Conflict, Invalid

Check = Callable[[Json], None]
Reader = Callable[[Json], Check]

ASSERT_CREATE = "assert-create"

# type -> (key of the requirement, key of the metadata, what changed)
_NUMBERS = {
    "assert-last-assigned-field-id": ("last-assigned-field-id", "last-column-id", "last assigned field id"),
    "assert-current-schema-id": ("current-schema-id", "current-schema-id", "current schema"),
    "assert-last-assigned-partition-id": (
        "last-assigned-partition-id",
        "last-partition-id",
        "last assigned partition id",
    ),
    "assert-default-spec-id": ("default-spec-id", "default-spec-id", "default partition spec"),
    "assert-default-sort-order-id": ("default-sort-order-id", "default-sort-order-id", "default sort order"),
}


def check_requirements(requirements: list[dict[str, Any]], base: dict[str, Any] | None) -> None:
    """Check a commit's requirements against the table's metadata `base`; None if there is no table.

    Raises Invalid for an unknown or malformed requirement, or assert-create with others, before anything is compared;
    Conflict for the first requirement that fails, with the message of the reference implementation.
    """
    as_list(requirements, "requirements")
    checks = [_read(position, requirement, _reader) for position, requirement in enumerate(requirements)]
    creates = any(requirement["type"] == ASSERT_CREATE for requirement in requirements)
    if creates and len(requirements) > 1:
        raise Invalid("assert-create must be the only requirement")
    if creates:
        if base is not None:
            raise _failed("table already exists")
        return
    if checks and base is None:
        raise _failed("table does not exist")
    if checks and base is not None:
        metadata = fill_in(base)
        for check in checks:
            check(metadata)


def check_view_requirements(requirements: list[dict[str, Any]], base: dict[str, Any]) -> None:
    """Check a commit's requirements against the view's metadata `base`.

    Raises Invalid for an unknown or malformed requirement before anything is compared; Conflict for another uuid.
    """
    as_list(requirements, "requirements")
    checks = [_read(position, requirement, _view_reader) for position, requirement in enumerate(requirements)]
    for check in checks:
        check(base)


def _read(position: int, requirement: object, reader: Callable[[str], Reader]) -> Check:
    kind = None
    try:
        checked = as_object(requirement, "a requirement")
        kind = get_text(checked, "type")
        return reader(kind)(checked)
    except Invalid as error:
        named = f"{kind[:100]!r}, " if kind else ""
        raise type(error)(f"{error.message} ({named}requirements[{position}])", kind=error.kind) from error


def _view_reader(kind: str) -> Reader:
    if kind == "assert-view-uuid":
        return _view_uuid
    raise Invalid("Unknown requirement of a view")


def _reader(kind: str) -> Reader:
    if kind in _NUMBERS:
        return _number
    if kind == ASSERT_CREATE:
        return _nothing_more
    if kind == "assert-table-uuid":
        return _table_uuid
    if kind == "assert-ref-snapshot-id":
        return _ref_snapshot_id
    raise Invalid("Unknown requirement")


def _nothing_more(_requirement: Json) -> Check:
    return lambda _metadata: None


def _number(requirement: Json) -> Check:
    key, metadata_key, what = _NUMBERS[requirement["type"]]
    expected = get_int(requirement, key)

    def check(metadata: Json) -> None:
        if metadata[metadata_key] != expected:
            raise _failed(f"{what} changed: expected id {expected} != {metadata[metadata_key]}")

    return check


def _table_uuid(requirement: Json) -> Check:
    return _uuid(requirement, "table-uuid", "UUID")


def _view_uuid(requirement: Json) -> Check:
    return _uuid(requirement, "view-uuid", "view UUID")


def _uuid(requirement: Json, key: str, noun: str) -> Check:
    expected = get_text(requirement, "uuid")

    def check(metadata: Json) -> None:
        known = metadata.get(key)
        if known is None or known.lower() != expected.lower():
            raise _failed(f"{noun} does not match: expected {known} != {expected}")

    return check


def _ref_snapshot_id(requirement: Json) -> Check:
    name = get_text(requirement, "ref")
    # Absent means null: some clients omit nulls.
    expected = get_long(requirement, "snapshot-id") if has(requirement, "snapshot-id") else None

    def check(metadata: Json) -> None:
        ref = metadata["refs"].get(name)
        if ref is None and expected is not None:
            raise _failed(f"branch or tag {name} is missing, expected {expected}")
        if ref is not None and expected is None:
            raise _failed(f"{ref['type']} {name} was created concurrently")
        if ref is not None and ref["snapshot-id"] != expected:
            raise _failed(f"{ref['type']} {name} has changed: expected id {expected} != {ref['snapshot-id']}")

    return check


def _failed(reason: str) -> Conflict:
    return Conflict(f"Requirement failed: {reason}")
