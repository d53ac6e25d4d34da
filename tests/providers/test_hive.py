"""Hive metastores of both versions."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import urlparse
from uuid import uuid4

import pytest
from hive_metastore.ttypes import (
    EnvironmentContext,
    FieldSchema,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    Order,
    PrincipalType,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
    Table,
    UnlockRequest,
)

from catalogs.hierarchy import HierarchicalSchema
from catalogs.hive.partitions import IdentityPartition
from catalogs.providers import hive, hive_locks
from catalogs.providers.external import PARTITION, Levels, Page
from catalogs.providers.hive import HiveProvider
from catalogs.providers.hive_client import Metastore
from catalogs.providers.hive_errors import Refused
from catalogs.table_wire import CreateTableRequest, SetProperty
from metalake.errors import AlreadyExists, Conflict, Invalid, NotFound, ProviderBusy, Unsupported
from metalake.privileges import Kind
from tests.hms import NEW, HiveMetastore
from tests.providers.behaviours import Behaviours, asked, everything

TEXT = "org.apache.hadoop.mapred.TextInputFormat"


def provider_on(hms: HiveMetastore, **settings: str) -> HiveProvider:
    return HiveProvider(1, {"metastore.uris": hms.uri, **settings})


def set_property(name: str, value: str) -> SetProperty:
    return SetProperty.model_validate({"@type": "setProperty", "property": name, "value": value})


def put_table(hms: HiveMetastore, database: str, name: str, kind: str = "MANAGED_TABLE", **parameters: str) -> Table:
    """Made by somebody else, with everything that a table can say."""
    storage = StorageDescriptor(
        cols=[FieldSchema("carrier", "string", "two letters"), FieldSchema("delay", "int", None)],
        location=None if kind == "MANAGED_TABLE" else (hms.warehouse / f"{database}.{name}").as_uri(),
        inputFormat=TEXT,
        numBuckets=4,
        bucketCols=["carrier"],
        sortCols=[Order("delay", 0)],
        serdeInfo=SerDeInfo("plain", "LazySimpleSerDe", {"field.delim": ","}),
        parameters={"of": "storage"},
        skewedInfo=SkewedInfo(["carrier"], [["UA"]], {}),
    )
    table = Table(
        dbName=database,
        tableName=name,
        owner="crew",
        ownerType=PrincipalType.USER,
        retention=7,
        tableType=kind,
        sd=storage,
        partitionKeys=[FieldSchema("year", "int", "of departure")],
        parameters={"comment": "how late", "numRows": "336776", "my.own": "kept", **parameters},
    )
    if kind == "EXTERNAL_TABLE":
        table.parameters["EXTERNAL"] = "TRUE"
    with hms.client() as client:
        context = EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"})
        client.create_table_with_environment_context(table, context)
        return client.get_table(database, name)


def files(place: str) -> list[str]:
    folder = Path(urlparse(place).path)
    return sorted(each.name for each in folder.iterdir()) if folder.exists() else []


def put_file(place: str) -> None:
    (Path(urlparse(place).path) / "part-0").write_text("UA,12\n")


@pytest.fixture
def provider(any_hms: HiveMetastore) -> HiveProvider:
    return provider_on(any_hms)


@pytest.fixture
def schema(any_hms: HiveMetastore) -> Iterator[Levels]:
    name = any_hms.create_database()
    yield [name]
    with any_hms.client() as client:
        client.drop_database(name, True, True)


class TestHive(Behaviours):
    tick = 1.1  # a metastore tells tables apart by the second they were made in

    @pytest.fixture
    def provider(self, any_hms: HiveMetastore) -> HiveProvider:
        return provider_on(any_hms)


# What is there stays


def test_an_alteration_keeps_all_that_it_does_not_say(
    provider: HiveProvider, schema: Levels, any_hms: HiveMetastore
) -> None:
    before = put_table(any_hms, schema[0], "delays")
    found = provider.load_table(schema, "delays")
    shown = provider.shown_table(found.definition)
    assert shown["comment"] == "how late" and shown["properties"]["my.own"] == "kept"
    assert [(column["name"], column["type"]) for column in shown["columns"]] == [
        ("carrier", "string"),
        ("delay", "integer"),
        ("year", "integer"),
    ]
    time.sleep(1.1)
    wanted = provider.altered_table(found.definition, [set_property("owner_team", "ops")])
    altered = provider.alter_table(schema, "delays", wanted, found.version)
    with any_hms.client() as client:
        after = client.get_table(schema[0], "delays")
    assert after.parameters.pop("owner_team") == "ops"
    assert int(after.parameters.pop("transient_lastDdlTime")) > int(before.parameters.pop("transient_lastDdlTime"))
    assert after == before
    assert altered.identity == found.identity == str(before.createTime)


def test_a_database_keeps_its_owner_and_says_what_cannot_change(
    provider: HiveProvider, schema: Levels, any_hms: HiveMetastore
) -> None:
    with any_hms.client() as client:
        database = client.get_database(schema[0])
        database.ownerName, database.ownerType = "crew", PrincipalType.ROLE
        client.alter_database(schema[0], database)
    found = provider.load_schema(schema)
    shown = provider.shown_schema(found.definition)
    assert shown["properties"] == {"location": database.locationUri}
    wanted = provider.altered_schema(found.definition, shown["comment"], shown["properties"] | {"a": "1"})
    provider.alter_schema(schema, wanted, found.version)
    with any_hms.client() as client:
        after = client.get_database(schema[0])
    assert (after.ownerName, after.ownerType, after.parameters) == ("crew", PrincipalType.ROLE, {"a": "1"})
    with pytest.raises(Unsupported, match="comment"):
        provider.altered_schema(found.definition, "another", {})
    with pytest.raises(Invalid, match="location"):
        provider.altered_schema(found.definition, shown["comment"], {"location": "file:///elsewhere"})
    with pytest.raises(Invalid, match=r"metalake\.intent"):
        provider.altered_schema(found.definition, shown["comment"], {"metalake.intent": "7"})


def test_a_touch_alone_is_no_new_version_and_statistics_are(
    provider: HiveProvider, schema: Levels, any_hms: HiveMetastore
) -> None:
    table = put_table(any_hms, schema[0], "delays")
    before = provider.load_table(schema, "delays")

    def say(**parameters: str) -> str:
        with any_hms.client() as client:
            table.parameters |= parameters
            client.alter_table_with_environment_context(schema[0], "delays", table, EnvironmentContext({}))
        return provider.load_table(schema, "delays").version

    assert say(transient_lastDdlTime="1900000000") == before.version
    assert say(numRows="336777") != before.version


def test_files_of_managed_tables_go_and_those_of_external_ones_stay(
    provider: HiveProvider, any_hms: HiveMetastore
) -> None:
    where = [any_hms.create_database()]
    places = {}
    for name, kind in [("delays", "MANAGED_TABLE"), ("late", "MANAGED_TABLE"), ("airlines", "EXTERNAL_TABLE")]:
        places[name] = put_table(any_hms, where[0], name, kind).sd.location
        put_file(places[name])
    inside = any_hms.warehouse / f"{where[0]}.db" / "airports"
    with any_hms.client() as client:
        within = client.get_table(where[0], "airlines")
        within.tableName, within.sd.location = "airports", inside.as_uri()
        client.create_table(within)
    put_file(inside.as_uri())
    with pytest.raises(Unsupported, match="external"):
        provider.drop_table(where, "airlines", provider.load_table(where, "airlines").identity, purge=True)
    provider.drop_table(where, "delays", provider.load_table(where, "delays").identity, purge=True)
    assert files(places["delays"]) == []
    provider.drop_schema(where, "", cascade=True)
    assert files(places["late"]) == []
    assert files(places["airlines"]) == files(inside.as_uri()) == ["part-0"]


# Writers beside us


def lock(hms: HiveMetastore, database: str, table: str) -> Any:
    with hms.client() as client:
        part = LockComponent(LockType.EXCLUSIVE, LockLevel.TABLE, database, table)
        return client.lock(LockRequest(component=[part], user="spark", hostname="elsewhere"))


def test_an_alteration_waits_for_the_lock_and_leaves_none_behind(
    provider: HiveProvider, schema: Levels, any_hms: HiveMetastore, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_table(any_hms, schema[0], "delays")
    found = provider.load_table(schema, "delays")
    held = lock(any_hms, schema[0], "delays")
    monkeypatch.setattr(hive_locks, "WAIT", 0.3)
    with pytest.raises(ProviderBusy, match="locked by somebody else"):
        provider.alter_table(schema, "delays", found.definition, found.version)
    monkeypatch.setattr(hive_locks, "WAIT", 8.0)
    wanted = provider.altered_table(found.definition, [set_property("owner_team", "ops")])
    done: list[str] = []
    waiting = threading.Thread(
        target=lambda: done.append(provider.alter_table(schema, "delays", wanted, found.version).version)
    )
    waiting.start()
    time.sleep(0.3)
    assert not done and provider.load_table(schema, "delays") == found
    with any_hms.client() as client:
        client.unlock(UnlockRequest(held.lockid))
    waiting.join()
    assert done == [provider.load_table(schema, "delays").version] != [found.version]
    last = lock(any_hms, schema[0], "delays")
    assert last.state == LockState.ACQUIRED, "neither who gave up waiting nor who altered keeps a lock"
    with any_hms.client() as client:
        client.unlock(UnlockRequest(last.lockid))


def test_a_writer_without_locks_is_noticed_by_2_3_10_only(
    provider: HiveProvider, schema: Levels, any_hms: HiveMetastore
) -> None:
    """Between our look and our alteration; this is why the lock matters on older ones."""
    theirs = put_table(any_hms, schema[0], "delays")
    found = provider.load_table(schema, "delays")
    written = hive.written

    def late(*arguments: Any, **named: Any) -> Table:
        with any_hms.client() as client:
            theirs.parameters |= {"theirs": "1", "transient_lastDdlTime": "1900000000"}
            client.alter_table_with_environment_context(schema[0], "delays", theirs, EnvironmentContext({}))
        return written(*arguments, **named)

    wanted = provider.altered_table(found.definition, [set_property("owner_team", "ops")])
    with patch.object(hive, "written", late):
        if any_hms.version == NEW:
            with pytest.raises(Conflict):
                provider.alter_table(schema, "delays", wanted, found.version)
        else:
            provider.alter_table(schema, "delays", wanted, found.version)
    kept = provider.load_table(schema, "delays").definition["parameters"]
    assert ("theirs" in kept, "owner_team" in kept) == ((True, False) if any_hms.version == NEW else (False, True))


@pytest.fixture
def without_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a metastore without transaction tables answers."""
    call = Metastore.call

    def refusing(self: Metastore, method: str, *arguments: Any, about: Any) -> Any:
        if method == "lock":
            raise Refused("The metastore could not do lock: Internal error processing lock")
        return call(self, method, *arguments, about=about)

    monkeypatch.setattr(Metastore, "call", refusing)


