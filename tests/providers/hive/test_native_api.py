"""Iceberg tables in a Hive catalog through the native wire, and what a crash leaves of one that is being made."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest

from authz.callers.identity import actor_of
from authz.models import User
from catalogs.models import Intent
from catalogs.services import tables
from formats.native.tables import CreateTableRequest
from metalake.lineage import Address
from metalake.models import Securable
from outside.reads import LOOKS
from providers import circuit_breaker
from providers.hive.client import Metastore
from tests.cases import each
from tests.catalogs.callers import Caller
from tests.catalogs.conftest import admin  # noqa: F401 (fixture)
from tests.hms import HiveMetastore
from tests.iceberg_rest.world import Caller as IcebergCaller
from tests.outside.crashes import Killed, killed_at, settle_all
from tests.providers.hive_catalogs import put_table

pytestmark = pytest.mark.django_db(transaction=True)

CATALOGS = "metalakes/demo/catalogs"
DELAYS = {
    "name": "delays",
    "comment": "how late",
    "columns": [{"name": "carrier", "type": "string"}, {"name": "delay", "type": "integer"}],
    "properties": {"table_type": "ICEBERG", "owner_team": "ops"},
}


@pytest.fixture
def caller(admin: Caller, hms: HiveMetastore, settings: Any) -> Caller:  # noqa: F811
    """The owner of the catalog `hive`, whose databases are below a place where this server may write."""
    circuit_breaker.forget_all()
    settings.METALAKE_FILE_LOCATIONS = [str(hms.warehouse)]
    register(admin, hms, "hive")
    return admin


def register(caller: Caller, hms: HiveMetastore, name: str, **properties: str) -> None:
    given = {"metastore.uris": hms.uri} | {key.replace("_", "-"): value for key, value in properties.items()}
    body = {"name": name, "type": "relational", "provider": "hive", "properties": given}
    assert caller.post(CATALOGS, body)["catalog"]["provider"] == "hive"


@pytest.fixture
def database(caller: Caller, hms: HiveMetastore) -> str:
    return hms.create_database()


def held(hms: HiveMetastore, database: str) -> list[str]:
    with hms.client() as client:
        return sorted(client.get_all_tables(database))


def files(hms: HiveMetastore, database: str) -> list[Path]:
    below = (hms.warehouse / f"{database}.db").rglob("*")
    return [file for file in below if file.is_file() and not file.name.endswith(".crc")]


def test_an_iceberg_table_lives_and_ends(caller: Caller, hms: HiveMetastore, database: str) -> None:
    where = f"{CATALOGS}/hive/schemas/{database}/tables"
    made = caller.post(where, DELAYS)["table"]
    assert (made["comment"], made["properties"]) == ("how late", DELAYS["properties"]), "as it was sent"
    shown = caller.get(f"{where}/delays")["table"]["properties"]
    pointer = shown["metadata_location"]
    assert shown["owner_team"] == "ops"
    assert files(hms, database) == [Path(urlparse(pointer).path)]
    assert caller.post(where, DELAYS).error[:2] == (409, 1004)
    updates: list[dict[str, Any]] = [
        {"@type": "addColumn", "fieldName": ["gate"], "type": "integer"},
        {"@type": "updateComment", "newComment": "in minutes"},
        {"@type": "setProperty", "property": "region", "value": "emea"},
    ]
    altered = caller.put(f"{where}/delays", *updates)["table"]
    assert [column["name"] for column in altered["columns"]] == ["carrier", "delay", "gate"]
    assert (altered["comment"], altered["properties"]["region"]) == ("in minutes", "emea")
    assert altered["properties"]["previous_metadata_location"] == pointer
    kept = files(hms, database)
    renamed = caller.put(f"{where}/delays", {"@type": "rename", "newName": "late"})["table"]
    assert renamed["properties"]["metadata_location"] == altered["properties"]["metadata_location"]
    assert held(hms, database) == ["late"]
    assert caller.delete(f"{where}/late?purge=true")["dropped"] is True
    assert (held(hms, database), files(hms, database)) == ([], kept)
    again = {"name": "again", "columns": [], "properties": {"table-format": "iceberg", "metadata_location": pointer}}
    assert [column["name"] for column in caller.post(where, again)["table"]["columns"]] == ["carrier", "delay"]


@each(
    "changed, status",
    [
        ({"table_type": "delta"}, 405),
        ({"table_type": "hive", "table-format": "iceberg"}, 400),
        ({"table_type": "hive", "metadata_location": "file:///m.json"}, 400),
        ({"table-type": "MANAGED_TABLE"}, 400),
        ({"serde-lib": "x"}, 400),
        ({"location": "file:///tmp/delays"}, 400),
        ({"location": "s3://elsewhere/delays"}, 400),
        ({"write.data.path": "s3://elsewhere/delays"}, 400),
        ({"s3.access-key-id": "x"}, 400),
    ],
)
def test_bad_tables_make_nothing(
    caller: Caller, hms: HiveMetastore, database: str, changed: dict[str, str], status: int
) -> None:
    caller.get(f"{CATALOGS}/hive/schemas/{database}")
    rows = Securable.objects.count()
    body = DELAYS | {"properties": {"table_type": "ICEBERG"} | changed}
    assert caller.post(f"{CATALOGS}/hive/schemas/{database}/tables", body).status == status
    assert (held(hms, database), files(hms, database)) == ([], [])
    assert Securable.objects.count() == rows


def test_what_the_catalog_hides_is_not_made(caller: Caller, hms: HiveMetastore, database: str) -> None:
    register(caller, hms, "plain", list_all_tables="false")
    refused = caller.post(f"{CATALOGS}/plain/schemas/{database}/tables", DELAYS)
    assert refused.error[:2] == (405, 1006) and "hide" in refused.message
    assert (held(hms, database), files(hms, database)) == ([], [])


def test_a_refused_change_of_columns_names_the_setting_of_the_metastore(
    caller: Caller, hms: HiveMetastore, database: str
) -> None:
    """A metastore compares columns by their position unless it is told not to."""
    where = f"{CATALOGS}/hive/schemas/{database}/tables"
    for name, format in [("delays", "ICEBERG"), ("plain", "HIVE")]:
        body = DELAYS | {"name": name, "properties": {"table_type": format}}
        assert caller.post(where, body)["table"]["name"] == name
    lake = IcebergCaller(caller.name, catalog="hive")
    loaded = lake.get(f"namespaces/{database}/tables/delays").json
    kept, entry = files(hms, database), caller.get(f"{where}/delays").body
    first = {"@type": "addColumn", "fieldName": ["minutes"], "type": "integer", "position": "first"}
    fields = loaded["metadata"]["schemas"][0]["fields"]
    moved = {"type": "struct", "schema-id": 1, "fields": [*fields[1:], *fields[:1]]}
    updates = [{"action": "add-schema", "schema": moved}, {"action": "set-current-schema", "schema-id": -1}]
    commit = lake.post(f"namespaces/{database}/tables/delays", {"requirements": [], "updates": updates})
    refused = [caller.put(f"{where}/{name}", first) for name in ("plain", "delays")]
    assert [answer.error[:2] for answer in refused] == [(400, 1001)] * 2
    assert commit.error[:2] == (400, "BadRequestException")
    for message in (commit.error[2], *(answer.message for answer in refused)):
        assert "existing columns in their respective positions" in message
        assert "hive.metastore.disallow.incompatible.col.type.changes is true, the default: set it to false" in message
    assert (files(hms, database), caller.get(f"{where}/delays").body) == (kept, entry)
    last = first | {"position": "default"}
    assert [caller.put(f"{where}/{name}", last).status for name in ("plain", "delays")] == [200, 200]


@pytest.mark.parametrize("format", ["HIVE", "ICEBERG"])
def test_all_columns_may_be_partitioned_by(caller: Caller, hms: HiveMetastore, database: str, format: str) -> None:
    where = f"{CATALOGS}/hive/schemas/{database}/tables"
    keys = ["carrier", "delay"]
    by = [{"strategy": "identity", "fieldName": [name]} for name in keys]
    caller.post(where, DELAYS | {"partitioning": by, "properties": {"table_type": format}})
    table = caller.get(f"{where}/delays")["table"]
    assert ([each["name"] for each in table["columns"]], table["partitioning"]) == (keys, by)
    added = {"@type": "addColumn", "fieldName": ["gate"], "type": "integer"}
    shown = caller.put(f"{where}/delays", added)["table"]["columns"]
    assert {each["name"] for each in shown} == {*keys, "gate"}
    shown = caller.put(f"{where}/delays", {"@type": "deleteColumn", "fieldName": ["gate"], "ifExists": False})
    assert [each["name"] for each in shown["table"]["columns"]] == keys


def create(database: str) -> object:
    actor = actor_of(User.objects.get(username="admin"))
    ident = Address(metalake="demo", catalog="hive", schema=database, leaf="delays")
    return tables.create_native_table(actor, ident, CreateTableRequest.model_validate(DELAYS))


@pytest.mark.parametrize("point", ["promised", "before 0", "after 0", "marked 0", "publishing", "committing"])
def test_a_crash_leaves_a_table_or_nothing(caller: Caller, hms: HiveMetastore, database: str, point: str) -> None:
    tables_there = f"{CATALOGS}/hive/schemas/{database}/tables"
    caller.get(tables_there)
    killed_at(point, lambda: create(database))
    settle_all()
    is_made = point not in ("promised", "before 0")
    assert held(hms, database) == (["delays"] if is_made else [])
    assert len(files(hms, database)) == is_made
    assert caller.get(f"{tables_there}/delays").status == (200 if is_made else 404)
    state = Intent.State.COMMITTED if is_made else Intent.State.ABORTED
    assert Intent.objects.get().state == state


def test_a_crash_between_the_file_and_the_entry_leaves_nothing(
    caller: Caller, hms: HiveMetastore, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller.get(f"{CATALOGS}/hive/schemas/{database}/tables")
    call = Metastore.call

    def dying(self: Metastore, method: str, *arguments: Any, about: Any) -> Any:
        if method == "create_table":
            raise Killed
        return call(self, method, *arguments, about=about)

    with monkeypatch.context() as patch:
        patch.setattr(Metastore, "call", dying)
        with pytest.raises(Killed):
            create(database)
    assert len(files(hms, database)) == 1
    settle_all()
    assert (held(hms, database), files(hms, database)) == ([], [])
    assert Intent.objects.get().state == Intent.State.ABORTED
    create(database)
    assert held(hms, database) == ["delays"]


def test_schemas_do_not_share_a_place(caller: Caller, hms: HiveMetastore, database: str) -> None:
    """A metastore deletes the folder of a managed table that is dropped, whoever's it is."""
    register(caller, hms, "placed", warehouse=hms.warehouse.as_uri())
    schemas, own = f"{CATALOGS}/placed/schemas", (hms.warehouse / f"{database}.db").as_uri()
    assert caller.get(schemas).status == 200

    def made(place: str) -> Any:
        return caller.post(schemas, {"name": f"spies_of_{database}", "properties": {"location": place}})

    for place in (own, f"{own}/staff"):
        refused = made(place)
        assert refused.error[:2] == (400, 1001) and "overlaps the place of another schema" in refused.message
    with hms.client() as client:
        client.drop_database(database, False, False)
    assert made(own).status == 200, "nobody is there any more"
    assert caller.delete(f"{schemas}/spies_of_{database}").status == 200


