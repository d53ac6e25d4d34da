"""The native wire's bodies of questions about access and of the search, all of them our extension."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field

from access.explain.audit_log import AuditLine
from access.explain.cases import NamedGrant, Reason
from access.explain.explanations import Explanation, read_wanted
from access.explain.grantable import Grantable, Named
from access.explain.queries import MAX_QUESTIONS, Place, Question
from access.explain.reach import Access, Reached, Use
from access.explain.remedies import By, Step
from access.explain.search import Result, Results
from authz.wire.rights import ObjectReply, OwnerReply, owner_reply, present
from metalake.errors import Invalid, at
from metalake.full_names import dotted
from metalake.lineage import Located
from metalake.privileges import Privilege
from metalake.rest.exceptions import error_line
from metalake.wire import MOMENT, Body, Moment, Reply, kind_of, known_privilege, quote, utc, written

LINES_AT_ONCE = 500


def read_as_of(text: str | None) -> datetime | None:
    """The moment of `asOf`, None for now. Raises Invalid."""
    return read_moment("asOf", text)


def read_moment(name: str, text: str | None) -> datetime | None:
    """The moment in a query parameter of this name, if it is there; without an offset it is UTC. Raises Invalid."""
    if text is None:
        return None
    try:
        return utc(text)
    except ValueError:
        raise Invalid(f"{name} is {quote(text)}, but {MOMENT}; in a query a plus sign is written %2B.") from None


def read_privilege(text: str | None) -> Privilege | None:
    """The privilege that a question is narrowed to, None for all. Raises Invalid."""
    return None if text is None else known_privilege(text)


# Explain


class GrantReply(Reply):
    """A grant with its role; without `on` where the caller may not see the object."""

    role: str
    privilege: str
    condition: Literal["allow", "deny"]
    on: ObjectReply | None = None
    grantor: str
    grant_time: str
    start_time: str | None = None
    end_time: str | None = None


class ThroughReply(Reply):
    """The group by which something is held or owned."""

    group: str


class ReasonReply(Reply):
    """One sentence, what it rests on, and the same as data.

    That is a grant; who owns the object `on`; or the privilege that is lacking and the nearest object to grant it on.
    """

    says: str
    because: list[ReasonReply]
    grant: GrantReply | None = None
    through: ThroughReply | None = None
    owner: OwnerReply | None = None
    lacks: str | None = None
    on: ObjectReply | None = None


class ByReply(Reply):
    """Who may make a change; `redacted` if the caller may not know, with the owner of an object that they may load."""

    names: list[str] | None = None
    more: int | None = None
    redacted: bool | None = None
    owner: OwnerReply | None = None


class ChangeReply(Reply):
    """One change; all of a set are needed, and any one set is enough."""

    change: Literal["addMember", "grant", "liftDeny", "own", "useRole"]
    says: str
    on: ObjectReply | None = None
    privilege: str | None = None
    role: str | None = None
    by: ByReply | None = None


class ExplanationReply(Reply):
    """Whether a user may do something on an object, why, and what would change a no of today."""

    allowed: bool
    user: str
    privilege: str | None = None
    operation: str | None = None
    object: ObjectReply
    as_of: str | None = None
    because: list[ReasonReply]
    changes: list[list[ChangeReply]] | None = None


def explanation_reply(explanation: Explanation) -> dict[str, Any]:
    privilege = explanation.wanted.privilege
    return present(
        allowed=explanation.allowed,
        user=explanation.user,
        privilege=privilege and privilege.value,
        operation=explanation.wanted.operation.name if privilege is None else None,
        object=object_reply(explanation.on),
        asOf=explanation.as_of and written(explanation.as_of),
        because=[_reason_reply(reason) for reason in explanation.because],
        changes=None
        if explanation.changes is None
        else [[step_reply(step) for step in steps] for steps in explanation.changes],
    )


def _reason_reply(reason: Reason) -> dict[str, Any]:
    return present(
        says=reason.says,
        because=[_reason_reply(below) for below in reason.because],
        grant=reason.grant and _grant_reply(reason.grant),
        through=reason.group and {"group": reason.group},
        owner=reason.owner and owner_reply(reason.owner),
        lacks=reason.lacks and reason.lacks.value,
        on=reason.on and object_reply(reason.on),
    )


def _grant_reply(grant: NamedGrant) -> dict[str, Any]:
    return present(
        role=grant.role,
        privilege=grant.privilege.value,
        condition=grant.effect.value,
        on=grant.on and object_reply(grant.on),
        grantor=grant.grantor,
        grantTime=written(grant.granted_at),
        startTime=grant.starts_at and written(grant.starts_at),
        endTime=grant.ends_at and written(grant.ends_at),
    )


def step_reply(step: Step) -> dict[str, Any]:
    return present(
        change=step.change,
        says=step.says,
        on=step.on and object_reply(step.on),
        privilege=step.privilege and step.privilege.value,
        role=step.role,
        by=step.by and by_reply(step.by),
    )


def by_reply(by: By) -> dict[str, Any]:
    if by.names is None:
        return present(redacted=True, owner=by.owner and owner_reply(by.owner))
    return {"names": list(by.names), "more": by.more}


def object_reply(on: Located) -> dict[str, str]:
    return {"type": on.kind.value, "fullName": dotted(on.full_name)}


# Who reaches what


class MemberAccessReply(Reply):
    """A member and what they can use on the object; `owner` if they or their group own it."""

    user: str
    owner: bool
    privileges: list[str]


class ReachedReply(Reply):
    """An object that is reached, with the privileges that can be used on it, which may be none if it only loads."""

    type: str
    full_name: str
    owner: bool | None = None
    privileges: list[str]


def access_reply(access: Access) -> dict[str, Any]:
    return {"user": access.user, "owner": access.use.owner, "privileges": list(access.use.privileges)}


def reached_reply(reached: Reached) -> dict[str, Any]:
    use = reached.use
    owner = {"owner": True} if use.owner else {}
    return {"type": use.kind.value, "fullName": reached.full_name, **owner, "privileges": list(use.privileges)}


def lines(objects: Iterator[Reached]) -> Iterator[bytes]:
    """The objects as lines of JSON, many lines in each chunk; a failure on the way is the last line."""
    halves: dict[Use, tuple[bytes, bytes]] = {}
    some: list[bytes] = []
    try:
        for reached in objects:
            use = reached.use
            if use not in halves:
                halves[use] = _around_name(use)
            start, end = halves[use]
            some += (start, orjson.dumps(reached.full_name), end)
            if len(some) >= 3 * LINES_AT_ONCE:
                yield b"".join(some)
                some.clear()
    except Exception as failure:
        some.append(error_line(failure))
    yield b"".join(some)


def _around_name(use: Use) -> tuple[bytes, bytes]:
    """The parts of a line before and after its full name, which objects with the same Use share."""
    start, end = orjson.dumps(reached_reply(Reached("", "", use))).split(b'"fullName":""')
    return start + b'"fullName":', end + b"\n"


class QuestionBody(Body):
    """Whether a user, or the caller, may use a privilege or do an operation on an object."""

    user: Annotated[str, Field(min_length=1)] | None = None
    privilege: str | None = None
    operation: str | None = None
    type: str
    full_name: str

    def asked(self) -> Question:
        kind = kind_of(self.type)
        return Question(self.user, read_wanted(kind, self.privilege, self.operation), Place(kind, self.full_name))


class CheckRequest(Body):
    """Questions that are answered at one moment."""

    as_of: Moment | None = None
    questions: Annotated[list[QuestionBody], Field(min_length=1, max_length=MAX_QUESTIONS)]

    def asked(self) -> list[Question]:
        """Raises Invalid naming the question."""
        asked = []
        for place, question in enumerate(self.questions):
            with at(f"questions[{place}]"):
                asked.append(question.asked())
        return asked


class AnswerReply(Reply):
    """The answer to one question; a missing or hidden object is answered as not allowed."""

    allowed: bool


# Former members


class FormerMemberReply(Reply):
    """A former member, with the roles and groups that carry a DENY to them and are theirs again when they are added."""

    name: str
    roles: list[str]
    groups: list[str]


class ChangeOfObjectReply(Reply):
    """One change of an object: when, which event, by whom, and in words."""

    at: str
    event: str
    actor: str
    says: str


def change_of_object_reply(line: AuditLine) -> dict[str, Any]:
    return {"at": written(line.at), "event": line.event, "actor": line.actor, "says": line.says}


class ResultReply(Reply):
    """One thing that matches, with the names above it, the metalake's first; pages address it by the id."""

    type: str
    id: str = Field(description="Digits, more than a number of JavaScript holds")
    name: str
    path: list[str]


