"""One JSON line a record, with the request's id; secrets never reach a log because nobody puts them there."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

from pythonjsonlogger.orjson import OrjsonFormatter

from metalake.causes import said_by
from metalake.context import request_id
from metalake.errors import MetalakeError, OutcomeUnknown, ProviderUnavailable

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
    """Of what Django says of answers only exceptions: the others were said with the request's id and the reason."""

    def filter(self, record: logging.LogRecord) -> bool:
        return bool(record.exc_info)


def unforeseen() -> logging.Filter:
    return Unforeseen()


def note_failure(error: MetalakeError) -> None:
    """A line for what another system or our database did not do, with its cause: an operator may have to see to it."""
    cause = said_by(error.__cause__)
    told = f"{error.message} [{cause}]" if cause else error.message
    if isinstance(error, OutcomeUnknown):
        log.error("outcome unknown: %s", told)
    elif isinstance(error, ProviderUnavailable):
        log.warning("unavailable: %s", told)
