"""The outside systems of the crash matrix: faults by number, what is there, and all as it was at first."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import rmtree
from typing import Any, ClassVar

import orjson
from django.conf import settings
from hive_metastore.ThriftHiveMetastore import Client
from hive_metastore.ttypes import (
    Database,
    FieldSchema,
    SerDeInfo,
    ShowLocksRequest,
    StorageDescriptor,
    Table,
    UnlockRequest,
)

from formats.iceberg import builder, files, storage
from providers.hive.objects import DDL_TIME, partition_of, schema_of, table_of
from providers.hive.objects import hive_table as hive_table_of
from providers.hive_like.parameters import MARKER
from providers.remote_objects import Remote, digest
from tests.faults import Faults
from tests.glue import Apply, Fault, Glue, Rule
from tests.hms import HiveMetastore
from tests.providers.glue_catalogs import provider_on
from tests.providers.world import LEVELS, World

FOREIGN = "hr"  # a schema of others with a table in it
IN_EVERY_METASTORE = "default"
UUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}")
ANSWERS = ("lost", "dropped", "late", "down", "denied", "killed", "killed after")
TEXT = "org.apache.hadoop.mapred.TextInputFormat"


def is_foreign(name: str) -> bool:
    return name.replace(LEVELS, ".").split(".")[0] in (FOREIGN, IN_EVERY_METASTORE)


class Outside(ABC):
    """Names are what objects are called there, the levels divided by LEVELS."""

    provider: ClassVar[str]
    endings: ClassVar[tuple[str, ...]]  # what can happen to one request
    asks_people: ClassVar[bool] = False  # whether a write may wait for a person's decision
    faults: Faults

    def __init__(self) -> None:
        self.foreign = {name: found for name, found in self.objects().items() if is_foreign(name)}

    @abstractmethod
    def objects(self) -> dict[str, Remote]:
        """Schemas and tables."""

    def beside(self, objects: dict[str, Remote]) -> set[tuple[str, str]]:
        """What else is there beside these objects, and has no row here."""
        return set()

    @abstractmethod
    def put_schema(self, name: str) -> None:
        """Made by somebody else."""

    @abstractmethod
    def reset(self) -> None:
        """Leave what others have, and no fault."""

    def copy(self) -> bytes | None:
        """All that is there, for `put_back`; None where that cannot be copied."""
        return None

    def put_back(self, copy: bytes) -> None:
        raise NotImplementedError

    def heal(self) -> None:
        self.faults.heal()

    def marker_of(self, definition: dict[str, Any]) -> str | None:
        return definition["parameters"].get(MARKER)

    def plain(self, definition: dict[str, Any]) -> str:
        """Without what differs from one making to the next."""
        parameters = {k: v for k, v in definition["parameters"].items() if k not in (MARKER, DDL_TIME)}
        said = orjson.dumps({**definition, "parameters": parameters}, option=orjson.OPT_SORT_KEYS).decode()
        return UUID.sub("uuid", said)

    def changes(self, request: str) -> bool:
        """Whether a request makes something of it different."""
        return not request.startswith(("load", "list"))


class Memory(Outside):
    """A world in a file."""

    provider = "memory"
    endings = (*ANSWERS, "busy", "bug")

    def __init__(self, world: World) -> None:
        self.world = world
        world.put_schema(FOREIGN)
        world.put_table(FOREIGN, "staff")
        self._empty = world.path.read_bytes()
        super().__init__()

    @property
    def faults(self) -> Faults:  # type: ignore[override]
        return self.world.faults

    def objects(self) -> dict[str, Remote]:
        with self.world.open() as state:
            found = {**state["schemas"], **state["tables"]}
        return {
            name: Remote(name, one["definition"], one["identity"], digest(one["definition"]))
            for name, one in found.items()
        }

    def put_schema(self, name: str) -> None:
        self.world.put_schema(name, team="others")

    def reset(self) -> None:
        self.put_back(self._empty)

    def copy(self) -> bytes | None:
        return self.world.path.read_bytes()

    def put_back(self, copy: bytes) -> None:
        self.world.path.write_bytes(copy)
        self.world.heal()

    def heal(self) -> None:
        self.world.heal()

    def marker_of(self, definition: dict[str, Any]) -> str | None:
        return definition["properties"].get(MARKER)

    def plain(self, definition: dict[str, Any]) -> str:
        properties = {key: value for key, value in definition["properties"].items() if key != MARKER}
        return orjson.dumps({**definition, "properties": properties}, option=orjson.OPT_SORT_KEYS).decode()


class MemoryWithViews(Memory):
    provider = "memory-views"

    def copy(self) -> None:
        """The metadata files of its views are not in it."""

    def put_view(self, schema: str, name: str) -> None:
        """Made by somebody else."""
        self.world.put_view(schema, name)


class Metastore(Outside):
    """A Hive metastore of the test's own, which Metalake reaches by a way with faults. It knows no throttling."""

    provider = "hive"
    endings = (*ANSWERS, "broken", "broken after", "down after")

    def __init__(self, hms: HiveMetastore, client: Client, faults: Faults, port: int) -> None:
        """`client` is for looking and putting; its first request on a new connection would take longer than others."""
        self._client, self.faults = client, faults
        self._lake = Path(settings.METALAKE_HOME) / "warehouse" / f"of-{hms.port}"  # its own, since it is emptied
        self.properties = {
            "metastore.uris": f"thrift://{hms.host}:{port}",
            "nested-namespaces": "true",
            "warehouse": self._lake.as_uri(),
        }
        if FOREIGN not in client.get_all_databases():
            client.create_database(Database(name=FOREIGN))
            client.create_table(_hive_table(FOREIGN, "staff"))
        super().__init__()

    def objects(self) -> dict[str, Remote]:
        found = {}
        for schema in self._client.get_all_databases():
            found[schema] = schema_of(self._client.get_database(schema))
            names = self._client.get_all_tables(schema)
            for table in self._client.get_table_objects_by_name(schema, names) if names else ():
                found[f"{schema}{LEVELS}{table.tableName}"] = table_of(table)
        return found

    def beside(self, objects: dict[str, Remote]) -> set[tuple[str, str]]:
        """Partitions, and the first metadata file of each Iceberg table of ours."""
        found = {("file", UUID.sub("uuid", str(path))) for path in self._lake.rglob("00000-*.metadata.json")}
        for schema, table in partitioned(objects):
            keys = hive_table_of(self._client.get_table(schema, table)).partition_keys
            for each in self._client.get_partitions(schema, table, -1):
                one = partition_of(keys, each)
                found.add((f"{schema}.{table}/{one.name}", self.plain(one.definition)))
        return found

    def reset(self) -> None:
        """The locks of processes that ended go, too: a metastore itself drops them after some minutes."""
        self.heal()
        for lock in {each.lockid for each in self._client.show_locks(ShowLocksRequest()).locks}:
            self._client.unlock(UnlockRequest(lock))
        for name in self._client.get_all_databases():
            if not is_foreign(name):
                self._client.drop_database(name, True, True)
        rmtree(self._lake, ignore_errors=True)

    def changes(self, request: str) -> bool:
        return request.startswith(("create", "alter", "drop", "add"))

    def put_schema(self, name: str) -> None:
        self._client.create_database(Database(name=name, parameters={"team": "others"}))

    def put_table(self, schema: str, name: str, path: bool = False) -> None:
        """Made by somebody else; with a path in its storage, as Spark makes its own."""
        self._client.create_table(_hive_table(schema, name))
        if path:
            table = self._client.get_table(schema, name)
            table.sd.serdeInfo.parameters["path"] = table.sd.location
            self._client.alter_table(schema, name, table)

    def put_iceberg(self, schema: str, name: str) -> None:
        """Made by somebody else, in a place where this server may read and write files."""
        pointer, parameters = _iceberg_files(f"{self._lake.as_uri()}/{schema}/{name}")
        table = _hive_table(schema, name)
        table.tableType, table.sd.location = "EXTERNAL_TABLE", pointer.rpartition("/metadata/")[0]
        table.parameters = {"EXTERNAL": "TRUE", **parameters}
        self._client.create_table(table)


