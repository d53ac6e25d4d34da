"""The native wire's bodies of removals: what gives somebody access to an object, and the plan that takes it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from access.explain.queries import Place, Whom
from access.plans.plan import Planned
from access.plans.removals import Removal
from access.wire.plans import PlannedReply, planned_reply
from metalake.errors import Invalid
from metalake.privileges import Effect
from metalake.wire import Body, Reply, kind_of


class RemovalRequest(Body):
    """A user or a group, and an object; with `deny` what denies them something there is lifted for them."""

    user: str | None = None
    group: str | None = None
    type: str
    full_name: str
    condition: Literal["allow", "deny"] = "allow"
    roles: list[str] = Field([], description="The roles to look at; all where it is left out")

    def asked(self) -> tuple[Whom, Place, Effect, list[str]]:
        """What remove_access is asked. Raises Invalid."""
        people = [Whom(sort, name) for sort, name in (("user", self.user), ("group", self.group)) if name is not None]
        if len(people) != 1:
            raise Invalid("Name a user or a group, and not both.", kind="user")
        return people[0], Place(kind_of(self.type), self.full_name), Effect(self.condition), self.roles


class PartReply(Reply):
    """A role that gives it, and what becomes of it; `offered`: the plan takes it."""

    role: str
    says: str
    offered: bool


class RemovalReply(Reply):
    """The roles, what stays, and the plan."""

    parts: list[PartReply]
    notes: list[str]
    plan: PlannedReply


def removal_reply(removal: Removal, planned: Planned) -> dict[str, Any]:
    parts = [{"role": part.role, "says": part.says, "offered": bool(part.changes)} for part in removal.parts]
    return {"parts": parts, "notes": removal.notes, "plan": planned_reply(planned)}
