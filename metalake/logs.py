"""One JSON line a record, with the request's id; secrets never reach a log because nobody puts them there."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

from pythonjsonlogger.orjson import OrjsonFormatter

from metalake.context import request_id


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
