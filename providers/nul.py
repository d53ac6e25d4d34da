"""NUL characters in what outside systems say: no database keeps them, so another character stands for each here.

A definition that goes back has its NULs again, so that what an alteration leaves alone stays as it was there.
"""

from __future__ import annotations

from typing import Any

import orjson

NUL, STAND_IN = "\0", "\ufdd0"  # Unicode leaves that one to programs, so no text of others has it
_NUL_IN_JSON, _STAND_IN_IN_JSON = b"\\u0000", STAND_IN.encode()


def as_kept(answer: Any) -> Any:
    """JSON of an outside system as it may be kept and shown here."""
    return _replaced(answer, NUL, STAND_IN) if _NUL_IN_JSON in orjson.dumps(answer) else answer


def as_sent(definition: Any) -> Any:
    """The same as it was there."""
    return _replaced(definition, STAND_IN, NUL) if _STAND_IN_IN_JSON in orjson.dumps(definition) else definition


def _replaced(value: Any, this: str, by: str) -> Any:
    match value:
        case str():
            return value.replace(this, by)
        case dict():
            return {_replaced(key, this, by): _replaced(held, this, by) for key, held in value.items()}
        case list():
            return [_replaced(held, this, by) for held in value]
    return value