def partitioned(objects: dict[str, Remote]) -> Iterator[tuple[str, str]]:
    """Schema and name of each table with partitions."""
    for name, one in objects.items():
        if one.definition.get("partition_keys"):
            schema, _, table = name.partition(LEVELS)
            yield schema, table


def _hive_table(schema: str, name: str) -> Table:
    storage = StorageDescriptor(
        cols=[FieldSchema("carrier", "string", None), FieldSchema("delay", "int", "minutes")],
        inputFormat=TEXT,
        serdeInfo=SerDeInfo("plain", "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", {}),
    )
    return Table(dbName=schema, tableName=name, sd=storage, partitionKeys=[], tableType="MANAGED_TABLE", parameters={})


def _iceberg_files(location: str) -> tuple[str, dict[str, str]]:
    """The first metadata file of an Iceberg table, written, and the parameters that point to it."""
    schema = {"type": "struct", "fields": [{"id": 1, "name": "carrier", "required": False, "type": "string"}]}
    metadata = builder.new_table_metadata(
        table_uuid="7d3e2f60-5a1b-4c8d-9e0f-1a2b3c4d5e6f",
        location=location,
        schema=schema,
        partition_spec=None,
        sort_order=None,
        properties={"team": "crew"},
        now_ms=1_700_000_000_000,
    )
    pointer, _ = files.write_metadata(storage.file_io({}), metadata, version=0)
    return pointer, {"table_type": "ICEBERG", "metadata_location": pointer}


