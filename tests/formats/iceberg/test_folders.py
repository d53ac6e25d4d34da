"""The folders of schemas and tables, and the ground of tables that name a place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.iceberg.folders import Ground, schema_folder, table_folder
from formats.iceberg.locations import check_allowed, is_under
from tests.cases import each

UUID = "6f1e2b1c-1111-4222-8333-444455556666"
names = st.text(min_size=1, max_size=255)
paths = st.lists(names, min_size=1, max_size=16)


def test_names_are_readable() -> None:
    assert schema_folder("s3://b/w/", ["sales", "eu.west"]) == "s3://b/w/sales/eu.west"
    assert table_folder("s3://b/w/sales", "orders", UUID) == f"s3://b/w/sales/orders-{UUID}"
    assert table_folder("/srv", "orders", UUID) == f"file:///srv/orders-{UUID}"


@given(paths, names)
def test_any_name_gives_a_place_that_is_allowed(levels: list[str], name: str) -> None:
    place = table_folder(schema_folder("s3://b/w", levels), name, UUID)
    assert check_allowed(place, ["s3://b/w"], file_roots=[]) == place
    assert len(place) <= 720 and place.endswith(UUID)


@given(paths, paths)
def test_no_two_schemas_have_one_folder_and_none_lies_on_the_ground_of_tables(
    mine: list[str], other: list[str]
) -> None:
    folder, theirs = schema_folder("s3://b/w", mine), schema_folder("s3://b/w", other)
    assert (folder == theirs) == (mine == other)
    ground = Ground(shared=(folder,))
    assert ground.holds(table_folder(folder, "t", UUID))
    assert not ground.holds(theirs)
    if mine != other:
        assert not ground.holds(table_folder(theirs, "t", UUID))


@pytest.mark.parametrize("alike", [("a b", "a_b", "a/b", "_a_b_", "a-b"), ("a" * 64, "a" * 65, "a" * 66)])
def test_names_that_are_cleaned_alike_are_told_apart(alike: tuple[str, ...]) -> None:
    folders = {schema_folder("s3://b", [name]) for name in alike}
    assert len(folders) == len(alike)
    assert not any("-" in folder for folder in folders)


@each("name", ["..", ".", "_", "", "a/b", "../x", "*", "${x}", "'", "a\0b", "\u202e", "%2e%2e", "._."])
def test_no_name_is_a_path_or_a_policy(name: str) -> None:
    folder = schema_folder("s3://b", [name]).split("/")[3]
    assert folder and set(folder) <= set("abx2e_~0123456789cdf")
    assert folder not in ("..", ".") and folder[0] not in "._~"


def test_no_schema_can_be_named_to_lie_inside_a_table() -> None:
    table = table_folder(schema_folder("s3://b", ["s"]), "t", UUID)
    other = schema_folder("s3://b", ["s", f"t-{UUID}"])
    assert not is_under(other, table) and not is_under(table, other)
    with pytest.raises(ValueError):
        table_folder("s3://b", "t", "../../x")


GROUND = Ground(own=("s3://b/own",), shared=("s3://b/shared",), opened=("s3a://c/open",), apart=("s3://b/own/hr",))


@each(
    "place, held",
    [
        *[("s3://b/own/x", True), ("s3a://b/own/x/y", True), ("s3://b/own", False), ("s3://b/own2/x", False)],
        *[("s3://b/own/hr", False), ("s3://b/own/hr/x", False), ("s3://b/own/hr2", True), ("s3://b", False)],
        *[("s3://b/shared/a-1", True), ("s3://b/shared/a-1/b", True), ("s3://b/shared/a", False)],
        *[("s3://b/shared/a/b-1", False), ("s3://b/shared", False)],
        *[("s3://c/open", True), ("s3://c/open/x", True), ("s3://c", False), ("s3://d/open", False)],
    ],
)
def test_the_ground_of_a_schemas_tables(place: str, held: bool) -> None:
    assert GROUND.holds(place) is held


def test_a_link_does_not_lead_off_the_ground(tmp_path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "hr").mkdir()
    (tmp_path / "own" / "link").symlink_to(tmp_path / "hr")
    ground = Ground(own=(f"file://{tmp_path}/own", "dbfs:/nobody/could/name"))
    assert ground.holds(f"file://{tmp_path}/own/t")
    assert not ground.holds(f"file://{tmp_path}/own/link/t")
