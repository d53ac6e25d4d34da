"""Texts that AWS Glue refuses: an entry that repeats a metadata file is made to fit, another request is a clear 400."""
# ruff: noqa: F811

from __future__ import annotations

from typing import Any

import pytest

from authz.callers.identity import actor_of
from authz.models import User
from catalogs.services import commits
from formats.hive.tables import HiveColumn, HiveTable
from formats.native.partitions import IdentityPartition
from formats.native.tables import CreateTableRequest
from formats.native.view_definition import Representation, ViewDefinition
from metalake.errors import Invalid
from metalake.lineage import Address
from providers.glue import iceberg
from providers.glue.limits import fitting
from providers.glue.provider import GlueProvider
from tests.catalogs.callers import Caller
from tests.catalogs.conftest import admin  # noqa: F401 (fixture)
from tests.glue import Glue
from tests.providers.behaviours import create
from tests.providers.glue.test_native_api import caller  # noqa: F401 (fixture)
from tests.providers.glue_catalogs import FLIGHTS, entry, provider, storage  # noqa: F401 (fixture)

TWO_LINES, LONG = "line one\nline two", "é" * 300


def wanted(**more: Any) -> CreateTableRequest:
    columns = [{"name": "carrier", "type": "string"}]
    return CreateTableRequest.model_validate({"name": "t", "columns": columns, **more})


@pytest.mark.django_db(transaction=True)
def test_a_commit_with_any_comment_succeeds(caller: Caller, glue: Glue) -> None:
    tables = "metalakes/demo/catalogs/aws/schemas/flights/tables"
    columns = [{"name": "carrier", "type": "string", "comment": TWO_LINES}]
    properties = {"table_type": "ICEBERG"}
    made = caller.post(tables, {"name": "late", "columns": columns, "comment": "a" * 3000, "properties": properties})
    assert made["table"]["columns"][0]["comment"] == TWO_LINES, "as its metadata has it"
    fields = [{"id": 1, "name": "carrier", "type": "string", "required": False, "doc": LONG}]
    fields.append({"id": 2, "name": "seat", "type": "string", "required": False, "doc": "\x01\r\n\u2028x\U0001f6eb"})
    updates: list[dict[str, Any]] = [
        {"action": "add-schema", "schema": {"type": "struct", "schema-id": 1, "fields": fields}},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "set-properties", "updates": {"k" * 300: "x", "team": "ops"}},
    ]
    late = Address(metalake="demo", catalog="aws", schema="flights", leaf="late")
    done = commits.commit_table(actor_of(User.objects.get(username="admin")), late, [], updates)
    assert (done.metadata["properties"]["comment"], done.metadata["properties"]["k" * 300]) == ("a" * 3000, "x")
    there = entry(glue, "late")
    said = {column["Name"]: column.get("Comment") for column in there["StorageDescriptor"]["Columns"]}
    assert said == {"carrier": "é" * 127, "seat": "   \u2028x\U0001f6eb"}
    assert (there["Description"], there["Parameters"]["team"]) == ("a" * 2048, "ops")
    shown = caller.get(f"{tables}/late")["table"]
    assert [column["comment"] for column in shown["columns"]] == [LONG, fields[1]["doc"]]


