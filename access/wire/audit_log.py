"""The native wire's form of what was done to an object, our extension."""

from __future__ import annotations

from typing import Any

from access.explain.audit_log import AuditLine
from metalake.wire import Reply, written


class ChangeOfObjectReply(Reply):
    """One change of an object: when, which event, by whom, and in words."""

    at: str
    event: str
    actor: str
    says: str


def change_reply(line: AuditLine) -> dict[str, Any]:
    return {"at": written(line.at), "event": line.event, "actor": line.actor, "says": line.says}
