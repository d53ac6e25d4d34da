"""A real PyIceberg client against a real server: what its users do all day."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    TableAlreadyExistsError,
    UnauthorizedError,
    ViewAlreadyExistsError,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType, StructType, TimestampType
from pyiceberg.view.metadata import ViewVersion

from tests.servers import MetalakeServer

COLUMNS = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "name", StringType()),
    NestedField(3, "at", TimestampType()),
    NestedField(4, "place", StructType(NestedField(5, "city", StringType()))),
    identifier_field_ids=[1],
)
ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", "b", "c"]})
MORE_ROWS = pa.table({"id": pa.array([4], pa.int64()), "name": ["d"]})


def connect(server: MetalakeServer, **properties: str) -> RestCatalog:
    login = {"username": "admin", "password": server.admin_password}
    return RestCatalog(
        "lake",
        uri=f"{server.url}/iceberg/demo",
        warehouse="lake",
        **{"auth": {"type": "basic", "basic": login}, **properties},  # type: ignore[arg-type]
    )


@pytest.fixture(scope="module")
def catalog(metalake_server: MetalakeServer) -> RestCatalog:
    return connect(metalake_server)


@pytest.fixture
def home(catalog: RestCatalog) -> Iterator[tuple[str, str]]:
    """A nested namespace of the test's own."""
    levels = (f"top {uuid4().hex}", "in/side")
    catalog.create_namespace(levels, {"owner": "tests"})
    yield levels


def test_namespaces(catalog: RestCatalog, home: tuple[str, str]) -> None:
    top, _ = home
    assert (top,) in catalog.list_namespaces()
    assert catalog.list_namespaces((top,)) == [home]
    assert catalog.list_namespaces(home) == []
    properties = catalog.load_namespace_properties(home)
    assert properties.pop("location").startswith("file:///")
    assert properties == {"owner": "tests"}
    summary = catalog.update_namespace_properties(home, {"nothing", "owner"}, {"k": "v"})
    assert (summary.removed, summary.updated, summary.missing) == (["owner"], ["k"], ["nothing"])
    assert catalog.namespace_exists(home)
    assert not catalog.namespace_exists((top, "other"))
    with pytest.raises(NamespaceAlreadyExistsError):
        catalog.create_namespace(home)
    catalog.create_namespace_if_not_exists(home)
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace((top,))
    catalog.drop_namespace(home)
    catalog.drop_namespace((top,))
    with pytest.raises(NoSuchNamespaceError):
        catalog.load_namespace_properties((top,))
    with pytest.raises(NoSuchNamespaceError):
        catalog.list_namespaces((top,))


def test_write_and_read_back(catalog: RestCatalog, home: tuple[str, str]) -> None:
    table = catalog.create_table((*home, "t"), ROWS.schema)
    table.append(ROWS)
    assert catalog.load_table((*home, "t")).scan().to_arrow().sort_by("id") == ROWS
    table.append(MORE_ROWS)
    table.delete("id = 2")
    assert sorted(catalog.load_table((*home, "t")).scan().to_arrow()["id"].to_pylist()) == [1, 3, 4]
    table.overwrite(MORE_ROWS)
    assert catalog.load_table((*home, "t")).scan().to_arrow() == MORE_ROWS


