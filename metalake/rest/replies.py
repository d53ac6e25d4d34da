"""Parts of replies shared by both APIs: an object's audit fields, and the age of a cached response."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from django.http.response import HttpResponseBase
from django.utils import timezone

from metalake.wire import Reply


class AuditReply(Reply):
    """Who created it and who changed it last, in UTC; unset fields are omitted, all of them for a mere path."""

    creator: str | None = None
    create_time: str | None = None
    last_modifier: str | None = None
    last_modified_time: str | None = None


class Audit(NamedTuple):
    """Who created an object and who changed it last; datetimes are in UTC, aware or naive."""

    creator: str
    create_time: datetime
    last_modifier: str | None
    last_modified_time: datetime | None


def audit_of(row: Any) -> dict[str, Any]:
    """AuditInfo as JSON; unset fields are omitted."""
    audit = {"creator": row.creator, "createTime": moment_text(row.create_time)}
    if row.last_modifier:
        audit |= {"lastModifier": row.last_modifier, "lastModifiedTime": moment_text(row.last_modified_time)}
    return audit


def moment_text(moment: Any) -> str:
    """A UTC datetime in the API's format: ISO 8601 with microseconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def with_age(response: HttpResponseBase, moment: datetime | None) -> HttpResponseBase:
    """Add the age of a remote system's response, if `moment` is given (RFC 9111, Age)."""
    for name, value in age_of(moment).items() if moment is not None else ():
        response[name] = value
    return response


def age_of(moment: datetime) -> dict[str, str]:
    """The headers with the age of a remote system's response, in seconds, and its time."""
    age = max(0, round((timezone.now() - moment).total_seconds()))
    return {"Age": str(age), "X-Metalake-Taken-At": moment_text(moment)}
