"""Metalakes on the native wire."""

from __future__ import annotations

from typing import Any

from authz.actor import Actor
from catalogs.bodies import CreateMetalakeRequest, EnableRequest, UpdatesRequest, alteration
from catalogs.replies import MetalakeReply, as_sent, metalake_reply
from catalogs.services import metalakes
from metalake.rest.views import Endpoint, answers


class Metalakes(Endpoint):
    @answers("caller", reply={"metalakes": list[MetalakeReply]})
    def get(self, actor: Actor) -> dict[str, Any]:
        """List the metalakes that the caller belongs to."""
        return {"metalakes": [metalake_reply(row) for row in metalakes.list_metalakes(actor)]}

    @answers("caller", body=CreateMetalakeRequest, reply={"metalake": MetalakeReply}, refuse=metalakes.require_maker)
    def post(self, actor: Actor, body: CreateMetalakeRequest) -> dict[str, Any]:
        """Create a metalake; service administrators may. Its properties are answered as they were sent."""
        row = metalakes.create_metalake(actor, body.name, body.comment, body.properties)
        return {"metalake": as_sent(metalake_reply(row), body.properties)}


class Metalake(Endpoint):
    @answers("load_metalake", reply={"metalake": MetalakeReply})
    def get(self, actor: Actor, metalake: str) -> dict[str, Any]:
        """Load a metalake."""
        return {"metalake": metalake_reply(metalakes.load_metalake(actor, metalake))}

    @answers("alter_metalake", body=UpdatesRequest, reply={"metalake": MetalakeReply})
    def put(self, actor: Actor, metalake: str, body: UpdatesRequest) -> dict[str, Any]:
        """Rename a metalake, or change its comment or properties."""
        return {"metalake": metalake_reply(metalakes.alter_metalake(actor, metalake, alteration(body.updates)))}

    @answers("enable_metalake", body=EnableRequest, reply={})
    def patch(self, actor: Actor, metalake: str, body: EnableRequest) -> dict[str, Any]:
        """Enable or disable a metalake."""
        metalakes.set_metalake_enabled(actor, metalake, body.in_use)
        return {}

    @answers("drop_metalake", reply={"dropped": bool}, query=("force",))
    def delete(self, actor: Actor, metalake: str) -> dict[str, Any]:
        """Drop a metalake: disabled and empty, or by force."""
        return {"dropped": metalakes.drop_metalake(actor, metalake, self.flag("force"))}
