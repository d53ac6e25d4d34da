"""Real DuckDB and real PyIceberg through the files that gcli wrote for them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from uuid import uuid4

import boto3
import duckdb
import pytest
from moto.server import ThreadedMotoServer

from tests.iceberg_rest.test_duckdb import EXTENSIONS, extension
from tests.jars import JarsMissing
from tests.mariadb import PASSWORD, MariaDB
from tests.metalake_client.gcli import Gcli
from tests.names import own_name
from tests.packages import installed

pytestmark = pytest.mark.slow

QUOTED = "my-lake=2"

# Its extensions of databases, which nothing else here needs.
DATABASES = {
    "duckdb-extension-mysql-scanner==1.5.5": "91ea3d182de797113133c132bf267ba6c22dc716a2018cb6753470303baefbe8",
    "duckdb-extension-postgres-scanner==1.5.5": "fea9413d1b5bded7ead650aff91b3d7578c5149d832f666100b362f64404bf18",
}

Run = Callable[..., duckdb.DuckDBPyConnection]


@pytest.fixture
def lakes(gcli: Gcli) -> Gcli:
    for name in ("lake", QUOTED):
        gcli.ok("catalog", "create", "--catalog", name, "--provider", "lakehouse-iceberg")
    return gcli


def token_of(gcli: Gcli, *more: str) -> str:
    made: str = gcli.json("token", "create", "--name", own_name("engine"), *more)["secret"]
    return made


@pytest.fixture
def extensions(tmp_path: Path) -> Path:
    """Pip's extensions where DuckDB installs its own: the place of the files of one version and platform."""
    place = tmp_path / "home" / f"v{duckdb.__version__}" / str(duckdb.sql("PRAGMA platform").fetchall()[0][0])
    place.mkdir(parents=True)
    for name in EXTENSIONS:
        (place / f"{name}.duckdb_extension").symlink_to(extension(name))
    return place


@pytest.fixture
def duck(lakes: Gcli, tmp_path: Path, extensions: Path) -> Iterator[Run]:
    """DuckDB that ran the file, for the user of a token."""
    home, folder, ran = extensions.parent.parent, tmp_path / "duckdb", []

    def run(token: str, **known: str) -> duckdb.DuckDBPyConnection:
        lakes.ok("engine", "config", "duckdb", "--folder", str(folder))
        ran.append(connection := duckdb.connect(config={"extension_directory": str(home)}))
        # DuckDB's command line has the function by itself.
        known |= {"METALAKE_TOKEN": token}
        connection.create_function("getenv", lambda name: known[name], ["VARCHAR"], "VARCHAR")
        connection.execute((folder / "metalake.sql").read_text())
        return connection

    yield run
    for connection in ran:
        connection.close()


def test_duckdb_makes_writes_and_reads_tables(lakes: Gcli, duck: Run) -> None:
    connection = duck(token_of(lakes))
    connection.execute('CREATE SCHEMA lake."sales.emea"')
    connection.execute('CREATE TABLE lake."sales.emea".orders (id BIGINT, city VARCHAR)')  # staged, as by default
    connection.execute("INSERT INTO lake.\"sales.emea\".orders VALUES (1, 'Oslo'), (2, 'Rome')")
    connection.execute(f'CREATE SCHEMA "{QUOTED}".s')
    connection.execute(f'CREATE TABLE "{QUOTED}".s.t AS SELECT 7 AS id')
    both = f'SELECT city FROM lake."sales.emea".orders JOIN "{QUOTED}".s.t ON orders.id + 5 = t.id'
    assert connection.execute(both).fetchall() == [("Rome",)]
    names = [each["name"] for each in lakes.json("table", "list", "--catalog", "lake", "--schema", "sales:emea")]
    assert names == ["orders"]


def test_duckdb_of_who_may_not_read(lakes: Gcli, duck: Run) -> None:
    admin = duck(token_of(lakes))
    admin.execute("CREATE SCHEMA lake.s")
    admin.execute("CREATE TABLE lake.s.t AS SELECT 1 AS id")
    nadia = own_name("nadia")
    lakes.ok("user", "create", "--name", nadia)
    lakes.ok("role", "create", "--name", "lookers")
    for catalog in ("lake", QUOTED):
        place = ("--type", "catalog", "--object", catalog)
        lakes.ok("grant", "add", "--role", "lookers", *place, "--privilege", "USE_CATALOG")
    lakes.ok("role", "assign", "lookers", "--for-user", nadia)
    hers = duck(token_of(lakes, "--for-user", nadia))
    with pytest.raises(duckdb.Error, match="does not exist"):
        hers.execute("SELECT * FROM lake.s.t")
    assert admin.execute("SELECT * FROM lake.s.t").fetchall() == [(1,)]


