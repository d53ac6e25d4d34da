"""Names, listings, renames and partitions in metastores of both versions."""
# ruff: noqa: F811

from __future__ import annotations

from typing import Any

import pytest
from hive_metastore.ttypes import (
    FieldSchema,
    SerDeInfo,
    StorageDescriptor,
    Table,
)

from formats.native.partitions import IdentityPartition
from formats.native.tables import CreateTableRequest
from metalake.errors import AlreadyExists, Invalid, NotFound, Unsupported
from metalake.hierarchy import HierarchicalSchema
from metalake.kinds import Kind
from providers.hive import partitions as hive_partitions
from providers.hive import schemas as hive_schemas
from providers.hive import tables as hive
from providers.hive.client import Metastore
from providers.hive.errors import About, Refused
from providers.hive.folders import LOOKS
from providers.hive.provider import HiveProvider
from providers.remote_objects import PARTITION, Levels, Page
from tests.hms import HiveMetastore
from tests.names import own_name
from tests.providers.behaviours import asked, create, everything
from tests.providers.hive_catalogs import files, provider, provider_on, put_file, put_table, schema  # noqa: F401 (fixtures)

# Names and listings


def test_views_are_told_from_tables(provider: HiveProvider, schema: Levels, any_hms: HiveMetastore) -> None:
    put_table(any_hms, schema[0], "delays")
    put_table(any_hms, schema[0], "late", "VIRTUAL_VIEW")
    for whole in (False, True):
        listed = {one.name: one.kind for one in provider.tables.list(schema, whole=whole).items}
        assert listed == {"delays": Kind.TABLE, "late": Kind.VIEW}
    assert provider.tables.load(schema, "late").kind == Kind.VIEW


