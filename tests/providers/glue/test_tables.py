"""New tables in Glue: where they go, what engines find in their entries, and what is refused before any call."""
# ruff: noqa: F811

from __future__ import annotations

import re
from typing import Any

import pytest

from formats.native.tables import CreateTableRequest
from metalake.errors import Invalid, Unsupported
from providers.glue.provider import GlueProvider
from providers.remote_objects import Remote
from tests.cases import each
from tests.glue import Glue
from tests.providers.behaviours import create
from tests.providers.glue_catalogs import FLIGHTS, entry, provider, provider_on  # noqa: F401 (fixtures)


def asked(name: str, columns: list[dict[str, Any]] | None = None, **more: Any) -> CreateTableRequest:
    plain = [{"name": "carrier", "type": "string"}, {"name": "delay", "type": "integer"}]
    return CreateTableRequest.model_validate({"name": name, "columns": plain if columns is None else columns, **more})


def test_a_hive_table_has_what_engines_look_for(provider: GlueProvider, glue: Glue) -> None:
    columns = [{"name": "Carrier", "type": "varchar(2)"}, {"name": "day", "type": "date"}]
    by_day = [{"strategy": "identity", "fieldName": ["day"]}]
    wanted = {"table_type": "HIVE", "format": "PARQUET", "owner_team": "ops"}
    request = asked("Delays", columns, comment="late", partitioning=by_day, properties=wanted)
    create(provider, FLIGHTS, "delays", provider.tables.draft(provider.schemas.load(FLIGHTS), request))
    made = entry(glue, "delays")
    assert made["TableType"] == "EXTERNAL_TABLE" and made["Description"] == "late"
    assert made["Parameters"] == {"EXTERNAL": "TRUE", "owner_team": "ops"}
    assert made["PartitionKeys"] == [{"Name": "day", "Type": "date"}]
    descriptor = made["StorageDescriptor"]
    assert descriptor["Columns"] == [{"Name": "carrier", "Type": "varchar(2)"}]
    assert descriptor["Location"] == "s3://lake/warehouse/flights/delays"
    assert descriptor["SerdeInfo"]["SerializationLibrary"].endswith("ParquetHiveSerDe")


def test_a_table_goes_where_it_may(provider: GlueProvider, glue: Glue) -> None:
    plain = provider.schemas.load(FLIGHTS)
    placed = provider.schemas.create(
        ["sales"], provider.schemas.draft(None, {"location": "s3://lake/warehouse/eu/sales"})
    )

    def place(schema: Remote, properties: dict[str, str], by: GlueProvider = provider) -> str:
        new = by.tables.draft(schema, asked("orders", properties=properties))
        return str(new.definition["location"])

    for format in ("iceberg", "hive"):
        plainly = {"table_type": format}
        own_folder = "-[0-9a-f]{32}" if format == "iceberg" else ""  # a renamed table stays where it was
        assert re.fullmatch(f"s3://lake/warehouse/flights/orders{own_folder}", place(plain, plainly))
        assert re.fullmatch(f"s3://lake/warehouse/eu/sales/orders{own_folder}", place(placed, plainly))
        own = {"table_type": format, "location": "s3://lake/warehouse/own/orders"}
        assert place(placed, own) == own["location"]
        for wrong in ("s3://elsewhere/orders", "file:///tmp/orders", "s3://lake/warehouse/../x", "orders"):
            with pytest.raises(Invalid, match="Location"):
                place(plain, plainly | {"location": wrong})
        homeless = provider_on(glue, warehouse="")
        with pytest.raises(Invalid, match="warehouse"):
            place(plain, plainly, homeless)
        assert place(placed, plainly, homeless).startswith("s3://lake/warehouse/eu/sales/orders")
    with pytest.raises(Invalid, match="not under a location this catalog allows"):
        provider.schemas.draft(None, {"location": "s3://elsewhere"})


@each(
    "request_, said",
    [
        (asked("delays", properties={"table_type": "delta"}), "here iceberg or hive"),
        (asked("delays", properties={"table_type": "hive", "table-format": "ICEBERG"}), "contradict"),
        (asked("my-delays"), "letters a to z, digits and underscores"),
        (asked("d" * 253), "at most 252 bytes"),
        (asked("d" * 256, properties={"table_type": "hive"}), "at most 255 bytes"),
        (asked("bad\x07name", properties={"table_type": "hive"}), "no control characters"),
        (asked("delays", []), "at least one column"),
        (asked("delays", [{"name": "a", "type": "moon"}]), "moon"),
        (asked("delays", [{"name": "a", "type": "uuid"}], properties={"table_type": "hive"}), "use string"),
        (asked("delays", properties={"serde-lib": "x"}), "table_type=HIVE"),
        (asked("delays", properties={"metalake.intent": "7"}), "written by Metalake"),
        (asked("delays", properties={"location": "s3://lake/warehouse"}), "a table takes a folder below it"),
        (asked("delays", properties={"table-type": "MANAGED_TABLE"}), "EXTERNAL_TABLE"),
        (asked("delays", properties={"s3.access-key-id": "x"}), "belongs on the catalog"),
        (asked("delays", properties={"write.data.path": "s3://elsewhere/x"}), "not under a location"),
        (asked("delays", properties={"table_type": "hive", "metadata_location": "s3://lake/m"}), "only an Iceberg"),
        (asked("delays", properties={"metadata_location": "s3://lake/warehouse/m.json"}), "leave out columns"),
        (asked("delays", [], properties={"metadata_location": "s3://elsewhere/m.json"}), "not under a location"),
        (asked("delays", [], properties={"metadata_location": "s3://lake/m", "location": "s3://lake"}), "leave it out"),
    ],
)  # fmt: skip
def test_what_cannot_be_made_is_refused_before_any_call(
    provider: GlueProvider, glue: Glue, request_: CreateTableRequest, said: str
) -> None:
    schema = provider.schemas.load(FLIGHTS)
    glue.calls.clear()
    with pytest.raises((Invalid, Unsupported)) as refused:
        provider.tables.draft(schema, request_)
    assert said in refused.value.message
    assert glue.calls == []


def test_two_thousand_columns(provider: GlueProvider, glue: Glue) -> None:
    columns = [{"name": f"c{number}", "type": "decimal(20,2)", "comment": "x" * 250} for number in range(2000)]
    schema = provider.schemas.load(FLIGHTS)
    for format in ("iceberg", "hive"):
        new = provider.tables.draft(schema, asked(f"wide_{format}", columns, properties={"table_type": format}))
        made = create(provider, FLIGHTS, f"wide_{format}", new)
        shown = provider.tables.show(made.definition)["columns"]
        assert len(shown) == 2000 and shown[-1]["type"] == "decimal(20,2)"
