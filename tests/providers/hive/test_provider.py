"""Hive metastores of both versions."""
# ruff: noqa: F811

from __future__ import annotations

import threading
import time
from typing import Any
from unittest.mock import patch

import pytest
from hive_metastore.ttypes import (
    EnvironmentContext,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    PrincipalType,
    Table,
    UnlockRequest,
)

from formats.native.changes import of_schema
from metalake.errors import Conflict, Invalid, ProviderBusy, Unsupported
from providers.hive import locks as hive_locks
from providers.hive import tables as hive
from providers.hive.client import Metastore
from providers.hive.errors import Refused
from providers.hive.provider import HiveProvider
from providers.remote_objects import Levels
from tests.hms import NEW, HiveMetastore
from tests.providers.behaviours import Behaviours, alter, alter_schema, asked, changes_to, create
from tests.providers.hive_catalogs import files, provider, provider_on, put_file, put_table, schema, set_property  # noqa: F401 (fixtures)


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
    found = provider.tables.load(schema, "delays")
    shown = provider.tables.show(found.definition)
    assert shown["comment"] == "how late" and shown["properties"]["my.own"] == "kept"
    assert [(column["name"], column["type"]) for column in shown["columns"]] == [
        ("carrier", "string"),
        ("delay", "integer"),
        ("year", "integer"),
    ]
    time.sleep(1.1)
    altered = alter(provider, schema, found, set_property("owner_team", "ops"))
    with any_hms.client() as client:
        after = client.get_table(schema[0], "delays")
    assert after.parameters.pop("owner_team") == "ops"
    assert int(after.parameters.pop("transient_lastDdlTime")) > int(before.parameters.pop("transient_lastDdlTime"))
    assert after == before
    assert altered.identity == found.identity == str(before.createTime)


def test_an_alteration_does_not_count_files_anew(
    provider: HiveProvider, schema: Levels, any_hms: HiveMetastore
) -> None:
    made = create(provider, schema, "delays", provider.tables.draft(provider.schemas.load(schema), asked("delays")))
    put_file(made.definition["location"])
    for statistics in ({}, {"numFiles": "7", "totalSize": "700"}):
        with any_hms.client() as client:
            table = client.get_table(schema[0], "delays")
            for each in ("numFiles", "totalSize", "COLUMN_STATS_ACCURATE"):
                table.parameters.pop(each, None)
            table.parameters |= statistics
            context = EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"})
            client.alter_table_with_environment_context(schema[0], "delays", table, context)
        found = provider.tables.load(schema, "delays")
        altered = alter(provider, schema, found, set_property("owner_team", str(len(statistics))))
        after = altered.definition["parameters"]
        assert {key: after[key] for key in ("numFiles", "totalSize") if key in after} == statistics


def test_a_database_keeps_its_owner_and_says_what_cannot_change(
    provider: HiveProvider, schema: Levels, any_hms: HiveMetastore
) -> None:
    with any_hms.client() as client:
        database = client.get_database(schema[0])
        database.ownerName, database.ownerType = "crew", PrincipalType.ROLE
        client.alter_database(schema[0], database)
    found = provider.schemas.load(schema)
    shown = provider.schemas.show(found.definition)
    assert shown["properties"] == {"location": database.locationUri}
    alter_schema(provider, found, shown["properties"] | {"a": "1"})
    with any_hms.client() as client:
        after = client.get_database(schema[0])
    assert (after.ownerName, after.ownerType, after.parameters) == ("crew", PrincipalType.ROLE, {"a": "1"})
    with pytest.raises(Unsupported, match="comment"):
        provider.schemas.altered(found.definition, of_schema({}, {}, (None, "another")))
    with pytest.raises(Invalid, match="location"):
        provider.schemas.altered(found.definition, changes_to(provider, found, {"location": "file:///elsewhere"}))
    with pytest.raises(Invalid, match=r"metalake\.intent"):
        provider.schemas.altered(found.definition, changes_to(provider, found, {"metalake.intent": "7"}))


