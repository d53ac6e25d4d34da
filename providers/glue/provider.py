"""glue: the AWS Glue Data Catalog, with tables of every format that it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from formats.hive.partitions import partition_name, partition_values
from formats.hive.tables import VIEW_TYPES, HiveTable
from formats.iceberg import files
from metalake.errors import (
    Conflict,
    MetalakeError,
    NotEmpty,
    NotFound,
    OutcomeUnknown,
    ProviderUnavailable,
    Unsupported,
    at,
)
from metalake.kinds import Kind
from providers.external import PARTITION, Levels, Page, Remote, digest
from providers.glue.client import GlueClient
from providers.glue.mapping import database_definition, database_input, hive_table, merged, moment, table_input
from providers.glue.meaning import GlueMeaning
from providers.glue.settings import ENDPOINTS, check_settings
from providers.hive_like.meaning import formats_in
from providers.reaching.aws import SCHEMES, check_role, wrong_region
from providers.reaching.endpoints import check_endpoint
from providers.reaching.storage import reach_storage

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

PAGE, PARTITIONS_PAGE = 100, 1000  # what Glue gives at most


class GlueProvider(GlueMeaning):
    """Glue's own calls."""

    @classmethod
    def check(cls, properties: Mapping[str, str]) -> Any:
        given = super().check(properties)
        check_settings(given)
        return given

    @cached_property
    def glue(self) -> GlueClient:
        return GlueClient(self.given)

    @cached_property
    def io(self) -> FileIO:
        """Reached as Glue is, except for what the properties of storage say."""
        reach_storage(self.properties)
        ours = {} if "client.region" in self.properties else {"s3.region": self.given.region}
        if self.properties.keys().isdisjoint(("s3.access-key-id", "client.access-key-id")):
            keys = self.glue.credentials()
            ours |= {"s3.access-key-id": keys.access_key, "s3.secret-access-key": keys.secret_key}
            ours |= {"s3.session-token": keys.token} if keys.token else {}
        return files.file_io(ours | self.properties)

    def check_locations(self) -> None:
        super().check_locations()
        for name, url in zip(ENDPOINTS, (self.given.glue_endpoint, self.given.sts_endpoint), strict=True):
            if url:
                with at(f"Property {name!r}"):
                    check_endpoint(url, SCHEMES)
        if self.given.role:
            check_role(self.given.role)

    def system_names(self) -> list[str]:
        """The account where it is known; keys and the server's identity have one each, which STS knows."""
        given = self.given
        if given.account:
            return [f"glue://{given.account}/{given.region}"]
        if not given.keys:
            return [f"glue://server/{given.region}"]
        key = sha256(given.keys.access_key_id.encode()).hexdigest()[:32]
        return [f"glue://key-{key}/{given.region}/{given.glue_endpoint or ''}".rstrip("/")]

    def system(self) -> list[str]:
        """An endpoint of another address than AWS's knows accounts of its own, which AWS's STS is not asked for."""
        names, given = self.system_names(), self.given
        if given.account or (given.keys and given.glue_endpoint and not given.sts_endpoint):
            return names
        with suppress(MetalakeError):
            names.append(f"glue://{self.glue.account()}/{given.region}")
        return names

    def test_connection(self) -> None:
        """List one database."""
        self.check_locations()
        try:
            self.glue.call("GetDatabases", MaxResults=1)
        except ProviderUnavailable as failure:  # an address of its own takes any region's name, but not AWS behind it
            if wrong := wrong_region("glue", self.given.region):
                failure.message += f" By the way, {wrong}"
            raise

    # Databases.

    def list_schemas(self, page: str | None = None) -> Page:
        answer = self.glue.call("GetDatabases", MaxResults=PAGE, **_from(page))
        return Page([_database(each) for each in answer["DatabaseList"]], answer.get("NextToken"))

    def load_schema(self, schema: Levels) -> Remote:
        return _database(self._database(schema))

    def _database(self, schema: Levels) -> dict[str, Any]:
        database: dict[str, Any] = self.glue.call("GetDatabase", schema, Name=schema[0])["Database"]
        return database

    def create_schema(self, schema: Levels, definition: dict[str, Any]) -> Remote:
        wanted = self._writable(database_input(schema[0], definition), "DatabaseInput")
        self.glue.call("CreateDatabase", schema, DatabaseInput=wanted)
        return _after(lambda: self.load_schema(schema))

    def alter_schema(self, schema: Levels, definition: dict[str, Any], version: str) -> Remote:
        kept = self._database(schema)
        seen = _database(kept)
        if seen.version != version:
            raise Conflict(f"Schema {schema[0]} was changed meanwhile; load it and try again.", kind=Kind.SCHEMA)
        before, after = (database_input(schema[0], each) for each in (seen.definition, definition))
        wanted = self._writable(merged(kept, before, after), "DatabaseInput")
        self.glue.call("UpdateDatabase", schema, Name=schema[0], DatabaseInput=wanted)
        return _after(lambda: self.load_schema(schema))

    def drop_schema(self, schema: Levels, identity: str, cascade: bool = False, by_owner: bool = False) -> None:
        """Glue itself deletes the tables of a database that it deletes, and no files."""
        _require_same(self.load_schema(schema), identity)
        if not cascade and self.glue.call("GetTables", schema, DatabaseName=schema[0], MaxResults=1)["TableList"]:
            raise NotEmpty(f"Schema {schema[0]} is not empty.", kind=Kind.SCHEMA)
        self.glue.call("DeleteDatabase", schema, Name=schema[0])

    # Tables.

    def list_tables(self, schema: Levels, page: str | None = None, whole: bool = False) -> Page:
        answer = self.glue.call("GetTables", schema, DatabaseName=schema[0], MaxResults=PAGE, **_from(page))
        return Page([_table(each) for each in answer["TableList"]], answer.get("NextToken"))

    def load_table(self, schema: Levels, table: str) -> Remote:
        return _table(self._table(schema, table))

    def _table(self, schema: Levels, table: str) -> dict[str, Any]:
        kept: dict[str, Any] = self.glue.call("GetTable", [*schema, table], DatabaseName=schema[0], Name=table)["Table"]
        return kept

    def create_table(self, schema: Levels, table: str, definition: dict[str, Any], by_owner: bool = False) -> Remote:
        with self.prepared(schema, {**definition, "name": table}) as made:
            wanted = self._writable(table_input(made), "TableInput")
            self.glue.call("CreateTable", [*schema, table], DatabaseName=schema[0], TableInput=wanted)
        return _after(lambda: self.load_table(schema, table))

    def alter_table(
        self, schema: Levels, table: str, definition: dict[str, Any], version: str, by_owner: bool = False
    ) -> Remote:
        kept = self._table(schema, table)
        if _table(kept).version != version:
            raise _changed(schema, table)
        return self._update(schema, kept, HiveTable.from_json(definition))

    def commit_table(self, schema: Levels, table: str, location: str, previous: str, by_owner: bool = False) -> Remote:
        kept = self._table(schema, table)
        before = hive_table(kept)
        if self.metadata_location(before.as_json()) != previous:
            raise _changed(schema, table)
        return self._update(schema, kept, self.committed(before, location))

    def _update(self, schema: Levels, kept: dict[str, Any], wanted: HiveTable) -> Remote:
        """Make the difference, and nothing else, to the table as it is. Raises Conflict if it changes meanwhile."""
        name = kept["Name"]
        before, after = table_input(hive_table(kept)), table_input(replace(wanted, name=name))
        self.glue.call(
            "UpdateTable",
            [*schema, name],
            DatabaseName=schema[0],
            TableInput=self._writable(merged(kept, before, after), "TableInput"),
            SkipArchive=True,
            **({"VersionId": kept["VersionId"]} if kept.get("VersionId") else {}),
        )
        return _after(lambda: self.load_table(schema, name))

    def rename_table(
        self, schema: Levels, table: str, to_schema: Levels, to_table: str, identity: str, by_owner: bool = False
    ) -> Remote:
        raise Unsupported("AWS Glue cannot rename a table.", kind=Kind.TABLE)

    def drop_table(
        self,
        schema: Levels,
        table: str,
        identity: str,
        purge: bool = False,
        by_owner: bool = False,
        version: str | None = None,
    ) -> None:
        """The entry goes, the files stay, also with `purge`. With a version, only the table as it was then."""
        found = self.load_table(schema, table)
        _require_same(found, identity)
        if version is not None and found.version != version:
            raise _changed(schema, table)
        self.glue.call("DeleteTable", [*schema, table], DatabaseName=schema[0], Name=table)

    def _writable(self, fields: Mapping[str, Any], shape: str) -> dict[str, Any]:
        taken = self.glue.writable(shape) - {"ViewDefinition"}  # which is written in another form than it is read
        return {name: value for name, value in fields.items() if name in taken}

    # Partitions.

    def list_partitions(self, schema: Levels, table: str, page: str | None = None) -> Page:
        of = self._partitioned(schema, table)
        where = {"DatabaseName": schema[0], "TableName": table, "MaxResults": PARTITIONS_PAGE}
        answer = self.glue.call("GetPartitions", [*schema, table], **where, **_from(page))
        fitting = [each for each in answer["Partitions"] if len(each["Values"]) == len(of.partition_keys)]
        return Page([_partition(of, each) for each in fitting], answer.get("NextToken"))

    def load_partition(self, schema: Levels, table: str, partition: str) -> Remote:
        of = self._partitioned(schema, table)
        values = partition_values(of.partition_keys, partition)
        where = {"DatabaseName": schema[0], "TableName": table, "PartitionValues": values}
        return _partition(of, self.glue.call("GetPartition", [*schema, table, partition], **where)["Partition"])

    def add_partition(self, schema: Levels, table: str, definition: dict[str, Any], by_owner: bool = False) -> Remote:
        """Its files are read as the table's are."""
        kept = self._table(schema, table)
        name, descriptor = definition["name"], kept.get("StorageDescriptor") or {}
        below = descriptor.get("Location")
        location = definition["location"] or (f"{below.removesuffix('/')}/{name}" if below else None)
        wanted = {
            "Values": definition["values"],
            "Parameters": definition["parameters"],
            "StorageDescriptor": descriptor | ({"Location": location} if location else {}),
        }
        where = {"DatabaseName": schema[0], "TableName": table}
        self.glue.call("CreatePartition", [*schema, table, name], **where, PartitionInput=wanted)
        return _after(lambda: self.load_partition(schema, table, name))

    def drop_partition(self, schema: Levels, table: str, partition: str, by_owner: bool = False) -> None:
        """The entry goes, the files stay."""
        of = self._partitioned(schema, table)
        values = partition_values(of.partition_keys, partition)
        where = {"DatabaseName": schema[0], "TableName": table, "PartitionValues": values}
        self.glue.call("DeletePartition", [*schema, table, partition], **where)

    def _partitioned(self, schema: Levels, table: str) -> HiveTable:
        of = hive_table(self._table(schema, table))
        if not of.partition_keys:
            raise Unsupported(f"Table {schema[0]}.{table} has no partitions in AWS Glue.", kind=PARTITION)
        return of


