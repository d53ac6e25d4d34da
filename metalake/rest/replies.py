"""What replies of the wires have in common: who made an object and when, and how old an answer is."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http.response import HttpResponseBase
from django.utils import timezone

from metalake.wire import Reply


class AuditReply(Reply):
    """Who made it and who changed it last, in UTC; what is unset is left out."""

    creator: str
    create_time: str
    last_modifier: str | None = None
    last_modified_time: str | None = None


def audit_of(row: Any) -> dict[str, Any]:
    """AuditInfo as the wire has it; what is unset is left out."""
    audit = {"creator": row.creator, "createTime": moment_text(row.create_time)}
    if row.last_modifier:
        audit |= {"lastModifier": row.last_modifier, "lastModifiedTime": moment_text(row.last_modified_time)}
    return audit


def moment_text(moment: Any) -> str:
    """As the wire writes a time: UTC, microseconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def with_age(response: HttpResponseBase, moment: datetime | None) -> HttpResponseBase:
    """Say how old an answer is that an outside system gave (RFC 9111, Age)."""
    if moment is not None:
        response["Age"] = str(max(0, round((timezone.now() - moment).total_seconds())))
        response["X-Metalake-Taken-At"] = moment_text(moment)
    return response