def test_what_fits_no_entry_is_left_to_the_metadata(provider: GlueProvider) -> None:
    columns = [HiveColumn("a", "int"), HiveColumn("b\n", "int"), HiveColumn("c", f"struct<{'x' * 131073}:int>")]
    fitted = fitting(HiveTable(name="t", columns=tuple(columns), parameters={"": "1", "k" * 256: "2", "k": "3"}))
    assert ([column.name for column in fitted.columns], fitted.parameters) == (["a"], {"k": "3"})


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"columns": [{"name": "a", "type": "string", "comment": TWO_LINES}]}, "columns[0].comment: has a line break"),
        (
            {"columns": [{"name": "a", "type": "string", "comment": LONG}]},
            "columns[0].comment: has 300 characters",
        ),
        (
            {
                "columns": [{"name": "a", "type": "string"}, {"name": "b", "type": "date", "comment": LONG}],
                "partitioning": [{"strategy": "identity", "fieldName": ["b"]}],
            },
            "partition columns[0].comment",
        ),
        ({"comment": "x" * 2049}, "comment: has 2,049 characters, and AWS Glue takes 2,048 at most"),
        ({"properties": {"k" * 300: "x"}}, "properties: has 300 characters"),
    ],
)
def test_where_the_entry_is_all_there_is_it_is_refused(provider: GlueProvider, more: dict[str, Any], said: str) -> None:
    properties = {"table_type": "HIVE"} | more.get("properties", {})
    with pytest.raises(Invalid) as refused:
        provider.tables.draft(provider.schemas.load(FLIGHTS), wanted(**more | {"properties": properties}))
    assert refused.value.message.startswith(said), refused.value.message


def test_so_are_schemas_views_partitions_and_alterations(provider: GlueProvider) -> None:
    flights = provider.schemas.load(FLIGHTS)
    view = ViewDefinition(
        representations=(Representation(dialect="hive", sql="SELECT 1 AS a"),),
        columns=({"name": "a", "type": "integer", "nullable": True, "comment": TWO_LINES},),
    )
    by_day = wanted(
        columns=[{"name": "a", "type": "string"}, {"name": "b", "type": "string"}],
        partitioning=[{"strategy": "identity", "fieldName": ["b"]}],
        properties={"table_type": "HIVE"},
    )
    made = create(provider, FLIGHTS, "t", provider.tables.draft(flights, by_day))
    value = {"type": "literal", "dataType": "string", "value": "x" * 1025}
    partition = IdentityPartition.model_validate(
        {"type": "identity", "fieldNames": [["b"]], "values": [value], "properties": {}}
    )
    for refused in (
        lambda: provider.schemas.draft("x" * 2049, {}),
        lambda: provider.schemas.draft(None, {"k" * 256: "v"}),
        lambda: provider.views.draft(flights, "v", view, "admin"),
        lambda: provider.partitions.draft(made.definition, partition),
    ):
        with pytest.raises(Invalid, match=r"AWS Glue (does not take|takes)"):
            refused()


def test_a_column_that_changed_its_case_is_one(provider: GlueProvider, glue: Glue) -> None:
    """`id -> id__tmp -> Id`: Glue folds the names that it stores."""
    said = {"iceberg.field.id": "1", "iceberg.field.optional": "true"}
    columns = [
        {"Name": name, "Type": type_, "Parameters": said | {"iceberg.field.current": current}}
        for name, type_, current in (("id", "bigint", "true"), ("id", "int", "false"), ("id__tmp", "int", "false"))
    ]
    parameters = {"table_type": "ICEBERG", "metadata_location": "s3://lake/x/metadata/1.json"}
    table = {
        "Name": "turned",
        "Parameters": parameters,
        "StorageDescriptor": storage("s3://lake/x") | {"Columns": columns},
    }
    glue.client().create_table(DatabaseName="flights", TableInput=table)
    shown = provider.tables.show(provider.tables.load(FLIGHTS, "turned").definition)["columns"]
    assert [(column["name"], column["type"], column["nullable"]) for column in shown] == [("id", "long", True)]


def test_nor_is_it_written_twice() -> None:
    field = {"id": 1, "type": "long", "required": False}
    schemas = [{"schema-id": n, "fields": [field | {"name": name}]} for n, name in enumerate(("id", "id__tmp", "Id"))]
    metadata = {"schemas": schemas, "current-schema-id": 2, "format-version": 2}
    written = iceberg.described(HiveTable(name="t"), metadata).columns
    assert [(column.name, column.parameters[iceberg.CURRENT]) for column in written] == [
        ("Id", "true"),
        ("id__tmp", "false"),
    ]
