"""Names, listings, renames and partitions in metastores of both versions."""
# ruff: noqa: F811

from __future__ import annotations

from uuid import uuid4

import pytest
from hive_metastore.ttypes import (
    FieldSchema,
    SerDeInfo,
    StorageDescriptor,
    Table,
)

from formats.hive.partitions import IdentityPartition
from formats.native.tables import CreateTableRequest
from metalake.errors import AlreadyExists, Invalid, NotFound, Unsupported
from metalake.hierarchy import HierarchicalSchema
from metalake.kinds import Kind
from providers.external import PARTITION, Levels, Page
from providers.hive import provider as hive
from providers.hive.provider import HiveProvider
from tests.hms import HiveMetastore
from tests.providers.behaviours import asked, everything
from tests.providers.hive_catalogs import files, provider, provider_on, put_file, put_table, schema  # noqa: F401 (fixtures)

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
    again_first = provider.list_tables(where, whole=whole)
    provider.drop_schema(where, "", cascade=True)
    if whole:
        with pytest.raises(NotFound):
            next_page(again_first)


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
    provider.drop_partition(schema, "delays", made[0].name, by_owner=True)
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
