"""The text of a Trino view: base64-encoded JSON in a comment, as `/* Presto View: eyJvcm... */`.

Source: Trino's ViewReaderUtil, ConnectorViewDefinition and IcebergMaterializedViewDefinition, and views of Trino 476.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from formats.hive.views.forms import MATERIALIZED_PREFIX, VIEW_PREFIX
from formats.hive.views.unreadable import Unreadable
from metalake.wire import MAX_BODY_NESTING, nests_deeper_than

Json = dict[str, Any]
SUFFIX = " */"


def decode(text: str) -> Json:
    """The JSON object in the text. Raises Unreadable."""
    prefix = next((prefix for prefix in (VIEW_PREFIX, MATERIALIZED_PREFIX) if text.startswith(prefix)), None)
    if prefix is None or not text.endswith(SUFFIX):
        raise Unreadable(f"Its text does not begin with '{VIEW_PREFIX}' and end with '{SUFFIX}'.")
    encoded = text[len(prefix) : -len(SUFFIX)]
    try:
        raw = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except ValueError:
        raise Unreadable("The part of its text that should be base64 is not.") from None
    try:
        data = json.loads(raw.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise Unreadable("Its text does not hold JSON.") from None
    if not isinstance(data, dict) or nests_deeper_than(MAX_BODY_NESTING, data):
        raise Unreadable("The JSON in its text is not the object that Trino writes.")
    return data


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def encode(data: Json) -> str:
    """The text of a view that is not materialized."""
    raw = json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode()
    return f"{VIEW_PREFIX}{base64.b64encode(raw).decode()}{SUFFIX}"