def test_a_touch_alone_is_no_new_version_and_statistics_are(
    provider: HiveProvider, schema: Levels, any_hms: HiveMetastore
) -> None:
    table = put_table(any_hms, schema[0], "delays")
    before = provider.tables.load(schema, "delays")

    def say(**parameters: str) -> str:
        with any_hms.client() as client:
            table.parameters |= parameters
            client.alter_table_with_environment_context(schema[0], "delays", table, EnvironmentContext({}))
        return provider.tables.load(schema, "delays").version

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
        provider.tables.drop(where, "airlines", provider.tables.load(where, "airlines").identity, purge=True)
    provider.tables.drop(where, "delays", provider.tables.load(where, "delays").identity, purge=True, by_owner=True)
    assert files(places["delays"]) == []
    assert provider.schemas.drop(where, "", cascade=True, by_owner=True) is None
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
    found = provider.tables.load(schema, "delays")
    held = lock(any_hms, schema[0], "delays")
    monkeypatch.setattr(hive_locks, "WAIT", 0.3)
    with pytest.raises(ProviderBusy, match="locked by somebody else"):
        provider.tables.alter(schema, "delays", [], found.version)
    monkeypatch.setattr(hive_locks, "WAIT", 30.0)
    done: list[str] = []
    ops = set_property("owner_team", "ops")
    waiting = threading.Thread(target=lambda: done.append(alter(provider, schema, found, ops).version))
    waiting.start()
    time.sleep(0.3)
    assert not done and provider.tables.load(schema, "delays") == found
    with any_hms.client() as client:
        client.unlock(UnlockRequest(held.lockid))
    waiting.join()
    assert done == [provider.tables.load(schema, "delays").version] != [found.version]
    last = lock(any_hms, schema[0], "delays")
    assert last.state == LockState.ACQUIRED, "neither who gave up waiting nor who altered keeps a lock"
    with any_hms.client() as client:
        client.unlock(UnlockRequest(last.lockid))


def test_a_writer_without_locks_is_noticed_by_2_3_10_only(
    provider: HiveProvider, schema: Levels, any_hms: HiveMetastore
) -> None:
    """Between our look and our alteration; this is why the lock matters on older ones."""
    theirs = put_table(any_hms, schema[0], "delays")
    found = provider.tables.load(schema, "delays")
    written = hive.written

    def late(*arguments: Any, **named: Any) -> Table:
        with any_hms.client() as client:
            theirs.parameters |= {"theirs": "1", "transient_lastDdlTime": "1900000000"}
            client.alter_table_with_environment_context(schema[0], "delays", theirs, EnvironmentContext({}))
        return written(*arguments, **named)

    ops = set_property("owner_team", "ops")
    with patch.object(hive, "written", late):
        if any_hms.version == NEW:
            with pytest.raises(Conflict):
                alter(provider, schema, found, ops)
        else:
            alter(provider, schema, found, ops)
    kept = provider.tables.load(schema, "delays").definition["parameters"]
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
    monkeypatch.setattr(hive_locks, "_lockers", set())


def test_without_locks_tables_are_altered_but_no_commit_is_made(
    without_locks: None, provider: HiveProvider, schema: Levels, any_hms: HiveMetastore
) -> None:
    put_table(any_hms, schema[0], "delays", table_type="ICEBERG", metadata_location="file:///v1")
    put_table(any_hms, schema[0], "airlines")
    found = provider.tables.load(schema, "airlines")
    ops = set_property("owner_team", "ops")
    assert alter(provider, schema, found, ops).version != found.version
    with pytest.raises(Conflict):
        alter(provider, schema, found, ops)
    with pytest.raises(Unsupported, match="keeps no locks"):
        provider.pointers.commit(schema, "delays", "file:///v2", "file:///v1")
    put_table(any_hms, schema[0], "late", "VIRTUAL_VIEW", table_type="ICEBERG-VIEW", metadata_location="file:///v1")
    with pytest.raises(Unsupported, match=r"View .* keeps no locks"):
        provider.view_pointers.commit(schema, "late", "file:///v2", "file:///v1")
    hive_locks._lockers.add(f"{any_hms.host}:{any_hms.port}")
    with pytest.raises(Refused, match="could not do lock"):  # it has given locks before: it is in trouble
        provider.pointers.commit(schema, "delays", "file:///v2", "file:///v1")


# Tables of other formats


def test_other_formats_are_hidden_where_the_catalog_says_so(
    provider: HiveProvider, schema: Levels, any_hms: HiveMetastore
) -> None:
    put_table(any_hms, schema[0], "delays", "EXTERNAL_TABLE", table_type="ICEBERG", metadata_location="file:///v1")
    put_table(any_hms, schema[0], "airlines")
    only_hive = provider_on(any_hms, **{"list-all-tables": "false"})
    for each, seen in [(provider, ["airlines", "delays"]), (only_hive, ["airlines"])]:
        listed = each.tables.list(schema, whole=each is provider).items
        assert [one.name for one in listed if each.tables.shows(one)] == seen
