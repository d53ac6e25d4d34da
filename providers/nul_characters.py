"""NUL characters in answers of outside systems: our database cannot store them, so they are replaced by STAND_IN.

Definitions that are sent back have their NULs again, so that an alteration does not change other parts of the object.
"""

from __future__ import annotations

from typing import Any

import orjson

NUL, STAND_IN = "\0", "\ufdd0"  # a Unicode noncharacter for internal use, which other text does not have
_NUL_IN_JSON, _STAND_IN_IN_JSON = b"\\u0000", STAND_IN.encode()


def as_stored(answer: Any) -> Any:
    """An outside system's JSON in the form that can be stored: with STAND_IN for each NUL."""
    return _replaced(answer, NUL, STAND_IN) if _NUL_IN_JSON in orjson.dumps(answer) else answer


def as_sent(definition: Any) -> Any:
    """Stored JSON in the form that the outside system had: with its NULs."""
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
