"""Iceberg tables of a metastore: commits of Iceberg's own Hive catalog and ours on one table."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from urllib.parse import urlparse

import pytest

from metalake.errors import Conflict
from tests.hms import HiveMetastore
from tests.providers.hive_catalogs import provider_on
from tests.spark import Spark, iceberg_catalog


@pytest.mark.slow
def test_iceberg_s_commits_and_ours_follow_each_other(any_hms: HiveMetastore, iceberg_spark: Spark) -> None:
    database = any_hms.create_database()
    lake = iceberg_catalog("lake", type="hive", uri=any_hms.uri, warehouse=any_hms.warehouse.as_uri())
    name = f"lake.{database}.delays"
    iceberg_spark.sql(
        f"create table {name} (carrier string, delay decimal(9,2)) using iceberg comment 'how late'",
        f"insert into {name} values ('UA', 1.5)",
        settings=lake,
    )
    provider = provider_on(any_hms)
    found = provider.load_table([database], "delays")
    shown = provider.shown_table(found.definition)
    assert [(column["name"], column["type"]) for column in shown["columns"]] == [
        ("carrier", "string"),
        ("delay", "decimal(9,2)"),
    ]
    assert shown["comment"] == "how late"
    before = provider.metadata_location(found.definition)
    assert before is not None
    ours = next_metadata(before, owner_team="ops")
    provider.commit_table([database], "delays", ours, before)
    with pytest.raises(Conflict):
        provider.commit_table([database], "delays", ours, before)
    *_, properties, rows = iceberg_spark.sql(
        f"insert into {name} values ('DL', 2.5)",
        f"show tblproperties {name}",
        f"select carrier from {name} order by carrier",
        settings=lake,
    )
    assert {"key": "owner_team", "value": "ops"} in properties
    assert rows == [{"carrier": "DL"}, {"carrier": "UA"}]
    last = provider.load_table([database], "delays")
    assert last.identity == found.identity
    assert last.definition["parameters"]["previous_metadata_location"] == ours


def next_metadata(location: str, **properties: str) -> str:
    """A metadata file that follows another, with more properties; its location."""
    path = Path(urlparse(location).path)
    content = path.read_bytes()
    metadata = json.loads(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
    metadata["properties"] |= properties
    after = path.with_name("00009-ours.metadata.json")
    after.write_text(json.dumps(metadata))
    return after.as_uri()
