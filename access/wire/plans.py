"""The native wire's bodies of plans, proposals and removals; access.plans.plan_file has the file itself."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from access.explain.queries import Place, Whom
from access.plans.apply import Applied
from access.plans.blast_report import BlastRadius, Refused
from access.plans.desired import Change
from access.plans.plan import Planned
from access.plans.plan_file import RoleBody, SubtreeBody
from access.plans.proposals import AccessRequest, Proposal
from access.plans.recipients import USES, Note, Use
from access.plans.removals import Removal
from access.plans.role_choice import OtherHolders
from access.wire.access import ByReply, ChangeReply, by_reply, object_reply, step_reply
from authz.services.grant_entries import read_entries
from authz.wire.rights import ObjectReply, PrivilegeBody, pairs, present
from metalake.errors import Invalid
from metalake.privileges import Effect, Privilege
from metalake.wire import Body, Reply, kind_of, quote, written


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


def _blast(blast: BlastRadius) -> list[dict[str, Any]]:
    return [
        present(
            privilege=line.privilege,
            type=line.kind,
            gain=vars(line.gain),
            lose=vars(line.lose),
            means=line.means or None,
        )
        for line in blast.lines
    ]


def _refused(one: Refused) -> dict[str, Any]:
    fields = {name: getattr(one, name) for name in ("privileges", "role", "says", "users", "names")}
    return {"object": {"type": one.kind.value, "fullName": one.full_name}, **fields}


class WishRequest(Body):
    """Users and groups, an object, and how they are to be given privileges there; a role if one is chosen."""

    users: list[str] = []
    groups: list[str] = []
    type: str
    full_name: str
    privileges: list[PrivilegeBody]
    role: str | None = Field(None, description="A role that exists or a new one; users and groups may be left out then")
    with_use: bool | list[str] = Field(
        True, description="Also give USE_* on the way where some of them lack it: all, none, or these"
    )

    def access_request(self) -> AccessRequest:
        """Raises Invalid."""
        kind = kind_of(self.type)
        people = [*(Whom("user", name) for name in self.users), *(Whom("group", name) for name in self.groups)]
        entries = read_entries(kind, pairs(self.privileges))
        return AccessRequest(tuple(people), Place(kind, self.full_name), entries, self.role, _uses(self.with_use))


def _uses(given: bool | list[str]) -> frozenset[Privilege]:
    """The USE_* privileges that a request names. Raises Invalid for another name."""
    if isinstance(given, bool):
        return USES if given else frozenset()
    for place, name in enumerate(given):
        if name not in USES:
            raise Invalid(f"withUse[{place}]: {quote(name)} is none of {', '.join(sorted(USES))}.", kind="privilege")
    return frozenset(map(Privilege, given))


class NoteReply(Reply):
    """What it comes to for one user or group and privilege, and why."""

    user: str | None = None
    group: str | None = None
    privilege: str
    verdict: Literal["new", "effective", "later", "beaten", "broken"]
    says: str


class UseReply(Reply):
    """A USE_* privilege that some lack on the way; `offered` if the caller may give it, else `by` says who may."""

    privilege: str
    on: ObjectReply
    users: list[str]
    groups: list[str]
    offered: bool
    added: bool
    says: str
    by: ByReply | None = None


class HoldersReply(Reply):
    """Who else holds the role: the first few by name, and how many there are."""

    names: list[str]
    total: int


class AlternativeReply(Reply):
    """A role of others that holds exactly what is wished; a request that names it as its role takes it."""

    role: str
    reason: str
    other_holders: HoldersReply


class ProposalReply(Reply):
    """A role and why this one, with the plan; without one where nothing is to be done or others have to be asked."""

    role: str | None = None
    is_new: bool
    reason: str
    plan: PlannedReply | None = None
    notes: list[NoteReply]
    use: list[UseReply]
    asks: list[ChangeReply]
    other_holders: HoldersReply | None = None
    alternatives: list[AlternativeReply]


def proposal_reply(proposal: Proposal) -> dict[str, Any]:
    others = proposal.other_holders
    return present(
        role=proposal.role,
        isNew=proposal.is_new,
        reason=proposal.reason,
        plan=proposal.planned and planned_reply(proposal.planned),
        notes=list(map(_note_reply, proposal.notes)),
        use=list(map(_use_reply, proposal.use)),
        asks=list(map(step_reply, proposal.asks)),
        otherHolders=others and _holders_reply(others),
        alternatives=[
            {"role": one.role, "reason": one.reason, "otherHolders": _holders_reply(one.other_holders)}
            for one in proposal.alternatives
        ],
    )


def _holders_reply(others: OtherHolders) -> dict[str, Any]:
    return {"names": list(others.names), "total": others.total}


def _note_reply(note: Note) -> dict[str, Any]:
    return {note.whom.sort: note.whom.name, "privilege": note.privilege, "verdict": note.verdict, "says": note.says}


def _use_reply(use: Use) -> dict[str, Any]:
    return present(
        privilege=use.privilege,
        on=object_reply(use.on),
        users=[whom.name for whom in use.lacking if whom.sort == "user"],
        groups=[whom.name for whom in use.lacking if whom.sort == "group"],
        offered=use.is_offered,
        added=use.is_added,
        says=use.says,
        by=use.by and by_reply(use.by),
    )


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
