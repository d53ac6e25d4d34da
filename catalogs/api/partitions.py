"""Partitions on the native wire (reference 5.5), for catalogs whose tables keep a list of them."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from authz.policy import Actor
from catalogs.replies import partition_reply
from catalogs.services import tables
from formats.hive.partitions import IdentityPartition
from metalake.errors import NotFound, Unsupported
from metalake.lineage import Address
from metalake.rest import Endpoint, answers
from metalake.wire import Body
from outside import partitions
from outside.tables import ExternalTable


class AddPartitionsRequest(Body):
    """New partitions: one at a time, as the clients send them."""

    partitions: list[IdentityPartition] = Field(min_length=1, max_length=1)


class Partitions(Endpoint):
    @answers(
        "load_table",
        id="listPartitions",
        reply={"names": list[str] | None, "partitions": list[IdentityPartition] | None},
        query=("details",),
    )
    def get(self, actor: Actor, metalake: str, catalog: str, schema: str, table: str) -> dict[str, Any]:
        """List the partitions of a table: their names, or with details all that loading them shows."""
        found = _partitioned(actor, Address(metalake=metalake, catalog=catalog, schema=schema, leaf=table))
        if self.flag("details"):
            return {"partitions": [partition_reply(each) for each in partitions.listed(actor, found)]}
        return {"names": partitions.names(actor, found)}

    @answers(
        "alter_table", id="addPartitions", body=AddPartitionsRequest, reply={"partitions": list[IdentityPartition]}
    )
    def post(
        self, actor: Actor, metalake: str, catalog: str, schema: str, table: str, body: AddPartitionsRequest
    ) -> dict[str, Any]:
        """Add a partition to a table."""
        found = _partitioned(
            actor, Address(metalake=metalake, catalog=catalog, schema=schema, leaf=table), to_write=True
        )
        return {"partitions": [partition_reply(partitions.add(actor, found, body.partitions[0]))]}


class Partition(Endpoint):
    @answers("load_table", id="getPartition", reply={"partition": IdentityPartition})
    def get(self, actor: Actor, metalake: str, catalog: str, schema: str, table: str, partition: str) -> dict[str, Any]:
        """Load a partition."""
        found = _partitioned(actor, Address(metalake=metalake, catalog=catalog, schema=schema, leaf=table))
        return {"partition": partition_reply(partitions.loaded(actor, found, partition))}

    @answers("alter_table", id="dropPartition", reply={"dropped": bool}, query=("purge",))
    def delete(
        self, actor: Actor, metalake: str, catalog: str, schema: str, table: str, partition: str
    ) -> dict[str, Any]:
        """Drop a partition; its files are its system's to keep or to delete."""
        self.flag("purge")
        found = _partitioned(
            actor, Address(metalake=metalake, catalog=catalog, schema=schema, leaf=table), to_write=True
        )
        try:
            self.files_kept = partitions.drop(actor, found, partition)
        except NotFound as miss:
            if miss.kind != "partition":
                raise
            return {"dropped": False}
        return {"dropped": True}


def _partitioned(actor: Actor, ident: Address, *, to_write: bool = False) -> ExternalTable:
    """The table; before a write it is asked for anew, since a namesake made outside may have its place by now."""
    record = tables.load_table(actor, ident, refresh=to_write)
    if isinstance(record, ExternalTable):
        return record
    raise Unsupported(
        "Iceberg tables have no partitions to manage: they are partitioned by expressions of their columns.",
        kind="partition",
    )
