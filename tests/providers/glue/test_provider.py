"""The Glue provider on moto's server: what every provider does, and what only Glue has."""
# ruff: noqa: F811

from __future__ import annotations

import time
from typing import Any

import pytest

from formats.native.changes import of_schema
from formats.native.partitions import IdentityPartition
from formats.native.tables import AddColumn
from metalake.errors import AlreadyExists, Conflict, Invalid, NotFound, Unsupported
from metalake.kinds import Kind
from providers.glue.client import GlueClient
from providers.glue.provider import GlueProvider
from tests.glue import Glue
from tests.providers.behaviours import Behaviours, alter, everything, set_property
from tests.providers.glue_catalogs import FLIGHTS, entry, files, provider, provider_on, storage, tables_of_engines  # noqa: F401 (fixtures)


class GlueBehaviours(Behaviours):
    tick = 0.01


class TestIcebergInGlue(GlueBehaviours):
    @pytest.fixture
    def provider(self, glue: Glue) -> GlueProvider:
        glue.create_bucket("lake")
        return provider_on(glue)


class TestHiveInGlue(GlueBehaviours):
    @pytest.fixture
    def provider(self, glue: Glue) -> GlueProvider:
        return provider_on(glue, default_table_format="hive")


@pytest.fixture
def mixed(provider: GlueProvider, glue: Glue) -> dict[str, dict[str, Any]]:
    """Tables of every format, by name as they were put in."""
    given = {table["Name"]: table for table in tables_of_engines()}
    for table in given.values():
        glue.client().create_table(DatabaseName="flights", TableInput=table)
    return given


def calls(glue: Glue, operation: str) -> list[dict[str, Any]]:
    return [parameters for name, parameters in glue.calls if name == operation]


# Listing


def test_a_page_is_a_page_of_glue(provider: GlueProvider, glue: Glue) -> None:
    client, names = glue.client(), [f"delays_{number:03}" for number in range(250)]
    for name in names:
        client.create_table(DatabaseName="flights", TableInput={"Name": name})
    for name in names[:105]:
        client.create_database(DatabaseInput={"Name": name})
    glue.calls.clear()
    assert sorted(one.name for one in everything(provider, "list_tables", schema=FLIGHTS)) == names
    assert len(calls(glue, "GetTables")) == 3
    assert sorted(one.name for one in everything(provider, "list_schemas")) == [*names[:105], "flights"]
    assert len(calls(glue, "GetDatabases")) == 2
    assert len(provider.tables.list(FLIGHTS).items) == 100


def test_tables_of_all_formats_are_in_one_list(provider: GlueProvider, mixed: dict[str, dict[str, Any]]) -> None:
    listed = {one.name: one for one in everything(provider, "list_tables", schema=FLIGHTS)}
    kinds = {name: one.kind for name, one in listed.items()}
    assert kinds == dict.fromkeys(mixed, Kind.TABLE) | {"late_flights": Kind.VIEW}
    for name, given in mixed.items():
        assert listed[name] == provider.tables.load(FLIGHTS, name)
        shown = provider.tables.show(listed[name].definition)
        assert shown["properties"].items() >= given["Parameters"].items(), name
    delays = provider.tables.show(listed["delays"].definition)
    route = {
        "type": "struct",
        "fields": [
            {"name": "origin", "type": "string", "nullable": True},
            {
                "name": "stops",
                "type": {"type": "list", "elementType": "string", "containsNull": True},
                "nullable": True,
            },
        ],
    }
    types = {column["name"]: column["type"] for column in delays["columns"]}
    assert types == {"carrier": "varchar(2)", "delay": "integer", "route": route, "day": "date"}
    assert delays["partitioning"] == [{"strategy": "identity", "fieldName": ["day"]}]
    assert delays["comment"] == "minutes late"
    assert delays["properties"]["location"] == "s3://lake/delays"
    assert (delays["properties"]["format"], delays["properties"]["table-type"]) == ("PARQUET", "EXTERNAL_TABLE")
    weather = provider.tables.show(listed["weather"].definition)
    assert weather["columns"][1]["type"] == {"type": "external", "catalogString": "sparkline<int>"}


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("all", {"airlines", "airports", "delays", "planes", "weather"}),
        ("hive", {"airlines", "delays", "weather"}),
        ("iceberg", {"airports"}),
        ("Delta, parquet", {"planes", "delays"}),
    ],
)
def test_a_filter_hides_formats(
    mixed: dict[str, dict[str, Any]], provider: GlueProvider, glue: Glue, words: str, shown: set[str]
) -> None:
    for name in ("table_type_filter", "table_format_filter"):
        filtered = provider_on(glue, **{name: words})
        tables = everything(filtered, "list_tables", schema=FLIGHTS)
        assert {one.name for one in tables if one.kind == Kind.TABLE and filtered.tables.shows(one)} == shown


