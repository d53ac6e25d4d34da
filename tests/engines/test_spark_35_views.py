"""Views as Spark 3.5 and its Iceberg read and write them in a real metastore; 4.1 is in test_hive_views.py."""

from __future__ import annotations

from typing import Any

import pytest

from providers import circuit_breaker
from providers.hive.objects import hive_table
from tests.catalogs.callers import Caller
from tests.formats.hive.views.samples import SPARK_PARAMETERS, SPARK_SQL, of_iceberg
from tests.formats.hive.views.test_reader import array, column, struct
from tests.hms import HiveMetastore
from tests.spark import Spark, iceberg_catalog
from tests.views_mgmt.conftest import admin, body, sql, update

__all__ = ["admin"]
pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(600),  # the first time it fetches 360 MB and installs them
    pytest.mark.django_db(transaction=True),
]
CATALOGS = "metalakes/demo/catalogs"
SINCE_4 = {"view.referredTempVariablesNames", "view.schemaMode"}
SETTINGS_OF_SESSION = "view.sqlConfig."


@pytest.fixture(scope="module")
def database(hms: HiveMetastore, spark_35: Spark) -> str:
    """A database with the table and the view of the samples, and an Iceberg view."""
    name = hms.create_database()
    spark_35.sql(
        f"create table {name}.h1 (id bigint, name string, day date) stored as orc",
        f"insert into {name}.h1 values (1, 'one', date'2013-01-01'), (2, 'two', date'2013-01-02')",
        f"use {name}",
        "create view v1 (the_id comment 'vid', nm) comment 'view comment' tblproperties ('owner_team'='x') as "
        + SPARK_SQL,
    )
    spark_35.sql(
        f"create table lake.{name}.t (id int, name string) using iceberg",
        f"insert into lake.{name}.t values (1, 'one')",
        f"create view lake.{name}.ice comment 'of Iceberg' as select id, name from lake.{name}.t",
        settings=lake(hms),
    )
    return name


def lake(hms: HiveMetastore) -> dict[str, str]:
    return iceberg_catalog("lake", type="hive", uri=hms.uri, warehouse=hms.warehouse.as_uri())


@pytest.fixture
def views(hms: HiveMetastore, database: str, admin: Caller, settings: Any) -> str:
    """The views of the database in a catalog of Metalake's."""
    circuit_breaker.forget_all()
    settings.METALAKE_FILE_LOCATIONS = [str(hms.warehouse)]
    asked = {"name": "hive", "type": "relational", "provider": "hive", "properties": {"metastore.uris": hms.uri}}
    assert admin.post(CATALOGS, asked)["catalog"]["provider"] == "hive"
    return f"{CATALOGS}/hive/schemas/{database}/views"


def test_what_spark_wrote_is_loaded(
    views: str, admin: Caller, hms: HiveMetastore, database: str, spark_35: Spark
) -> None:
    view = admin.get(f"{views}/v1")["view"]
    (only,) = view["representations"]
    assert (view["engine"], view["comment"], view["properties"]) == ("spark", "view comment", {"owner_team": "x"})
    assert (only["dialect"], only["sql"]) == ("spark", SPARK_SQL)
    assert (view["defaultCatalog"], view["defaultSchema"]) == ("spark_catalog", database)
    assert view["columns"] == [column("the_id", "long", "vid"), column("nm", "string")]
    with hms.client() as client:
        written = hive_table(client.get_table(database, "v1")).parameters
    assert {name for name in written if not name.startswith(SETTINGS_OF_SESSION)} == {
        name for name in SPARK_PARAMETERS if not name.startswith(SETTINGS_OF_SESSION)
    } - SINCE_4
    assert written["spark.sql.create.version"] == spark_35.version == "3.5.8"


def test_spark_selects_from_views_that_we_wrote(views: str, admin: Caller, database: str, spark_35: Spark) -> None:
    nested = "select array(named_struct('from', name)) legs, cast(id as decimal(10,2)) price from h1"
    columns = [column("legs", array(struct(("from", "string")))), column("price", "decimal(10,2)", "in euros")]
    asked = body("ours", sql("spark", nested), columns=columns, comment="of us", properties={"team": "ops"})
    assert admin.send("POST", views, asked)["view"]["engine"] == "spark"
    plain = body("plain", sql("hive", f"select id from {database}.h1"), columns=[column("id", "long")])
    assert admin.send("POST", views, plain)["view"]["engine"] == "hive"
    shown, described, ids = spark_35.sql(
        f"select legs[0].from city, price from {database}.ours where price = 2",
        f"describe {database}.ours",
        f"select * from {database}.plain order by id",
    )
    assert shown == [{"city": "two", "price": "2.00"}]
    assert described[1] == {"col_name": "price", "data_type": "decimal(10,2)", "comment": "in euros"}
    assert ids == [{"id": 1}, {"id": 2}]


def test_spark_selects_from_its_own_view_after_an_alteration(
    views: str, admin: Caller, database: str, spark_35: Spark
) -> None:
    spark_35.sql(f"create view {database}.altered as select * from {database}.v1")
    edit = update(
        "updateRepresentation",
        representation=sql(
            "spark",
            "select id + 1 the_id, name nm from h1",
            defaultCatalog="spark_catalog",
            defaultSchema=database,
        ),
    )
    altered = admin.send("PUT", f"{views}/altered", {"updates": [edit]})
    assert altered["view"]["version"] == 2
    renamed = admin.send("PUT", f"{views}/altered", {"updates": [update("rename", newName="newer")]})
    assert renamed["view"]["version"] == 3
    (rows,) = spark_35.sql(f"select * from {database}.newer order by the_id")
    assert rows == [{"the_id": 2, "nm": "one"}, {"the_id": 3, "nm": "two"}]
    spark_35.sql(f"alter view {database}.newer as select 1 one")
    again = admin.get(f"{views}/newer")["view"]
    assert again["version"] == 4 and [each["name"] for each in again["columns"]] == ["one"]


def test_an_iceberg_view_of_spark_s_is_loaded(
    views: str, admin: Caller, hms: HiveMetastore, database: str, spark_35: Spark
) -> None:
    view = admin.get(f"{views}/ice")["view"]
    assert (view["engine"], view["format"], view["comment"]) == ("iceberg", "iceberg", "of Iceberg")
    (only,) = view["representations"]
    assert (only["dialect"], only["sql"]) == ("spark", f"select id, name from lake.{database}.t")
    assert [(each["name"], each["type"]) for each in view["columns"]] == [("id", "integer"), ("name", "string")]
    with hms.client() as client:
        entry = hive_table(client.get_table(database, "ice"))
    assert of_iceberg().parameters.keys() <= entry.parameters.keys()
    assert entry.parameters["engine_version"] == "Spark 3.5.8"
    spark_35.sql(f"create or replace view lake.{database}.ice as select 2 two", settings=lake(hms))
    again = admin.get(f"{views}/ice")["view"]
    assert again["version"] == 2 and [each["name"] for each in again["columns"]] == ["two"]
