"""Iceberg tables in Glue: their metadata files, and PyIceberg's own Glue catalog as the other party."""
# ruff: noqa: F811

from __future__ import annotations

import json
import re

import pyarrow as pa
import pytest
from pyiceberg.catalog.glue import GlueCatalog
from pyiceberg.types import TimestamptzType

from formats.native.tables import CreateTableRequest
from metalake.errors import AlreadyExists, Conflict, Invalid, NotFound, OutcomeUnknown, ProviderUnavailable
from providers.glue.iceberg import GluePointers
from providers.glue.provider import GlueProvider
from providers.remote_objects import NewTable, Remote
from tests.glue import Fault, Glue
from tests.providers.behaviours import create, rename
from tests.providers.glue_catalogs import FLIGHTS, files, provider  # noqa: F401 (fixtures)

COLUMNS = [
    {"name": "carrier", "type": "string", "nullable": False},
    {"name": "delay", "type": "integer", "comment": "minutes"},
    {"name": "at", "type": "timestamp_tz"},
]


@pytest.fixture
def outsider(glue: Glue) -> GlueCatalog:
    """Another engine on the same Glue."""
    keys = {"access-key-id": glue.access_key, "secret-access-key": glue.secret_key, "region": glue.region}
    settings = {f"{of}.{name}": value for of in ("glue", "s3") for name, value in keys.items()}
    return GlueCatalog("outside", **settings, **{"glue.endpoint": glue.endpoint, "s3.endpoint": glue.endpoint})


def planned(provider: GlueProvider, name: str = "delays", **properties: str) -> NewTable:
    by = [{"strategy": "identity", "fieldName": ["carrier"]}]
    asked = {"name": name, "comment": "how late", "columns": COLUMNS, "partitioning": by, "properties": properties}
    schema = provider.schemas.load(FLIGHTS)
    return provider.tables.draft(schema, CreateTableRequest.model_validate(asked))


def make(provider: GlueProvider, name: str = "delays", **properties: str) -> Remote:
    return create(provider, FLIGHTS, name, planned(provider, name, **properties), marker="42")


def some_rows() -> pa.Table:
    schema = pa.schema(
        [pa.field("carrier", pa.string(), nullable=False), ("delay", pa.int32()), ("at", pa.timestamp("us", "UTC"))]
    )
    return pa.Table.from_pylist([{"carrier": "AA", "delay": 7, "at": None}], schema=schema)


def test_a_new_table_is_one_to_others(provider: GlueProvider, glue: Glue, outsider: GlueCatalog) -> None:
    made = make(provider, owner_team="ops")
    pointer = provider.pointers.location(made.definition)
    assert pointer and files(glue) == {pointer}
    assert re.match("s3://lake/warehouse/flights/delays-[0-9a-f]{32}/metadata/00000-", pointer)
    table = outsider.load_table("flights.delays")
    assert table.metadata_location == pointer and table.metadata.format_version == 2
    assert [(field.name, field.required, field.doc) for field in table.schema().fields] == [
        ("carrier", True, None),
        ("delay", False, "minutes"),
        ("at", False, None),
    ]
    assert isinstance(table.schema().find_field("at").field_type, TimestamptzType)
    assert [str(field.transform) for field in table.spec().fields] == ["identity"]
    assert table.properties["owner_team"] == "ops" and table.properties["comment"] == "how late"
    entry = glue.client().get_table(DatabaseName="flights", Name="delays")["Table"]
    assert (entry["TableType"], entry["Description"]) == ("EXTERNAL_TABLE", "how late")
    columns = entry["StorageDescriptor"]["Columns"]
    assert [(column["Name"], column["Type"]) for column in columns] == [
        ("carrier", "string"),
        ("delay", "int"),
        ("at", "timestamp"),
    ]
    said = {"iceberg.field.id": "1", "iceberg.field.optional": "false", "iceberg.field.current": "true"}
    assert columns[0]["Parameters"] == said
    shown = provider.tables.show(made.definition)
    assert [column["nullable"] for column in shown["columns"]] == [False, True, True]


