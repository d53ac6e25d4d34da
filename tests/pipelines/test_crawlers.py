"""What crawlers deliver of a system is what its provider says of it."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from hive_metastore.ttypes import (
    Database,
    FieldSchema,
    Order,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
    Table,
)

from metalake.errors import Invalid
from metalake_client.failures import Failure
from pipelines.crawlers import hive
from pipelines.crawlers.glue import crawler as glue_crawler
from pipelines.crawlers.systems import SYSTEMS, Entry, Unavailable, as_stored, patiently, system_of
from pipelines.harvest import with_secrets
from pipelines.sealed_secrets import KEY_FILE, sealed
from providers import nul_characters
from providers.glue.deliveries import delivered_database as glue_database
from providers.glue.deliveries import delivered_table as glue_table
from providers.glue.provider import GlueProvider
from providers.hive.deliveries import delivered_database, delivered_table
from providers.hive.objects import schema_of, table_of
from providers.remote_objects import Remote
from tests.glue import Glue


def tables() -> list[Table]:
    """A table of everything that one may have, one of nothing, and a view."""
    columns = [FieldSchema("id", "bigint", "who\0 it is"), FieldSchema("day", None, None)]
    serde = SerDeInfo("lines", "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", {"field.delim": "\0"})
    storage = StorageDescriptor(columns, "file:///lake/t", "in", "out", True, 4, serde, ["id"], [Order("id", 0)], {})
    storage.parameters, storage.storedAsSubDirectories, storage.skewedInfo = {"k": "v"}, True, SkewedInfo(["id"])
    full = Table("full", "flights", "mia", 1_700_000_000, 0, 7, storage, [FieldSchema("part", "string", None)])
    full.tableType, full.parameters = "EXTERNAL_TABLE", {"comment": "all of it", "transient_lastDdlTime": "1", "a": "ü"}
    view = Table("view", "flights", None, 1, viewOriginalText="select 1", viewExpandedText="select 1 as `one`")
    view.tableType = "VIRTUAL_VIEW"
    return [full, Table("bare", "flights"), view]


def stored(remote: Remote) -> Remote:
    return Remote(**nul_characters.as_stored(remote.as_json()))


def row_of(each: Entry, read: Any) -> Remote:
    """The row of what is delivered, which the crawler itself would leave out from then on."""
    remote = read(nul_characters.as_sent(as_stored(each.content)))
    assert (each.name, each.identity) == (remote.name, remote.identity)
    assert each.version in (remote.version, "")
    return stored(remote)


@pytest.mark.parametrize("table", tables(), ids=lambda table: table.tableName)
def test_a_table_of_a_metastore(table: Table) -> None:
    each = hive.table_entry(table)
    assert row_of(each, delivered_table) == stored(table_of(table))
    assert each.version


def test_a_database_of_a_metastore() -> None:
    for database in (
        Database("flights", None, None, None),
        Database("b", "says\0", "file:///b", {"k": "v"}, None, "o", 1),
    ):
        assert row_of(hive.database_entry(database), delivered_database) == stored(schema_of(database))


def test_what_is_no_entry_of_a_metastore() -> None:
    entry = hive.table_entry(tables()[0]).content
    entries: list[dict[str, Any]] = [
        {"definition": {}},
        {"definition": entry["definition"]},
        entry | {"identity": 7},
        entry | {"more": 1},
        entry | {"definition": entry["definition"] | {"parameters": {"a": 5}}},
        entry | {"definition": entry["definition"] | {"columns": [{"name": "x"}]}},
        entry | {"definition": entry["definition"] | {"name": ""}},
    ]
    for wrong in entries:
        with pytest.raises(Invalid):
            delivered_table(wrong)
    databases: list[dict[str, Any]] = [{"name": "x"}, {"name": "", "definition": {}}, {"name": 1, "definition": {}}]
    for wrong in databases:
        with pytest.raises(Invalid):
            delivered_database(wrong)


def test_what_glue_has(glue: Glue) -> None:
    client = glue.client()
    client.create_database(DatabaseInput={"Name": "flights", "Description": "all", "Parameters": {"k": "v"}})
    for number in range(120):
        storage = {"Columns": [{"Name": "id", "Type": "bigint"}], "Location": f"s3://lake/{number}", "SerdeInfo": {}}
        made = {"Name": f"t{number:03}", "StorageDescriptor": storage, "Parameters": {"classification": "csv"}}
        client.create_table(DatabaseName="flights", TableInput=made)
    given = {
        "aws-region": glue.region,
        "aws-glue-endpoint": glue.endpoint,
        "aws-access-key-id": glue.access_key,
        "aws-secret-access-key": glue.secret_key,
    }
    crawler, provider = glue_crawler(given, 2), GlueProvider(1, given)
    databases = [each for page in crawler.read("", None) for each in page]
    assert [row_of(each, glue_database) for each in databases] == [stored(one) for one in provider.schemas.list().items]
    pages = list(crawler.read("flights", None))
    first = provider.tables.list(["flights"])
    listed = [*first.items, *provider.tables.list(["flights"], first.next).items]
    assert [len(page) for page in pages] == [100, 20] and len(listed) == 120
    assert [row_of(each, glue_table) for page in pages for each in page] == [stored(one) for one in listed]
    glue.expired.add(glue.access_key)
    with pytest.raises(Unavailable) as refused:
        list(crawler.read("", None))
    assert refused.value.is_final and glue.secret_key not in str(refused.value)


@pytest.mark.parametrize(
    "wrong", [{}, {"Name": 7}, {"Name": "t", "CreateTime": "yesterday"}, {"Name": "t", "Retention": "long"}]
)
def test_what_is_no_entry_of_glue(wrong: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        glue_table(wrong)


def test_patience() -> None:
    tries = []

    def fails(is_final: bool) -> None:
        tries.append(is_final)
        raise Unavailable("no", is_final=is_final)

    for is_final, times in ((True, 1), (False, 3)):
        tries.clear()
        with pytest.raises(Unavailable):
            patiently(lambda final=is_final: fails(final), 1.0)  # type: ignore[misc]
        assert len(tries) in (times, times - 1, 1)


def test_a_metastore_is_in_no_cloud_s_own_services() -> None:
    with pytest.raises(Unavailable, match="no metastore is"):
        hive.Hive("thrift://169.254.169.254:80", 1).parts("")
    with pytest.raises(Failure, match="are not harvested"):
        system_of("lakehouse-iceberg")


# Secrets


def test_secrets_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    masked = {"aws-region": "eu", "aws-secret-access-key": "******", "s3.secret-access-key": "******"}
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY", raising=False)
    with pytest.raises(Failure, match="set AWS_SECRET_ACCESS_KEY to"):
        with_secrets(SYSTEMS["glue"], masked, "")
    monkeypatch.setenv("MINE", "s3cret")
    given = with_secrets(SYSTEMS["glue"], masked, "aws-secret-access-key:MINE")
    assert given["aws-secret-access-key"] == "s3cret"


def test_what_spark_carries_is_sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with sealed({"token": "mlk_secret"}, is_local=True) as box:
        assert box.open() == {"token": "mlk_secret"}
        assert b"mlk_secret" not in pickle.dumps(box) and "mlk_secret" not in repr(box)
        key = Path(box.key_file)
        assert key.parent.stat().st_mode & 0o77 == 0
    assert not key.parent.exists()
    with pytest.raises(Failure, match=f"set {KEY_FILE}"), sealed({}, is_local=False):
        pass
    monkeypatch.setenv(KEY_FILE, str(tmp_path / "key"))
    with pytest.raises(Failure, match="There is no key file"), sealed({}, is_local=False):
        pass
    (tmp_path / "key").write_text("short")
    with pytest.raises(Failure, match="is no key"), sealed({}, is_local=False):
        pass
