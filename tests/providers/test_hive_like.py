"""What is refused of new and altered tables in Hive's terms before any call is made."""

from __future__ import annotations

from typing import Any

import pytest

from formats.native.tables import CreateTableRequest, RemoveProperty
from metalake.errors import Invalid, TooLarge
from providers.glue.provider import GlueProvider
from providers.hive.provider import HiveProvider
from providers.hive_like.catalog import HiveLikeCatalog
from providers.remote_objects import Remote
from tests.providers.behaviours import set_property

PLACE = "s3://lake/flights"
SCHEMA = Remote("flights", {"comment": None, "location": PLACE, "parameters": {}, "rest": {}})


@pytest.fixture(params=["hive", "glue"])
def provider(request: pytest.FixtureRequest) -> HiveLikeCatalog:
    if request.param == "hive":
        return HiveProvider(1, {"metastore.uris": "thrift://127.0.0.1", "warehouse": "s3://lake"})
    return GlueProvider(1, {"aws-region": "eu-central-1", "warehouse": "s3://lake"})


def new_table(
    provider: HiveLikeCatalog, *names: str, format: str = "hive", comment: str = "", **properties: str
) -> Any:
    columns = [{"name": name, "type": "string", "comment": comment} for name in names or ("carrier",)]
    given = {"table_type": format, **properties}
    body = {"name": "delays", "columns": columns, "properties": given}
    return provider.tables.draft(SCHEMA, CreateTableRequest.model_validate(body)).definition


@pytest.mark.parametrize("key", ["py-io-impl", "write.py-location-provider.impl", "io-impl", "serde.parameter.io-impl"])
def test_no_property_names_a_class_to_load(provider: HiveLikeCatalog, key: str) -> None:
    with pytest.raises(Invalid, match="names a class to load"):
        new_table(provider, **{key: "os.path"})
    made = new_table(provider)
    with pytest.raises(Invalid, match="names a class to load"):
        provider.tables.altered(made, [set_property(key, "os.path")])
    set_by_others = made | {"parameters": made["parameters"] | {key: "os.path"}}
    removal = RemoveProperty.model_validate({"@type": "removeProperty", "property": key})
    if key.startswith("serde."):
        set_by_others = made | {"serde_parameters": {"io-impl": "os.path"}}
    assert "os.path" not in str(provider.tables.altered(set_by_others, [removal]))


@pytest.mark.parametrize("url", ["http://169.254.169.254/latest", "https://example.com/s.avsc", "s3://other/s.avsc"])
@pytest.mark.parametrize("key", ["avro.schema.url", "serde.parameter.avro.schema.url"])
def test_the_schema_of_avro_files_is_fetched_from_allowed_places(provider: HiveLikeCatalog, url: str, key: str) -> None:
    with pytest.raises(Invalid, match="Location"):
        new_table(provider, **{key: url})
    made = new_table(provider, **{key: f"{PLACE}/delays.avsc"})
    assert f"{PLACE}/delays.avsc" in {**made["parameters"], **made["serde_parameters"]}.values()
    with pytest.raises(Invalid, match="Location"):
        provider.tables.altered(made, [set_property(key, url)])
    altered = provider.tables.altered(made, [set_property(key, "none")])
    assert "none" in {**altered["parameters"], **altered["serde_parameters"]}.values()


@pytest.mark.parametrize("format", ["hive", "iceberg"])
def test_names_of_columns_that_fold_to_one_are_refused(provider: HiveLikeCatalog, format: str) -> None:
    with pytest.raises(Invalid, match=r"columns.*(id|ID)"):
        new_table(provider, "id", "ID", format=format)


def test_a_metastore_is_not_asked_for_what_its_database_cannot_hold() -> None:
    provider = HiveProvider(1, {"metastore.uris": "thrift://127.0.0.1", "warehouse": "s3://lake"})
    with pytest.raises(TooLarge, match="over 256 characters"):
        new_table(provider, **{"k" * 300: "v"})
    with pytest.raises(TooLarge, match="comment of 'carrier' is over 4000 characters"):
        new_table(provider, comment="c" * 5_000)
    made = new_table(provider, comment="c" * 4_000, **{"k" * 256: "v"})
    with pytest.raises(TooLarge, match="over 256 characters"):
        provider.tables.altered(made, [set_property("k" * 257, "v")])
