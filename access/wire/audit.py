"""The native wire's form of the audit of a metalake, our extension."""

from __future__ import annotations

from typing import Any, Literal

from access.explain.audit_search import AuditPage, Entry
from access.usage.refusals import RefusedUse
from access.wire.access import object_reply
from access.wire.usage import AskedReply, asked_reply
from authz.wire.rights import ObjectReply, present
from metalake.wire import Reply, written


class AuditEntryReply(Reply):
    """A change, or a refusal, whose `name` is the request; `on` is the object today, if it is there and visible."""

    id: int
    at: str
    actor: str
    event: str
    outcome: Literal["change", "refusal"]
    type: str
    name: str
    says: str
    on: ObjectReply | None = None


class RefusalsReply(Reply):
    """The sums of what was refused on an object and below it, in the record of use since a moment."""

    uses: list[AskedReply]
    since: str
    cut: bool


AUDIT = {
    "entries": list[AuditEntryReply],
    "refusals": RefusalsReply | None,
    "partial": bool,
    "searchedTo": str | None,
    "nextPageToken": str | None,
}


def entry_reply(entry: Entry) -> dict[str, Any]:
    return present(
        id=entry.id,
        at=written(entry.at),
        actor=entry.actor,
        event=entry.event,
        outcome="refusal" if entry.is_refusal else "change",
        type=entry.kind,
        name=entry.name,
        says=entry.says,
        on=entry.on and object_reply(entry.on),
    )


def audit_reply(page: AuditPage, refusals: RefusedUse | None, token: str | None) -> dict[str, Any]:
    return present(
        entries=list(map(entry_reply, page.entries)),
        refusals=refusals
        and {"uses": list(map(asked_reply, refusals.lines)), "since": written(refusals.since), "cut": refusals.is_cut},
        partial=page.searched_to is not None,
        searchedTo=page.searched_to and written(page.searched_to),
        nextPageToken=token,
    )