def test_others_go_on_with_it_and_we_see_that(provider: GlueProvider, outsider: GlueCatalog) -> None:
    made = make(provider)
    table = outsider.load_table("flights.delays")
    table.append(some_rows())
    with table.update_schema() as update:
        update.delete_column("delay")
    found = provider.tables.load(FLIGHTS, "delays")
    assert found.version != made.version and found.identity == made.identity
    assert provider.pointers.location(found.definition) == outsider.load_table("flights.delays").metadata_location
    assert [column["name"] for column in provider.tables.show(found.definition)["columns"]] == ["carrier", "at"]
    assert provider.tables.is_marked(found, "42")


def test_a_renamed_table_keeps_its_rows(provider: GlueProvider, outsider: GlueCatalog) -> None:
    make(provider)
    outsider.load_table("flights.delays").append(some_rows())
    rename(provider, FLIGHTS, provider.tables.load(FLIGHTS, "delays"), "late")
    assert outsider.load_table("flights.late").scan().to_arrow().num_rows == 1
    assert outsider.list_tables("flights") == [("flights", "late")]


# Commits


def written(provider: GlueProvider, glue: Glue, made: Remote) -> tuple[str, str]:
    """Where the table's metadata is, and where a next state of it is written."""
    pointer = str(provider.pointers.location(made.definition))
    key = pointer.removeprefix("s3://lake/")
    metadata = json.loads(glue.client("s3").get_object(Bucket="lake", Key=key)["Body"].read())
    metadata["schemas"][0]["fields"][1]["type"] = "long"
    metadata["properties"]["commit"] = "2"
    fresh = key.replace("/00000-", "/00001-")
    glue.client("s3").put_object(Bucket="lake", Key=fresh, Body=json.dumps(metadata))
    return pointer, f"s3://lake/{fresh}"


def test_a_commit_moves_the_pointer(provider: GlueProvider, glue: Glue, outsider: GlueCatalog) -> None:
    made = make(provider)
    pointer, fresh = written(provider, glue, made)
    done = provider.pointers.commit(FLIGHTS, "delays", fresh, pointer)
    assert provider.pointers.location(done.definition) == fresh
    shown = provider.tables.show(done.definition)
    assert shown["columns"][1]["type"] == "long" and shown["comment"] == "how late"
    assert shown["properties"]["previous_metadata_location"] == pointer and shown["properties"]["commit"] == "2"
    assert outsider.load_table("flights.delays").metadata_location == fresh
    with pytest.raises(Conflict):
        provider.pointers.commit(FLIGHTS, "delays", fresh, pointer)


def test_a_commit_to_nowhere_changes_nothing(provider: GlueProvider, glue: Glue) -> None:
    made = make(provider)
    pointer = str(provider.pointers.location(made.definition))
    with pytest.raises(Invalid):
        provider.pointers.commit(FLIGHTS, "delays", pointer + "x", pointer)
    assert provider.tables.load(FLIGHTS, "delays") == made


# Registering


def register(provider: GlueProvider, pointer: str, name: str = "again") -> Remote:
    asked = {"name": name, "columns": [], "properties": {"metadata_location": pointer, "owner_team": "bi"}}
    schema = provider.schemas.load(FLIGHTS)
    return create(provider, FLIGHTS, name, provider.tables.draft(schema, CreateTableRequest.model_validate(asked)))


def test_a_metadata_file_is_registered(provider: GlueProvider, glue: Glue, outsider: GlueCatalog) -> None:
    pointer = str(provider.pointers.location(make(provider).definition))
    before = files(glue)
    made = register(provider, pointer)
    assert provider.pointers.location(made.definition) == pointer
    shown = provider.tables.show(made.definition)
    assert [column["name"] for column in shown["columns"]] == ["carrier", "delay", "at"]
    assert shown["properties"]["owner_team"] == "bi" and shown["comment"] == "how late"
    assert outsider.load_table("flights.again").metadata_location == pointer
    with pytest.raises(AlreadyExists):
        register(provider, pointer)
    assert files(glue) == before, "the file is not ours to remove"


