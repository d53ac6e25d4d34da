"""Spark with Iceberg's runtime as a client of the Iceberg REST wire."""

from collections.abc import Callable, Iterator

import pytest
from pyiceberg.catalog.rest import RestCatalog

from tests.catalogs.racing import Client
from tests.names import own_name
from tests.servers import on_a_migrated_store, prepare
from tests.spark import Rows, Spark, SparkError, iceberg_catalog

Lake = tuple[dict[str, str], Callable[[], RestCatalog]]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, iceberg_spark: Spark) -> Iterator[Lake]:
    """Spark's settings of a catalog in the places of Spark, and what connects PyIceberg to it."""
    server = prepare(tmp_path_factory.mktemp("metalake"), METALAKE_FILE_LOCATIONS=str(iceberg_spark.folder))
    on_a_migrated_store(server)
    server.start()
    name = own_name("spark")
    warehouse = {"warehouse": (iceberg_spark.folder / name).as_uri()}
    body = {"name": name, "type": "relational", "provider": "lakehouse-iceberg", "properties": warehouse}
    assert Client(server.url).send("POST", "/api/metalakes/demo/catalogs", body).status == 200
    login = {"username": "admin", "password": server.admin_password}
    uri = f"{server.url}/iceberg/demo"
    settings = iceberg_catalog(
        "lake",
        type="rest",
        uri=uri,
        warehouse=name,
        **{"rest.auth.type": "basic"},
        **{f"rest.auth.basic.{key}": value for key, value in login.items()},
    )
    auth = {"type": "basic", "basic": login}
    yield settings, lambda: RestCatalog("lake", uri=uri, warehouse=name, auth=auth)  # type: ignore[arg-type]
    server.stop()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_spark_makes_a_table_through_the_rest_wire(lake: Lake, iceberg_spark: Spark) -> None:
    settings, connect = lake
    flights = own_name("flights")
    *_, rows = iceberg_spark.sql(
        f"create namespace lake.{flights}",
        f"create table lake.{flights}.delays (carrier string, delay int) using iceberg",
        f"insert into lake.{flights}.delays values ('UA', 12)",
        f"select * from lake.{flights}.delays",
        settings=settings,
    )
    assert rows == [{"carrier": "UA", "delay": 12}]
    assert connect().load_table((flights, "delays")).scan().to_arrow().to_pylist() == rows

    wrong = settings | {"spark.sql.catalog.lake.rest.auth.basic.password": "not this one"}
    with pytest.raises(SparkError, match=r"Not authorized|Unauthorized"):
        iceberg_spark.sql(f"select * from lake.{flights}.delays", settings=wrong)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_views_of_spark_through_the_rest_wire(lake: Lake, iceberg_spark: Spark) -> None:
    settings, connect = lake
    flights = own_name("flights")

    def sql(*statements: str) -> list[Rows]:
        return iceberg_spark.sql(f"use lake.{flights}", *statements, settings=settings)[1:]

    iceberg_spark.sql(f"create namespace lake.{flights}", settings=settings)
    *_, late, listed = sql(
        "create table delays (carrier string, delay int) using iceberg",
        "insert into delays values ('UA', 12), ('AA', 70)",
        "create view late comment 'an hour' tblproperties ('team' = 'ops') as"
        " select carrier from delays where delay > 60",
        "select * from late",
        "show views",
    )
    assert late == [{"carrier": "AA"}] and [row["viewName"] for row in listed] == ["late"]
    view = connect().load_view((flights, "late"))
    assert view.properties["comment"] == "an hour" and view.properties["team"] == "ops"
    (query,) = view.current_version().representations
    assert query.root.dialect == "spark" and "delay > 60" in query.root.sql

    replacing = "create or replace view late tblproperties ('team' = 'ops') as select * from delays where delay > 60"
    *_, altered = sql(replacing, "select * from late")
    assert altered == [{"carrier": "AA", "delay": 70}]
    sql("alter view late set tblproperties ('team' = 'sales')", "alter view late rename to later")
    view = connect().load_view((flights, "later"))
    assert view.properties["team"] == "sales" and len(view.versions) == 2
    with pytest.raises(SparkError, match=r"ALREADY_EXISTS|already exists"):
        sql("create view delays as select 1 as one")
    assert sql("drop view later", "show views")[1] == []
