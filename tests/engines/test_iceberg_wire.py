"""Iceberg tables that a metastore or Glue points to: made, loaded and committed by real PyIceberg through our wire."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.table import Table
from pyiceberg.types import StringType

from tests.catalogs.racing import Client
from tests.glue import Glue
from tests.hms import HiveMetastore
from tests.names import own_name
from tests.providers.glue_catalogs import settings as glue_settings
from tests.servers import MetalakeServer, running_metalake
from tests.spark import Spark, iceberg_catalog

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SCHEMA = pa.schema([("carrier", pa.string()), ("delay", pa.int64())])
ROWS = pa.table({"carrier": ["UA", "AA"], "delay": [11, -3]}, SCHEMA)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, metastores: Path) -> Iterator[MetalakeServer]:
    """One for all: each test registers a catalog of its own."""
    with running_metalake(tmp_path_factory.mktemp("metalake"), METALAKE_FILE_LOCATIONS=str(metastores)) as server:
        yield server


def register(server: MetalakeServer, provider: str, properties: dict[str, str]) -> str:
    name = own_name("c")
    body = {"name": name, "type": "relational", "provider": provider, "properties": properties}
    answer = Client(server.url).send("POST", "/api/metalakes/demo/catalogs", body)
    assert answer.status == 200, answer.body
    return name


def through(server: MetalakeServer, name: str, **properties: str) -> RestCatalog:
    login = {"type": "basic", "basic": {"username": "admin", "password": server.admin_password}}
    where = {"uri": f"{server.url}/iceberg/demo", "warehouse": name}
    return RestCatalog(name, **where, auth=login, **properties)  # type: ignore[arg-type]


def exercise(own: Catalog, wire: RestCatalog, namespace: str) -> None:
    """What the system's own client makes is loaded and committed through the wire, and the client sees the commits."""
    made = own.create_table((namespace, "delays"), SCHEMA)
    made.append(ROWS)
    assert wire.list_tables(namespace) == [(namespace, "delays")]
    table = wire.load_table((namespace, "delays"))
    assert table.scan().to_arrow().num_rows == 2
    table.append(ROWS)
    assert own.load_table((namespace, "delays")).scan().to_arrow().num_rows == 4
    with table.update_schema() as update:
        update.add_column("origin", StringType())
    assert own.load_table((namespace, "delays")).schema().column_names == ["carrier", "delay", "origin"]
    stale = wire.load_table((namespace, "delays"))
    own.load_table((namespace, "delays")).append(ROWS)
    late = appended(stale)  # where the client loads the table anew and tries again
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: appended(wire.load_table((namespace, "delays"))), range(8)))
    rows = own.load_table((namespace, "delays")).scan().to_arrow().num_rows
    assert rows == 6 + 2 * (late + sum(done)), "a commit was lost, or one that failed is there"
    assert sum(done) >= 1


def alter_natively(server: MetalakeServer, own: Catalog, catalog: str, namespace: str) -> None:
    """The native wire's changes are commits to the metadata, and the entry repeats them."""
    path = f"/api/metalakes/demo/catalogs/{catalog}/schemas/{namespace}/tables/delays"
    updates = [
        {"@type": "addColumn", "fieldName": ["gate"], "type": "integer"},
        {"@type": "setProperty", "property": "owner-team", "value": "ops"},
    ]
    client = Client(server.url)
    shown = client.send("PUT", path, {"updates": updates})
    assert shown.status == 200, shown.body
    assert shown.body["table"]["columns"][-1]["name"] == "gate"
    assert shown.body["table"]["properties"]["owner-team"] == "ops"
    assert shown.body["table"]["properties"]["metadata_location"], "what the entry holds passes through"
    table = own.load_table((namespace, "delays"))
    assert (table.schema().column_names[-1], table.properties["owner-team"]) == ("gate", "ops")
    taken_back = {"@type": "removeProperty", "property": "owner-team"}
    assert "owner-team" not in client.send("PUT", path, {"updates": [taken_back]}).body["table"]["properties"]
    assert "owner-team" not in own.load_table((namespace, "delays")).properties


def make(own: Catalog, wire: RestCatalog, namespace: str) -> None:
    """Tables are made, staged, registered, renamed and dropped through the wire; `arrivals` stays."""

    def rows(name: str) -> int:
        return own.load_table((namespace, name)).scan().to_arrow().num_rows

    wire.create_table((namespace, "arrivals"), SCHEMA).append(ROWS)
    assert rows("arrivals") == 2
    own.load_table((namespace, "arrivals")).append(ROWS)
    assert wire.load_table((namespace, "arrivals")).scan().to_arrow().num_rows == 4
    with wire.create_table_transaction((namespace, "staged"), SCHEMA) as transaction:
        assert not wire.table_exists((namespace, "staged"))
        transaction.append(ROWS)
    assert rows("staged") == 2
    place = own.load_table((namespace, "staged")).metadata_location
    own.drop_table((namespace, "staged"))
    assert wire.register_table((namespace, "again"), place).scan().to_arrow().num_rows == 2
    with pytest.raises(TableAlreadyExistsError):
        wire.create_table((namespace, "arrivals"), SCHEMA)
    with pytest.raises(TableAlreadyExistsError):
        wire.register_table((namespace, "arrivals"), place)
    wire.rename_table((namespace, "again"), (namespace, "renamed"))
    assert rows("renamed") == 2 and not wire.table_exists((namespace, "again"))
    renamed = wire.load_table((namespace, "renamed"))
    wire.drop_table((namespace, "renamed"))
    assert not wire.table_exists((namespace, "renamed"))
    assert renamed.scan().to_arrow().num_rows == 2, "the files stay"
    wire.register_table((namespace, "renamed"), place)
    wire.purge_table((namespace, "renamed"))
    assert renamed.scan().to_arrow().num_rows == 2, "neither system deletes files that it does not know"