@pytest.mark.parametrize("others", [1, 2 * LOOKS])
def test_the_iceberg_wire_lists_what_loads_on_it(
    caller: Caller, hms: HiveMetastore, database: str, others: int
) -> None:
    pointed = {"table_type": "ICEBERG", "metadata_location": f"file://{hms.warehouse}/m.json"}
    put_table(hms, database, "delays", **pointed)
    for number in range(others):
        put_table(hms, database, f"plain_{number:02}")
    wire, where = IcebergCaller("admin", catalog="hive"), f"namespaces/{database}/tables"
    assert wire.tables(database) == ["delays"], "of tables that nobody met before"
    first = wire.get(f"{where}?pageSize=1&pageToken=").json
    assert [one["name"] for one in first["identifiers"]] == ["delays"]
    assert wire.get(f"{where}?pageSize=1&pageToken={first['next-page-token'] or ''}").json["next-page-token"] is None
    assert (wire.head(f"{where}/delays").status, wire.head(f"{where}/plain_00").status) == (204, 404)
    put_table(hms, database, "late", **pointed)
    with hms.client() as client:
        client.drop_table(database, "delays", True)
    put_table(hms, database, "delays")
    assert wire.tables(database)[-1:] == ["late"]
    assert wire.get(f"{where}?refresh=true").json["identifiers"] == [{"namespace": [database], "name": "late"}]
    native = caller.get(f"{CATALOGS}/hive/schemas/{database}/tables")["identifiers"]
    assert len(native) == others + 2, "the native wire shows all formats"
