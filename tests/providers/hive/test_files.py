"""Nobody has a metastore delete or move what is not theirs: Mia may make schemas and tables, and does not see `hr`.

Her schema lies where the catalog's owner or another engine put it, around what is hidden from her.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hive_metastore.ttypes import Database, FieldSchema, Partition, SerDeInfo, StorageDescriptor, Table

from authz.models import AuditEntry
from metalake.kinds import Kind
from providers import circuit_breaker
from providers.hive import files as hive_files
from providers.hive import folders as hive_folders
from tests.cases import each
from tests.catalogs.callers import Answer, Caller, update
from tests.catalogs.conftest import admin, mia  # noqa: F401 (fixtures)
from tests.demo import give
from tests.hms import HiveMetastore
from tests.iceberg_rest.world import COLUMNS as ICEBERG_COLUMNS
from tests.iceberg_rest.world import Caller as Engine
from tests.iceberg_rest.world import view_version
from tests.names import own_name
from tests.providers.hive_catalogs import TEXT, provider_on

pytestmark = pytest.mark.django_db(transaction=True)

HIVE = "metalakes/demo/catalogs/hive"
COLUMNS = [{"name": "carrier", "type": "string"}]
BY_YEAR = [{"strategy": "identity", "fieldName": ["year"]}]
MANAGED, EXTERNAL = "MANAGED_TABLE", "EXTERNAL_TABLE"
FLIGHT = "UA,12\n"
KEPT = "X-Metalake-Files-Kept"


@dataclass
class World:
    """`own` is Mia's schema, at `folder`; `hr` is hidden from her."""

    hms: HiveMetastore
    mia: Caller
    owner: Caller
    own: str
    hr: str
    folder: Path

    @property
    def tables(self) -> str:
        return f"{HIVE}/schemas/{self.own}/tables"

    def make(self, name: str, by: Caller | None = None, **properties: str) -> Answer:
        given = {key.replace("_", "-"): value for key, value in properties.items()}
        body = {"name": name, "columns": COLUMNS, "properties": given}
        return (by or self.mia).post(self.tables, body)

    def put(self, database: str, name: str, place: Path, kind: str = EXTERNAL, of_2013: Path | None = None) -> Path:
        """A table that another engine made, and its file, which may be of a partition that lies elsewhere."""
        storage = StorageDescriptor(
            cols=[FieldSchema("carrier", "string", None)],
            location=f"file://{place}",
            inputFormat=TEXT,
            serdeInfo=SerDeInfo("plain", "LazySimpleSerDe", {}),
        )
        table = Table(
            dbName=database,
            tableName=name,
            sd=storage,
            tableType=kind,
            parameters={"EXTERNAL": "TRUE"} if kind == EXTERNAL else {},
            partitionKeys=[FieldSchema("year", "string", None)] if of_2013 else [],
        )
        with self.hms.client() as client:
            client.create_table(table)
            if of_2013:
                at = StorageDescriptor(storage.cols, f"file://{of_2013}", inputFormat=TEXT, serdeInfo=storage.serdeInfo)
                client.add_partition(Partition(values=["2013"], dbName=database, tableName=name, sd=at, parameters={}))
        return flight(of_2013 or place)

    def put_database(self, place: Path) -> str:
        name = own_name("db")
        with self.hms.client() as client:
            client.create_database(Database(name=name, locationUri=place.as_uri()))
        return name


def flight(place: Path) -> Path:
    """A file of a table that lies there."""
    place.mkdir(parents=True, exist_ok=True)
    (file := place / "part-0").write_text(FLIGHT)
    return file


@pytest.fixture
def world(admin: Caller, mia: Caller, hms: HiveMetastore, settings: Any) -> Iterator[World]:  # noqa: F811
    circuit_breaker.forget_all()
    settings.METALAKE_FILE_LOCATIONS = [str(hms.warehouse)]
    folder = hms.warehouse / own_name("lake")
    names = {"metastore.uris": hms.uri, "allowed-locations": folder.as_uri()}
    body = {"name": "hive", "type": "relational", "provider": "hive", "properties": names}
    assert admin.post("metalakes/demo/catalogs", body).status == 200
    made = World(hms, mia, admin, "", "", folder)
    made.own, made.hr = made.put_database(folder), made.put_database(hms.warehouse / f"{folder.name}.hr")
    assert admin.get(f"{HIVE}/schemas/{made.own}").status == 200
    give("mia", Kind.CATALOG, "hive", "use_catalog", "create_schema")
    give("mia", Kind.SCHEMA, f"hive.{made.own}", "use_schema", "create_table", "modify_table")
    yield made
    with hms.client() as client:
        for name in {made.own, made.hr}.intersection(client.get_all_databases()):
            for table in client.get_all_tables(name):
                client.drop_table(name, table, False)
            client.drop_database(name, False, False)


