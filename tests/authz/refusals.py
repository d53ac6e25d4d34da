"""The doors that grants come in by, and what a refusal is: an error in the wire's shape that changes nothing."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest

from authz.models import AuditEntry, Grant, PolicyChange, PolicyEpoch, Role
from authz.services import grants
from tests.authz.small_world import PASSWORD, Wire, World, kind_at

ROLE = "metalakes/acme/permissions/roles/analyst"
ROLES = "metalakes/acme/roles"

Asked = tuple[str, str, Any]
Door = Callable[[str, str, Any], Asked]


def grant(kind: str, name: str, privileges: Any) -> Asked:
    return "PUT", f"{ROLE}/{quote(kind, safe='')}/{quote(name, safe='')}/grant", {"privileges": privileges}


def revoke(kind: str, name: str, privileges: Any) -> Asked:
    return "PUT", f"{ROLE}/{quote(kind, safe='')}/{quote(name, safe='')}/revoke", {"privileges": privileges}


def securable(kind: Any, name: Any, privileges: Any) -> dict[str, Any]:
    return {"type": kind, "fullName": name, "privileges": privileges}


def create(kind: str, name: str, privileges: Any) -> Asked:
    return "POST", ROLES, {"name": "fresh", "securableObjects": [securable(kind, name, privileges)]}


def override(kind: str, name: str, privileges: Any) -> Asked:
    return "PUT", ROLE, {"overrides": [securable(kind, name, privileges)]}


DOORS = [grant, revoke, create, override]
GIVING = [grant, create, override]
doors = pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
giving = pytest.mark.parametrize("door", GIVING, ids=lambda door: door.__name__)


def allow(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "condition": "allow"} for name in names]


def deny(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "condition": "deny"} for name in names]


def hold(world: World, effect: str, privilege: str, where: str) -> None:
    grants.grant_privileges(world.olga, "acme", "analyst", kind_at(where), where, [(privilege, effect)])


def state() -> tuple[Any, ...]:
    """All that a grant may change."""
    return (
        list(Grant.objects.order_by("pk").values_list()),
        list(Role.objects.order_by("pk").values_list("pk", "name", "owner_user")),
        list(PolicyEpoch.objects.values_list("value", "stamp")),
        PolicyChange.objects.count(),
        AuditEntry.objects.exclude(event="access.refused").count(),
    )


class Refusal(NamedTuple):
    status: int
    code: int
    type: str
    message: str

    @property
    def shape(self) -> tuple[int, int, str]:
        return self[:3]


ILLEGAL_PRIVILEGE = (400, 1001, "IllegalPrivilegeException")
ILLEGAL_OBJECT = (400, 1001, "IllegalMetadataObjectException")
ILLEGAL_ARGUMENT = (400, 1001, "IllegalArgumentException")
NO_OBJECT = (404, 1003, "NoSuchMetadataObjectException")
FORBIDDEN = (403, 1008, "ForbiddenException")
TOO_LARGE = (413, 1001, "IllegalArgumentException")


def refused(wire: Wire, asked: Asked, *, user: str = "olga") -> Refusal:
    """How it was refused; nothing has changed."""
    before = state()
    status, reply = wire(*asked, user=user)
    assert status >= 400, (asked, reply)
    assert state() == before, asked
    return Refusal(status, reply["code"], reply["type"], reply["message"])


def raw(wire: Wire, asked: Asked, content: bytes, type_: str = "application/json") -> Refusal:
    """As refused, for a body that is sent as it is."""
    before = state()
    method, path, _ = asked
    credential = base64.b64encode(f"olga:{PASSWORD}".encode()).decode()
    answer = wire.client.generic(
        method, f"/api/{path}", content, content_type=type_, headers={"Authorization": f"Basic {credential}"},
        RAW_URI=f"/api/{path}",
    )  # fmt: skip
    assert state() == before
    reply = json.loads(answer.content)
    return Refusal(answer.status_code, reply["code"], reply["type"], reply["message"])
