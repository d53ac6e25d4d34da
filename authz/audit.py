"""One audit row per change, in the change's own transaction."""

from authz.models import AuditEntry
from metalake.events import Event, Into


def rows_of(happened: list[Event]) -> Into:
    """The audit rows of these events."""
    return AuditEntry, [
        AuditEntry(
            at=event.at,
            actor=event.actor,
            event=event.name,
            kind=event.kind,
            object_id=event.object_id,
            full_name=event.full_name,
            metalake_id=event.metalake_id,
            details=event.details,
            request_id=event.request_id,
        )
        for event in happened
    ]