def drop(world: World, table: str, *, purge: bool = False, by: Caller | None = None) -> Answer:
    return (by or world.mia).delete(f"{world.tables}/{table}{'?purge=true' if purge else ''}")


def require_kept(world: World, table: str, file: Path) -> None:
    """A purge is refused, a drop leaves the files and says so."""
    refused = drop(world, table, purge=True)
    assert refused.status == 405 and "was not purged" in refused.message
    assert world.mia.get(f"{world.tables}/{table}").status == 200
    dropped = drop(world, table)
    assert dropped["dropped"] is True and "stay" in dropped.headers[KEPT]
    said = AuditEntry.objects.get(event="table.dropped").details
    assert said["files_kept"] == dropped.headers[KEPT]
    assert file.read_text() == FLIGHT


# What a managed table is made on


def test_no_managed_table_is_made_on_a_hidden_table_s_folder(world: World) -> None:
    """Her schema lies at the parent of the folder, whose name she gives her table."""
    file = world.put(world.hr, "staff", world.folder / "staff")
    refused = world.make("staff")
    assert refused.error[:2] == (400, 1001) and "holds files already" in refused.message
    place = (world.folder / "staff").as_uri()
    assert world.make("staff", location=place, table_type=MANAGED).error[:2] == (400, 1001)
    assert drop(world, "staff", purge=True)["dropped"] is False
    assert file.read_text() == FLIGHT


def test_no_managed_table_is_made_on_what_a_dropped_table_left(world: World) -> None:
    file = flight(world.folder / "old")
    for caller in (world.mia, world.owner):
        for kind in ({}, {"table_type": EXTERNAL}):
            refused = world.make("old", caller, **kind)
            assert refused.status == 400 and "make an EXTERNAL_TABLE with that location" in refused.message
    assert world.make("old", world.owner, location=(world.folder / "old").as_uri()).status == 200
    shown = world.owner.get(f"{world.tables}/old")["table"]
    assert shown["properties"]["table-type"] == EXTERNAL, "as the owner is told"
    assert file.read_text() == FLIGHT


def test_an_empty_folder_is_free_and_a_drop_takes_what_is_the_table_s_own(world: World) -> None:
    (world.folder / "mine").mkdir(mode=0o777)
    (world.folder / "mine").chmod(0o777)
    (world.folder / "mine" / "data").mkdir()
    for purge in (False, True):
        assert world.make("mine").status == 200
        file = flight(world.folder / "mine")
        dropped = drop(world, "mine", purge=purge)
        assert dropped["dropped"] is True and KEPT not in dropped.headers
        assert not file.exists()


# What goes with a table


Later = Callable[[World, Path], Path]
LATER: dict[str, Later] = {
    "a table": lambda world, mine: world.put(world.hr, "staff", mine),
    "a table below": lambda world, mine: world.put(world.hr, "staff", mine / "staff"),
    "a managed table below": lambda world, mine: world.put(world.hr, "staff", mine / "staff", MANAGED),
    "a partition": lambda world, mine: world.put(
        world.hr, "staff", world.hms.warehouse / f"{mine.parent.name}.p", of_2013=mine
    ),
}


@pytest.mark.parametrize("what", LATER)
def test_what_came_into_a_table_s_folder_since_stays(world: World, what: str) -> None:
    """As where another engine put it, or two raced; it was never mirrored."""
    assert world.make("mine").status == 200
    require_kept(world, "mine", LATER[what](world, world.folder / "mine"))


