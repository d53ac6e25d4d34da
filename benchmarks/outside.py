"""Outside systems full of tables, each in a process of its own, apart from the server that is measured."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from tests.glue import ANY, Fault, Glue

if TYPE_CHECKING:
    from hive_metastore.ThriftHiveMetastore import Client

    from authz.actor import Actor
    from tests.hms import HiveMetastore

FLIGHTS = [
    ("flight_id", "bigint"), ("carrier", "string"), ("origin", "string"), ("destination", "string"),
    ("scheduled_departure", "timestamp"), ("departed_at", "timestamp"), ("landed_at", "timestamp"), ("delay", "int"),
    ("cancelled", "boolean"), ("fare", "decimal(10,2)"), ("passengers", "int"), ("tail_number", "string"),
]  # fmt: skip
TEXT = "org.apache.hadoop.mapred.TextInputFormat"
OUTPUT = "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat"
SERDE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
DELAY = 0.03  # seconds for a page, as with the real Glue
PROVIDERS = "generated=benchmarks.generated:GeneratedProvider"


def table_name(number: int) -> str:
    return f"flights_{number:05}"


def outside_catalog(owner: Actor, name: str, provider: str, **properties: str) -> None:
    from benchmarks.population import METALAKE
    from catalogs.services import catalogs

    given = {key.replace("_", "-"): value for key, value in properties.items()}
    catalogs.create_catalog(owner, METALAKE, name, "relational", provider, None, given)


# Hive Metastore


def fill_metastore(hms: HiveMetastore, count: int) -> str:
    """The name of a database with so many tables of twelve columns."""
    from hive_metastore.ttypes import FieldSchema, SerDeInfo, StorageDescriptor, Table

    database = hms.create_database()
    columns = [FieldSchema(name, kind, None) for name, kind in FLIGHTS]
    with metastore(hms) as client:
        for number in range(count):
            name = table_name(number)
            location = (hms.warehouse / database / name).as_uri()
            storage = StorageDescriptor(
                columns, location, TEXT, OUTPUT, numBuckets=-1, serdeInfo=SerDeInfo(None, SERDE)
            )
            made = Table(name, database, "airlines", tableType="EXTERNAL_TABLE", sd=storage)
            made.parameters, made.partitionKeys = {"EXTERNAL": "TRUE"}, []
            client.create_table(made)
    return database


@contextmanager
def metastore(hms: HiveMetastore) -> Iterator[Client]:
    """Thrift's fastest client, on a connection of its own."""
    from hive_metastore.ThriftHiveMetastore import Client
    from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
    from thrift.transport.TSocket import TSocket
    from thrift.transport.TTransport import TBufferedTransport

    transport = TBufferedTransport(TSocket(hms.host, hms.port), 64 * 1024)
    transport.open()
    try:
        yield Client(TBinaryProtocolAccelerated(transport))
    finally:
        transport.close()


# AWS Glue


class GlueProcess:
    """The stand-in for Glue; `delay` makes it as slow as the real Glue."""

    def __init__(self, stack: ExitStack) -> None:
        command = [sys.executable, "-c", "from benchmarks.outside import stand_in_for_glue as run; run()"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        stack.callback(self._process.wait)
        stack.callback(self._process.terminate)
        self.glue = Glue(self._answer())
        self.glue.create_bucket("lake")

    def delay(self, seconds: float) -> None:
        """Set the delay of each call from now on."""
        assert self._process.stdin
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()
        self._answer()

    def _answer(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline().strip()

    @property
    def settings(self) -> dict[str, str]:
        """The properties of a catalog whose provider reaches this stand-in."""
        glue = self.glue
        return {
            "aws-region": glue.region,
            "aws-glue-endpoint": glue.endpoint,
            "aws-access-key-id": glue.access_key,
            "aws-secret-access-key": glue.secret_key,
            "s3.endpoint": glue.endpoint,
            "warehouse": "s3://lake/warehouse",
        }


def fill_glue(glue: Glue, database: str, count: int) -> None:
    """A database with so many tables of twelve columns."""
    client = glue.client()
    client.create_database(DatabaseInput={"Name": database})
    for number in range(count):
        storage = {
            "Location": f"s3://lake/{database}/{table_name(number)}",
            "Columns": [{"Name": name, "Type": kind} for name, kind in FLIGHTS],
            "InputFormat": TEXT,
            "OutputFormat": OUTPUT,
            "SerdeInfo": {"SerializationLibrary": SERDE, "Parameters": {"field.delim": ","}},
        }
        made: dict[str, Any] = {"Name": table_name(number), "TableType": "EXTERNAL_TABLE", "StorageDescriptor": storage}
        made["Parameters"] = {"classification": "csv", "EXTERNAL": "TRUE"}
        client.create_table(DatabaseName=database, TableInput=made)


def stand_in_for_glue() -> None:
    """Print its address, then read delays from standard input, one a line."""
    from tests.glue import running_glue

    with running_glue() as glue:
        print(glue.endpoint, flush=True)
        for line in sys.stdin:
            glue.heal()
            if seconds := float(line):
                glue.fail(ANY, Fault.REPLY_LATE, times=None, seconds=seconds)
            glue.calls.clear()
            print("set", flush=True)