def test_catalogs_of_one_account_are_apart(provider: GlueProvider, glue: Glue) -> None:
    other = provider_on(glue, aws_glue_catalog_id="210987654321")
    assert other.schemas.list().items == []
    other.schemas.create(["sales"], other.schemas.draft(None, {}))
    assert [one.name for one in other.schemas.list().items] == ["sales"]
    assert [one.name for one in provider.schemas.list().items] == ["flights"]
    blank = provider_on(glue, aws_glue_catalog_id=" ")
    assert [one.name for one in blank.schemas.list().items] == ["flights"]


# Altering


def test_an_alteration_changes_nothing_else(provider: GlueProvider, glue: Glue) -> None:
    descriptor = storage(
        "s3://lake/delays",
        ("carrier", "string"),
        AdditionalLocations=["s3://lake/older"],
        SkewedInfo={"SkewedColumnNames": ["carrier"], "SkewedColumnValues": ["UA"]},
        SortColumns=[{"Column": "carrier", "SortOrder": 0}],
        Parameters={"averageRecordSize": "12"},
    )
    descriptor["Columns"][0]["Parameters"] = {"pii": "no"}
    given = {
        "Name": "delays",
        "TableType": "EXTERNAL_TABLE",
        "Retention": 7,
        "LastAccessTime": "2026-11-21T00:00:00Z",
        "Parameters": {"UPDATED_BY_CRAWLER": "nightly", "classification": "parquet"},
        "StorageDescriptor": descriptor,
        "TargetTable": {"CatalogId": "123456789012", "DatabaseName": "sales", "Name": "delays"},
    }
    glue.client().create_table(DatabaseName="flights", TableInput=given)
    before, loaded = entry(glue, "delays"), provider.tables.load(FLIGHTS, "delays")
    altered = alter(provider, FLIGHTS, loaded, set_property("owner_team", "ops"), marker="42")
    after = entry(glue, "delays")
    assert after["Parameters"] == before["Parameters"] | {"owner_team": "ops", "metalake.intent": "42"}
    moving = {"Parameters", "VersionId", "UpdateTime"}
    assert {k: v for k, v in after.items() if k not in moving} == {k: v for k, v in before.items() if k not in moving}
    assert altered == provider.tables.load(FLIGHTS, "delays")
    sent = calls(glue, "UpdateTable")[-1]
    assert (sent["VersionId"], sent["SkipArchive"]) == (before["VersionId"], True)


def test_a_database_keeps_what_is_not_changed(provider: GlueProvider, glue: Glue) -> None:
    permissions = [{"Principal": {"DataLakePrincipalIdentifier": "IAM_ALLOWED_PRINCIPALS"}, "Permissions": ["ALL"]}]
    given = {"Name": "sales", "LocationUri": "s3://lake/sales", "CreateTableDefaultPermissions": permissions}
    glue.client().create_database(DatabaseInput=given | {"Parameters": {"owner_team": "bi"}})
    before = provider.schemas.load(["sales"])
    shown = provider.schemas.show(before.definition)
    assert shown == {"comment": None, "properties": {"owner_team": "bi", "location": "s3://lake/sales"}}
    changes = of_schema(shown["properties"], shown["properties"] | {"region": "emea"}, (None, "of 2013"))
    provider.schemas.alter(["sales"], changes, before.version)
    after = glue.client().get_database(Name="sales")["Database"]
    assert after["CreateTableDefaultPermissions"] == permissions
    assert (after["LocationUri"], after["Description"]) == ("s3://lake/sales", "of 2013")
    assert after["Parameters"] == {"owner_team": "bi", "region": "emea"}


