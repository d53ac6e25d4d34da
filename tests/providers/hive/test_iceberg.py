"""Iceberg tables of a metastore: made, registered, committed and dropped here, with Iceberg's own clients beside us."""
# ruff: noqa: F811

from __future__ import annotations

import gzip
import json
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pyarrow as pa
import pytest
from pyiceberg.catalog.hive import HiveCatalog

from formats.native.tables import CreateTableRequest
from metalake.errors import AlreadyExists, Conflict, Invalid, MetalakeError, NotFound, OutcomeUnknown, Unsupported
from metalake.kinds import Kind
from providers.base import Offer
from providers.hive import pointers as hive
from providers.hive.client import Metastore
from providers.hive.pointers import HivePointers
from providers.hive.provider import HiveProvider
from providers.hive.tables import HiveTables
from providers.remote_objects import Levels, NewTable, Remote
from tests.hms import HiveMetastore, newer_daily
from tests.providers.behaviours import Behaviours, create, rename, set_property
from tests.providers.hive_catalogs import provider, put_file, put_table, schema  # noqa: F401 (fixtures)
from tests.spark import Spark, iceberg_catalog

COLUMNS = [
    {"name": "carrier", "type": "string", "nullable": False},
    {"name": "delay", "type": "integer", "comment": "minutes"},
    {"name": "at", "type": "timestamp_tz"},
]
ENTRY = {"EXTERNAL": "TRUE", "table_type": "ICEBERG", "owner_team": "ops", "comment": "how late"}


@pytest.fixture(autouse=True)
def warehouse(any_hms: HiveMetastore, settings: Any) -> None:
    """Where this server may read and write."""
    settings.METALAKE_FILE_LOCATIONS = [str(any_hms.warehouse)]


class IcebergFirst(HiveTables):
    @property
    def default_format(self) -> str:
        return "iceberg"


class OfIceberg(HiveProvider):
    """Whose new tables are Iceberg's unless they say otherwise."""

    @classmethod
    def offers(cls, properties: Mapping[str, str]) -> Mapping[Kind, Offer]:
        offers = super().offers(properties)
        return {**offers, Kind.TABLE: replace(offers[Kind.TABLE], remote=IcebergFirst)}


@newer_daily  # the older one has those of TestHive every day
class TestIcebergInHive(Behaviours):
    tick = 1.1  # a metastore tells tables apart by the second they were made in

    @pytest.fixture
    def provider(self, any_hms: HiveMetastore) -> HiveProvider:
        return OfIceberg(1, {"metastore.uris": any_hms.uri})


@pytest.fixture
def outsider(any_hms: HiveMetastore) -> HiveCatalog:
    """Another engine on the same metastore."""
    where = {"uri": any_hms.uri, "warehouse": any_hms.warehouse.as_uri()}
    return HiveCatalog("outside", **where, **{"hive.hive2-compatible": "true"})


def planned(provider: HiveProvider, schema: Levels, name: str = "delays", **properties: str) -> NewTable:
    by = [{"strategy": "identity", "fieldName": ["carrier"]}]
    wanted = {"table_type": "iceberg", **properties}
    asked = {"name": name, "comment": "how late", "columns": COLUMNS, "partitioning": by, "properties": wanted}
    return provider.tables.draft(provider.schemas.load(schema), CreateTableRequest.model_validate(asked))


def make(provider: HiveProvider, schema: Levels, name: str = "delays", **properties: str) -> Remote:
    return create(provider, schema, name, planned(provider, schema, name, **properties))


def register(provider: HiveProvider, schema: Levels, pointer: str, name: str = "again") -> Remote:
    """As the catalog's owner, who may lay it over a table that is there."""
    wanted = {"table-format": "ICEBERG", "metadata_location": pointer, "owner_team": "bi"}
    asked = CreateTableRequest.model_validate({"name": name, "columns": [], "properties": wanted})
    return create(provider, schema, name, provider.tables.draft(provider.schemas.load(schema), asked), by_owner=True)


def pointer_of(provider: HiveProvider, table: Remote) -> str:
    pointer = provider.pointers.location(table.definition)
    assert pointer is not None
    return pointer