class ResultsReply(Reply):
    """What matches, the best first."""

    objects: list[ResultReply]
    roles: list[ResultReply]
    users: list[ResultReply]
    groups: list[ResultReply]
    is_cut: bool = Field(description="There may be more: type more of the name, or its path")
    beginnings_only: bool = Field(description="In what is large only the beginnings of names were searched")


def results_reply(results: Results) -> dict[str, Any]:
    return {
        **{sort: list(map(_result, getattr(results, sort))) for sort in ("objects", "roles", "users", "groups")},
        "isCut": results.is_cut,
        "beginningsOnly": results.beginnings_only,
    }


def _result(result: Result) -> dict[str, Any]:
    return {"type": result.kind, "id": str(result.id), "name": result.name, "path": list(result.path)}


class ScopeReply(Reply):
    """An object that a grant may stand on, the metalake first; without `objects` where the caller may not grant."""

    on: ObjectReply
    objects: int | None = Field(default=None, description="How many objects a grant there covers, itself included")
    at_least: bool | None = Field(default=None, description="True where there are more objects than were counted")


class GrantablePrivilegeReply(Reply):
    """A privilege, the kind of object that it is about, and why the caller may not grant it here."""

    name: str
    about: str | None = None
    why_not: str | None = None


class LevelReply(Reply):
    """The privileges that a word such as reader stands for on this object."""

    level: str
    privileges: list[str]


class PersonReply(Reply):
    """A user or a group."""

    user: str | None = None
    group: str | None = None


class PeopleReply(Reply):
    """The names of the question: users and groups, names of neither, and names of both."""

    people: list[PersonReply]
    unknown: list[str]
    ambiguous: list[str]


class GrantableReply(Reply):
    """What the caller may grant on an object."""

    on: ObjectReply
    scopes: list[ScopeReply]
    privileges: list[GrantablePrivilegeReply]
    levels: list[LevelReply]
    names: PeopleReply | None = None


def grantable_reply(may: Grantable, named: Named | None) -> dict[str, Any]:
    return present(
        on=object_reply(may.on),
        scopes=[
            present(on=object_reply(scope.on), objects=scope.objects, atLeast=scope.is_cut or None)
            for scope in may.scopes
        ],
        privileges=[
            present(name=privilege.value, about=about, whyNot=why_not or None)
            for privilege, about, why_not in may.privileges
        ],
        levels=[{"level": level, "privileges": list(privileges)} for level, privileges in may.levels.items()],
        names=named
        and {
            "people": [{whom.sort: whom.name} for whom in named.people],
            "unknown": list(named.unknown),
            "ambiguous": list(named.ambiguous),
        },
    )
