"""Spark with Iceberg's runtime as a client of the Iceberg REST wire."""

from uuid import uuid4

import pytest
from pyiceberg.catalog.rest import RestCatalog

from tests.servers import MetalakeServer
from tests.spark import Spark, SparkError, iceberg_catalog


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_spark_makes_a_table_through_the_rest_wire(metalake_server: MetalakeServer, iceberg_spark: Spark) -> None:
    login = {"username": "admin", "password": metalake_server.admin_password}
    uri = f"{metalake_server.url}/iceberg/demo"
    lake = iceberg_catalog(
        "lake",
        type="rest",
        uri=uri,
        warehouse="lake",
        **{"rest.auth.type": "basic"},
        **{f"rest.auth.basic.{name}": value for name, value in login.items()},
    )
    flights = f"flights_{uuid4().hex[:8]}"
    *_, rows = iceberg_spark.sql(
        f"create namespace lake.{flights}",
        f"create table lake.{flights}.delays (carrier string, delay int) using iceberg",
        f"insert into lake.{flights}.delays values ('UA', 12)",
        f"select * from lake.{flights}.delays",
        settings=lake,
    )
    assert rows == [{"carrier": "UA", "delay": 12}]
    catalog = RestCatalog("lake", uri=uri, warehouse="lake", auth={"type": "basic", "basic": login})  # type: ignore[arg-type]
    assert catalog.load_table((flights, "delays")).scan().to_arrow().to_pylist() == rows

    wrong = lake | {"spark.sql.catalog.lake.rest.auth.basic.password": "not this one"}
    with pytest.raises(SparkError, match=r"Not authorized|Unauthorized"):
        iceberg_spark.sql(f"select * from lake.{flights}.delays", settings=wrong)
