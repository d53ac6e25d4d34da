"""The first subscriber of events: a file of JSON lines for whoever ships them on, named by METALAKE_EVENT_LOG."""

from __future__ import annotations

import os
from typing import Any

import orjson
from django.conf import settings


def append(event: dict[str, Any]) -> None:
    """One line an event, at least once; a line is written whole or not at all."""
    if not settings.METALAKE_EVENT_LOG:
        return
    handle = os.open(settings.METALAKE_EVENT_LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, orjson.dumps(event) + b"\n")
    finally:
        os.close(handle)
