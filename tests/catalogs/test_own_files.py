"""The server's own files are nobody's place, and nothing of ours deletes them."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hive_metastore.ttypes import Table
from moto.server import ThreadedMotoServer

from authz.actor import Actor
from authz.callers.identity import actor_of
from authz.models import User
from catalogs.models import Catalog
from catalogs.services import catalogs, commits, connections, purge, schemas, shared_folders, tables
from catalogs.services.alterations import Alteration
from catalogs.table_stores import TableDraft, TableRecord
from formats.iceberg import builder, files, metadata_json, storage
from metalake import protected_files
from metalake.errors import Invalid, ProviderUnavailable
from metalake.lineage import Address
from providers.hive.files import OURS, TableFiles
from providers.hive.folders import Place
from providers.hive.provider import HiveProvider
from providers.iceberg.provider import IcebergProvider
from providers.network.aws import Keys, aws_client
from tests.catalogs.callers import Caller

pytestmark = pytest.mark.django_db

PROVIDER = "lakehouse-iceberg"
SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}


@pytest.fixture
def actor(admin: Caller) -> Actor:
    return actor_of(User.objects.get(username="admin"))


@pytest.fixture
def lake(settings: Any, tmp_path: Path) -> Path:
    """A folder of this machine that the operator opened for catalogs."""
    (tmp_path / "lake").mkdir()
    settings.METALAKE_FILE_LOCATIONS = (str(tmp_path),)
    return tmp_path / "lake"


@pytest.fixture
def victims(settings: Any, lake: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The store with what lies beside it, keys and the event log: in folders of the lake where an operator put them."""
    store, ring, log, jwks = (lake / "own" / name for name in ("store.db", "ring", "log.jsonl", "jwks.json"))
    monkeypatch.setattr(protected_files, "_store", lambda _: [str(store)])
    settings.METALAKE_SECRET_KEYS_FILE = ring
    settings.METALAKE_EVENT_LOG = str(log)
    settings.METALAKE_OAUTH_ISSUERS = {"https://issuer.example": str(jwks)}
    found = [Path(f"{store}{ending}") for ending in ("", "-wal", "-shm", "-journal")] + [ring, log, jwks]
    (lake / "own").mkdir()
    for path in found:
        path.write_text("precious")
    return found


def body(**properties: str) -> dict[str, Any]:
    return {"name": "one", "type": "RELATIONAL", "provider": PROVIDER, "properties": properties}


def tree(folder: Path) -> list[str]:
    return sorted(f"{path}/{name}" for path, folders, names in os.walk(folder) for name in (*folders, *names))


# Catalogs


@pytest.mark.parametrize("door", ["", "/testConnection"])
@pytest.mark.parametrize("name", ["metalake.sqlite3-journal", "secret_key", "static/x", "elsewhere", "warehouse"])
def test_below_the_home_folder_places_lie_in_the_warehouse_only(
    admin: Caller, settings: Any, tmp_path: Path, door: str, name: str
) -> None:
    home = settings.METALAKE_HOME = tmp_path / "home"  # no other test writes there
    home.mkdir()
    for property_ in ("warehouse", "allowed-locations"):
        refused = admin.post(f"metalakes/demo/catalogs{door}", body(**{property_: f"file://{home}/{name}"}))
        assert refused.status == 400
        assert "own data" in refused.message or "home folder" in refused.message
    assert tree(home) == []


def test_a_connection_test_writes_nothing(admin: Caller, settings: Any, lake: Path) -> None:
    for place in (f"{settings.METALAKE_HOME}/warehouse/new", f"{lake}/deep/below", str(lake)):
        assert admin.post("metalakes/demo/catalogs/testConnection", body(warehouse=f"file://{place}")).status == 200
    assert admin.post("metalakes/demo/catalogs/testConnection", body()).status == 200
    assert tree(lake) == []
    assert not (settings.METALAKE_HOME / "warehouse" / "new").exists()


def test_a_connection_test_says_what_cannot_hold_files(lake: Path) -> None:
    (lake / "file").write_text("a file")
    with pytest.raises(ProviderUnavailable, match="may not write"):
        IcebergProvider(1, {"warehouse": f"file://{lake}/file/below"}).test_connection()


