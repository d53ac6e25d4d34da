"""Asks for explanations over the wire, and tells them shortly."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from authz.operations import OPERATIONS
from tests.authz.small_world import Wire, kind_at

TABLE = "lake.A:B.t"


class Asking:
    """Asks about mia and as olga unless told otherwise."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire

    def __call__(self, wanted: str, on: str = TABLE, **asked: str | None) -> dict[str, Any]:
        """The explanation of a privilege, or of an operation of that name."""
        word = "operation" if wanted in OPERATIONS else "privilege"
        given = {word: wanted, "type": kind_at(on).value, "fullName": on, "user": "mia"} | asked
        by, active = given.pop("by", "olga"), given.pop("active", None)
        status, body = self.raw(by or "", active, **given)
        assert status == 200, body
        return body["explanation"]

    def raw(self, by: str = "olga", active: str | None = None, /, **query: str | None) -> tuple[int, dict[str, Any]]:
        text = "&".join(f"{name}={quote(value)}" for name, value in query.items() if value is not None)
        headers = {"Authorization": self.wire.basic(by)}
        if active is not None:
            headers["X-Gravitino-Active-Roles"] = active
        answer = self.wire.client.get(f"/api/metalakes/acme/access/explain?{text}", headers=headers)
        return answer.status_code, answer.json()


def said(reasons: list[dict[str, Any]]) -> list[str]:
    """Every sentence, without the moments."""
    found = []
    for reason in reasons:
        found.append(reason["says"].partition(", granted by")[0].removesuffix("."))
        found += said(reason["because"])
    return found


def changes(explanation: dict[str, Any]) -> list[list[str]]:
    """["grant select_table@lake.A", "liftDeny select_table@lake of r1"]"""
    return [[_change(step) for step in steps] for steps in explanation["changes"]]


def _change(step: dict[str, Any]) -> str:
    words = [step["change"], step.get("privilege", "")]
    text = " ".join(filter(None, words)) + f"@{step['on']['fullName']}"
    return f"{text} of {step['role']}" if "role" in step else text
