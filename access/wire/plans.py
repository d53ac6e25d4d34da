"""The native wire's bodies of grants as code; access.plans.file has the file itself."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from access.plans.apply import Applied
from access.plans.blast_report import Blast, Refused, Side
from access.plans.desired import Change
from access.plans.file import RoleBody, SubtreeBody
from access.plans.plan import Planned
from authz.wire.rights import ObjectReply, present
from metalake.wire import Body, Reply, written


class TokenRequest(Body):
    """The token of a plan; a plan without changes has none, and nothing happens."""

    token: str | None = None


class AccessReply(Reply):
    """All grants of the metalake or of a subtree, in the form that a plan takes."""

    metalake: str
    subtree: SubtreeBody | None = None
    roles: list[RoleBody]


class PlannedChangeReply(Reply):
    """One change: a role is made or dropped, granted or revoked a privilege, assigned to or taken from somebody."""

    change: Literal["createRole", "revoke", "grant", "unassign", "assign", "dropRole"]
    role: str
    privilege: str | None = None
    condition: str | None = None
    on: ObjectReply | None = None
    start_time: str | None = None
    end_time: str | None = None
    user: str | None = None
    group: str | None = None


class SideReply(Reply):
    """How many users, on how many objects, and the first of the users by name."""

    users: int
    objects: int
    names: list[str]


class BlastReply(Reply):
    """Who gains and who loses the use of a privilege on objects of a type, traversal and ownership included."""

    privilege: str
    type: str
    gain: SideReply
    lose: SideReply
    means: str | None = Field(None, description="What who gains a managing privilege can do with it, in words")


class RefusedReply(Reply):
    """Privileges that stay refused on an object, and on what it contains, since a role denies them; how to whom."""

    object: ObjectReply
    privileges: list[str]
    role: str
    says: str
    users: int
    names: list[str]


class PlannedReply(Reply):
    """A plan; its token is good once, for an hour, for the caller alone, and is left out where nothing changes."""

    token: str | None = None
    epoch: int
    changes: list[PlannedChangeReply]
    blast_radius: list[BlastReply]
    at_least: bool = Field(description="Counting took too long: the figures of the blast radius are lower bounds")
    refused: list[RefusedReply] = Field(description="The first few DENYs that keep refused what the changes allow")
    refused_total: int
    scheduled: int = Field(description="Grants that begin later, which the blast radius leaves out")
    summary: str
    left: list[str] | None = Field(None, description="What an undo leaves as it is, since it changed meanwhile")


class AppliedReply(Reply):
    """The changes that were made; for an hour the token undoes them."""

    changes: list[PlannedChangeReply]
    token: str | None = None


def change_reply(change: Change) -> dict[str, Any]:
    given, holder = change.given, change.holder
    return present(
        change=change.change,
        role=change.role,
        privilege=change.privilege,
        condition=given and given.effect.value,
        on=change.on and {"type": change.on[0].value, "fullName": change.on[1]},
        startTime=given and given.starts and written(given.starts),
        endTime=given and given.ends and written(given.ends),
        **({holder[0]: holder[1]} if holder else {}),
    )


def planned_reply(planned: Planned) -> dict[str, Any]:
    return present(
        token=planned.token,
        epoch=planned.epoch,
        changes=list(map(change_reply, planned.changes)),
        blastRadius=_blast(planned.blast),
        atLeast=planned.blast.is_cut,
        refused=list(map(_refused, planned.blast.refused)),
        refusedTotal=planned.blast.refused_total,
        scheduled=planned.blast.scheduled,
        summary=planned.summary,
        left=list(planned.left) or None,
    )


def applied_reply(applied: Applied) -> dict[str, Any]:
    return present(changes=list(map(change_reply, applied.changes)), token=applied.token)


def _blast(blast: Blast) -> list[dict[str, Any]]:
    return [
        present(
            privilege=line.privilege,
            type=line.kind,
            gain=_side(line.gain),
            lose=_side(line.lose),
            means=line.means or None,
        )
        for line in blast.lines
    ]


def _refused(one: Refused) -> dict[str, Any]:
    fields = {name: getattr(one, name) for name in ("privileges", "role", "says", "users", "names")}
    return {"object": {"type": one.kind.value, "fullName": one.full_name}, **fields}


def _side(side: Side) -> dict[str, Any]:
    return {"users": side.users, "objects": side.objects, "names": side.names}
