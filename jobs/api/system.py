"""The system catalog on the native wire. Not part of upstream's wire."""

from __future__ import annotations

from typing import Any

from authz.actor import Actor
from jobs import wire
from jobs.replies import system_reply
from jobs.services import system
from metalake.rest.views import Endpoint, answers


class SystemCatalog(Endpoint):
    @answers("create_system_catalog", reply={"system": wire.SystemReply}, id="createSystemCatalog")
    def post(self, actor: Actor, metalake: str) -> dict[str, Any]:
        """Make the catalog that jobs write their results to, or what is missing of it, and say who may read them."""
        return {"system": system_reply(system.create(actor, metalake))}