def files(hms: HiveMetastore, schema: Levels) -> set[str]:
    """The URLs of all files of a schema, but for their checksums."""
    below = (hms.warehouse / f"{schema[0]}.db").rglob("*")
    return {file.as_uri() for file in below if file.is_file() and not file.name.endswith(".crc")}


def metadata_at(location: str) -> dict[str, Any]:
    content = Path(urlparse(location).path).read_bytes()
    metadata: dict[str, Any] = json.loads(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
    return metadata


def next_metadata(location: str, name: str = "ours", /, **properties: str) -> str:
    """A metadata file that follows another, with more properties; its location."""
    metadata = metadata_at(location)
    metadata["properties"] |= properties
    after = Path(urlparse(location).path).with_name(f"00009-{name}.metadata.json")
    after.write_text(json.dumps(metadata))
    return after.as_uri()


def some_rows() -> pa.Table:
    fields = [
        pa.field("carrier", pa.string(), nullable=False),
        ("delay", pa.int32()),
        ("at", pa.timestamp("us", "UTC")),
    ]
    return pa.Table.from_pylist([{"carrier": "AA", "delay": 7, "at": None}], schema=pa.schema(fields))


# New ones


def test_a_new_table_is_one_to_others(
    provider: HiveProvider, schema: Levels, any_hms: HiveMetastore, outsider: HiveCatalog
) -> None:
    made = make(provider, schema, owner_team="ops", **{"external.table.purge": "true"})
    pointer = pointer_of(provider, made)
    assert files(any_hms, schema) == {pointer}
    home = re.escape(f"file://{any_hms.warehouse}/{schema[0]}.db")
    assert re.match(f"{home}/delays-[0-9a-f]{{32}}/metadata/00000-", pointer)
    with any_hms.client() as client:
        entry = client.get_table(schema[0], "delays")
    uuid = metadata_at(pointer)["table-uuid"]
    assert (entry.tableType, entry.partitionKeys) == ("EXTERNAL_TABLE", [])
    assert entry.parameters.items() >= (ENTRY | {"metadata_location": pointer, "uuid": uuid}).items()
    assert "external.table.purge" not in entry.parameters, "a drop by whomever leaves the files"
    assert [(column.name, column.type, column.comment) for column in entry.sd.cols] == [
        ("carrier", "string", None),
        ("delay", "int", "minutes"),
        ("at", "timestamp", None),
    ]
    assert entry.sd.inputFormat == "org.apache.hadoop.mapred.FileInputFormat"
    assert entry.sd.outputFormat == "org.apache.hadoop.mapred.FileOutputFormat"
    assert entry.sd.serdeInfo.serializationLib == "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
    table = outsider.load_table((schema[0], "delays"))
    assert [(field.name, field.required, field.doc) for field in table.schema().fields] == [
        ("carrier", True, None),
        ("delay", False, "minutes"),
        ("at", False, None),
    ]
    table.append(some_rows())
    found = provider.tables.load(schema, "delays")
    assert pointer_of(provider, found) == outsider.load_table((schema[0], "delays")).metadata_location != pointer
    assert found.identity == made.identity and found.version != made.version


def test_a_renamed_or_dropped_table_keeps_its_files(
    provider: HiveProvider, schema: Levels, any_hms: HiveMetastore, outsider: HiveCatalog
) -> None:
    make(provider, schema)
    outsider.load_table((schema[0], "delays")).append(some_rows())
    kept = files(any_hms, schema)
    rename(provider, schema, provider.tables.load(schema, "delays"), "late")
    assert outsider.load_table((schema[0], "late")).scan().to_arrow().num_rows == 1
    for purge in (False, True):
        renamed = provider.tables.load(schema, "late")
        provider.tables.drop(schema, "late", renamed.identity, purge=purge)
        with pytest.raises(NotFound):
            provider.tables.load(schema, "late")
        assert files(any_hms, schema) == kept
        register(provider, schema, pointer_of(provider, renamed), "late")
    assert outsider.load_table((schema[0], "late")).scan().to_arrow().num_rows == 1


def test_files_of_an_iceberg_table_stay_though_it_is_called_managed(
    provider: HiveProvider, schema: Levels, any_hms: HiveMetastore
) -> None:
    for purge in (False, True):
        place = put_table(
            any_hms, schema[0], "delays", table_type="ICEBERG", metadata_location="file:///v1"
        ).sd.location
        put_file(place)
        provider.tables.drop(schema, "delays", provider.tables.load(schema, "delays").identity, purge=purge)
        assert [Path(file).name for file in files(any_hms, schema)] == ["part-0"]


def test_a_metadata_file_is_registered(
    provider: HiveProvider, schema: Levels, any_hms: HiveMetastore, outsider: HiveCatalog
) -> None:
    pointer = pointer_of(provider, make(provider, schema))
    made = register(provider, schema, pointer)
    assert pointer_of(provider, made) == pointer
    shown = provider.tables.show(made.definition)
    assert [column["name"] for column in shown["columns"]] == ["carrier", "delay", "at"]
    assert shown["properties"]["owner_team"] == "bi" and shown["comment"] == "how late"
    assert outsider.load_table((schema[0], "again")).metadata_location == pointer
    with pytest.raises(AlreadyExists):
        register(provider, schema, pointer)
    assert files(any_hms, schema) == {pointer}, "the file is not ours to remove"
    folder = Path(urlparse(pointer).path).parent
    moved = metadata_at(pointer) | {"location": "file:///tmp/elsewhere"}
    (folder / "moved.metadata.json").write_text(json.dumps(moved))
    (folder / "text.metadata.json").write_text("none")
    for name, said in {"moved": "not allowed", "text": "not JSON", "missing": "Failed to open"}.items():
        with pytest.raises(Invalid, match=said):
            register(provider, schema, (folder / f"{name}.metadata.json").as_uri(), "other")
    with pytest.raises(Invalid, match="local files are not allowed"):
        register(provider, schema, "file:///etc/passwd", "other")
    assert sorted(one.name for one in provider.tables.list(schema).items) == ["again", "delays"]


# What came to nothing leaves nothing


def test_a_refused_creation_leaves_no_file(
    provider: HiveProvider, schema: Levels, any_hms: HiveMetastore, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = {pointer_of(provider, make(provider, schema))}
    with pytest.raises(AlreadyExists):
        make(provider, schema)
    monkeypatch.setattr(HivePointers, "require_free", lambda *_: None)  # the other came right after
    with pytest.raises(AlreadyExists):
        make(provider, schema)
    with pytest.raises(NotFound):
        create(provider, [f"{schema[0]}_none"], "late", planned(provider, schema, "late"))
    with pytest.raises(Invalid, match="Hive refused"):
        create(provider, schema, "bad-name", planned(provider, schema, "late"))
    assert files(any_hms, schema) == kept


@pytest.mark.parametrize("applied", [False, True], ids=["not applied", "applied"])
def test_a_lost_answer_keeps_the_file_until_it_is_known(
    provider: HiveProvider,
    schema: Levels,
    any_hms: HiveMetastore,
    monkeypatch: pytest.MonkeyPatch,
    applied: bool,
) -> None:
    new, call = planned(provider, schema), Metastore.call

    def losing(self: Metastore, method: str, *arguments: Any, about: Any) -> Any:
        if method != "create_table":
            return call(self, method, *arguments, about=about)
        if applied:
            call(self, method, *arguments, about=about)
        raise OutcomeUnknown("The answer is lost.", kind="catalog")

    with monkeypatch.context() as patch:
        patch.setattr(Metastore, "call", losing)
        with pytest.raises(OutcomeUnknown):
            create(provider, schema, "delays", new)
    pointer = new.definition["parameters"]["metadata_location"]
    assert files(any_hms, schema) == {pointer}
    provider.tables.discard(new.definition, new.plan)
    assert (files(any_hms, schema) == {pointer}) is applied, "a file stays as long as a table points to it"
    if not applied:
        create(provider, schema, "delays", new)
        assert files(any_hms, schema) == {pointer}, "a repeat writes the same file"


# Commits


@pytest.mark.slow
def test_iceberg_s_commits_and_ours_follow_each_other(any_hms: HiveMetastore, iceberg_spark: Spark) -> None:
    database = any_hms.create_database()
    lake = iceberg_catalog("lake", type="hive", uri=any_hms.uri, warehouse=any_hms.warehouse.as_uri())
    name = f"lake.{database}.delays"
    iceberg_spark.sql(
        f"create table {name} (carrier string, delay decimal(9,2)) using iceberg comment 'how late'",
        f"insert into {name} values ('UA', 1.5)",
        settings=lake,
    )
    provider = HiveProvider(1, {"metastore.uris": any_hms.uri})
    found = provider.tables.load([database], "delays")
    shown = provider.tables.show(found.definition)
    assert [(column["name"], column["type"]) for column in shown["columns"]] == [
        ("carrier", "string"),
        ("delay", "decimal(9,2)"),
    ]
    assert shown["comment"] == "how late"
    before = pointer_of(provider, found)
    ours = next_metadata(before, owner_team="ops")
    committed = provider.pointers.commit([database], "delays", ours, before)
    with pytest.raises(Conflict):
        provider.pointers.commit([database], "delays", ours, before)
    kept, now = found.definition["parameters"], committed.definition["parameters"]
    assert (now["numRows"], now["numFiles"], now["uuid"]) == (kept["numRows"], kept["numFiles"], kept["uuid"])
    assert kept["numRows"] == "1" and "current-schema" in kept and "current-schema" not in now
    *_, properties, rows = iceberg_spark.sql(
        f"insert into {name} values ('DL', 2.5)",
        f"show tblproperties {name}",
        f"select carrier from {name} order by carrier",
        settings=lake,
    )
    assert {"key": "owner_team", "value": "ops"} in properties
    assert rows == [{"carrier": "DL"}, {"carrier": "UA"}]
    last = provider.tables.load([database], "delays")
    assert last.identity == found.identity
    assert last.definition["parameters"]["previous_metadata_location"] == ours


def test_an_iceberg_table_is_committed_from_where_it_was(
    provider: HiveProvider, schema: Levels, any_hms: HiveMetastore
) -> None:
    made = make(provider, schema, owner_team="ops")
    with any_hms.client() as client:
        table = client.get_table(schema[0], "delays")
        table.parameters["my.own"] = "kept"
        client.alter_table(schema[0], "delays", table)
    put_table(any_hms, schema[0], "airlines")
    found, before = provider.tables.load(schema, "delays"), pointer_of(provider, made)
    with pytest.raises(Unsupported, match="commits to its metadata"):
        provider.tables.altered(found.definition, [set_property("a", "1")])
    fresh = next_metadata(before, comment="in minutes", region="emea")
    committed = provider.pointers.commit(schema, "delays", fresh, before)
    assert pointer_of(provider, committed) == fresh
    parameters = committed.definition["parameters"]
    assert parameters["previous_metadata_location"] == before
    assert (parameters["my.own"], parameters["owner_team"], parameters["region"]) == ("kept", "ops", "emea")
    assert committed.definition["comment"] == "in minutes"
    assert committed == provider.tables.load(schema, "delays") and committed.identity == found.identity
    refusals: list[tuple[str, str, str, type[MetalakeError], str]] = [
        ("delays", fresh, before, Conflict, "by now"),
        ("delays", fresh + "x", fresh, Invalid, "Failed to open"),
        ("airlines", fresh, before, Unsupported, "no Iceberg table"),
        ("none", fresh, before, NotFound, "none"),
    ]
    for name, to, previous, error, said in refusals:
        with pytest.raises(error, match=said):
            provider.pointers.commit(schema, name, to, previous)
    assert provider.tables.load(schema, "delays") == committed


def test_one_of_many_commits_at_once_wins(
    provider: HiveProvider, schema: Levels, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = pointer_of(provider, make(provider, schema))
    fresh = [next_metadata(before, str(number)) for number in range(6)]
    ended: list[str] = []
    alter = hive.alter

    def slowly(*arguments: Any, **named: Any) -> Any:
        time.sleep(0.1)  # enough for all to have read where it points to, if they could
        return alter(*arguments, **named)

    monkeypatch.setattr(hive, "alter", slowly)

    def commit(location: str) -> None:
        try:
            provider.pointers.commit(schema, "delays", location, before)
            ended.append(location)
        except Conflict:
            ended.append("conflict")

    writers = [threading.Thread(target=commit, args=(location,)) for location in fresh]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    won = [each for each in ended if each != "conflict"]
    assert len(ended) == 6 and len(won) == 1
    assert pointer_of(provider, provider.tables.load(schema, "delays")) == won[0]
