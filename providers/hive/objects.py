"""Convert a metastore's objects to definitions, and apply definitions to them.

Fields that a definition lacks, such as skewed columns or privileges, stay unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from hive_metastore.ttypes import (
    Database,
    FieldSchema,
    Order,
    Partition,
    PrincipalType,
    SerDeInfo,
    StorageDescriptor,
    Table,
)

from formats.hive.partitions import partition_name
from formats.hive.tables import HiveColumn, HiveTable, SortColumn
from metalake.errors import ProviderUnavailable
from metalake.kinds import Kind
from providers.hive_like.parameters import formats_in
from providers.remote_objects import PARTITION, Remote, digest

DDL_TIME = "transient_lastDdlTime"  # changes with every write, so not part of the version
COMMENT = "comment"
ASCENDING, DESCENDING = 1, 0


def schema_of(database: Database) -> Remote:
    """A database as a Remote, without identity: a metastore cannot distinguish it from a later one of the same name."""
    owner_type = PrincipalType._VALUES_TO_NAMES.get(database.ownerType) if database.ownerType else None
    definition = {
        "comment": database.description,
        "location": database.locationUri,
        "parameters": dict(database.parameters or {}),
        "owner": database.ownerName,
        "owner_type": owner_type,
    }
    return database_of(_name(database.name), definition)


def database_of(name: str, definition: dict[str, Any]) -> Remote:
    return Remote(name, definition, "", digest(definition), Kind.SCHEMA)


def database_from(name: str, definition: Mapping[str, Any]) -> Database:
    owner_type = definition.get("owner_type")
    return Database(
        name=name,
        description=definition["comment"],
        locationUri=definition["location"],
        parameters=dict(definition["parameters"]),
        ownerName=definition.get("owner"),
        ownerType=PrincipalType._NAMES_TO_VALUES[owner_type] if owner_type else None,
    )


def table_of(table: Table) -> Remote:
    """A table as a Remote; its identity is its creation time in seconds, which alterations preserve."""
    _name(table.tableName)
    return described_table(hive_table(table), str(table.createTime))


def described_table(described: HiveTable, identity: str) -> Remote:
    definition = described.as_json()
    kind = Kind.VIEW if described.is_view else Kind.TABLE
    return Remote(described.name, definition, identity, _version(definition), kind, formats_in(described))


def _name(name: str | None) -> str:
    if not name:
        raise ProviderUnavailable("The metastore named nothing in its answer.", kind="catalog", retryable=False)
    return name


def _version(definition: Mapping[str, Any]) -> str:
    parameters = {name: value for name, value in definition["parameters"].items() if name != DDL_TIME}
    return digest({**definition, "parameters": parameters})


def hive_table(table: Table) -> HiveTable:
    storage = table.sd or StorageDescriptor()
    serde = storage.serdeInfo or SerDeInfo()
    parameters = dict(table.parameters or {})
    return HiveTable(
        name=table.tableName,
        columns=_columns(storage.cols),
        partition_keys=_columns(table.partitionKeys),
        comment=parameters.pop(COMMENT, None),
        parameters=parameters,
        table_type=table.tableType,
        location=storage.location,
        input_format=storage.inputFormat,
        output_format=storage.outputFormat,
        serde_lib=serde.serializationLib,
        serde_name=serde.name,
        serde_parameters=dict(serde.parameters or {}),
        bucket_columns=tuple(storage.bucketCols or ()),
        num_buckets=-1 if storage.numBuckets is None else storage.numBuckets,
        sort_columns=tuple(SortColumn(order.col, order.order != DESCENDING) for order in storage.sortCols or ()),
        compressed=bool(storage.compressed),
        stored_as_sub_directories=bool(storage.storedAsSubDirectories),
        sd_parameters=dict(storage.parameters or {}),
        view_original_text=table.viewOriginalText,
        view_expanded_text=table.viewExpandedText,
        owner=table.owner,
        retention=table.retention or 0,
    )


def _columns(fields: Sequence[FieldSchema] | None) -> tuple[HiveColumn, ...]:
    return tuple(HiveColumn(field.name or "", field.type or "", field.comment) for field in fields or ())


def written(wanted: HiveTable, onto: Table) -> Table:
    """Apply the definition to a metastore's table; its name, database and times stay."""
    storage = onto.sd = onto.sd or StorageDescriptor()
    serde = storage.serdeInfo = storage.serdeInfo or SerDeInfo()
    onto.parameters = dict(wanted.parameters)
    if wanted.comment is not None:
        onto.parameters[COMMENT] = wanted.comment
    onto.tableType, onto.owner, onto.retention = wanted.table_type, wanted.owner, wanted.retention
    onto.viewOriginalText, onto.viewExpandedText = wanted.view_original_text, wanted.view_expanded_text
    onto.partitionKeys = _fields(wanted.partition_keys)
    storage.cols = _fields(wanted.columns)
    storage.location = wanted.location
    storage.inputFormat, storage.outputFormat = wanted.input_format, wanted.output_format
    storage.bucketCols, storage.numBuckets = list(wanted.bucket_columns), wanted.num_buckets
    storage.sortCols = [
        Order(column.name, ASCENDING if column.ascending else DESCENDING) for column in wanted.sort_columns
    ]
    storage.compressed, storage.storedAsSubDirectories = wanted.compressed, wanted.stored_as_sub_directories
    storage.parameters = dict(wanted.sd_parameters)
    serde.name, serde.serializationLib = wanted.serde_name, wanted.serde_lib
    serde.parameters = dict(wanted.serde_parameters)
    return onto


def _fields(columns: Sequence[HiveColumn]) -> list[FieldSchema]:
    return [FieldSchema(column.name, column.type, column.comment) for column in columns]


def partition_of(keys: Sequence[HiveColumn], partition: Partition) -> Remote:
    name = partition_name(keys, partition.values)
    definition = {
        "name": name,
        "values": list(partition.values),
        "location": partition.sd.location if partition.sd else None,
        "parameters": dict(partition.parameters or {}),
    }
    return Remote(name, definition, str(partition.createTime), digest(definition), PARTITION)


def partition_from(table: Table, definition: Mapping[str, Any]) -> Partition:
    """A new partition with the table's file format; by default it lies below the table."""
    storage = deepcopy(table.sd)
    storage.location = definition["location"]
    return Partition(
        values=list(definition["values"]),
        dbName=table.dbName,
        tableName=table.tableName,
        parameters=dict(definition["parameters"]),
        sd=storage,
    )