def test_a_database_that_was_never_mirrored_keeps_its_files(world: World) -> None:
    assert world.make("mine").status == 200
    inner = world.put_database(world.folder / "mine" / "inner")
    file = flight(world.folder / "mine" / "inner" / "staff")
    try:
        require_kept(world, "mine", file)
    finally:
        with world.hms.client() as client:
            client.drop_database(inner, False, False)


def test_to_the_catalog_s_owner_files_of_others_stay_too(world: World) -> None:
    assert world.make("mine", world.owner).status == 200
    file = world.put(world.hr, "staff", world.folder / "mine" / "staff")
    assert drop(world, "mine", purge=True, by=world.owner).status == 405
    assert "files of other tables" in drop(world, "mine", by=world.owner).headers[KEPT]
    assert file.read_text() == FLIGHT


def test_a_cascade_leaves_files_of_others(world: World) -> None:
    for name in ("mine", "other"):
        assert world.make(name, world.owner).status == 200
    file, gone = world.put(world.hr, "staff", world.folder / "mine" / "staff"), flight(world.folder / "other")
    dropped = world.owner.delete(f"{HIVE}/schemas/{world.own}?cascade=true")
    assert dropped["dropped"] is True and "files of other tables" in dropped.headers[KEPT]
    assert file.read_text() == FLIGHT and not gone.exists()


def test_a_partition_leaves_files_of_others(world: World) -> None:
    body = {"name": "mine", "columns": [*COLUMNS, {"name": "year", "type": "string"}], "partitioning": BY_YEAR}
    assert world.mia.post(world.tables, body).status == 200
    partitions = f"{world.tables}/mine/partitions"
    for year in ("2013", "2014"):
        literal = {"type": "literal", "dataType": "string", "value": year}
        one = {"type": "identity", "name": f"year={year}", "fieldNames": [["year"]], "values": [literal]}
        assert world.mia.post(partitions, {"partitions": [one]}).status == 200
    file = world.put(world.hr, "staff", world.folder / "mine" / "year=2013" / "staff")
    gone = flight(world.folder / "mine" / "year=2014")
    kept, plain = (world.mia.delete(f"{partitions}/year={year}") for year in ("2013", "2014"))
    assert kept["dropped"] is plain["dropped"] is True
    assert "files of other tables" in kept.headers[KEPT] and KEPT not in plain.headers
    assert file.read_text() == FLIGHT and not gone.exists()
    assert AuditEntry.objects.filter(event="table.partition_dropped", details__has_key="files_kept").count() == 1


# What a rename moves


def test_a_rename_moves_no_files_of_others(world: World) -> None:
    assert world.make("mine").status == 200
    file = world.put(world.hr, "staff", world.folder / "mine" / "staff")
    refused = world.mia.put(f"{world.tables}/mine", update("rename", newName="taken"))
    assert refused.status == 400 and "A rename moves the table's files" in refused.message
    assert file.read_text() == FLIGHT


def test_a_rename_goes_to_a_free_folder_alone(world: World) -> None:
    assert world.make("mine").status == 200
    own = flight(world.folder / "mine")
    world.put(world.hr, "staff", world.folder / "staff")
    left = flight(world.folder / "left")
    for name in ("staff", "left"):
        refused = world.mia.put(f"{world.tables}/mine", update("rename", newName=name))
        assert refused.status == 400 and "is not free" in refused.message
    assert own.exists() and left.read_text() == FLIGHT
    assert world.mia.put(f"{world.tables}/mine", update("rename", newName="free")).status == 200
    assert not own.exists() and (world.folder / "free" / "part-0").exists()


# What is laid over a hidden table


def test_no_table_is_laid_over_a_hidden_one(world: World, settings: Any) -> None:
    staff = world.folder / "inside" / "staff"
    file = world.put(world.hr, "staff", staff)
    assert world.make("mine", location=(world.folder / "mine").as_uri()).status == 200
    for place in (staff, staff.parent, staff / "2013"):
        refused = world.make("spy", location=place.as_uri())
        assert refused.error[:2] == (400, 1001) and "ask the owner of the catalog" in refused.message
        moved = world.mia.put(f"{world.tables}/mine", update("setProperty", property="location", value=place.as_uri()))
        assert moved.error[:2] == (400, 1001) and "ask the owner of the catalog" in moved.message
    for name in ("EXTERNAL", "external", "table-type"):
        converted = update("setProperty", property=name, value="FALSE" if name != "table-type" else MANAGED)
        assert world.mia.put(f"{world.tables}/mine", converted).status == 400
    assert world.make("spy", world.owner, location=staff.as_uri()).status == 200, "the owner knows why"
    assert drop(world, "spy", by=world.owner)["dropped"] is True
    assert file.read_text() == FLIGHT