@pytest.fixture
def aws() -> Iterator[str]:
    """An AWS with the bucket lake."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    url = "http://{}:{}".format(*server.get_host_and_port())
    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "us-east-1"}
    boto3.client("s3", endpoint_url=url, **keys).create_bucket(Bucket="lake")
    yield url
    server.stop()


def test_duckdb_opens_s3_with_the_keys_of_each_catalog(lakes: Gcli, duck: Run, aws: str) -> None:
    """Also of one that names no place, and what comes after it is there."""
    s3 = f"s3.endpoint={aws},s3.region=us-east-1,s3.access-key-id=a,s3.secret-access-key=b,warehouse=s3://lake/zoo"
    lakes.ok("catalog", "create", "zoo", "--provider", "lakehouse-iceberg", "-p", s3)
    keys = f"aws-region=us-east-1,aws-access-key-id=a,aws-secret-access-key=b,aws-glue-endpoint={aws},s3.endpoint={aws}"
    number, database = f"{uuid4().int % 10**12:012}", {"Name": "g", "LocationUri": "s3://lake/glue"}
    client = boto3.client("glue", "us-east-1", endpoint_url=aws, aws_access_key_id="a", aws_secret_access_key="b")
    client.create_database(CatalogId=number, DatabaseInput=database)
    lakes.ok("catalog", "create", "my_glue", "--provider", "glue", "-p", f"{keys},aws-glue-catalog-id={number}")
    names = {"ZOO_S3_ACCESS_KEY_ID": "a", "ZOO_S3_SECRET_ACCESS_KEY": "b"}
    names |= {"MY_GLUE_AWS_ACCESS_KEY_ID": "a", "MY_GLUE_AWS_SECRET_ACCESS_KEY": "b"}
    connection = duck(token_of(lakes), **{f"METALAKE_{name}": value for name, value in names.items()})
    connection.execute("CREATE SCHEMA zoo.g")
    for catalog in ("my_glue", "zoo"):
        connection.execute(f"CREATE TABLE {catalog}.g.t AS SELECT 1 AS id")
        assert connection.execute(f"SELECT * FROM {catalog}.g.t").fetchall() == [(1,)]


def test_duckdb_asks_databases_itself(
    lakes: Gcli, duck: Run, extensions: Path, postgres_url: str, mariadb: MariaDB
) -> None:
    try:
        packages = installed("duckdb-databases-1.5.5", DATABASES)
    except JarsMissing as missing:
        pytest.skip(f"needs DuckDB's extensions of databases: {missing}")
    for file in packages.rglob("*.duckdb_extension"):
        (extensions / file.name).symlink_to(file)
    url, schema = f"jdbc:postgresql://{postgres_url.rpartition('@')[2]}?sslmode=prefer", own_name("s")
    of_postgres = {"jdbc-url": url, "jdbc-user": "postgres", "jdbc-password": "any"}
    for name, provider, properties in (
        ("Sales", "jdbc-postgresql", of_postgres),
        ("my-shop", "jdbc-mysql", mariadb.properties()),
    ):
        given = ",".join(f"{key}={value}" for key, value in properties.items())
        lakes.ok("catalog", "create", name, "--provider", provider, "-p", given)
        lakes.ok("schema", "create", "--catalog", name, "--schema", schema)
    try:
        known = {"METALAKE_SALES_JDBC_PASSWORD": "any", "METALAKE_MY_SHOP_JDBC_PASSWORD": PASSWORD}
        connection = duck(token_of(lakes), **known)
        connection.execute(f"CREATE TABLE Sales.{schema}.orders AS SELECT 1::BIGINT AS id, 'Oslo' AS city")
        connection.execute(
            f'CREATE TABLE "my-shop".{schema}.stock AS SELECT 1::BIGINT AS id, 2.50::DECIMAL(5,2) AS price'
        )
        both = f'SELECT city, price FROM Sales.{schema}.orders JOIN "my-shop".{schema}.stock USING (id)'
        assert connection.execute(both).fetchall() == [("Oslo", Decimal("2.50"))]
        stock = lakes.json("table", "details", "--catalog", "my-shop", "--schema", schema, "--table", "stock")
        assert [(column["name"], column["type"]) for column in stock["columns"]] == [
            ("id", "long"),
            ("price", "decimal(5,2)"),
        ]
    finally:
        lakes.ok("catalog", "drop", "my-shop", "--force", "--yes")  # it owns the server


READ = """
import json
from pyiceberg.catalog import load_catalog
rows = {name: load_catalog(name).load_table(table).scan().to_arrow().to_pylist()
        for name, table in (("lake", "sales.emea.orders"), ("my-lake-2", "s.t"))}
print(json.dumps(rows))
"""
MAKE = """
import pyarrow as pa
from pyiceberg.catalog import load_catalog
for name, schema in (("lake", ("sales", "emea")), ("my-lake-2", ("s",))):
    catalog, rows = load_catalog(name), pa.table({"id": [1, 2]})
    catalog.create_namespace(schema)
    catalog.create_table((*schema, "orders" if name == "lake" else "t"), rows.schema).append(rows)
"""


def test_pyiceberg_reads_its_file_and_variables(lakes: Gcli, tmp_path: Path) -> None:
    folder = tmp_path / "pyiceberg"
    lakes.ok("engine", "config", "pyiceberg", "--folder", str(folder))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYICEBERG", "METALAKE"))}
    environment |= {"METALAKE_TOKEN": token_of(lakes), "PYICEBERG_HOME": str(folder), "HOME": str(tmp_path)}
    done = subprocess.run(
        ["sh", "-c", '. ./pyiceberg.sh && exec "$0" -c "$1"', sys.executable, MAKE + READ],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = [{"id": 1}, {"id": 2}]
    assert json.loads(done.stdout) == {"lake": rows, "my-lake-2": rows}
    assert environment["METALAKE_TOKEN"] not in "".join(path.read_text() for path in folder.iterdir())
