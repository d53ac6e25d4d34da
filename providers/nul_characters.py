"""NUL characters in responses of outside systems: our database cannot store them, so STAND_IN replaces them.

Definitions that are sent back have their NULs restored, so that an alteration does not change the rest of the object.
"""

from __future__ import annotations

from typing import Any

import orjson

NUL, STAND_IN = "\0", "\ufdd0"  # a Unicode noncharacter, reserved for internal use
_NUL_IN_JSON, _STAND_IN_IN_JSON = b"\\u0000", STAND_IN.encode()


def as_stored(answer: Any) -> Any:
    """An outside system's JSON as our database stores it: with STAND_IN for each NUL."""
    return _replaced(answer, NUL, STAND_IN) if _NUL_IN_JSON in orjson.dumps(answer) else answer


def as_sent(definition: Any) -> Any:
    """Stored JSON as the outside system returned it: with its NULs."""
    return _replaced(definition, STAND_IN, NUL) if _STAND_IN_IN_JSON in orjson.dumps(definition) else definition


def _replaced(value: Any, this: str, by: str) -> Any:
    match value:
        case str():
            return value.replace(this, by)
        case dict():
            return {_replaced(key, this, by): _replaced(item, this, by) for key, item in value.items()}
        case list():
            return [_replaced(item, this, by) for item in value]
    return value
