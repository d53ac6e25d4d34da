"""Parts that replies of both wires share: who made an object and when, and how old an answer is."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from django.http.response import HttpResponseBase
from django.utils import timezone

from metalake.wire import Reply


class AuditReply(Reply):
    """Who made it and who changed it last, in UTC; unset fields are left out, all of an object that is only a path."""

    creator: str | None = None
    create_time: str | None = None
    last_modifier: str | None = None
    last_modified_time: str | None = None


class Audit(NamedTuple):
    """Who made an object and who changed it last; moments are in UTC, with or without saying so."""

    creator: str
    create_time: datetime
    last_modifier: str | None
    last_modified_time: datetime | None


def audit_of(row: Any) -> dict[str, Any]:
    """AuditInfo as the wire has it; unset fields are left out."""
    audit = {"creator": row.creator, "createTime": moment_text(row.create_time)}
    if row.last_modifier:
        audit |= {"lastModifier": row.last_modifier, "lastModifiedTime": moment_text(row.last_modified_time)}
    return audit


def moment_text(moment: Any) -> str:
    """A moment as the wire writes it: in UTC, with microseconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def with_age(response: HttpResponseBase, moment: datetime | None) -> HttpResponseBase:
    """Add the age of an outside system's answer, if it is one (RFC 9111, Age)."""
    for name, value in age_of(moment).items() if moment is not None else ():
        response[name] = value
    return response


def age_of(moment: datetime) -> dict[str, str]:
    """The headers that say how old an outside system's answer is."""
    age = max(0, round((timezone.now() - moment).total_seconds()))
    return {"Age": str(age), "X-Metalake-Taken-At": moment_text(moment)}
