"""The native wire's endpoints that add and remove many users or groups at once; parsing and shape only."""

from __future__ import annotations

from typing import Any

from authz.actor import Actor
from authz.services import bulk
from authz.wire import bulk as bodies
from authz.wire import rights as wire
from metalake.rest.views import Endpoint, answers

USERS = {"users": list[wire.UserReply], **bodies.FAILURES}
GROUPS = {"groups": list[wire.GroupReply], **bodies.FAILURES}
NAMES = {"names": list[str], **bodies.FAILURES}


class AddUsers(Endpoint):
    @answers("manage_users", body=bodies.BulkUserAddRequest, reply=USERS, id="bulkAddUsers")
    def post(self, actor: Actor, metalake: str, body: bodies.BulkUserAddRequest) -> dict[str, Any]:
        """Add up to 100 users, each by itself; the reply says which failed and why."""
        outcome = bulk.add_users(actor, metalake, body.wanted())
        return {"users": [wire.user_reply(person) for person in outcome.done], **bodies.failures_reply(outcome)}


class RemoveUsers(Endpoint):
    @answers("manage_users", body=bodies.BulkRemoveRequest, reply=NAMES, id="bulkRemoveUsers")
    def post(self, actor: Actor, metalake: str, body: bodies.BulkRemoveRequest) -> dict[str, Any]:
        """Remove up to 100 users, each by itself; what they own goes to the metalake's owner."""
        outcome = bulk.remove_users(actor, metalake, body.names)
        return {"names": outcome.done, **bodies.failures_reply(outcome)}


class AddGroups(Endpoint):
    @answers("manage_groups", body=bodies.BulkGroupAddRequest, reply=GROUPS, id="bulkAddGroups")
    def post(self, actor: Actor, metalake: str, body: bodies.BulkGroupAddRequest) -> dict[str, Any]:
        """Add up to 100 stored groups, each by itself; the reply says which failed and why."""
        outcome = bulk.add_groups(actor, metalake, body.wanted())
        return {"groups": [wire.group_reply(person) for person in outcome.done], **bodies.failures_reply(outcome)}


class RemoveGroups(Endpoint):
    @answers("manage_groups", body=bodies.BulkRemoveRequest, reply=NAMES, id="bulkRemoveGroups")
    def post(self, actor: Actor, metalake: str, body: bodies.BulkRemoveRequest) -> dict[str, Any]:
        """Remove up to 100 groups, each by itself; what they own goes to the metalake's owner."""
        outcome = bulk.remove_groups(actor, metalake, body.names)
        return {"names": outcome.done, **bodies.failures_reply(outcome)}