@pytest.mark.parametrize("whole", [False, True])
def test_a_listing_goes_on_where_it_was(hms: HiveMetastore, monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    provider, where = provider_on(hms), [hms.create_database()]
    for number in range(7):
        put_table(hms, where[0], f"t{number}")
    monkeypatch.setattr(hive, "NAMES", 3)
    monkeypatch.setattr(hive, "TABLES", 3)

    def next_page(page: Page) -> Page:
        return provider.tables.list(where, page=page.next, whole=whole)

    first = provider.tables.list(where, whole=whole)
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
    again_first = provider.tables.list(where, whole=whole)
    provider.schemas.drop(where, "", cascade=True)
    if whole:
        with pytest.raises(NotFound):
            next_page(again_first)


def test_schemas_come_in_pages(hms: HiveMetastore, monkeypatch: pytest.MonkeyPatch) -> None:
    provider, names = provider_on(hms), sorted(hms.create_database() for _ in range(3))
    monkeypatch.setattr(hive_schemas, "PAGE", 2)
    listed = [one.name for one in everything(provider, "list_schemas")]
    assert listed == sorted(listed) and set(names) <= set(listed) and len(set(listed)) == len(listed)
    for name in names:
        provider.schemas.drop([name], "")


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
    pages = [provider.tables.list(where, whole=True)]
    while pages[-1].next:
        pages.append(provider.tables.list(where, page=pages[-1].next, whole=True))
    assert [len(page.items) for page in pages] == [200, 200, 100]
    assert len({one.name for page in pages for one in page.items}) == 500
    with hms.client() as client:
        client.drop_database(where[0], False, True)


@pytest.mark.parametrize("name", ["with-dash", "with space", "ünder", "x" * 129, "a.b"])
def test_names_that_hive_does_not_keep_are_refused(hms: HiveMetastore, name: str) -> None:
    provider = provider_on(hms)
    with pytest.raises(Invalid):
        provider.names.levels_of(HierarchicalSchema.flat(name))
    with pytest.raises(Invalid):
        provider.schemas.create([name], provider.schemas.draft(None, {}))
    with pytest.raises(Invalid):
        provider.tables.draft(provider.schemas.load(["default"]), asked(name))


def test_a_table_is_renamed_to_another_schema_with_its_files(
    provider: HiveProvider, schema: Levels, any_hms: HiveMetastore
) -> None:
    target = [any_hms.create_database()]
    before = put_table(any_hms, schema[0], "delays")
    put_file(before.sd.location)
    found = provider.tables.load(schema, "delays")
    with pytest.raises(NotFound) as missing:
        provider.tables.rename(schema, "delays", [f"{target[0]}_none"], "late", found.identity)
    assert missing.value.kind == Kind.SCHEMA
    with pytest.raises(NotFound):
        provider.tables.rename(schema, "delays", target, "late", "1")
    moved = provider.tables.rename(schema, "delays", target, "late", found.identity)
    assert moved == provider.tables.load(target, "late") and moved.identity == found.identity
    assert files(before.sd.location) == [] and files(moved.definition["location"]) == ["part-0"]
    with any_hms.client() as client:
        after = client.get_table(target[0], "late")
    assert (after.owner, after.retention, after.sd.skewedInfo) == ("crew", 7, before.sd.skewedInfo)
    provider.schemas.drop(target, "", cascade=True)


@pytest.mark.parametrize("failure", [Refused("gone meanwhile"), NotFound("gone meanwhile")])
def test_a_rename_looks_again_where_something_was_dropped_while_it_looked(
    provider: HiveProvider,
    schema: Levels,
    any_hms: HiveMetastore,
    failure: Exception,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put_table(any_hms, schema[0], "delays")
    delays = provider.tables.load(schema, "delays")
    answers, failures = Metastore.call, [failure] * LOOKS

    def fails_at_first(metastore: Metastore, method: str, *arguments: Any, about: About) -> Any:
        if method == "get_all_tables" and failures:
            raise failures.pop()
        return answers(metastore, method, *arguments, about=about)

    monkeypatch.setattr(Metastore, "call", fails_at_first)
    with pytest.raises(Invalid, match="too large to see in time"):
        provider.tables.rename(schema, "delays", schema, "late", delays.identity)
    assert not failures, "it was looked at again"
    failures.append(failure)
    assert provider.tables.rename(schema, "delays", schema, "late", delays.identity).name == "late"


def test_what_a_metastore_repeats_by_itself_is_taken_for_ours(provider: HiveProvider, schema: Levels) -> None:
    new = provider.tables.draft(provider.schemas.load(schema), asked("delays"))
    made = create(provider, schema, "delays", new, marker="7")
    assert create(provider, schema, "delays", new, marker="7") == made
    for other in ("8", ""):
        with pytest.raises(AlreadyExists):
            create(provider, schema, "delays", new, marker=other)
    place = provider.schemas.draft(None, {})
    another = [own_name("flights")]
    assert provider.schemas.create(another, place, "7") == provider.schemas.create(another, place, "7")
    with pytest.raises(AlreadyExists):
        provider.schemas.create(another, place, "8")
    provider.schemas.drop(another, "")


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
    table = create(provider, schema, "delays", provider.tables.draft(provider.schemas.load(schema), request))
    made = [
        provider.partitions.add(schema, "delays", provider.partitions.draft(table.definition, each))
        for each in (partition("2013", "A/B", numRows="7"), partition("2013", None), partition("2014", "Jan"))
    ]
    with pytest.raises(AlreadyExists) as taken:
        provider.partitions.add(schema, "delays", made[0].definition)
    assert taken.value.kind == PARTITION
    assert made[0].name == "year=2013/month=A%2FB" and made[0].kind == PARTITION
    monkeypatch.setattr(hive_partitions, "PAGE", 2)
    listed = everything(provider, "list_partitions", schema=schema, table="delays")
    assert sorted(listed, key=lambda one: one.name) == sorted(made, key=lambda one: one.name)
    assert provider.partitions.load(schema, "delays", made[1].name) == made[1]
    shown = provider.partitions.show(table.definition, made[0].definition)
    assert shown["values"][1] == {"type": "literal", "dataType": "string", "value": "A/B"}
    assert shown["properties"]["numRows"] == "7"
    place = shown["properties"]["location"]
    assert place.startswith(table.definition["location"]) and files(place) == []
    put_file(place)
    provider.partitions.drop(schema, "delays", made[0].name, by_owner=True)
    assert files(place) == [], "as the table is managed"
    for verb in (provider.partitions.load, provider.partitions.drop):
        with pytest.raises(NotFound) as missing:
            verb(schema, "delays", made[0].name)
        assert missing.value.kind == PARTITION
        with pytest.raises(Invalid, match="year="):
            verb(schema, "delays", "carrier=UA")
    with pytest.raises(NotFound) as missing:
        provider.partitions.list(schema, "none")
    assert missing.value.kind == Kind.TABLE


def test_a_table_without_partitions_says_so(provider: HiveProvider, schema: Levels) -> None:
    table = create(provider, schema, "delays", provider.tables.draft(provider.schemas.load(schema), asked("delays")))
    with pytest.raises(Unsupported, match="not partitioned"):
        provider.partitions.draft(table.definition, partition("2013", "Jan"))
    with pytest.raises(Unsupported, match="not partitioned"):
        provider.partitions.list(schema, "delays")
    with pytest.raises(Unsupported, match="not partitioned"):
        provider.partitions.load(schema, "delays", "year=2013")
