"""The native wire's answer to what the caller may grant on an object."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from access.explain.grantable import Grantable, Named
from access.explain.queries import Whom
from access.wire.access import object_reply
from authz.wire.rights import ObjectReply, present
from metalake.wire import Reply


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
        names=named and _people_reply(named),
    )


def _people_reply(named: Named) -> dict[str, Any]:
    return {
        "people": list(map(_person_reply, named.people)),
        "unknown": list(named.unknown),
        "ambiguous": list(named.ambiguous),
    }


def _person_reply(whom: Whom) -> dict[str, str]:
    return {whom.sort: whom.name}
