"""A server with the catalogs that engines are configured for: Iceberg's own `lake`, and `hive` on a real metastore."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from metalake_client.engines.catalogs import EngineCatalog, catalogs_of
from metalake_client.rest import Client as Reader
from tests.catalogs.racing import Client
from tests.hms import HiveMetastore
from tests.iceberg_rest.test_duckdb import add, give, token_of
from tests.names import own_name
from tests.servers import MetalakeServer, running_metalake


@contextmanager
def running_lakes(home: Path, hms: HiveMetastore) -> Iterator[MetalakeServer]:
    properties = {"metastore.uris": hms.uri, "allowed-locations": hms.warehouse.as_uri()}
    hive = {"name": "hive", "type": "relational", "provider": "hive", "properties": properties}
    with running_metalake(home, METALAKE_FILE_LOCATIONS=str(hms.warehouse)) as server:
        made = Client(server.url).send("POST", "/api/metalakes/demo/catalogs", hive)
        assert made.status == 200, made.body
        yield server


def shown(server: MetalakeServer) -> list[EngineCatalog]:
    """The catalogs of `demo` as their configuration is made from them."""
    return catalogs_of(reader_of(server), "demo")


def reader_of(server: MetalakeServer) -> Reader:
    return Reader(server.url, user="admin", password=server.admin_password)


def token_of_a_reader(server: MetalakeServer) -> str:
    """Of somebody who may read all of `lake` and change nothing."""
    admin, name = Client(server.url), own_name("rita")
    add(admin, name)
    give(admin, name, "catalog", "lake", "use_catalog", "use_schema", "select_table", "select_view")
    return token_of(server, name)