def appended(table: Table) -> bool:
    try:
        table.append(ROWS)
    except CommitFailedException:
        return False
    return True


def test_in_a_metastore(server: MetalakeServer, any_hms: HiveMetastore) -> None:
    namespace = any_hms.create_database("delays")
    own = load_catalog("hms", type="hive", uri=any_hms.uri, warehouse=f"file://{any_hms.warehouse}")
    where = {"metastore.uris": any_hms.uri, "warehouse": f"file://{any_hms.warehouse}/{namespace}.db"}
    catalog = register(server, "hive", where)
    wire = through(server, catalog)
    exercise(own, wire, namespace)
    alter_natively(server, own, catalog, namespace)
    with any_hms.client() as client:
        parameters = client.get_table(namespace, "delays").parameters
        assert parameters["previous_metadata_location"]
        client.drop_table(namespace, "delays", False)
    with pytest.raises(NoSuchTableError):
        wire.load_table((namespace, "delays"))
    make(own, wire, namespace)
    assert own.list_tables(namespace) == [(namespace, "arrivals")]


def test_with_spark_on_a_metastore(server: MetalakeServer, hms: HiveMetastore, iceberg_spark: Spark) -> None:
    """Iceberg's own runtime reads what is made through the wire, and the other way round, below its database."""
    wire = through(server, register(server, "hive", {"metastore.uris": hms.uri}))
    namespace = own_name("flights")
    wire.create_namespace(namespace)
    wire.create_table((namespace, "delays"), SCHEMA, properties={"owner_team": "ops"}).append(ROWS)
    lake = iceberg_catalog("lake", type="hive", uri=hms.uri, warehouse=hms.warehouse.as_uri())
    seen, _, properties, *_ = iceberg_spark.sql(
        f"select carrier, delay from lake.{namespace}.delays order by delay",
        f"insert into lake.{namespace}.delays values ('DL', 4)",
        f"show tblproperties lake.{namespace}.delays",
        f"create table lake.{namespace}.airports (faa string, lat double) using iceberg",
        f"insert into lake.{namespace}.airports values ('JFK', 40.6)",
        settings=lake,
    )
    assert seen == [{"carrier": "AA", "delay": -3}, {"carrier": "UA", "delay": 11}]
    assert {"key": "owner_team", "value": "ops"} in properties
    assert wire.load_table((namespace, "delays")).scan().to_arrow().num_rows == 3
    assert wire.load_table((namespace, "airports")).scan().to_arrow().to_pylist() == [{"faa": "JFK", "lat": 40.6}]
    wire.load_table((namespace, "airports")).append(pa.table({"faa": ["EWR"], "lat": [40.7]}))
    wire.rename_table((namespace, "airports"), (namespace, "fields"))
    (rows,) = iceberg_spark.sql(f"select faa from lake.{namespace}.fields order by faa", settings=lake)
    assert rows == [{"faa": "EWR"}, {"faa": "JFK"}]


def test_only_what_is_served_is_listed(server: MetalakeServer, hms: HiveMetastore, glue: Glue) -> None:
    plain = register(server, "hive", {"metastore.uris": hms.uri})
    without = register(server, "hive", {"metastore.uris": hms.uri, "list-all-tables": "false"})
    glue.create_bucket("lake")
    in_glue = register(server, "glue", glue_settings(glue))
    listed = {name: endpoints(server, name) for name in ("lake", plain, without, in_glue)}
    assert any("views" in each for each in listed["lake"])
    several = [each for each in listed["lake"] if "transactions" in each]  # only where the pointers are our own
    assert several and listed[plain] == [each for each in listed["lake"] if each not in several]
    assert listed[in_glue] == [each for each in listed[plain] if "view" not in each]
    assert listed[without] == [each for each in listed[in_glue] if "table" not in each and "register" not in each]


def endpoints(server: MetalakeServer, catalog: str) -> list[str]:
    answer = Client(server.url).send("GET", f"/iceberg/demo/v1/config?warehouse={catalog}")
    assert answer.status == 200, answer.body
    named: list[str] = answer.body["endpoints"]
    return named


def test_in_glue(server: MetalakeServer, glue: Glue) -> None:
    bucket = glue.create_bucket("flights")
    keys = {"access-key-id": glue.access_key, "secret-access-key": glue.secret_key, "region": glue.region}
    storage = {f"s3.{name}": value for name, value in keys.items()} | {"s3.endpoint": glue.endpoint}
    own = load_catalog(
        "glue",
        type="glue",
        warehouse=bucket,
        **{f"glue.{name}": value for name, value in keys.items()},
        **{"glue.endpoint": glue.endpoint},
        **storage,
    )
    own.create_namespace("delays", {"location": f"{bucket}/delays"})
    properties = {
        "aws-region": glue.region,
        "aws-access-key-id": glue.access_key,
        "aws-secret-access-key": glue.secret_key,
        "aws-glue-endpoint": glue.endpoint,
        "warehouse": bucket,
        **storage,
    }
    catalog = register(server, "glue", properties)
    wire = through(server, catalog, **storage)
    exercise(own, wire, "delays")
    alter_natively(server, own, catalog, "delays")
    make(own, wire, "delays")
    assert sorted(own.list_tables("delays")) == [("delays", "arrivals"), ("delays", "delays")]