def test_partitions_order_and_evolution(catalog: RestCatalog, home: tuple[str, str]) -> None:
    table = catalog.create_table(
        (*home, "t"),
        COLUMNS,
        partition_spec=PartitionSpec(PartitionField(3, 1000, DayTransform(), "day")),
        sort_order=SortOrder(SortField(2, IdentityTransform())),
        properties={"k": "v", "format-version": "2"},
    )
    assert table.spec().fields[0].name == "day"
    assert table.properties["k"] == "v"
    with table.update_schema() as change:
        change.add_column("extra", StringType(), doc="later")
        change.rename_column("name", "label")
        change.add_column(("place", "zip"), StringType())
    with table.update_spec() as spec:
        spec.add_identity("extra")
    with table.transaction() as transaction:
        transaction.set_properties(more="1")
        transaction.remove_properties("k")
    fresh = catalog.load_table((*home, "t"))
    assert [column.name for column in fresh.schema().columns] == ["id", "label", "at", "place", "extra"]
    assert fresh.schema().find_field("place.zip").field_type == StringType()
    assert [field.name for field in fresh.spec().fields] == ["day", "extra"]
    assert fresh.properties["more"] == "1"
    assert "k" not in fresh.properties
    assert fresh.metadata == table.metadata


def test_time_travel_branches_and_tags(catalog: RestCatalog, home: tuple[str, str]) -> None:
    table = catalog.create_table((*home, "t"), ROWS.schema)
    table.append(ROWS)
    first = table.metadata.current_snapshot_id
    assert first is not None
    table.append(MORE_ROWS)
    with table.manage_snapshots() as refs:
        refs.create_tag(first, "first").create_branch(first, "aside")
    fresh = catalog.load_table((*home, "t"))
    assert fresh.scan(snapshot_id=first).to_arrow().num_rows == 3
    assert fresh.scan().to_arrow().num_rows == 4
    assert set(fresh.metadata.refs) == {"main", "first", "aside"}
    assert fresh.history()[0].snapshot_id == first


def test_referenced_snapshots(metalake_server: MetalakeServer, catalog: RestCatalog, home: tuple[str, str]) -> None:
    table = catalog.create_table((*home, "t"), ROWS.schema)
    table.append(ROWS)
    table.append(MORE_ROWS)
    sparing = connect(metalake_server, **{"snapshot-loading-mode": "refs"})
    assert len(sparing.load_table((*home, "t")).metadata.snapshots) == 1
    assert len(catalog.load_table((*home, "t")).metadata.snapshots) == 2
    assert sparing.load_table((*home, "t")).scan().to_arrow().num_rows == 4


def test_two_writers(catalog: RestCatalog, home: tuple[str, str]) -> None:
    """A stale schema change is told so; a stale append is retried by the client on the new state."""
    mine = catalog.create_table((*home, "t"), ROWS.schema)
    theirs = catalog.load_table((*home, "t"))
    with theirs.update_schema() as change:
        change.add_column("theirs", StringType())
    with pytest.raises(CommitFailedException, match="Requirement failed"), mine.update_schema() as change:
        change.add_column("mine", StringType())
    assert "mine" not in catalog.load_table((*home, "t")).schema().column_names


def test_rename_exists_and_list(catalog: RestCatalog, home: tuple[str, str]) -> None:
    table = catalog.create_table((*home, "a b"), ROWS.schema)
    table.append(ROWS)
    assert catalog.list_tables(home) == [(*home, "a b")]
    moved = catalog.rename_table((*home, "a b"), (home[0], "c%d"))
    assert moved.metadata == table.metadata
    assert not catalog.table_exists((*home, "a b"))
    assert catalog.table_exists((home[0], "c%d"))
    assert catalog.list_tables(home) == []
    assert catalog.load_table((home[0], "c%d")).scan().to_arrow().num_rows == 3
    with pytest.raises(NoSuchTableError):
        catalog.rename_table((*home, "a b"), (*home, "x"))
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table((home[0], "c%d"), ROWS.schema)
    assert catalog.create_table_if_not_exists((home[0], "c%d"), ROWS.schema).metadata == table.metadata


