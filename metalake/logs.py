"""The log: one JSON line per record, with the request id. Callers never log secrets."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

from pythonjsonlogger.orjson import OrjsonFormatter

from metalake.database_errors import log_text
from metalake.errors import MetalakeError, OutcomeUnknown, ProviderUnavailable
from metalake.request_context import request_id

log = logging.getLogger(__name__)


class Line(OrjsonFormatter):
    def add_fields(self, entry: dict[str, Any], record: logging.LogRecord, message: dict[str, Any]) -> None:
        super().add_fields(entry, record, message)
        entry["event"] = entry.pop("message", "")
        entry["level"] = record.levelname.lower()
        entry["logger"] = record.name
        entry["timestamp"] = datetime.fromtimestamp(record.created, UTC).isoformat()
        if identifier := request_id.get():
            entry["request_id"] = identifier


def formatter() -> logging.Formatter:
    return Line()


class Unforeseen(logging.Filter):
    """Passes only exceptions of django.request: other error responses are already logged with their reason."""

    def filter(self, record: logging.LogRecord) -> bool:
        return bool(record.exc_info)


def unforeseen() -> logging.Filter:
    return Unforeseen()


def note_failure(error: MetalakeError) -> None:
    """Log a failure of a remote system or our database with its cause, for operators."""
    cause = log_text(error.__cause__)
    line = f"{error.message} [{cause}]" if cause else error.message
    if isinstance(error, OutcomeUnknown):
        log.error("outcome unknown: %s", line)
    elif isinstance(error, ProviderUnavailable):
        log.warning("unavailable: %s", line)