def test_who_comes_second_in_a_race_is_refused(
    provider: GlueProvider, glue: Glue, mixed: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Glue itself refuses what was prepared on an older version, however late the other one came."""
    loaded = provider.tables.load(FLIGHTS, "weather")
    ask = GlueClient.call

    def overtaken(self: GlueClient, operation: str, *args: Any, **parameters: Any) -> dict[str, Any]:
        if operation == "UpdateTable":
            glue.client().update_table(DatabaseName="flights", TableInput={"Name": "weather", "Owner": "crawler"})
        return ask(self, operation, *args, **parameters)

    monkeypatch.setattr(GlueClient, "call", overtaken)
    with pytest.raises(Conflict):
        alter(provider, FLIGHTS, loaded, set_property("owner_team", "ops"))
    assert entry(glue, "weather")["Owner"] == "crawler"
    assert "owner_team" not in entry(glue, "weather").get("Parameters", {})


def test_columns_are_added_to_hive_tables_alone(provider: GlueProvider, mixed: dict[str, dict[str, Any]]) -> None:
    add = AddColumn.model_validate({"@type": "addColumn", "fieldName": ["tail"], "type": "string"})
    delays = provider.tables.load(FLIGHTS, "delays")
    altered = alter(provider, FLIGHTS, delays, add)
    names = [column["name"] for column in provider.tables.show(altered.definition)["columns"]]
    assert names == ["carrier", "delay", "route", "tail", "day"]
    for name, said in {"airports": "commits to its metadata", "planes": "changed by engines"}.items():
        with pytest.raises(Unsupported, match=said):
            provider.tables.altered(provider.tables.load(FLIGHTS, name).definition, [add])
    with pytest.raises(Invalid, match="not under a location this catalog allows"):
        provider.tables.altered(delays.definition, [set_property("location", "s3://elsewhere/delays")])


# Renaming


def test_a_hive_table_is_not_renamed(provider: GlueProvider, mixed: dict[str, dict[str, Any]]) -> None:
    with pytest.raises(Unsupported, match="cannot rename"):
        provider.tables.renaming(FLIGHTS, FLIGHTS, "late", provider.tables.load(FLIGHTS, "delays"), "42")
    with pytest.raises(Invalid, match="letters a to z"):
        provider.tables.renaming(FLIGHTS, FLIGHTS, "my-airports", provider.tables.load(FLIGHTS, "airports"), "42")


def test_a_table_that_is_written_to_keeps_its_name(
    provider: GlueProvider, glue: Glue, mixed: dict[str, dict[str, Any]]
) -> None:
    """Else the commit of an engine between the two calls would be lost."""
    seen = provider.tables.load(FLIGHTS, "airports")
    (create, made), (drop, gone) = provider.tables.renaming(FLIGHTS, FLIGHTS, "fields", seen, "42")
    renamed = provider.call(create, made)
    assert provider.tables.is_marked(renamed, "42")
    assert provider.pointers.location(renamed.definition) == provider.pointers.location(seen.definition)
    glue.client().update_table(DatabaseName="flights", TableInput=mixed["airports"])
    with pytest.raises(Conflict):
        provider.call(drop, gone)
    assert provider.tables.load(FLIGHTS, "airports").identity == seen.identity


# Dropping


@pytest.mark.parametrize("by_owner", [True, False])
def test_files_stay_whatever_is_dropped(
    provider: GlueProvider, mixed: dict[str, dict[str, Any]], glue: Glue, by_owner: bool
) -> None:
    glue.client("s3").put_object(Bucket="lake", Key="flights/delays/part-0", Body=b"UA,12")
    before = files(glue)
    assert before
    for name in list(mixed)[:2]:
        found = provider.tables.load(FLIGHTS, name)
        provider.tables.drop(FLIGHTS, name, found.identity, purge=True, by_owner=by_owner)
    identity = provider.schemas.load(FLIGHTS).identity
    provider.schemas.drop(FLIGHTS, identity, cascade=True, by_owner=by_owner)
    assert files(glue) == before


# Partitions


def test_partitions_are_listed_loaded_added_and_dropped(
    provider: GlueProvider, glue: Glue, mixed: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = provider.tables.load(FLIGHTS, "delays").definition

    def on(day: str, **properties: str) -> dict[str, Any]:
        value = {"type": "literal", "dataType": "date", "value": day}
        said = {"type": "identity", "fieldNames": [["day"]], "values": [value], "properties": properties}
        return provider.partitions.draft(table, IdentityPartition.model_validate(said))

    made = provider.partitions.add(FLIGHTS, "delays", on("2026-11-21", rows="12"))
    assert made.name == "day=2026-11-21"
    assert provider.partitions.load(FLIGHTS, "delays", made.name) == made
    shown = provider.partitions.show(table, made.definition)
    assert shown["values"] == [{"type": "literal", "dataType": "date", "value": "2026-11-21"}]
    assert shown["properties"] == {"rows": "12", "location": "s3://lake/delays/day=2026-11-21"}
    kept = glue.client().get_partition(DatabaseName="flights", TableName="delays", PartitionValues=["2026-11-21"])
    descriptor = kept["Partition"]["StorageDescriptor"]
    assert descriptor["SerdeInfo"]["SerializationLibrary"].endswith("ParquetHiveSerDe")
    with pytest.raises(AlreadyExists):
        provider.partitions.add(FLIGHTS, "delays", on("2026-11-21"))
    client = glue.client()
    for day in range(1, 5):
        values = {"Values": [f"2026-01-0{day}"]}
        client.create_partition(DatabaseName="flights", TableName="delays", PartitionInput=values)
    monkeypatch.setattr("providers.glue.partitions.PAGE", 2)
    listed = everything(provider, "list_partitions", schema=FLIGHTS, table="delays")
    assert len(listed) == 5 and made in listed
    assert len(calls(glue, "GetPartitions")) == 3
    provider.partitions.drop(FLIGHTS, "delays", made.name)
    for lookup in (provider.partitions.load, provider.partitions.drop):
        with pytest.raises(NotFound) as missing:
            lookup(FLIGHTS, "delays", made.name)
        assert missing.value.kind == "partition"
    with pytest.raises(Invalid, match="not under a location"):
        on("2026-11-22", location="s3://elsewhere")
    with pytest.raises(Unsupported):
        provider.partitions.list(FLIGHTS, "weather")
    with pytest.raises(Invalid, match="names no partition"):
        provider.partitions.load(FLIGHTS, "delays", "carrier=AA")


def test_an_identity_is_the_same_on_every_machine(
    provider: GlueProvider, mixed: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = provider.tables.load(FLIGHTS, "delays").identity
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert provider.tables.load(FLIGHTS, "delays").identity == here
    finally:
        monkeypatch.undo()
        time.tzset()