def _from(page: str | None) -> dict[str, str]:
    return {"NextToken": page} if page else {}


def _database(database: Mapping[str, Any]) -> Remote:
    definition = database_definition(database)
    return Remote(
        database["Name"], definition, moment(database.get("CreateTime")), digest(definition), kind=Kind.SCHEMA
    )


def _table(table: Mapping[str, Any]) -> Remote:
    described = hive_table(table)
    definition = described.as_json()
    version = table.get("VersionId") or digest(definition)
    kind = Kind.VIEW if table.get("TableType") in VIEW_TYPES else Kind.TABLE
    return Remote(table["Name"], definition, moment(table.get("CreateTime")), version, kind, formats_in(described))


def _partition(of: HiveTable, partition: Mapping[str, Any]) -> Remote:
    values = partition["Values"]
    definition = {
        "name": partition_name(of.partition_keys, values),
        "values": values,
        "location": (partition.get("StorageDescriptor") or {}).get("Location"),
        "parameters": dict(partition.get("Parameters") or {}),
    }
    identity = moment(partition.get("CreationTime"))
    return Remote(definition["name"], definition, identity, digest(definition), PARTITION)


def _require_same(found: Remote, identity: str) -> None:
    """Raise NotFound for another object that has taken the name."""
    if identity and found.identity and found.identity != identity:
        raise NotFound(f"{found.kind.capitalize()} {found.name} was made anew in AWS Glue.", kind=found.kind)


def _changed(schema: Levels, table: str) -> Conflict:
    return Conflict(f"Table {schema[0]}.{table} was changed meanwhile; load it and try again.", kind=Kind.TABLE)


def _after(read: Callable[[], Remote]) -> Remote:
    """What a write has made. Raises OutcomeUnknown where that is not told, since something was made."""
    try:
        return read()
    except ProviderUnavailable as failure:
        raise OutcomeUnknown(f"{failure.message} What was written is not read back.", kind="catalog") from None
