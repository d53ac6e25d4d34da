"""One JSON line a record, with the request's id; secrets never reach a log because nobody puts them there."""

import logging
from collections.abc import MutableMapping
from typing import Any

import structlog

from metalake.context import request_id


def formatter() -> logging.Formatter:
    return structlog.stdlib.ProcessorFormatter(
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.JSONRenderer(),
        ],
        foreign_pre_chain=[
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _add_request_id,
        ],
    )


def _add_request_id(logger: Any, name: str, entry: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    if identifier := request_id.get():
        entry["request_id"] = identifier
    return entry
