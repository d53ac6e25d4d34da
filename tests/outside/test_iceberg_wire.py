"""Iceberg tables that a metastore or Glue points to: loaded and committed by real PyIceberg through our wire."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

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
from tests.servers import MetalakeServer, StartMetalake

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

SCHEMA = pa.schema([("carrier", pa.string()), ("delay", pa.int64())])
ROWS = pa.table({"carrier": ["UA", "AA"], "delay": [11, -3]}, SCHEMA)


def register(server: MetalakeServer, provider: str, properties: dict[str, str]) -> str:
    name = f"c{uuid4().hex[:8]}"
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


def appended(table: Table) -> bool:
    try:
        table.append(ROWS)
    except CommitFailedException:
        return False
    return True


def test_in_a_metastore(start_metalake: StartMetalake, any_hms: HiveMetastore) -> None:
    server = start_metalake(METALAKE_FILE_LOCATIONS=str(any_hms.warehouse))
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


def test_in_glue(start_metalake: StartMetalake, glue: Glue) -> None:
    server = start_metalake()
    bucket = glue.create_bucket("lake")
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
    made = wire.create_table(("delays", "arrivals"), SCHEMA)
    made.append(ROWS)
    assert own.load_table(("delays", "arrivals")).scan().to_arrow().num_rows == 2
    with wire.create_table_transaction(("delays", "staged"), SCHEMA) as transaction:
        transaction.append(ROWS)
    assert own.load_table(("delays", "staged")).scan().to_arrow().num_rows == 2
    place = own.load_table(("delays", "staged")).metadata_location
    own.drop_table(("delays", "staged"))
    assert wire.register_table(("delays", "again"), place).scan().to_arrow().num_rows == 2
    with pytest.raises(TableAlreadyExistsError):
        wire.create_table(("delays", "arrivals"), SCHEMA)
    wire.rename_table(("delays", "again"), ("delays", "renamed"))
    assert own.load_table(("delays", "renamed")).scan().to_arrow().num_rows == 2
    wire.drop_table(("delays", "renamed"))
    assert sorted(own.list_tables("delays")) == [("delays", "arrivals"), ("delays", "delays")]