def test_a_connection_test_reads_a_bucket_and_writes_nothing(settings: Any) -> None:
    settings.METALAKE_REMOTE_ALLOW = ("127.0.0.1",)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        url = "http://{}:{}".format(*server.get_host_and_port())
        s3 = aws_client("s3", "us-east-1", url, keys=Keys("AKIA", "sesame"))
        s3.create_bucket(Bucket="flights")
        reach = {"s3.endpoint": url, "s3.access-key-id": "AKIA", "s3.secret-access-key": "sesame"}
        IcebergProvider(1, reach | {"warehouse": "s3://flights/new/place"}).test_connection()
        with pytest.raises(ProviderUnavailable, match="no s3://missing"):
            IcebergProvider(1, reach | {"warehouse": "s3://missing/place"}).test_connection()
        assert s3.list_objects_v2(Bucket="flights")["KeyCount"] == 0
    finally:
        server.stop()


def test_no_catalog_meets_the_servers_files_wherever_they_lie(admin: Caller, lake: Path, victims: list[Path]) -> None:
    alias = lake.parent / "alias"
    alias.symlink_to(lake / "own")
    places = [*victims, *(path / "below" for path in victims), lake / "own", lake, alias, alias / "ring"]
    for place in places:
        for property_ in ("warehouse", "allowed-locations"):
            for door in ("", "/testConnection"):
                refused = admin.post(f"metalakes/demo/catalogs{door}", body(**{property_: f"file://{place}"}))
                assert (refused.status, "own data" in refused.message) == (400, True), place
    assert all(path.read_text() == "precious" for path in victims)
    assert admin.post("metalakes/demo/catalogs", body(warehouse=f"file://{lake}/own/beside")).status == 200


def test_where_a_link_leads_is_protected_and_the_link_too(settings: Any, lake: Path) -> None:
    (lake / "real").mkdir()
    (lake / "real" / "log").write_text("precious")
    (lake / "link").symlink_to(lake / "real" / "log")
    settings.METALAKE_EVENT_LOG = str(lake / "link")
    assert protected_files.is_protected(str(lake / "link")) and protected_files.is_protected(str(lake / "real" / "log"))
    assert not protected_files.is_protected(str(lake / "real"))


def test_the_store_is_a_file_on_sqlite_alone() -> None:
    sqlite = {"ENGINE": "django.db.backends.sqlite3"}
    assert protected_files._store(sqlite | {"NAME": Path("/srv/store.db")}) == ["/srv/store.db"]
    assert protected_files._store(sqlite | {"NAME": "file:/srv/store.db?cache=shared"}) == ["/srv/store.db"]
    assert protected_files._store(sqlite | {"NAME": "file:memory_1?mode=memory"}) == []
    assert protected_files._store({"ENGINE": "django.db.backends.postgresql", "NAME": "/srv/store.db"}) == []


# A store of today


def test_a_catalog_below_the_home_folder_keeps_its_place(actor: Actor, admin: Caller, settings: Any) -> None:
    catalogs.create_catalog(actor, "demo", "old", "relational", PROVIDER, None, {})
    row, old = Catalog.objects.get(name="old"), f"file://{settings.METALAKE_HOME}/old"
    row.properties |= {"warehouse": old, "allowed-locations": f"{old}-too"}
    row.save()
    altered = catalogs.alter_catalog(actor, "demo", "old", Alteration(properties=(("team", "sales"),)))
    assert altered.properties["warehouse"] == old
    connections.test_altered_connection(actor, "demo", "old", Alteration(properties=(("team", "data"),)))
    schemas.create_schema(actor, Address(metalake="demo", catalog="old", schema="s"), None, {})
    made = tables.create_table(
        actor, Address(metalake="demo", catalog="old", schema="s", leaf="t"), TableDraft(SCHEMA, None, None, {})
    )
    assert (made.metadata_location or "").startswith(f"{old}/")
    with pytest.raises(Invalid, match="home folder"):
        more = Alteration(properties=(("allowed-locations", f"{old}-too,{old}-more"),))
        catalogs.alter_catalog(actor, "demo", "old", more)
    fewer = catalogs.alter_catalog(actor, "demo", "old", Alteration(properties=(("allowed-locations", None),)))
    assert "allowed-locations" not in fewer.properties


# Tables


@pytest.fixture
def home(actor: Actor, lake: Path) -> Address:
    """A schema of a catalog whose warehouse holds the server's files by now."""
    catalogs.create_catalog(actor, "demo", "one", "relational", PROVIDER, None, {"warehouse": f"file://{lake}"})
    schemas.create_schema(actor, Address(metalake="demo", catalog="one", schema="s"), None, {})
    return Address(metalake="demo", catalog="one", schema="s")


