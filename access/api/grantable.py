"""The native wire's endpoint of what the caller may grant on an object; parsing and shape only."""

from __future__ import annotations

from typing import Any

from access.explain import grantable
from access.explain.queries import Place
from access.wire import access as wire
from authz.actor import Actor
from metalake.rest.views import Endpoint, answers
from metalake.wire import kind_of


class Grantable(Endpoint):
    @answers("grant_on", reply={"grantable": wire.GrantableReply}, query=("names",), id="listGrantable")
    def get(self, actor: Actor, metalake: str, type: str, full_name: str) -> dict[str, Any]:
        """List what the caller may grant on an object, on which objects above it, and what each level stands for.

        `names`, divided by commas, are looked up as users and groups; "user:mia" says that a user is meant.
        """
        on = Place(kind_of(type), full_name)
        may = grantable.grantable_by(actor, metalake, on)
        names = [name.strip() for name in (self.text("names") or "").split(",")]
        named = grantable.name_people(actor, metalake, on, list(filter(None, names))) if any(names) else None
        return {"grantable": wire.grantable_reply(may, named)}
