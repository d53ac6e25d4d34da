"""The native wire's bodies of the search."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from access.explain.search import Result, Results
from metalake.wire import Reply


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
        "objects": list(map(_result, results.objects)),
        "roles": list(map(_result, results.roles)),
        "users": list(map(_result, results.users)),
        "groups": list(map(_result, results.groups)),
        "isCut": results.is_cut,
        "beginningsOnly": results.beginnings_only,
    }


def _result(result: Result) -> dict[str, Any]:
    return {"type": result.kind, "id": str(result.id), "name": result.name, "path": list(result.path)}
