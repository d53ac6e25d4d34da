"""Files of roles and grants, shortly, and what a plan of one may change."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from access.plans import plan_file
from access.plans.desired import Change, Wanted
from authz.models import AuditEntry, Fact, Grant, Plan, PolicyEpoch
from authz.services.grant_entries import Given
from metalake.privileges import Effect, Privilege
from tests.authz.small_world import kind_at

LATER = "2999-01-01T00:00:00.000000Z"
PATH = "metalakes/acme/access"


def wanted(*roles_: dict[str, Any], **top: Any) -> Wanted:
    return plan_file.read_file(json.dumps({"metalake": "acme", **top, "roles": roles_}).encode(), plan_file.JSON)


def role(name: str, *entries: dict[str, Any], **who: Any) -> dict[str, Any]:
    return {"name": name, **who, "grants": list(entries)}


def on(full_name: str, *allow: Any, deny: tuple[Any, ...] = ()) -> dict[str, Any]:
    kind = "metalake" if full_name == "acme" else ("catalog", "schema", "table")[full_name.count(".")]
    return {"type": kind, "fullName": full_name, "allow": list(allow), "deny": list(deny)}


def subtree(kind: str, full_name: str) -> dict[str, Any]:
    return {"subtree": {"type": kind, "fullName": full_name}}


FILE = (
    role("analyst", on("lake", "use_catalog"), on("lake.A", "use_schema", "select_table"), users=["mia"], groups=[]),
    role("guard", on("lake.A", deny=("modify_table",)), groups=["crew"]),
    role("later", on("lake.A:B.t", {"privilege": "select_table", "startTime": LATER})),
)


def change(verb: str, role_: str, what: str = "", **span: Any) -> Change:
    """change("grant", "r", "deny select_table@lake.A"), change("assign", "r", "user mia"), change("createRole", "r")"""
    if verb in ("grant", "revoke"):
        privilege, _, where = what.removeprefix("deny ").partition("@")
        given = Given(Effect.DENY if what.startswith("deny ") else Effect.ALLOW, **span)
        return Change(verb, role_, Privilege(privilege), given, on=(kind_at(where), where))
    sort, _, name = what.partition(" ")
    return Change(verb, role_, holder=(sort, name) if name else None)


def lines(changes: Iterable[Change]) -> list[str]:
    """Changes as text: "grant r allow select_table lake.A", "assign r user mia"."""
    return [
        " ".join(
            filter(
                None,
                [
                    one.change,
                    one.role,
                    one.given and one.given.effect,
                    one.privilege,
                    one.on and one.on[1],
                    *(one.holder or ()),
                ],
            )
        )
        for one in changes
    ]


def state() -> tuple[Any, ...]:
    """All that a plan or an application may change."""
    return (
        sorted(Grant.objects.values_list("pk", "effect", "starts_at", "ends_at")),
        Fact.objects.count(),
        AuditEntry.objects.exclude(event="access.refused").count(),
        PolicyEpoch.objects.get().value,
        Plan.objects.count(),
    )