def table(home: Address, name: str = "t") -> Address:
    return Address(metalake=home.metalake, catalog=home.catalog, schema=home.schema, leaf=name)


def make(actor: Actor, home: Address, location: str | None = None, name: str = "t") -> TableRecord:
    made = tables.create_table(actor, table(home, name), TableDraft(SCHEMA, None, None, {}, location))
    assert isinstance(made, TableRecord)
    return made


def test_no_table_takes_a_place_of_the_servers_files(
    actor: Actor, home: Address, lake: Path, victims: list[Path]
) -> None:
    (lake / "alias").symlink_to(lake / "own")
    for place in (lake / "own", lake / "alias", *victims):
        for spelled in (f"file://{place}", f"file:{place}", f"FILE:{place}/", str(place)):
            with pytest.raises(Invalid, match="own data"):
                make(actor, home, spelled)
    made = make(actor, home)
    for key in ("location", "write.data.path", "write.metadata.path"):
        elsewhere: dict[str, Any] = {"action": "set-properties", "updates": {key: f"file://{lake}/own"}}
        if key == "location":
            elsewhere = {"action": "set-location", "location": f"file://{lake}/own"}
        with pytest.raises(Invalid, match="own data"):
            commits.commit_table(actor, table(home), [], [elsewhere])
    foreign = builder.new_table_metadata(
        table_uuid="b3f4a0f2-3b1f-4b43-9f0e-0d9a5ac1c0aa",
        location=f"file://{lake}/own",
        schema=SCHEMA,
        partition_spec=None,
        sort_order=None,
        properties={},
        now_ms=1,
    )
    (lake / "v1.metadata.json").write_bytes(metadata_json.dump(foreign))
    for pointer in (lake / "v1.metadata.json", victims[0]):
        with pytest.raises(Invalid, match="own data"):
            tables.register_table(actor, table(home, "u"), f"file://{pointer}")
    assert tables.load_iceberg_table(actor, table(home)).metadata_location == made.metadata_location


def test_a_purge_leaves_the_servers_files(actor: Actor, home: Address, lake: Path, settings: Any) -> None:
    """An operator put them where a table lies already, whose metadata names one."""
    made = make(actor, home, f"file://{lake}/s/t")
    log = lake / "s" / "t" / "metadata" / "00000-log.metadata.json"
    log.write_text("precious")
    metadata = made.metadata | {"metadata-log": [{"metadata-file": f"file://{log}", "timestamp-ms": 1}]}
    location, _ = files.write_metadata(IcebergProvider(1, {}).io, metadata, version=1)
    settings.METALAKE_EVENT_LOG = str(log)
    catalog_id = Catalog.objects.get(name="one").pk
    uuid = "b3f4a0f2-3b1f-4b43-9f0e-0d9a5ac1c0aa"
    shared_folders.mark(location)
    purge.purge_table({"catalog_id": catalog_id, "metadata_location": location, "table_uuid": uuid})
    assert log.read_text() == "precious"


def test_a_metastore_is_not_told_to_delete_the_servers_files(lake: Path, victims: list[Path]) -> None:
    """Not for the catalog's owner either: one may run on this machine."""
    provider = HiveProvider(1, {"metastore.uris": "thrift://127.0.0.1:1"})
    nobodys = SimpleNamespace(hold_others=lambda *_: False, is_whole=True)
    for place, why in ((lake, OURS), (lake / "own", OURS), (victims[0], OURS), (lake / "beside", None)):
        table = Table(dbName="d", tableName="t")
        assert TableFiles(provider).why_files_stay(nobodys, table, [Place(f"file:{place}")], True) == why  # type: ignore[arg-type]


def test_no_deletion_of_ours_takes_the_servers_files(lake: Path, victims: list[Path]) -> None:
    io = IcebergProvider(1, {}).io
    (lake / "alias").symlink_to(lake / "own")
    for path in (*victims, lake / "alias" / "ring"):
        for spelt in (f"file://{path}", f"file:{path}", str(path)):
            with pytest.raises(Invalid, match="own"):
                storage.delete_file(io, spelt)
            storage.delete_quietly(io, [spelt])
    assert all(path.read_text() == "precious" for path in victims)
    (lake / "own" / "other").write_text("x")
    assert storage.delete_file(io, f"file://{lake}/own/other") == 1