def test_no_partition_is_laid_over_a_hidden_table(world: World) -> None:
    world.put(world.hr, "staff", world.folder / "inside" / "staff")
    body = {"name": "mine", "columns": [*COLUMNS, {"name": "year", "type": "string"}], "partitioning": BY_YEAR}
    place = {"location": (world.folder / "mine").as_uri()}
    assert world.mia.post(world.tables, body | {"properties": place}).status == 200

    def added(year: str, location: Path) -> Answer:
        literal = {"type": "literal", "dataType": "string", "value": year}
        one = {"type": "identity", "name": f"year={year}", "fieldNames": [["year"]], "values": [literal]}
        whole = one | {"properties": {"location": location.as_uri()}}
        return world.mia.post(f"{world.tables}/mine/partitions", {"partitions": [whole]})

    assert added("2013", world.folder / "inside").status == 400
    assert added("2013", world.folder / "mine" / "elsewhere").status == 200
    assert added("2014", world.folder / "more").status == 200


def test_a_staged_iceberg_table_has_its_own_folder_and_takes_no_other(world: World) -> None:
    """A client writes there before it commits. In a place that is named nothing is made: it may be a hidden table's."""
    engine = Engine(world.mia.name, catalog="hive")
    namespace = f"/iceberg/demo/v1/hive/namespaces/{world.own}"
    schema = {"type": "struct", "fields": [{"id": 1, "name": "carrier", "required": False, "type": "string"}]}
    body = {"name": "mine", "schema": schema, "stage-create": True}
    staged = engine.post(f"{namespace}/tables", body).json["metadata"]
    folder = Path(staged["location"].removeprefix("file://"))
    assert sorted(path.name for path in folder.rglob("*")) == ["data", "metadata"]

    staff = world.folder / "staff"
    world.put(world.hr, "staff", staff)
    before = list(staff.rglob("*"))
    for place in (staff, world.folder / "mine"):
        assert engine.post(f"{namespace}/tables", body | {"location": place.as_uri()}).status == 200
    assert list(staff.rglob("*")) == before
    assert world.make("mine").status == 200, "what was never committed is in nobody's way"


def test_no_iceberg_table_is_laid_over_a_hidden_one(world: World) -> None:
    staff = world.folder / "inside" / "staff"
    file = world.put(world.hr, "staff", staff)
    engine = Engine(world.mia.name, catalog="hive")
    namespace = f"/iceberg/demo/v1/hive/namespaces/{world.own}"
    schema = {"type": "struct", "fields": [{"id": 1, "name": "carrier", "required": False, "type": "string"}]}
    refused = engine.post(f"{namespace}/tables", {"name": "spy", "schema": schema, "location": staff.as_uri()})
    assert refused.status == 400 and "ask the owner of the catalog" in refused.error[2]
    assert [each.name for each in staff.rglob("*") if each.is_file() and each.suffix == ".json"] == []
    assert engine.post(f"{namespace}/tables", {"name": "mine", "schema": schema}).status == 200
    moved = engine.post(
        f"{namespace}/tables/mine", {"updates": [{"action": "set-location", "location": staff.as_uri()}]}
    )
    assert moved.status == 400 and "ask the owner of the catalog" in moved.error[2]
    paths = {"write.data.path": staff.as_uri()}
    set_path = engine.post(f"{namespace}/tables/mine", {"updates": [{"action": "set-properties", "updates": paths}]})
    assert set_path.status == 400
    assert file.read_text() == FLIGHT


