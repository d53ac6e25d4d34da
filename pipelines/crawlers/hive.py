"""The crawler of Hive metastores, over Thrift. Requires thrift, hive_metastore and orjson on the executors."""

from __future__ import annotations

import hashlib
import ipaddress
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlsplit

import orjson
from hive_metastore.ThriftHiveMetastore import Client
from hive_metastore.ttypes import (
    Database,
    NoSuchObjectException,
    PrincipalType,
    SerDeInfo,
    StorageDescriptor,
    Table,
    UnknownDBException,
)
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.Thrift import TException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from pipelines.crawlers.systems import Entry, Gone, Json, Unavailable, patiently

T = TypeVar("T")
URIS = "metastore.uris"
PORT = 9083
CONNECT_SECONDS, ANSWER_SECONDS = 3.0, 25.0
CHUNK = 64 * 2**10  # bytes
PART, PAGE = 1_000, 200  # names per part, tables per request
DDL_TIME, COMMENT = "transient_lastDdlTime", "comment"  # parameters; the first changes with every write
DESCENDING = 0


def crawler(properties: Mapping[str, str], patience: float) -> Hive:
    return Hive(properties[URIS], patience)


class Hive:
    def __init__(self, uris: str, patience: float) -> None:
        self._uris = [uri.strip() for uri in uris.split(",") if uri.strip()]
        self._patience = patience
        self._transport: TBufferedTransport | None = None
        self._client: Client | None = None

    def parts(self, schema: str) -> list[list[str] | None]:
        names = self._call(lambda client: client.get_all_tables(schema) if schema else client.get_all_databases())
        if schema and not names:
            self._call(lambda client: client.get_database(schema))  # a missing database lists as empty
        names = sorted(name for name in names if name)
        return [names[start : start + PART] for start in range(0, len(names), PART)]

    def read(self, schema: str, names: Sequence[str] | None) -> Iterator[list[Entry]]:
        for start in range(0, len(names or ()), PAGE):
            page = list((names or ())[start : start + PAGE])
            yield self._tables(schema, page) if schema else self._databases(page)

    def _tables(self, schema: str, names: list[str]) -> list[Entry]:
        tables = self._call(lambda client: client.get_table_objects_by_name(schema, names))
        return [table_entry(table) for table in tables]

    def _databases(self, names: list[str]) -> list[Entry]:
        entries = []
        for name in names:
            try:
                entries.append(database_entry(self._call(partial(_database, name=name))))
            except Gone:
                continue
        return entries

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
        self._transport = self._client = None

    def _call(self, act: Callable[[Client], T]) -> T:
        return patiently(lambda: self._once(act), self._patience)

    def _once(self, act: Callable[[Client], T]) -> T:
        try:
            return act(self._client or self._open())
        except (NoSuchObjectException, UnknownDBException):
            raise Gone from None
        except (TException, OSError) as failure:
            self.close()  # the connection may be in the middle of a response
            raise Unavailable(f"The metastore {', '.join(self._uris)} failed ({type(failure).__name__}).") from None

    def _open(self) -> Client:
        """Connect to the first metastore that accepts. Raises the last failure, Unavailable if none is configured."""
        failure: Exception = Unavailable(f"The catalog's property {URIS} names no metastore.", is_final=True)
        for uri in self._uris:
            parts = urlsplit(uri)
            for address in _addresses(parts.hostname or "", parts.port or PORT):
                try:
                    return self._connect(address, parts.port or PORT)
                except (TException, OSError) as refused:
                    failure = refused
        raise failure

    def _connect(self, address: str, port: int) -> Client:
        connection = TSocket(address, port)
        connection.setTimeout(CONNECT_SECONDS * 1000)
        transport = TBufferedTransport(connection, CHUNK)
        transport.open()
        connection.setTimeout(ANSWER_SECONDS * 1000)
        self._transport, self._client = transport, Client(TBinaryProtocolAccelerated(transport, strictRead=True))
        return self._client


def _addresses(host: str, port: int) -> list[str]:
    """Resolve a metastore's host. Raises Unavailable for link-local (cloud metadata services) and similar addresses."""
    given = [str(each[4][0]) for each in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    for address in given:
        read = ipaddress.ip_address(address.partition("%")[0])
        if read.is_link_local or read.is_multicast or read.is_unspecified:
            raise Unavailable(f"{host} means {address}, where no metastore is.", is_final=True)
    return given


def _database(client: Client, name: str) -> Database:
    return client.get_database(name)


def database_entry(database: Database) -> Entry:
    owner_type = PrincipalType._VALUES_TO_NAMES.get(database.ownerType) if database.ownerType else None
    described = {
        "comment": database.description,
        "location": database.locationUri,
        "parameters": dict(database.parameters or {}),
        "owner": database.ownerName,
        "owner_type": owner_type,
    }
    return Entry(database.name, {"name": database.name, "definition": described}, "", _digest(described))


def table_entry(table: Table) -> Entry:
    """The table's entry; its version is computed as the server does."""
    described, identity = definition(table), str(table.createTime)
    lasting = {name: value for name, value in described["parameters"].items() if name != DDL_TIME}
    version = _digest({**described, "parameters": lasting})
    return Entry(table.tableName, {"identity": identity, "definition": described}, identity, version)


def definition(table: Table) -> Json:
    """The table as the server stores it: the fields of its formats.hive.tables.HiveTable."""
    storage = table.sd or StorageDescriptor()
    serde = storage.serdeInfo or SerDeInfo()
    parameters = dict(table.parameters or {})
    comment = parameters.pop(COMMENT, None)
    return {
        "name": table.tableName,
        "columns": _columns(storage.cols),
        "partition_keys": _columns(table.partitionKeys),
        "parameters": parameters,
        "table_type": table.tableType,
        "comment": comment,
        "location": storage.location,
        "input_format": storage.inputFormat,
        "output_format": storage.outputFormat,
        "serde_lib": serde.serializationLib,
        "serde_name": serde.name,
        "serde_parameters": dict(serde.parameters or {}),
        "bucket_columns": list(storage.bucketCols or ()),
        "num_buckets": -1 if storage.numBuckets is None else storage.numBuckets,
        "sort_columns": [{"name": by.col, "ascending": by.order != DESCENDING} for by in storage.sortCols or ()],
        "compressed": bool(storage.compressed),
        "stored_as_sub_directories": bool(storage.storedAsSubDirectories),
        "sd_parameters": dict(storage.parameters or {}),
        "view_original_text": table.viewOriginalText,
        "view_expanded_text": table.viewExpandedText,
        "owner": table.owner,
        "retention": table.retention or 0,
        "rest": {},
    }


def _columns(fields: Sequence[Any] | None) -> list[Json]:
    return [
        {"name": field.name or "", "type": field.type or "", "comment": field.comment, "parameters": {}}
        for field in fields or ()
    ]


def _digest(described: Json) -> str:
    return hashlib.sha256(orjson.dumps(described, option=orjson.OPT_SORT_KEYS)).hexdigest()[:40]