def test_without_locks_tables_are_altered_but_no_commit_is_made(
    without_locks: None, provider: HiveProvider, schema: Levels, any_hms: HiveMetastore
) -> None:
    put_table(any_hms, schema[0], "delays", table_type="ICEBERG", metadata_location="file:///v1")
    put_table(any_hms, schema[0], "airlines")
    found = provider.load_table(schema, "airlines")
    wanted = provider.altered_table(found.definition, [set_property("owner_team", "ops")])
    assert provider.alter_table(schema, "airlines", wanted, found.version).version != found.version
    with pytest.raises(Conflict):
        provider.alter_table(schema, "airlines", wanted, found.version)
    with pytest.raises(Unsupported, match="keeps no locks"):
        provider.commit_table(schema, "delays", "file:///v2", "file:///v1")


# Iceberg


def test_an_iceberg_table_is_committed_from_where_it_was(
    provider: HiveProvider, schema: Levels, any_hms: HiveMetastore
) -> None:
    put_table(any_hms, schema[0], "delays", "EXTERNAL_TABLE", table_type="ICEBERG", metadata_location="file:///v1")
    put_table(any_hms, schema[0], "airlines")
    found = provider.load_table(schema, "delays")
    assert provider.metadata_location(found.definition) == "file:///v1"
    assert provider.metadata_location(provider.load_table(schema, "airlines").definition) is None
    with pytest.raises(Unsupported, match="Iceberg"):
        provider.altered_table(found.definition, [set_property("a", "1")])
    committed = provider.commit_table(schema, "delays", "file:///v2", "file:///v1")
    assert provider.metadata_location(committed.definition) == "file:///v2"
    assert committed.definition["parameters"]["previous_metadata_location"] == "file:///v1"
    assert committed.definition["parameters"]["my.own"] == "kept"
    assert committed == provider.load_table(schema, "delays") and committed.identity == found.identity
    with pytest.raises(Conflict):
        provider.commit_table(schema, "delays", "file:///v3", "file:///v1")
    with pytest.raises(Unsupported, match="no Iceberg table"):
        provider.commit_table(schema, "airlines", "file:///v2", "file:///v1")
    with pytest.raises(NotFound):
        provider.commit_table(schema, "none", "file:///v2", "file:///v1")
    assert provider.load_table(schema, "delays") == committed


