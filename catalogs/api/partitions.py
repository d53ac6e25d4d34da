"""Partitions on the native wire, for catalogs whose tables keep a list of them."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from authz.actor import Actor
from catalogs.replies import partition_reply
from catalogs.services.tables import load_partitions
from formats.native.partitions import IdentityPartition
from metalake.errors import NotFound
from metalake.lineage import Address
from metalake.rest.views import Endpoint, answers
from metalake.wire import Body


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
        partitions = load_partitions(actor, Address(metalake=metalake, catalog=catalog, schema=schema, leaf=table))
        if self.flag("details"):
            return {"partitions": [partition_reply(each) for each in partitions.listing(actor)]}
        return {"names": partitions.names(actor)}

    @answers(
        "alter_table", id="addPartitions", body=AddPartitionsRequest, reply={"partitions": list[IdentityPartition]}
    )
    def post(
        self, actor: Actor, metalake: str, catalog: str, schema: str, table: str, body: AddPartitionsRequest
    ) -> dict[str, Any]:
        """Add a partition to a table."""
        partitions = load_partitions(
            actor, Address(metalake=metalake, catalog=catalog, schema=schema, leaf=table), to_write=True
        )
        return {"partitions": [partition_reply(partitions.add(actor, body.partitions[0]))]}


class Partition(Endpoint):
    @answers("load_table", id="getPartition", reply={"partition": IdentityPartition})
    def get(self, actor: Actor, metalake: str, catalog: str, schema: str, table: str, partition: str) -> dict[str, Any]:
        """Load a partition."""
        partitions = load_partitions(actor, Address(metalake=metalake, catalog=catalog, schema=schema, leaf=table))
        return {"partition": partition_reply(partitions.load(actor, partition))}

    @answers("alter_table", id="dropPartition", reply={"dropped": bool}, query=("purge",))
    def delete(
        self, actor: Actor, metalake: str, catalog: str, schema: str, table: str, partition: str
    ) -> dict[str, Any]:
        """Drop a partition; its files are its system's to keep or to delete."""
        self.flag("purge")
        partitions = load_partitions(
            actor, Address(metalake=metalake, catalog=catalog, schema=schema, leaf=table), to_write=True
        )
        try:
            self.files_kept = partitions.drop(actor, partition)
        except NotFound as miss:
            if miss.kind != "partition":
                raise
            return {"dropped": False}
        return {"dropped": True}
