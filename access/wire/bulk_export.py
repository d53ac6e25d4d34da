"""The lines of what is streamed about a metalake's rights, our extension."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from access.explain.audit_log import AuditRow
from access.history.streams import Line
from access.usage.queries import Counted
from metalake.wire import Reply, written


class RuleReply(Reply):
    """What using a privilege on a kind of object takes: `owners` may anyway, of the object ("self") or of a container;
    `traversal` are the containers whose use it takes; any one set of `sufficient` is enough; a DENY of `blockedBy`
    blocks all but owners. `family` is the only type of catalog in which it applies.
    """

    privilege: str
    kind: str
    owners: list[str]
    traversal: list[str]
    sufficient: list[list[str]]
    blocked_by: list[str]
    family: str | None = None


class OperationReply(Reply):
    """What an operation takes on the kinds of object that it is asked on, in the words of a rule."""

    operation: str
    on: list[str]
    owners: list[str]
    traversal: list[str]
    sufficient: list[list[str]]


_CAMEL = {"owner_user": "ownerUser", "owner_group": "ownerGroup"}


def state_line(line: Line) -> dict[str, Any]:
    """One object, group, member, or what a role, user or group has; ids are numbers."""
    about = {"topic": line.topic, "place": line.place}
    match line.topic:
        case "object":
            state = {_CAMEL.get(name, name): value for name, value in line.state.items()}
            return about | {"id": line.about, "parent": line.holder, "name": line.name, **state}
        case "group" | "members":
            return about | {"id": line.about, "name": line.name}
        case "grants":
            return about | {"role": line.holder, "on": line.about, "grants": line.state}
    return about | {"holder": line.holder, "has": line.state}


def audit_line(row: AuditRow) -> dict[str, Any]:
    """One change, about an object (its id); or a refusal, of which `name` is what was asked and `says` why not."""
    return row._asdict() | {"at": written(row.at)}


def use_head(metalake: str, since: datetime, complete: datetime) -> dict[str, Any]:
    return {"metalake": metalake, "since": written(since), "completeUntil": written(complete)}


def use_line(row: Counted) -> dict[str, Any]:
    """How often one caller asked one question about one object (its id) in one hour since 1970."""
    place, on, *rest = row
    about = {"place": ".".join(map(str, place)), "hour": place[0], "on": on}
    return about | dict(zip(Counted._fields[2:], rest, strict=True))