def test_one_of_many_commits_at_once_wins(provider: HiveProvider, schema: Levels, any_hms: HiveMetastore) -> None:
    put_table(any_hms, schema[0], "delays", "EXTERNAL_TABLE", table_type="ICEBERG", metadata_location="file:///v1")
    ended: list[str] = []

    def commit(number: int) -> None:
        try:
            provider.commit_table(schema, "delays", f"file:///v2-{number}", "file:///v1")
            ended.append(f"file:///v2-{number}")
        except Conflict:
            ended.append("conflict")

    writers = [threading.Thread(target=commit, args=(number,)) for number in range(6)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    won = [each for each in ended if each != "conflict"]
    assert len(ended) == 6 and len(won) == 1
    assert provider.metadata_location(provider.load_table(schema, "delays").definition) == won[0]


def test_other_formats_are_hidden_where_the_catalog_says_so(
    provider: HiveProvider, schema: Levels, any_hms: HiveMetastore
) -> None:
    put_table(any_hms, schema[0], "delays", "EXTERNAL_TABLE", table_type="ICEBERG", metadata_location="file:///v1")
    put_table(any_hms, schema[0], "airlines")
    only_hive = provider_on(any_hms, **{"list-all-tables": "false"})
    for each, seen in [(provider, ["airlines", "delays"]), (only_hive, ["airlines"])]:
        listed = each.list_tables(schema, whole=each is provider).items
        assert [one.name for one in listed if each.shows(one)] == seen


# Names and listings


def test_views_are_told_from_tables(provider: HiveProvider, schema: Levels, any_hms: HiveMetastore) -> None:
    put_table(any_hms, schema[0], "delays")
    put_table(any_hms, schema[0], "late", "VIRTUAL_VIEW")
    for whole in (False, True):
        listed = {one.name: one.kind for one in provider.list_tables(schema, whole=whole).items}
        assert listed == {"delays": Kind.TABLE, "late": Kind.VIEW}
    assert provider.load_table(schema, "late").kind == Kind.VIEW


@pytest.mark.parametrize("whole", [False, True])
def test_a_listing_goes_on_where_it_was(hms: HiveMetastore, monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    provider, where = provider_on(hms), [hms.create_database()]
    for number in range(7):
        put_table(hms, where[0], f"t{number}")
    monkeypatch.setattr(hive, "NAMES", 3)
    monkeypatch.setattr(hive, "TABLES", 3)

    def next_page(page: Page) -> Page:
        return provider.list_tables(where, page=page.next, whole=whole)

    first = provider.list_tables(where, whole=whole)
    assert [one.name for one in first.items] == ["t0", "t1", "t2"]
    with hms.client() as client:
        client.drop_table(where[0], "t0", True)
        client.drop_table(where[0], "t4", True)
    put_table(hms, where[0], "t1b")
    listed = [one.name for one in next_page(first).items]
    assert listed == (["t3", "t5"] if whole else ["t3", "t4", "t5"]), "from the names as the listing began"
    hive._listings.clear()
    assert [one.name for one in next_page(first).items] == ["t3", "t5", "t6"], "another process has not seen them"
    again = everything(provider, "list_tables", schema=where, whole=whole)
    assert [one.name for one in again] == ["t1", "t1b", "t2", "t3", "t5", "t6"]
    provider.drop_schema(where, "", cascade=True)


def test_schemas_come_in_pages(hms: HiveMetastore, monkeypatch: pytest.MonkeyPatch) -> None:
    provider, names = provider_on(hms), sorted(hms.create_database() for _ in range(3))
    monkeypatch.setattr(hive, "SCHEMAS", 2)
    listed = [one.name for one in everything(provider, "list_schemas")]
    assert listed == sorted(listed) and set(names) <= set(listed) and len(set(listed)) == len(listed)
    for name in names:
        provider.drop_schema([name], "")


@pytest.mark.long
def test_five_hundred_tables_are_listed(hms: HiveMetastore) -> None:
    provider, where = provider_on(hms), [hms.create_database()]
    with hms.client() as client:
        for number in range(500):
            storage = StorageDescriptor(cols=[FieldSchema("carrier", "string", None)], serdeInfo=SerDeInfo())
            table = Table(dbName=where[0], tableName=f"t{number:03}", parameters={}, partitionKeys=[], sd=storage)
            table.tableType, storage.location = "EXTERNAL_TABLE", (hms.warehouse / "shared").as_uri()
            client.create_table(table)
    assert len(everything(provider, "list_tables", schema=where)) == 500
    pages = [provider.list_tables(where, whole=True)]
    while pages[-1].next:
        pages.append(provider.list_tables(where, page=pages[-1].next, whole=True))
    assert [len(page.items) for page in pages] == [200, 200, 100]
    assert len({one.name for page in pages for one in page.items}) == 500
    with hms.client() as client:
        client.drop_database(where[0], False, True)


@pytest.mark.parametrize("name", ["with-dash", "with space", "ünder", "x" * 129, "a.b"])
def test_names_that_hive_does_not_keep_are_refused(hms: HiveMetastore, name: str) -> None:
    provider = provider_on(hms)
    with pytest.raises(Invalid):
        provider.levels_of(HierarchicalSchema.flat(name))
    with pytest.raises(Invalid):
        provider.create_schema([name], provider.new_schema(None, {}))
    with pytest.raises(Invalid):
        provider.new_table(provider.load_schema(["default"]), asked(name))


def test_a_table_is_renamed_to_another_schema_with_its_files(
    provider: HiveProvider, schema: Levels, any_hms: HiveMetastore
) -> None:
    target = [any_hms.create_database()]
    before = put_table(any_hms, schema[0], "delays")
    put_file(before.sd.location)
    found = provider.load_table(schema, "delays")
    with pytest.raises(NotFound) as missing:
        provider.rename_table(schema, "delays", [f"{target[0]}_none"], "late", found.identity)
    assert missing.value.kind == Kind.SCHEMA
    with pytest.raises(NotFound):
        provider.rename_table(schema, "delays", target, "late", "1")
    moved = provider.rename_table(schema, "delays", target, "late", found.identity)
    assert moved == provider.load_table(target, "late") and moved.identity == found.identity
    assert files(before.sd.location) == [] and files(moved.definition["location"]) == ["part-0"]
    with any_hms.client() as client:
        after = client.get_table(target[0], "late")
    assert (after.owner, after.retention, after.sd.skewedInfo) == ("crew", 7, before.sd.skewedInfo)
    provider.drop_schema(target, "", cascade=True)


def test_what_a_metastore_repeats_by_itself_is_taken_for_ours(provider: HiveProvider, schema: Levels) -> None:
    definition = provider.marked(provider.new_table(provider.load_schema(schema), asked("delays")), "7")
    made = provider.create_table(schema, "delays", definition)
    assert provider.create_table(schema, "delays", definition) == made
    with pytest.raises(AlreadyExists):
        provider.create_table(schema, "delays", provider.marked(definition, "8"))
    place = provider.marked(provider.new_schema(None, {}), "7")
    another = [f"flights_{uuid4().hex[:8]}"]
    assert provider.create_schema(another, place) == provider.create_schema(another, place)
    with pytest.raises(AlreadyExists):
        provider.create_schema(another, provider.marked(place, "8"))
    provider.drop_schema(another, "")


# Partitions


def partition(year: str, month: str | None, **properties: str) -> IdentityPartition:
    null = {"type": "literal", "dataType": "null", "value": "NULL"}
    values = [
        {"type": "literal", "dataType": "integer", "value": year},
        null if month is None else {"type": "literal", "dataType": "string", "value": month},
    ]
    return IdentityPartition.model_validate(
        {"type": "identity", "fieldNames": [["year"], ["month"]], "values": values, "properties": properties}
    )


def test_partitions_are_added_listed_loaded_and_dropped(
    provider: HiveProvider, schema: Levels, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["carrier", "year", "month"]
    request = CreateTableRequest.model_validate(
        {
            "name": "delays",
            "columns": [{"name": name, "type": "integer" if name == "year" else "string"} for name in names],
            "partitioning": [{"strategy": "identity", "fieldName": [name]} for name in names[1:]],
        }
    )
    table = provider.create_table(schema, "delays", provider.new_table(provider.load_schema(schema), request))
    made = [
        provider.add_partition(schema, "delays", provider.new_partition(table.definition, each))
        for each in (partition("2013", "A/B", numRows="7"), partition("2013", None), partition("2014", "Jan"))
    ]
    with pytest.raises(AlreadyExists) as taken:
        provider.add_partition(schema, "delays", made[0].definition)
    assert taken.value.kind == PARTITION
    assert made[0].name == "year=2013/month=A%2FB" and made[0].kind == PARTITION
    monkeypatch.setattr(hive, "PARTITIONS", 2)
    listed = everything(provider, "list_partitions", schema=schema, table="delays")
    assert sorted(listed, key=lambda one: one.name) == sorted(made, key=lambda one: one.name)
    assert provider.load_partition(schema, "delays", made[1].name) == made[1]
    shown = provider.shown_partition(table.definition, made[0].definition)
    assert shown["values"][1] == {"type": "literal", "dataType": "string", "value": "A/B"}
    assert shown["properties"]["numRows"] == "7"
    place = shown["properties"]["location"]
    assert place.startswith(table.definition["location"]) and files(place) == []
    put_file(place)
    provider.drop_partition(schema, "delays", made[0].name)
    assert files(place) == [], "as the table is managed"
    for verb in (provider.load_partition, provider.drop_partition):
        with pytest.raises(NotFound) as missing:
            verb(schema, "delays", made[0].name)
        assert missing.value.kind == PARTITION
        with pytest.raises(Invalid, match="year="):
            verb(schema, "delays", "carrier=UA")
    with pytest.raises(NotFound) as missing:
        provider.list_partitions(schema, "none")
    assert missing.value.kind == Kind.TABLE


def test_a_table_without_partitions_says_so(provider: HiveProvider, schema: Levels) -> None:
    table = provider.create_table(schema, "delays", provider.new_table(provider.load_schema(schema), asked("delays")))
    with pytest.raises(Unsupported, match="not partitioned"):
        provider.new_partition(table.definition, partition("2013", "Jan"))
    with pytest.raises(Unsupported, match="not partitioned"):
        provider.list_partitions(schema, "delays")
    with pytest.raises(Unsupported, match="not partitioned"):
        provider.load_partition(schema, "delays", "year=2013")