def test_drop_register_and_purge(catalog: RestCatalog, home: tuple[str, str]) -> None:
    table = catalog.create_table((*home, "t"), ROWS.schema)
    table.append(ROWS)
    catalog.drop_table((*home, "t"))
    with pytest.raises(NoSuchTableError):
        catalog.load_table((*home, "t"))
    back = catalog.register_table((*home, "back"), table.metadata_location)
    assert back.scan().to_arrow().num_rows == 3
    folder = Path(back.location().removeprefix("file://"))
    assert any(folder.rglob("*.parquet"))
    catalog.purge_table((*home, "back"))
    assert not catalog.table_exists((*home, "back"))
    with pytest.raises(NoSuchTableError):
        catalog.drop_table((*home, "back"))


def test_create_in_a_transaction(catalog: RestCatalog, home: tuple[str, str]) -> None:
    with catalog.create_table_transaction((*home, "t"), ROWS.schema, properties={"k": "v"}) as transaction:
        with transaction.update_schema() as change:
            change.add_column("extra", StringType())
        assert not catalog.table_exists((*home, "t"))
    table = catalog.load_table((*home, "t"))
    assert table.schema().column_names == ["id", "name", "extra"]
    assert table.properties["k"] == "v"


def test_a_creation_that_lost(catalog: RestCatalog, home: tuple[str, str]) -> None:
    transaction = catalog.create_table_transaction((*home, "t"), ROWS.schema)
    catalog.create_table((*home, "t"), ROWS.schema)
    with pytest.raises(CommitFailedException, match="Requirement failed: table already exists"):
        transaction.commit_transaction()


def test_lists_by_pages(metalake_server: MetalakeServer, catalog: RestCatalog, home: tuple[str, str]) -> None:
    for number in range(5):
        catalog.create_table((*home, f"t{number}"), ROWS.schema)
    paging = connect(metalake_server, **{"rest-page-size": "2"})
    assert paging.list_tables(home) == [(*home, f"t{number}") for number in range(5)]


def test_a_namespace_that_is_missing(catalog: RestCatalog) -> None:
    with pytest.raises(NoSuchNamespaceError):
        catalog.create_table(("nowhere at all", "t"), ROWS.schema)
    with pytest.raises(NoSuchNamespaceError):
        catalog.list_tables("nowhere at all")


def test_views(catalog: RestCatalog, home: tuple[str, str]) -> None:
    late = (*home, "late")
    query = {"type": "sql", "sql": "SELECT id, name FROM flights", "dialect": "spark"}
    version = ViewVersion.model_validate(
        {
            "version-id": 1,
            "timestamp-ms": 1_700_000_000_000,
            "schema-id": 1,
            "summary": {"engine": "pyiceberg"},
            "default-namespace": list(home),
            "representations": [query, {**query, "dialect": "trino"}],
        }
    )
    made = catalog.create_view(late, COLUMNS, version, properties={"comment": "Late flights"})
    assert made.metadata.properties == {"comment": "Late flights"}
    loaded = catalog.load_view(late)
    assert loaded.metadata == made.metadata and loaded.schema().fields == COLUMNS.fields
    assert [each.root.dialect for each in loaded.current_version().representations] == ["spark", "trino"]
    assert catalog.list_views(home) == [late] and catalog.list_tables(home) == []
    assert catalog.view_exists(late) and not catalog.view_exists((*home, "other"))
    with pytest.raises(ViewAlreadyExistsError):
        catalog.create_view(late, COLUMNS, version)
    location = files_of_view(made.metadata.location)
    catalog.drop_view(late)
    with pytest.raises(NoSuchViewError):
        catalog.load_view(late)
    back = catalog.register_view((*home, "back"), location)
    assert back.metadata == made.metadata
    catalog.drop_view((*home, "back"))


def files_of_view(location: str) -> str:
    """The only metadata file of a view."""
    (file,) = (Path(location.removeprefix("file://")) / "metadata").iterdir()
    return file.as_uri()


def test_a_wrong_password(metalake_server: MetalakeServer) -> None:
    login = {"username": "admin", "password": "wrong"}
    with pytest.raises(UnauthorizedError):
        connect(metalake_server, auth={"type": "basic", "basic": login})  # type: ignore[arg-type]