def test_no_iceberg_view_is_laid_over_a_hidden_table_nor_a_table_over_it(world: World) -> None:
    staff = world.folder / "inside" / "staff"
    file = world.put(world.hr, "staff", staff)
    give("mia", Kind.SCHEMA, f"hive.{world.own}", "create_view", "alter_view")
    engine, views = Engine(world.mia.name, catalog="hive"), f"namespaces/{world.own}/views"
    view = {"schema": ICEBERG_COLUMNS, "view-version": view_version(), "properties": {}}
    refused = engine.post(views, view | {"name": "spy", "location": staff.as_uri()})
    assert refused.status == 400 and "ask the owner of the catalog" in refused.error[2]
    assert engine.post(views, view | {"name": "mine"}).status == 200
    moved = engine.post(f"{views}/mine", {"updates": [{"action": "set-location", "location": staff.as_uri()}]})
    assert moved.status == 400 and "ask the owner of the catalog" in moved.error[2]
    assert [each for each in staff.rglob("*") if each.suffix == ".json"] == [] and file.read_text() == FLIGHT
    place = world.folder / "deep" / "routes"
    made = engine.post(views, view | {"name": "routes", "location": place.as_uri()})
    assert made.status == 200, made.content
    world.put(world.own, "around", world.folder / "deep", MANAGED)
    dropped = drop(world, "around", by=world.owner)
    assert dropped["dropped"] is True and "files of other tables" in dropped.headers[KEPT]
    assert engine.get(f"{views}/routes").json == made.json and len(list(place.rglob("*.json"))) == 1


# Where nobody can look


@pytest.mark.store
@pytest.mark.parametrize("blind", ["storage", "metastore"])
def test_where_nobody_can_look_only_the_owner_has_files_deleted(
    world: World, blind: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, caller in (("mine", world.mia), ("theirs", world.owner)):
        assert world.make(name, caller).status == 200
    if blind == "storage":
        monkeypatch.setattr(hive_files.TableFiles, "is_empty", lambda self, place: None)
    else:
        monkeypatch.setattr(hive_folders, "LOOK_SECONDS", -1.0)
        refused = world.mia.put(f"{world.tables}/mine", update("rename", newName="late"))
        assert refused.status == 400 and "ask the owner of the catalog to rename it" in refused.message
        assert world.make("spy", location=(world.folder / "new").as_uri()).status == 400
    require_kept(world, "mine", flight(world.folder / "mine"))
    gone = flight(world.folder / "theirs")
    assert KEPT not in drop(world, "theirs", by=world.owner).headers
    assert not gone.exists()


@pytest.mark.parametrize("place", ["hdfs://nn:8020/lake/mine", "s3://lake/mine", "file:///etc/mine"])
def test_what_cannot_be_looked_at_is_neither_empty_nor_full(world: World, place: str) -> None:
    """A cluster, a bucket without keys, a folder that this server does not open."""
    without_keys = {"s3.endpoint": "http://127.0.0.1:9", "s3.region": "us-east-1"}
    assert hive_files.TableFiles(provider_on(world.hms, **without_keys)).is_empty(place) is None


# How places are spelled


@each(
    "place, other, is_held",
    [
        ("s3://lake/a", "s3a://lake/a/b", True),
        ("s3://lake/a", "s3n://lake//a/", True),
        ("s3://lake/a", "s3://lake/ab", False),
        ("s3://lake/a", "s3://pond/a", False),
        ("s3://lake/a", "/a", True),
        ("hdfs://nn:8020/a", "hdfs://NN/a/b", True),
        ("hdfs://nn:8020/a", "viewfs:///a", True),
        ("hdfs:/a", "/a/./b", True),
        ("file:/srv/a", "file:///srv/b/../a/c", True),
        ("file:/srv/a", "file:///srv/%61", True),
        ("file:/srv/a", "s3://srv/a", False),
        ("abfss://c@x.dfs.core.windows.net/a", "wasbs://c@x.blob.core.windows.net/a/b", True),
        ("dbfs:/a", "dbfs:///a/b", True),
        ("ofs://service/a", "ofs://elsewhere/a/b", True),
        ("s3://lake/a/b", "s3://lake/a", False),
    ],
)
def test_a_place_holds_another_in_any_spelling(place: str, other: str, is_held: bool) -> None:
    assert hive_folders.Place(place).holds(hive_folders.Place(other)) is is_held


def test_a_place_holds_what_a_symbolic_link_leads_to(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    link, real = (hive_folders.Place(f"file://{tmp_path}/{name}") for name in ("link", "real"))
    assert link.holds(real) and real.holds(link)
