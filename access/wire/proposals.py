"""The native wire's bodies of proposals: by which role people are given privileges."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from access.explain.queries import Place, Whom
from access.plans.access_requests import USES, Note, OtherHolders, Proposal, Use, Wish
from access.wire.access import ByReply, ChangeReply, by_reply, change_reply, object_reply
from access.wire.plans import PlannedReply, planned_reply
from authz.services.grant_entries import read_entries
from authz.wire.rights import ObjectReply, PrivilegeBody, pairs, present
from metalake.errors import Invalid
from metalake.privileges import Privilege
from metalake.wire import Body, Reply, kind_of, quote


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

    def wish(self) -> Wish:
        """Raises Invalid."""
        kind = kind_of(self.type)
        people = [*(Whom("user", name) for name in self.users), *(Whom("group", name) for name in self.groups)]
        entries = read_entries(kind, pairs(self.privileges))
        return Wish(tuple(people), Place(kind, self.full_name), entries, self.role, _uses(self.with_use))


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
        asks=list(map(change_reply, proposal.asks)),
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