def test_what_is_no_table_is_not_registered(provider: GlueProvider, glue: Glue) -> None:
    bucket = glue.client("s3")
    pointer = str(provider.pointers.location(make(provider).definition))
    content = bucket.get_object(Bucket="lake", Key=pointer.removeprefix("s3://lake/"))["Body"].read()
    moved = json.loads(content) | {"location": "s3://elsewhere/delays"}
    for name, body in {"moved": json.dumps(moved), "text": "none"}.items():
        bucket.put_object(Bucket="lake", Key=f"warehouse/{name}.metadata.json", Body=body)
    for name, said in {"moved": "not under a location", "text": "not JSON", "missing": "Failed to open"}.items():
        with pytest.raises(Invalid, match=said):
            register(provider, f"s3://lake/warehouse/{name}.metadata.json")
    assert [one.name for one in provider.tables.list(FLIGHTS).items] == ["delays"]


# What came to nothing leaves nothing


def test_a_refused_creation_leaves_no_file(provider: GlueProvider, glue: Glue, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make(provider)
    kept = {provider.pointers.location(made.definition)}
    assert files(glue) == kept
    with pytest.raises(AlreadyExists):
        make(provider)
    monkeypatch.setattr(GluePointers, "require_free", lambda *_: None)  # the other came right after
    with pytest.raises(AlreadyExists):
        make(provider)
    for fault in (Fault.THROTTLED, Fault.EXPIRED):
        glue.fail("CreateTable", fault)
        with pytest.raises(ProviderUnavailable):
            make(provider, "late")
    with pytest.raises(NotFound):
        create(provider, ["nowhere"], "late", planned(provider, "late"))
    assert files(glue) == kept


def test_a_file_that_cannot_be_written_makes_no_table(provider: GlueProvider, glue: Glue) -> None:
    new = planned(provider)
    new.definition["parameters"]["metadata_location"] = "s3://no-such-bucket/m.json"
    with pytest.raises(ProviderUnavailable):
        create(provider, FLIGHTS, "delays", new)
    assert provider.tables.list(FLIGHTS).items == []


@pytest.mark.parametrize("fault", [Fault.REPLY_LOST, Fault.REQUEST_LOST])
def test_a_lost_answer_keeps_the_file_until_it_is_known(provider: GlueProvider, glue: Glue, fault: Fault) -> None:
    new = planned(provider)
    pointer = new.definition["parameters"]["metadata_location"]
    glue.fail("CreateTable", fault)
    with pytest.raises(OutcomeUnknown):
        create(provider, FLIGHTS, "delays", new)
    assert files(glue) == {pointer}
    provider.tables.discard(new.definition, new.plan)
    was_applied = fault is Fault.REPLY_LOST
    assert (files(glue) == {pointer}) is was_applied, "a file stays as long as a table points to it"
    if not was_applied:
        create(provider, FLIGHTS, "delays", new)
        assert files(glue) == {pointer}, "a repeat writes the same file"


def test_a_plan_in_a_definition_as_older_versions_have_it(provider: GlueProvider, glue: Glue) -> None:
    new = planned(provider)
    assert new.plan is not None
    older = new.definition | {"rest": new.definition["rest"] | {"metalake.planned": new.plan}}
    assert provider.tables.named_places(older) == provider.tables.named_places(new.definition, new.plan)
    made = provider.tables.create(FLIGHTS, "delays", older)
    pointer = provider.pointers.location(made.definition)
    assert files(glue) == {pointer} and "metalake.planned" not in str(made.definition)
    provider.tables.discard(older)
    assert files(glue) == {pointer}, "the table points to it"
    provider.tables.drop(FLIGHTS, "delays", made.identity)
    provider.tables.discard(older)
    assert files(glue) == set()


def test_what_was_made_and_not_read_back_is_not_refused(provider: GlueProvider, glue: Glue) -> None:
    glue.fail("GetTable", Fault.ERROR, after=1)
    with pytest.raises(OutcomeUnknown):
        make(provider)
    assert provider.tables.load(FLIGHTS, "delays").name == "delays"
