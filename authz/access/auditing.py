"""What was done to one object, from the audit, for whoever may read access to it (docs/authorization.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from authz.access.asking import Place, open_on
from authz.actor import Actor
from authz.models import AuditEntry
from authz.operations import read_access
from authz.services.authority import require
from metalake.lineage import Located

AT_ONCE = 200


class AuditLine(NamedTuple):
    """One change: `says` is what was done, without the places and other objects that the audit names too."""

    id: int
    at: datetime
    event: str
    actor: str
    says: str


def read_audit(actor: Actor, metalake: str, on: Place, before: int | None = None) -> Iterator[AuditLine]:
    """The changes of an object by name, as `audit_of` gives them. Raises NotFound, NotInUse, Forbidden."""
    return audit_of(actor, open_on(actor, metalake, on)[1], before)


def audit_of(actor: Actor, target: Located, before: int | None = None) -> Iterator[AuditLine]:
    """The changes of a located object, the newest first, from the one before the change `before`.

    Raises NotFound and Forbidden unless the actor may read who has access to it.
    """
    require(actor, read_access(target.kind), target)
    rows = AuditEntry.objects.filter(object_id=target.id, kind=target.kind)
    if before is not None:
        rows = rows.filter(pk__lt=before)
    fields = rows.order_by("-pk").values_list("pk", "at", "event", "actor", "details")
    return (_line(*row) for row in fields.iterator(chunk_size=AT_ONCE))


def _line(id: int, at: datetime, event: str, actor: str, details: Mapping[str, Any]) -> AuditLine:
    return AuditLine(id, at, event, actor, _sentence(event, details))


def _sentence(event: str, details: Mapping[str, Any]) -> str:
    privileges = ", ".join(map(str, details.get("privileges") or ()))
    match event:
        case "privileges.granted":
            return f"granted {privileges} to role {details.get('role')}"
        case "privileges.revoked":
            return f"revoked {privileges} from role {details.get('role')}"
        case "owner.set":
            return f"made {details.get('type')} {details.get('owner')} the owner"
    done = event.partition(".")[2].replace("_", " ")
    changed = ", ".join(map(str, details.get("changed") or ()))
    return f"{done}: {changed}" if changed else done
