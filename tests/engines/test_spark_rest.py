"""Spark with Iceberg's runtime as a client of the Iceberg REST wire."""

import pytest
from pyiceberg.catalog.rest import RestCatalog

from tests.catalogs.racing import Client
from tests.names import own_name
from tests.servers import StartMetalake
from tests.spark import Spark, SparkError, iceberg_catalog


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_spark_makes_a_table_through_the_rest_wire(start_metalake: StartMetalake, iceberg_spark: Spark) -> None:
    server = start_metalake(METALAKE_FILE_LOCATIONS=str(iceberg_spark.folder))
    warehouse = {"warehouse": (iceberg_spark.folder / "lake").as_uri()}
    body = {"name": "spark", "type": "relational", "provider": "lakehouse-iceberg", "properties": warehouse}
    assert Client(server.url).send("POST", "/api/metalakes/demo/catalogs", body).status == 200
    login = {"username": "admin", "password": server.admin_password}
    uri = f"{server.url}/iceberg/demo"
    lake = iceberg_catalog(
        "lake",
        type="rest",
        uri=uri,
        warehouse="spark",
        **{"rest.auth.type": "basic"},
        **{f"rest.auth.basic.{name}": value for name, value in login.items()},
    )
    flights = own_name("flights")
    *_, rows = iceberg_spark.sql(
        f"create namespace lake.{flights}",
        f"create table lake.{flights}.delays (carrier string, delay int) using iceberg",
        f"insert into lake.{flights}.delays values ('UA', 12)",
        f"select * from lake.{flights}.delays",
        settings=lake,
    )
    assert rows == [{"carrier": "UA", "delay": 12}]
    catalog = RestCatalog("lake", uri=uri, warehouse="spark", auth={"type": "basic", "basic": login})  # type: ignore[arg-type]
    assert catalog.load_table((flights, "delays")).scan().to_arrow().to_pylist() == rows

    wrong = lake | {"spark.sql.catalog.lake.rest.auth.basic.password": "not this one"}
    with pytest.raises(SparkError, match=r"Not authorized|Unauthorized"):
        iceberg_spark.sql(f"select * from lake.{flights}.delays", settings=wrong)
