"""Gadgets on the native wire."""

from __future__ import annotations

from typing import Any

from authz.actor import Actor
from catalogs.replies import Identifier, identifiers
from catalogs.services.leaves import describe_leaf, list_leaves
from gadgets.services import create_gadget
from metalake.kinds import Kind
from metalake.lineage import Address
from metalake.rest.views import Endpoint, answers
from metalake.wire import Body, Reply


class CreateGadgetRequest(Body):
    """A new gadget."""

    name: str
    place: str


class GadgetReply(Reply):
    """A gadget, and what is told of it."""

    name: str
    comment: str
    details: dict[str, str]


def shown(actor: Actor, address: Address) -> dict[str, Any]:
    gadget, description = describe_leaf(actor, address)
    return {"name": gadget.name, "comment": description.comment, "details": dict(description.details)}


class Gadgets(Endpoint):
    @answers("list_gadgets", reply={"identifiers": list[Identifier]}, query=("refresh",))
    def get(self, actor: Actor, metalake: str, catalog: str, schema: str) -> dict[str, Any]:
        """List the gadgets of a schema."""
        home = Address(metalake=metalake, catalog=catalog, schema=schema)
        listed = list_leaves(actor, home, Kind.GADGET, refresh=self.flag("refresh"))
        self.taken_at = listed.taken_at
        return {"identifiers": identifiers([metalake, catalog, schema], listed.names)}

    @answers("create_gadget", body=CreateGadgetRequest, reply={"gadget": GadgetReply})
    def post(self, actor: Actor, metalake: str, catalog: str, schema: str, body: CreateGadgetRequest) -> dict[str, Any]:
        """Create a gadget."""
        names = {"metalake": metalake, "catalog": catalog, "schema": schema}
        address = Address(**names, leaf=body.name, leaf_kind=Kind.GADGET)
        create_gadget(actor, address, body.place)
        return {"gadget": shown(actor, address)}


class Stamps(Endpoint):
    @answers("list_stamps", reply={"identifiers": list[Identifier]})
    def get(self, actor: Actor, metalake: str) -> dict[str, Any]:
        """List the stamps of a metalake."""
        names = list_leaves(actor, Address(metalake=metalake), Kind.STAMP).names
        return {"identifiers": identifiers([metalake], names)}

    @answers("create_stamp", body=CreateGadgetRequest, reply={"stamp": GadgetReply})
    def post(self, actor: Actor, metalake: str, body: CreateGadgetRequest) -> dict[str, Any]:
        """Make a stamp."""
        address = Address(metalake=metalake, leaf=body.name, leaf_kind=Kind.STAMP)
        create_gadget(actor, address, body.place)
        return {"stamp": shown(actor, address)}


class Gadget(Endpoint):
    @answers("load_gadget", reply={"gadget": GadgetReply})
    def get(self, actor: Actor, metalake: str, catalog: str, schema: str, gadget: str) -> dict[str, Any]:
        """Load a gadget."""
        names = {"metalake": metalake, "catalog": catalog, "schema": schema}
        return {"gadget": shown(actor, Address(**names, leaf=gadget, leaf_kind=Kind.GADGET))}
