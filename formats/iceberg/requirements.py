"""The requirements of a commit on the table it was prepared for (Iceberg REST specification, "TableRequirement")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from formats.iceberg.legacy import fill_in
from formats.iceberg.parsing import Json, as_list, as_object, get_int, get_long, get_text, has
from metalake.errors import Conflict, Invalid

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
    """Check a commit's requirements against the table's metadata `base`; None when there is no table.

    Raises Invalid for an unknown or malformed requirement, or one beside assert-create, before anything is compared;
    Conflict for the first requirement that fails, with the message of the reference implementation.
    """
    as_list(requirements, "requirements")
    checks = [_read(position, requirement) for position, requirement in enumerate(requirements)]
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


def _read(position: int, requirement: object) -> Callable[[Json], None]:
    kind = None
    try:
        checked = as_object(requirement, "a requirement")
        kind = get_text(checked, "type")
        return _reader(kind)(checked)
    except Invalid as error:
        named = f"{kind[:100]!r}, " if kind else ""
        raise type(error)(f"{error.message} ({named}requirements[{position}])", kind=error.kind) from error


def _reader(kind: str) -> Callable[[Json], Callable[[Json], None]]:
    if kind in _NUMBERS:
        return _number
    if kind == ASSERT_CREATE:
        return _nothing_more
    if kind == "assert-table-uuid":
        return _table_uuid
    if kind == "assert-ref-snapshot-id":
        return _ref_snapshot_id
    raise Invalid("Unknown requirement")


def _nothing_more(_requirement: Json) -> Callable[[Json], None]:
    return lambda _metadata: None


def _number(requirement: Json) -> Callable[[Json], None]:
    key, metadata_key, what = _NUMBERS[requirement["type"]]
    expected = get_int(requirement, key)

    def check(metadata: Json) -> None:
        if metadata[metadata_key] != expected:
            raise _failed(f"{what} changed: expected id {expected} != {metadata[metadata_key]}")

    return check


def _table_uuid(requirement: Json) -> Callable[[Json], None]:
    expected = get_text(requirement, "uuid")

    def check(metadata: Json) -> None:
        known = metadata.get("table-uuid")
        if known is None or known.lower() != expected.lower():
            raise _failed(f"UUID does not match: expected {known} != {expected}")

    return check


def _ref_snapshot_id(requirement: Json) -> Callable[[Json], None]:
    name = get_text(requirement, "ref")
    # Absent means null: some clients leave nulls out.
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
