"""Native API bodies for bulk adding and removing of users and groups, as Gravitino documents them."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field

from authz.services.bulk import MAX_ENTRIES, Failure, NewGroup, NewUser, Outcome
from authz.wire.rights import GroupAddRequest, UserAddRequest
from metalake.rest.exceptions import error_body
from metalake.wire import Body, Reply, quote

T = TypeVar("T")
Some = Annotated[list[T], Field(min_length=1, max_length=MAX_ENTRIES)]


def _once(names: list[str]) -> list[str]:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"{quote(twice[0])} is named twice; name it once")
    return names


class BulkUserAddRequest(Body):
    """The users to add."""

    users: Some[UserAddRequest]

    def wanted(self) -> list[NewUser]:
        return [NewUser(user.name, user.external_id, user.enabled) for user in self.users]


class BulkGroupAddRequest(Body):
    """The stored groups to add."""

    groups: Some[GroupAddRequest]

    def wanted(self) -> list[NewGroup]:
        return [NewGroup(group.name, group.external_id) for group in self.groups]


class BulkRemoveRequest(Body):
    """The names to remove, each once."""

    names: Annotated[Some[str], AfterValidator(_once)]


class BulkErrorReply(Reply):
    """Why the entry at `index`, counted from zero, failed."""

    index: int
    name: str
    code: int
    type: str
    message: str


class BulkSummaryReply(Reply):
    """How many entries there were, and how many of them succeeded and failed."""

    total: int
    succeeded: int
    failed: int


FAILURES = {"errors": list[BulkErrorReply], "summary": BulkSummaryReply}


def failures_reply(outcome: Outcome[Any]) -> dict[str, Any]:
    done, failed = len(outcome.done), len(outcome.failures)
    return {
        "errors": [_error_reply(failure) for failure in outcome.failures],
        "summary": {"total": done + failed, "succeeded": done, "failed": failed},
    }


def _error_reply(failure: Failure) -> dict[str, Any]:
    return {"index": failure.index, "name": failure.name, **error_body(failure.error)}