class AwsGlue(Outside):
    """Glue and S3, each request of either counted."""

    provider = "glue"
    endings = (*ANSWERS, "busy")
    _as_glue: ClassVar[dict[str, Fault]] = {
        "lost": Fault.REPLY_LOST,
        "dropped": Fault.REQUEST_LOST,
        "down": Fault.ERROR,
        "busy": Fault.THROTTLED,
        "denied": Fault.EXPIRED,
    }

    def __init__(self, glue: Glue, properties: dict[str, str]) -> None:
        self.glue, self.faults, self.properties = glue, Faults(), properties
        glue.next_fault = self._next
        self._direct, self._client, self._s3 = provider_on(glue), glue.client(), glue.client("s3")
        glue.create_bucket("lake")
        self.put_schema(FOREIGN)
        self._client.create_table(DatabaseName=FOREIGN, TableInput={"Name": "staff", "Parameters": {"kept": "yes"}})
        super().__init__()

    def _next(self, operation: str) -> Rule | None:
        fault = self.faults.next(operation)
        if not fault:
            return None
        if fault in self._as_glue:
            return Rule(operation, self._as_glue[fault])
        return Rule(operation, Fault.OWN, own=getattr(self, f"_{fault.replace(', ', '_')}"))

    def _late(self, apply: Apply, start_response: Callable[..., Any]) -> None:
        self.faults.arrive_late(lambda: apply(lambda *_: None))

    def _slow(self, apply: Apply, start_response: Callable[..., Any]) -> list[bytes]:
        return self.faults.slow(lambda: apply(start_response), arrives=True)

    def _slow_dropped(self, apply: Apply, start_response: Callable[..., Any]) -> list[bytes]:
        return self.faults.slow(lambda: apply(start_response), arrives=False)

    def objects(self) -> dict[str, Remote]:
        found = {}
        for schema in self._direct.schemas.list().items:
            found[schema.name] = schema
            for table in self._direct.tables.list([schema.name]).items:
                found[f"{schema.name}{LEVELS}{table.name}"] = table
        return found

    def beside(self, objects: dict[str, Remote]) -> set[tuple[str, str]]:
        """Partitions, and files but for metadata that a commit wrote: the next one may be on its way to them."""
        found = {("file", UUID.sub("uuid", key)) for key in self.files() if "/metadata/00000-" in key}
        for schema, table in partitioned(objects):
            for each in self._direct.partitions.list([schema], table).items:
                found.add((f"{schema}.{table}/{each.name}", self.plain(each.definition)))
        return found

    def files(self) -> set[str]:
        """Their keys; Arrow leaves a folder's empty object behind when it deletes a file."""
        listed = self._s3.list_objects_v2(Bucket="lake").get("Contents", [])
        return {one["Key"] for one in listed if not one["Key"].endswith("/")}

    def reset(self) -> None:
        self.heal()
        for database in self._client.get_databases()["DatabaseList"]:
            if not is_foreign(database["Name"]):
                self._client.delete_database(Name=database["Name"])
        for key in self.files():
            self._s3.delete_object(Bucket="lake", Key=key)

    def changes(self, request: str) -> bool:
        return not request.startswith(("Get", "s3:GET", "s3:HEAD"))

    def put_schema(self, name: str) -> None:
        self._client.create_database(DatabaseInput={"Name": name, "Parameters": {"team": "others"}})
