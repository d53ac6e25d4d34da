"""The native wire's bodies of grants as code; authz.plans.file has the file itself."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic.alias_generators import to_camel

from authz.plans.applying import Applied
from authz.plans.blast_lines import Blast, Side
from authz.plans.file import RoleBody, SubtreeBody
from authz.plans.planning import Planned
from authz.plans.wanted import MAX_GRANTS, Change
from authz.services.entries import read_entries
from authz.wire.rights import AnyCase, ObjectReply, present
from metalake.errors import Invalid, TooLarge, at
from metalake.wire import Body, Moment, Reply, kind_of, written


class TokenRequest(Body):
    """The token of a plan; a plan without changes has none, and nothing happens."""

    token: str | None = None


class ObjectBody(Body):
    """An object by type and full name."""

    type: str
    full_name: str


class ChangeBody(Body):
    """One change, as a plan shows it: a role is made or dropped, is granted or loses a privilege, or is assigned.

    A revoke takes back what the role holds with that condition, whatever its times.
    """

    change: Literal["createRole", "grant", "revoke", "assign", "unassign", "dropRole"]
    role: str
    privilege: str | None = None
    condition: Annotated[Literal["allow", "deny"], AnyCase] | None = None
    on: ObjectBody | None = None
    start_time: Moment | None = None
    end_time: Moment | None = None
    user: str | None = None
    group: str | None = None

    def wanted(self) -> Change:
        """Raises Invalid."""
        match self.change:
            case "grant" | "revoke":
                self._require("privilege", "condition", "on")
                assert self.privilege and self.condition and self.on
                kind = kind_of(self.on.type)
                pair = self.privilege, self.condition, self.start_time, self.end_time
                ((privilege, given),) = read_entries(kind, [pair]).items()
                return Change(self.change, self.role, privilege, given, on=(kind, self.on.full_name))
            case "assign" | "unassign":
                sort = "user" if self.user is not None else "group"
                if self.user is None and self.group is None:
                    raise Invalid(f"user or group: is required to {self.change}")
                self._require(sort)
                return Change(self.change, self.role, holder=(sort, self.user or self.group or ""))
        self._require()
        return Change(self.change, self.role)

    def _require(self, *names: str) -> None:
        """Raise Invalid unless just these fields are there, and times at most for a privilege."""
        optional = {"start_time", "end_time"} if "privilege" in names else set()
        for name in ("privilege", "condition", "on", "start_time", "end_time", "user", "group"):
            is_there, shown = getattr(self, name) is not None, to_camel(name)
            if name in names and not is_there:
                raise Invalid(f"{shown}: is required to {self.change}")
            if is_there and name not in names and name not in optional:
                raise Invalid(f"{shown}: does not belong to {self.change}")


class ChangesRequest(Body):
    """The changes to plan, and no others."""

    changes: list[ChangeBody]

    def wanted(self) -> list[Change]:
        """Raises Invalid that names the entry, TooLarge for too many."""
        if len(self.changes) > MAX_GRANTS:
            raise TooLarge(f"There are {len(self.changes)} changes; {MAX_GRANTS} may be planned at once.")
        changes = []
        for n, change in enumerate(self.changes):
            with at(f"changes[{n}]"):
                changes.append(change.wanted())
        return changes


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


class PlannedReply(Reply):
    """A plan; its token is good once, for an hour, for the caller alone, and is left out where nothing changes."""

    token: str | None = None
    epoch: int
    changes: list[PlannedChangeReply]
    blast_radius: list[BlastReply]
    at_least: bool = Field(description="Counting took too long: the figures of the blast radius are lower bounds")
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
        scheduled=planned.blast.scheduled,
        summary=planned.summary,
        left=list(planned.left) or None,
    )


def applied_reply(applied: Applied) -> dict[str, Any]:
    return present(changes=list(map(change_reply, applied.changes)), token=applied.token)


def _blast(blast: Blast) -> list[dict[str, Any]]:
    return [
        {"privilege": line.privilege, "type": line.kind, "gain": _side(line.gain), "lose": _side(line.lose)}
        for line in blast.lines
    ]


def _side(side: Side) -> dict[str, Any]:
    return {"users": side.users, "objects": side.objects, "names": side.names}
