"""Views in Trino's form, as a real Trino with its Hive connector and a real metastore read and write them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hive_metastore.ttypes import Table

from formats.hive.tables import HiveTable
from formats.hive.views.reader import read
from formats.hive.views.trino_json import decode
from formats.hive.views.writer import rewritten, written
from formats.native.view_definition import Representation, SecurityMode, ViewDefinition
from providers.hive.objects import hive_table
from providers.hive.objects import written as written_onto
from tests.formats.hive.views.samples import trino_476
from tests.formats.hive.views.test_reader import array, column, struct
from tests.hms import HiveMetastore
from tests.trino import Trino

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]  # the first time it fetches 821 MB

COLUMNS = """
    bigint '1' id, varchar 'x' a, cast('x' as varchar(10)) b, char 'abc' c, decimal '1.23' d, real '1' e,
    date '2020-01-01' f, timestamp '2020-01-01 00:00:00.123' g, timestamp '2020-01-01 00:00:00.123456 UTC' h,
    time '10:00:00' i, json '1' j, array[row(1, 'x')] k,
    cast(row(1, 'x') as row("fRom" integer, "to ""b" varchar(3))) l,
    map(array['a'], array[1.5]) m, interval '1' day o, interval '1' year p, x'00' q,
    uuid '12151fd2-7586-11e9-8f9e-2a86e4085a59' r, time '10:00:00 +01:00' s
"""
OF_EACH_RUN = {"transient_lastDdlTime", "trino_query_id", "metadata_location"}


@pytest.fixture(scope="module")
def database(hms: HiveMetastore, trino: Trino) -> str:
    """A database with the recorded views, made again by a catalog `hive` and a catalog `ice`."""
    name = hms.create_database()
    trino.attach_hive("hive", hms)
    trino.attach_hive_iceberg("ice", hms)
    for statement in (
        f"CREATE VIEW hive.{name}.definers COMMENT 'flights of today' SECURITY DEFINER AS SELECT {COLUMNS}",
        f"COMMENT ON COLUMN hive.{name}.definers.id IS 'who'",
        f"CREATE VIEW hive.{name}.invokers SECURITY INVOKER AS SELECT 'it''s' word",
        f"CREATE TABLE ice.{name}.t AS SELECT 1 id",
        f"CREATE MATERIALIZED VIEW ice.{name}.materialized COMMENT 'daily' AS SELECT 1 id",
    ):
        trino.sql(statement)
    return name


@pytest.mark.parametrize("name", ["definers", "invokers", "materialized"])
def test_trino_writes_what_is_recorded(entry: Callable[[str], HiveTable], name: str) -> None:
    now, recorded = entry(name), trino_476(name)
    parameters = {key: value for key, value in now.parameters.items() if key not in OF_EACH_RUN}
    assert parameters == {key: value for key, value in recorded.parameters.items() if key not in OF_EACH_RUN}
    assert decode(now.view_original_text or "") == decode(recorded.view_original_text or "")
    same = replace(now, view_original_text=recorded.view_original_text, parameters=recorded.parameters)
    assert same == recorded


def test_trino_selects_from_views_that_we_wrote(
    hms: HiveMetastore, database: str, entry: Callable[[str], HiveTable], trino: Trino
) -> None:
    sql = 'SELECT id, word, ARRAY[CAST(ROW(a) AS ROW("from" varchar))] legs, h AS at FROM definers, invokers'
    only = Representation(dialect="trino", sql=sql, default_catalog="hive", default_schema=database)
    columns = (
        column("id", "long", "who"),
        column("word", "varchar(4)"),
        column("legs", array(struct(("from", "string")))),
        column("at", "timestamp_tz(6)"),
    )
    for mode in SecurityMode:
        wanted = ViewDefinition(representations=(only,), columns=columns, security_mode=mode, comment="ours")
        table = written(f"ours_{mode}", database, wanted, owner="tests")
        with hms.client() as client:
            client.create_table(written_onto(table, Table(tableName=table.name, dbName=database)))
        assert read(entry(table.name)).definition == wanted
        rows = trino.sql(f'SELECT id, word, legs[1]."from" FROM hive.{database}.{table.name}')
        assert rows == [[1, "it's", "x"]]
        ((created,),) = trino.sql(f"SHOW CREATE VIEW hive.{database}.{table.name}")
        assert f"SECURITY {mode}" in created and "COMMENT 'ours'" in created
        assert [[name, type] for name, type, *_ in trino.sql(f"DESCRIBE hive.{database}.{table.name}")] == [
            ["id", "bigint"],
            ["word", "varchar(4)"],
            ["legs", "array(row(from varchar))"],
            ["at", "timestamp(6) with time zone"],
        ]


def test_trino_selects_from_its_own_view_after_an_alteration(
    hms: HiveMetastore, database: str, entry: Callable[[str], HiveTable], trino: Trino
) -> None:
    view = f"hive.{database}.altered"
    trino.sql(f"CREATE VIEW {view} AS SELECT {COLUMNS}")
    before = read(entry("altered")).definition
    sql = f"{before.representations[0].sql}\nLIMIT 1"
    first = {**before.columns[0], "comment": "new"}
    after: Any = replace(
        before,
        representations=(replace(before.representations[0], sql=sql),),
        columns=(first, *before.columns[1:]),
        comment="altered",
        properties={"owner_team": "x"},
    )
    with hms.client() as client:
        stored = client.get_table(database, "altered")
        client.alter_table(database, "altered", written_onto(rewritten(hive_table(stored), after), stored))
    assert read(entry("altered")).definition == after
    assert trino.sql(f'SELECT id, a, l."fRom" FROM {view}') == [[1, "x", 1]]
    assert trino.sql(f"DESCRIBE {view}")[0] == ["id", "bigint", "", "new"]
    trino.sql(f"COMMENT ON VIEW {view} IS 'by Trino'")
    assert read(entry("altered")).definition == replace(after, comment="by Trino")
